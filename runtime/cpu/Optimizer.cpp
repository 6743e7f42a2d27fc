//===- Optimizer.cpp - updates of parameters on cpu -----------------------===//
//
// One pass over the memory of each tensor. Scalar factors are computed in f64
// and rounded once, as PyTorch's are.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Optimizer.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/PhiloxSimd.h"
#include "runtime/kernels/Adam.h"
#include "runtime/kernels/Stochastic.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace tmc {

using simd::kParts;
using simd::kWidth;
using simd::V;
using simd::Wide;

namespace {

/// Elements between what is updated and what is asked for: a page, at which the
/// hardware's own looking ahead ends.
constexpr int64_t kAhead = 1024;

/// What is read from front to back: elements of `size` bytes.
struct Ahead {
  const char *data;
  int64_t size;

  template <typename T>
  Ahead(const T *data)
      : data(reinterpret_cast<const char *>(data)), size(sizeof(T)) {}
};

/// Calls body(i, part, count) for the vectors of [begin, end): `part` is the
/// register of a Wide that vector i belongs to, `count` < kWidth only at the
/// very end. The memory of `streams` is asked for ahead.
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
void storeSome(float *p, V v, int64_t count) {
  if (count == kWidth)
    simd::store(p, v);
  else
    simd::storePart(p, v, count);
}

void storeSome(const RoundedCopy &copy, int64_t i, V v, int64_t count) {
  if (count == kWidth)
    return copy.store<kWidth>(i, v);
  for (int64_t lane = 0; lane < count; ++lane)
    copy.store<1>(i + lane, v[lane]);
}

/// The chance by which an update's vectors are rounded; `Count` values of it
/// may be.
template <int Count> class Chance {
public:
  Chance(int64_t stream, int64_t step) : draws(roundingDraws(stream, step)) {}

  /// To be called for each vector in turn, from the front of a tile.
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
  /// Elements of a register's lanes of quads.
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

/// Where nothing is rounded.
template <> class Chance<0> {
public:
  Chance(int64_t, int64_t) {}
  void moveTo(int64_t) {}
  void store(int, float *p, V v, int64_t count) const {
    storeSome(p, v, count);
  }
};

int64_t tilesOf(int64_t count) {
  return (count + kUpdateTile - 1) / kUpdateTile;
}

/// Whose order sums of squares are added in. This text also runs on the host
/// beside a card (runtime/cuda/HostUpdates.cpp): then in that of its kernels.
#ifdef TMC_SUMS_OF_CUDA
constexpr bool kSumsOfCuda = true;
#else
constexpr bool kSumsOfCuda = false;
#endif
/// What runtime/cuda/Optimizer.cu adds up at once of a part, and of all parts.
constexpr int kCudaPartLanes = 1024, kCudaLanes = 256;

/// As blockReduce() of runtime/cuda/Launch.h.
double reduceAsBlock(double *lanes, int count) {
  for (int step = count / 2; step > 0; step /= 2)
    for (int i = 0; i < step; ++i)
      lanes[i] += lanes[i + step];
  return lanes[0];
}

/// As cuda's squareParts().
template <typename Grad>
double cudaSquaresOf(const Grad *grad, int64_t begin, int64_t end) {
  alignas(64) float sums[kCudaPartLanes] = {};
  for (int64_t row = begin; row < end; row += kCudaPartLanes) {
    const int64_t count = std::min<int64_t>(kCudaPartLanes, end - row);
    for (int64_t i = 0; i < count; i += kWidth) {
      const int64_t some = std::min<int64_t>(kWidth, count - i);
      const V g = loadSome(grad + row + i, some);
      storeSome(sums + i, simd::fma(g, g, loadSome(sums + i, some)), some);
    }
  }
  double lanes[kCudaPartLanes];
  std::copy(sums, sums + kCudaPartLanes, lanes);
  return reduceAsBlock(lanes, kCudaPartLanes);
}

/// Adds the sums of the parts.
double addParts(const double *partial, int64_t parts) {
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
    if (squares)
      partial[tile] = kSumsOfCuda ? cudaSquaresOf(grad, begin, end) : sum;
  });
  if (squares)
    *squares = float(addParts(partial, tiles));
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

/// All that is left of an update at step 0.
template <typename Grad>
void reportSquares(Stream &stream, const Grad *grad, int64_t count,
                   void *scratch, float *squares) {
  if (squares)
    updateTiles(stream, count, grad, scratch, squares,
                [&](int64_t begin, int64_t end) {
                  return squaresOf(grad, begin, end);
                });
}

/// adam::Factors in every lane.
struct AdamFactors {
  V decay, w1, b2, w2, root, epsilon, size, scale;

  explicit AdamFactors(const adam::Factors &f)
      : decay(simd::splat(f.decay)), w1(simd::splat(f.w1)),
        b2(simd::splat(f.b2)), w2(simd::splat(f.w2)), root(simd::splat(f.root)),
        epsilon(simd::splat(f.epsilon)), size(simd::splat(f.size)),
        scale(simd::splat(f.scale)) {}
};

float *floats(void *p) { return static_cast<float *>(p); }
const float *floats(const void *p) { return static_cast<const float *>(p); }
int64_t *longs(void *p) { return static_cast<int64_t *>(p); }
const int64_t *longs(const void *p) { return static_cast<const int64_t *>(p); }

} // namespace

struct AdamW::State {};
AdamW::AdamW(const Params &params) : params_(params) {}
AdamW::~AdamW() = default;

Status AdamW::prepare(Device &) {
  return cpu::requireScratch("adamw", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

namespace {

template <typename Param, typename Grad, typename Moment>
void adamw(Stream &stream, const AdamParams &q, In ins, Out outs,
           void *scratch) {
  const auto *grad = static_cast<const Grad *>(operand(ins, 1));
  const int64_t step = *longs(operand(ins, 5));
  if (step == 0)
    return reportSquares(stream, grad, q.count, scratch,
                         floats(result(outs, 3)));
  const AdamFactors f(adam::factors(q, floats(operand(ins, 4)), &step,
                                    floats(operand(ins, 6))));
  auto *param = static_cast<Param *>(result(outs, 0));
  auto *first = static_cast<Moment *>(result(outs, 1));
  auto *second = static_cast<Moment *>(result(outs, 2));
  const RoundedCopy copy(q.copy, result(outs, 4));

  updateTiles(stream, q.count, grad, scratch, floats(result(outs, 3)),
              [&](int64_t begin, int64_t end) {
                Chance<kDrawnValues<Param, Moment, 2>> chance(q.stream, step);
                Wide sum = simd::splatWide(0);
                eachVector(begin, end, {grad, param, first, second},
                           [&](int64_t i, int part, int64_t n) {
                             chance.moveTo(i);
                             const V g = loadSome(grad + i, n);
                             sum.part[part] = simd::fma(g, g, sum.part[part]);
                             V m = loadSome(first + i, n);
                             V v = loadSome(second + i, n);
                             const V p =
                                 adam::update(f, g, loadSome(param + i, n), m,
                                              v, simd::sqrt);
                             chance.store(0, param + i, p, n);
                             if constexpr (!isNarrow<Param>)
                               storeSome(copy, i, p, n);
                             chance.store(1, first + i, m, n);
                             chance.store(2, second + i, v, n);
                           });
                return double(simd::sum(sum));
              });
}

} // namespace

void AdamW::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  withUpdated(params_.param, params_.grad, params_.moment,
              [&](auto param, auto grad, auto moment) {
                adamw<decltype(param), decltype(grad), decltype(moment)>(
                    stream, params_, ins, outs, scratch);
              });
}

namespace {

/// The codes of one moment, and the way from a float to the nearest: floats
/// that begin with the same 16 bits have two neighbouring codes at most.
struct CodeTable {
  float value[adam::kCodes], above[adam::kCodes];
  uint8_t least[1 << 16];

  explicit CodeTable(bool isSigned) {
    for (int c = 0; c < adam::kCodes; ++c)
      value[c] = adam::codeValue(isSigned, c);
    for (int c = 0; c + 1 < adam::kCodes; ++c)
      above[c] = adam::boundBetween(value[c], value[c + 1]);
    above[adam::kCodes - 1] = 1;
    for (uint32_t top = 0; top < 1 << 16; ++top) {
      // The least of them has the largest bits where they are negative.
      const uint32_t bits = top << 16 | (top >> 15 ? 0xffffu : 0u);
      float x;
      std::memcpy(&x, &bits, sizeof x);
      least[top] = uint8_t(adam::nearestCode(x, above));
    }
  }
  /// |x| <= 1.
  uint8_t nearest(float x) const {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const uint8_t code = least[bits >> 16];
    return uint8_t(code + (x > above[code]));
  }
};

const CodeTable &codesOf(bool isSigned) {
  static const CodeTable first(true), second(false);
  return isSigned ? first : second;
}

/// A block's moments as floats, and back; zeros behind the last.
struct Moments {
  alignas(64) float x[adam::kCodeBlock];

  void read(const CodeTable &table, const uint8_t *codes, float most,
            int64_t count) {
    const float *value = table.value;
    for (int64_t i = 0; i < count; ++i)
      x[i] = value[codes[i]] * most;
    std::fill(x + count, x + adam::kCodeBlock, 0.0f);
  }
  void write(const CodeTable &table, uint8_t *codes, float *most,
             int64_t count) {
    V largest{};
    for (int64_t i = 0; i < adam::kCodeBlock; i += kWidth) {
      const V v = simd::load(x + i);
      largest = simd::max(largest, simd::max(v, -v));
    }
    float lanes[kWidth];
    simd::store(lanes, largest);
    *most = *std::max_element(lanes, lanes + kWidth);
    const V divisor = simd::splat(adam::divisorOf(*most));
    for (int64_t i = 0; i < adam::kCodeBlock; i += kWidth)
      simd::store(x + i, simd::load(x + i) / divisor);
    for (int64_t i = 0; i < count; ++i)
      codes[i] = table.nearest(x[i]);
  }
};

} // namespace

struct AdamW8bit::State {};
AdamW8bit::AdamW8bit(const Params &params) : params_(params) {}
AdamW8bit::~AdamW8bit() = default;

Status AdamW8bit::prepare(Device &) {
  (void)codesOf(true), (void)codesOf(false); // Made before the first step.
  return cpu::requireScratch("adamw8bit", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

namespace {

template <typename Param, typename Grad>
void adamw8bit(Stream &stream, const AdamParams &q, In ins, Out outs,
               void *scratch) {
  const CodeTable &first = codesOf(true), &second = codesOf(false);
  const auto *grad = static_cast<const Grad *>(operand(ins, 1));
  const int64_t step = *longs(operand(ins, 7));
  if (step == 0)
    return reportSquares(stream, grad, q.count, scratch,
                         floats(result(outs, 5)));
  const AdamFactors f(adam::factors(q, floats(operand(ins, 6)), &step,
                                    floats(operand(ins, 8))));
  auto *param = static_cast<Param *>(result(outs, 0));
  auto *firstCodes = static_cast<uint8_t *>(result(outs, 1));
  float *firstMost = floats(result(outs, 2));
  auto *secondCodes = static_cast<uint8_t *>(result(outs, 3));
  float *secondMost = floats(result(outs, 4));
  const RoundedCopy copy(q.copy, result(outs, 6));
  static_assert(kUpdateTile % adam::kCodeBlock == 0);

  updateTiles(
      stream, q.count, grad, scratch, floats(result(outs, 5)),
      [&](int64_t begin, int64_t end) {
        Chance<kDrawnValues<Param, float, 0>> chance(q.stream, step);
        Moments m, v;
        for (int64_t at = begin; at < end; at += adam::kCodeBlock) {
          const int64_t count = std::min<int64_t>(adam::kCodeBlock, end - at);
          const int64_t block = at / adam::kCodeBlock;
          m.read(first, firstCodes + at, firstMost[block], count);
          v.read(second, secondCodes + at, secondMost[block], count);
          eachVector(0, count, {}, [&](int64_t i, int, int64_t n) {
            chance.moveTo(at + i);
            const V g = loadSome(grad + at + i, n);
            const V p = loadSome(param + at + i, n);
            const V oldM = simd::load(m.x + i), oldV = simd::load(v.x + i);
            V newM = oldM, newV = oldV;
            const V moved = adam::update(f, g, p, newM, newV, simd::sqrt);
            const auto moves = g - g == V{}; // as adam::isFinite
            const V kept = moves ? moved : p;
            chance.store(0, param + at + i, kept, n);
            if constexpr (!isNarrow<Param>)
              storeSome(copy, at + i, kept, n);
            simd::store(m.x + i, moves ? newM : oldM);
            simd::store(v.x + i, moves ? newV : oldV);
          });
          m.write(first, firstCodes + at, firstMost + block, count);
          v.write(second, secondCodes + at, secondMost + block, count);
        }
        return squaresOf(grad, begin, end);
      });
}

} // namespace

void AdamW8bit::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  withUpdated(params_.param, params_.grad, DType::F32,
              [&](auto param, auto grad, auto) {
                adamw8bit<decltype(param), decltype(grad)>(stream, params_, ins,
                                                           outs, scratch);
              });
}

struct Sgd::State {};
Sgd::Sgd(const Params &params) : params_(params) {}
Sgd::~Sgd() = default;

Status Sgd::prepare(Device &) {
  return cpu::requireScratch("sgd", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

namespace {

template <typename Param, typename Grad, typename Moment>
void sgd(Stream &stream, const Sgd::Params &q, In ins, Out outs,
         void *scratch) {
  const auto *grad = static_cast<const Grad *>(operand(ins, 1));
  const float lr = *floats(operand(ins, 3));
  const int64_t t = *longs(operand(ins, 4));
  if (t == 0)
    return reportSquares(stream, grad, q.count, scratch,
                         floats(result(outs, 2)));
  const float *clip = floats(operand(ins, 5));
  auto *param = static_cast<Param *>(result(outs, 0));
  auto *buffer = static_cast<Moment *>(result(outs, 1));
  const RoundedCopy copy(q.copy, result(outs, 3));

  const bool hasMomentum = q.momentum != 0 && buffer;
  const bool firstStep = t <= 1;
  const V decay = simd::splat(float(q.weightDecay));
  const V momentum = simd::splat(float(q.momentum));
  const V damped = simd::splat(float(1 - q.dampening));
  const V rate = simd::splat(-lr);
  const V scale = simd::splat(clip ? *clip : 1.0f);

  updateTiles(stream, q.count, grad, scratch, floats(result(outs, 2)),
              [&](int64_t begin, int64_t end) {
                Chance<kDrawnValues<Param, Moment, 1>> chance(q.stream, t);
                Wide sum = simd::splatWide(0);
                auto update = [&](int64_t i, int part, int64_t n) {
                  chance.moveTo(i);
                  V g = loadSome(grad + i, n);
                  sum.part[part] = simd::fma(g, g, sum.part[part]);
                  g = g * scale;
                  V p = loadSome(param + i, n);
                  if (q.weightDecay != 0)
                    g = g + decay * p;
                  if (hasMomentum) {
                    V b = g;
                    if (!firstStep)
                      b = loadSome(buffer + i, n) * momentum + damped * g;
                    chance.store(1, buffer + i, b, n);
                    g = q.nesterov ? g + momentum * b : b;
                  }
                  p = p + rate * g;
                  chance.store(0, param + i, p, n);
                  if constexpr (!isNarrow<Param>)
                    storeSome(copy, i, p, n);
                };
                if (hasMomentum)
                  eachVector(begin, end, {grad, param, buffer}, update);
                else
                  eachVector(begin, end, {grad, param}, update);
                return double(simd::sum(sum));
              });
}

} // namespace

void Sgd::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  withUpdated(params_.param, params_.grad, params_.moment,
              [&](auto param, auto grad, auto moment) {
                sgd<decltype(param), decltype(grad), decltype(moment)>(
                    stream, params_, ins, outs, scratch);
              });
}

struct SquareSum::State {};
SquareSum::SquareSum(const Params &params) : params_(params) {}
SquareSum::~SquareSum() = default;

Status SquareSum::prepare(Device &) {
  return cpu::requireScratch("square_sum", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void SquareSum::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  withGradient(params_.type, [&](auto type) {
    reportSquares(stream, static_cast<const decltype(type) *>(operand(ins, 0)),
                  params_.count, scratch, floats(result(outs, 0)));
  });
}

struct GradNorm::State {};
GradNorm::GradNorm(const Params &params) : params_(params) {}
GradNorm::~GradNorm() = default;
Status GradNorm::prepare(Device &) { return Status::ok(); }

void GradNorm::run(Stream &, In ins, Out outs, void *, bool) {
  double total = 0;
  for (int64_t i = 0; i < params_.count; ++i)
    total += *floats(operand(ins, i));
  const double scale =
      params_.isScaled ? *floats(operand(ins, params_.count)) : 1.0;
  const double norm = std::sqrt(total) / scale;
  if (float *out = floats(result(outs, 0)))
    *out = float(norm);
  if (float *clip = floats(result(outs, 1)))
    *clip = float((params_.maxNorm > 0
                       ? std::min(1.0, params_.maxNorm / (norm + 1e-6))
                       : 1.0) /
                  scale);
}

struct LossScale::State {};
LossScale::LossScale(const Params &params) : params_(params) {}
LossScale::~LossScale() = default;
Status LossScale::prepare(Device &) { return Status::ok(); }

void LossScale::run(Stream &, In ins, Out outs, void *, bool) {
  const float norm = *floats(operand(ins, 0));
  *longs(result(outs, 3)) =
      moveLossScale(params_, norm, *floats(result(outs, 0)),
                    *longs(result(outs, 1)), *longs(result(outs, 2)));
}

} // namespace tmc
