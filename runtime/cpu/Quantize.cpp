//===- Quantize.cpp - floats as 8-bit codes on cpu ------------------------===//

#include "runtime/kernels/Quantize.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/kernels/ScaleOf.h"

#include <algorithm>
#include <numeric>

namespace tmc {

namespace {

/// Calls f with values of the storage types of `in` and `codes`.
template <typename F> void withTypes(DType in, DType codes, F &&f) {
  auto withCodes = [&](auto like) {
    if (codes == DType::F8E4M3)
      f(like, f8e4m3{});
    else
      f(like, f8e5m2{});
  };
  if (in == DType::F32)
    withCodes(float{});
  else if (in == DType::BF16)
    withCodes(bf16{});
  else
    withCodes(f16{});
}

/// most[i] = the maximum of most[i] and the magnitude of x[i], for i < count.
template <typename T> void maximize(const T *x, int64_t count, int32_t *most) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    storeRaw<kLanes>(most + i, max(loadRaw<kLanes>(most + i),
                                   magnitudeBits(loadLanes<kLanes>(x + i))));
  for (; i < count; ++i)
    most[i] = std::max(most[i], magnitudeBits(loadLanes<1>(x + i)));
}

/// The bits of the largest magnitude.
template <typename T> int32_t amaxBits(const T *x, int64_t count) {
  Ints<kLanes> most{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    most = max(most, magnitudeBits(loadLanes<kLanes>(x + i)));
  int32_t all = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    all = std::max<int32_t>(all, most[lane]);
  for (; i < count; ++i)
    all = std::max(all, magnitudeBits(loadLanes<1>(x + i)));
  return all;
}

template <typename T, typename C>
void encode(const T *x, int64_t count, float factor, C *codes) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Floats<kLanes> v = loadLanes<kLanes>(x + i);
    storeLanes<kLanes>(codes + i, unlessInfinite(v, v * factor));
  }
  for (; i < count; ++i) {
    const float v = loadLanes<1>(x + i);
    storeLanes<1>(codes + i, unlessInfinite(v, v * factor));
  }
}

/// The number of elements of x that saturate.
template <typename T>
int32_t saturated(const T *x, int64_t count, float factor, DType codes) {
  Ints<kLanes> found{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Floats<kLanes> v = loadLanes<kLanes>(x + i);
    found -= isSaturated(v, v * factor, codes);
  }
  int32_t all = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    all += found[lane];
  for (; i < count; ++i) {
    const float v = loadLanes<1>(x + i);
    all += isSaturated(v, v * factor, codes) ? 1 : 0;
  }
  return all;
}

/// The same with a factor for each element.
template <typename T, typename C>
void encode(const T *x, int64_t count, const float *factors, C *codes) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Floats<kLanes> v = loadLanes<kLanes>(x + i);
    storeLanes<kLanes>(codes + i,
                       unlessInfinite(v, v * loadLanes<kLanes>(factors + i)));
  }
  for (; i < count; ++i) {
    const float v = loadLanes<1>(x + i);
    storeLanes<1>(codes + i, unlessInfinite(v, v * factors[i]));
  }
}

template <typename T, typename C>
void quantizeWhole(Stream &stream, const Quantize::Params &p, const T *x,
                   C *codes, float *scale, const float *history, float *amax,
                   int64_t *saturations, int32_t *maxima) {
  const int64_t count = p.elements(), tiles = blocksIn(count, kQuantizeTile);
  auto eachTile = [&](auto &&body) {
    parallelFor(stream, tiles, [&](int64_t tile, int64_t) {
      const int64_t first = tile * kQuantizeTile;
      body(tile, first, std::min(kQuantizeTile, count - first));
    });
  };
  auto largest = [&] {
    return count ? *std::max_element(maxima, maxima + tiles) : 0;
  };
  if (p.history) {
    int32_t *counts = maxima + tiles;
    *scale = scaleOfWhole(amaxBits(history, p.history), p.codes);
    const float factor = 1 / *scale;
    eachTile([&](int64_t tile, int64_t first, int64_t size) {
      maxima[tile] = amaxBits(x + first, size);
      counts[tile] = saturated(x + first, size, factor, p.codes);
      encode(x + first, size, factor, codes + first);
    });
    *amax = recordedAmax(largest());
    *saturations = std::accumulate(counts, counts + tiles, int64_t(0));
    return;
  }
  eachTile([&](int64_t tile, int64_t first, int64_t size) {
    maxima[tile] = amaxBits(x + first, size);
  });
  *scale = scaleOfWhole(largest(), p.codes);
  const float factor = 1 / *scale;
  eachTile([&](int64_t, int64_t first, int64_t size) {
    encode(x + first, size, factor, codes + first);
  });
}

/// The blocks of up to 128 x 128 values at (row, column) of a matrix.
template <typename T, typename C>
void quantizeBlocks(const Quantize::Params &p, const T *x, C *codes,
                    float *scales, int64_t row, int64_t column) {
  const int64_t height = std::min(kScaleBlock, p.rows - row),
                width = std::min(kScaleBlock, p.columns - column);
  const int64_t across = blocksIn(p.columns, p.blockColumns);
  x += row * p.columns + column;
  codes += row * p.columns + column;
  scales += row / p.blockRows * across + column / p.blockColumns;
  if (p.blockRows == 1 && p.blockColumns > 1) {
    for (int64_t i = 0; i < height; ++i) {
      float &scale = scales[i * across];
      scale = scaleOfBlock(amaxBits(x + i * p.columns, width), p.codes);
      encode(x + i * p.columns, width, 1 / scale, codes + i * p.columns);
    }
    return;
  }
  // If blocks are single numbers, a column's factor is that of one row.
  for (int64_t i = 0; i < height; i += p.blockRows) {
    const int64_t rows = std::min(p.blockRows, height - i);
    int32_t maxima[kScaleBlock] = {};
    float factors[kScaleBlock];
    for (int64_t r = i; r < i + rows; ++r)
      maximize(x + r * p.columns, width, maxima);
    if (p.blockColumns > 1)
      std::fill(maxima, maxima + width,
                *std::max_element(maxima, maxima + width));
    for (int64_t j = 0; j < width; ++j) {
      const float scale = scaleOfBlock(maxima[j], p.codes);
      if (j % p.blockColumns == 0)
        scales[i / p.blockRows * across + j / p.blockColumns] = scale;
      factors[j] = 1 / scale;
    }
    for (int64_t r = i; r < i + rows; ++r)
      encode(x + r * p.columns, width, factors, codes + r * p.columns);
  }
}

} // namespace

struct Quantize::State {};
Quantize::Quantize(const Params &params) : params_(params) {}
Quantize::~Quantize() = default;

Status Quantize::prepare(Device &) {
  return cpu::requireScratch("quantize", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void Quantize::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  const Params &p = params_;
  float *scales = static_cast<float *>(result(outs, 1));
  withTypes(p.in, p.codes, [&](auto like, auto code) {
    const auto *x = static_cast<const decltype(like) *>(operand(ins, 0));
    auto *codes = static_cast<decltype(code) *>(result(outs, 0));
    if (!p.blockRows)
      return quantizeWhole(stream, p, x, codes, scales,
                           static_cast<const float *>(operand(ins, 1)),
                           static_cast<float *>(result(outs, 2)),
                           static_cast<int64_t *>(result(outs, 3)),
                           static_cast<int32_t *>(scratch));
    const int64_t high = blocksIn(p.rows, kScaleBlock);
    const int64_t wide = blocksIn(p.columns, kScaleBlock);
    const int64_t perMatrix =
        blocksIn(p.rows, p.blockRows) * blocksIn(p.columns, p.blockColumns);
    parallelFor(stream, p.batch * high * wide, [&](int64_t tile, int64_t) {
      const int64_t matrix = tile / (high * wide), at = tile % (high * wide);
      const int64_t first = matrix * p.rows * p.columns;
      quantizeBlocks(p, x + first, codes + first, scales + matrix * perMatrix,
                     at / wide * kScaleBlock, at % wide * kScaleBlock);
    });
  });
}

} // namespace tmc
