//===- Updates.h - common parts of updates on cpu ---------------*- C++ -*-===//
//
// Vectors of a tensor's elements, the random bits that round them, and the sums
// of squares of the updates. The code that includes this also runs on the host
// beside a card: runtime/cuda/HostUpdates.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_UPDATES_H
#define TMC_RUNTIME_CPU_UPDATES_H

#include "runtime/kernels/Optimizer.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/PhiloxSimd.h"
#include "runtime/kernels/Stochastic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>

namespace tmc::updates {

using simd::kParts;
using simd::kWidth;
using simd::V;
using simd::Wide;

/// Prefetch distance in elements: a page, where the hardware prefetcher stops.
constexpr int64_t kAhead = 1024;

/// An array that is read from front to back: elements of `size` bytes.
struct Ahead {
  const char *data;
  int64_t size;

  template <typename T>
  Ahead(const T *data)
      : data(reinterpret_cast<const char *>(data)), size(sizeof(T)) {}
};

/// Calls body(i, part, count) for the vectors of [begin, end). `part` is the
/// register of a Wide for vector i. `count` < kWidth only at the very end. The
/// memory of `streams` is prefetched.
template <typename F>
void eachVector(int64_t begin, int64_t end,
                std::initializer_list<Ahead> streams, F &&body) {
  constexpr int64_t line = 64;
  int64_t i = begin;
  for (; i + simd::kLanes <= end; i += simd::kLanes) {
    for (const Ahead &stream : streams)
      for (int64_t j = 0; j < simd::kLanes * stream.size; j += line)
        __builtin_prefetch(stream.data + (i + kAhead) * stream.size + j);
    for (int p = 0; p < kParts; ++p)
      body(i + p * kWidth, p, int64_t(kWidth));
  }
  for (int p = 0; i < end; ++p, i += kWidth)
    body(i, p, std::min<int64_t>(kWidth, end - i));
}

template <typename T> V loadSome(const T *p, int64_t count) {
  if (count == kWidth)
    return loadLanes<kWidth>(p);
  T some[kWidth] = {};
  std::copy(p, p + count, some);
  return loadLanes<kWidth>(some);
}
inline void storeSome(float *p, V v, int64_t count) {
  if (count == kWidth)
    simd::store(p, v);
  else
    simd::storePart(p, v, count);
}

inline void storeSome(const RoundedCopy &copy, int64_t i, V v, int64_t count) {
  if (count == kWidth)
    return copy.store<kWidth>(i, v);
  for (int64_t lane = 0; lane < count; ++lane)
    copy.store<1>(i + lane, v[lane]);
}

/// The random bits that round an update's vectors; up to `Count` values of an
/// element may be rounded.
template <int Count> class Chance {
public:
  Chance(int64_t stream, int64_t step) : draws(roundingDraws(stream, step)) {}

  /// Must be called for each vector in order, from the start of a tile.
  void moveTo(int64_t element) {
    at = element % kDrawn;
    if (at == 0)
      draw(element / kRoundedElements);
  }
  void store(int, float *p, V v, int64_t count) const {
    storeSome(p, v, count);
  }
  void store(int which, bf16 *p, V v, int64_t count) const {
    const auto chance = convert<uint32_t>(loadRaw<kWidth>(halves[which] + at));
    const auto bits = convert<uint16_t>(stochasticBits(v, chance));
    std::memcpy(p, &bits, size_t(count) * sizeof(bf16));
  }

private:
  /// Elements whose quads fill a register, one quad per lane.
  static constexpr int64_t kDrawn = kWidth * kRoundedElements;
  static_assert(kUpdateTile % kDrawn == 0);

  void draw(int64_t group) {
    for (int which = 0; which < Count; ++which) {
      uint32_t low[kWidth], high[kWidth];
      for (int lane = 0; lane < kWidth; ++lane) {
        const uint64_t quad = uint64_t(kRoundedValues * (group + lane) + which);
        low[lane] = uint32_t(quad);
        high[lane] = uint32_t(quad >> 32);
      }
      simd::VU words[4];
      simd::philoxQuads(draws, loadRaw<kWidth>(low), loadRaw<kWidth>(high),
                        words);
      uint16_t *to = halves[which];
      for (int lane = 0; lane < kWidth; ++lane)
        for (int word = 0; word < 4; ++word) {
          *to++ = uint16_t(words[word][lane]);
          *to++ = uint16_t(words[word][lane] >> 16);
        }
    }
  }

  Philox draws;
  int64_t at = 0;
  alignas(64) uint16_t halves[Count][kDrawn];
};

/// Without rounding.
template <> class Chance<0> {
public:
  Chance(int64_t, int64_t) {}
  void moveTo(int64_t) {}
  void store(int, float *p, V v, int64_t count) const {
    storeSome(p, v, count);
  }
};

inline int64_t tilesOf(int64_t count) {
  return (count + kUpdateTile - 1) / kUpdateTile;
}

/// The order of sums of squares. This code also runs on the host beside a card
/// (runtime/cuda/HostUpdates.cpp); then it uses the order of the card's
/// kernels.
#ifdef TMC_SUMS_OF_CUDA
constexpr bool kSumsOfCuda = true;
#else
constexpr bool kSumsOfCuda = false;
#endif
/// The lanes of runtime/cuda/Optimizer.cu in the sum of a part, and of all
/// parts.
constexpr int kCudaLanes = 256;

/// The order of blockReduce() in runtime/cuda/Launch.h.
inline double reduceAsBlock(double *lanes, int count) {
  for (int step = count / 2; step > 0; step /= 2)
    for (int i = 0; i < step; ++i)
      lanes[i] += lanes[i + step];
  return lanes[0];
}

/// One part in the order of cuda's squarePart().
template <typename Grad>
double cudaSquaresOf(const Grad *grad, int64_t begin, int64_t end) {
  double lanes[kCudaLanes];
  for (int lane = 0; lane < kCudaLanes; ++lane) {
    float sum = 0;
    for (int64_t run = begin + 4 * lane; run < end; run += 4 * kCudaLanes)
      for (int64_t i = run; i < std::min(run + 4, end); ++i) {
        const float value = loadLanes<1>(grad + i);
        sum = __builtin_fmaf(value, value, sum);
      }
    lanes[lane] = sum;
  }
  return reduceAsBlock(lanes, kCudaLanes);
}

/// Adds the sums of the parts.
inline double addParts(const double *partial, int64_t parts) {
  double lanes[kCudaLanes] = {};
  if (!kSumsOfCuda)
    for (int64_t i = 0; i < parts; ++i)
      lanes[0] += partial[i];
  else
    for (int64_t i = 0; i < parts; ++i)
      lanes[i % kCudaLanes] += partial[i];
  return kSumsOfCuda ? reduceAsBlock(lanes, kCudaLanes) : lanes[0];
}

/// Runs body(begin, end) -> sum of squares over the parts of an update, and
/// adds their sums in order.
template <typename Grad, typename F>
void updateTiles(Stream &stream, int64_t count, const Grad *grad, void *scratch,
                 float *squares, F &&body) {
  double *partial = static_cast<double *>(scratch);
  const int64_t tiles = tilesOf(count);
  parallelFor(stream, tiles, [&](int64_t tile, int64_t) {
    const int64_t begin = tile * kUpdateTile;
    const int64_t end = std::min(count, begin + kUpdateTile);
    const double sum = body(begin, end);
    if (squares && !kSumsOfCuda)
      partial[tile] = sum;
    if (squares && kSumsOfCuda)
      for (int64_t part = begin; part < end; part += kCudaUpdatePart)
        partial[part / kCudaUpdatePart] =
            cudaSquaresOf(grad, part, std::min(end, part + kCudaUpdatePart));
  });
  if (squares)
    *squares = float(addParts(
        partial,
        partsOfSquares(count, kSumsOfCuda ? Backend::Cuda : Backend::Cpu)));
}

template <typename Grad>
double squaresOf(const Grad *grad, int64_t begin, int64_t end) {
  Wide sum = simd::splatWide(0);
  eachVector(begin, end, {grad}, [&](int64_t i, int part, int64_t n) {
    const V g = loadSome(grad + i, n);
    sum.part[part] = simd::fma(g, g, sum.part[part]);
  });
  return double(simd::sum(sum));
}

/// The only work of an update at step 0.
template <typename Grad>
void reportSquares(Stream &stream, const Grad *grad, int64_t count,
                   void *scratch, float *squares) {
  if (squares)
    updateTiles(stream, count, grad, scratch, squares,
                [&](int64_t begin, int64_t end) {
                  return squaresOf(grad, begin, end);
                });
}

inline float *floats(void *p) { return static_cast<float *>(p); }
inline const float *floats(const void *p) {
  return static_cast<const float *>(p);
}
inline int64_t *longs(void *p) { return static_cast<int64_t *>(p); }
inline const int64_t *longs(const void *p) {
  return static_cast<const int64_t *>(p);
}

} // namespace tmc::updates

#endif // TMC_RUNTIME_CPU_UPDATES_H
