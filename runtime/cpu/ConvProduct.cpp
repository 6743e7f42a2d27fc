//===- ConvProduct.cpp - forward pass and input gradient as products ------===//

#include "runtime/cpu/ConvProduct.h"

#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/TransposeBlock.h"

#include <algorithm>
#include <cstring>

namespace tmc::conv {

using gemm::kLineFloats;
using gemm::kPanelM;
using gemm::kPanelN;
using gemm::kVectors;
using simd::kWidth;
using simd::V;

static_assert(kTileRows % kPanelM == 0 && kGemmPanelN % kPanelN == 0);

namespace {

/// Steps of k between two looks ahead.
constexpr int64_t kAheadSteps = 4;

/// What an inner kernel writes: m x n results, row i at c + rows[i].
struct Target {
  float *c;
  const int64_t *rows;
  int64_t m, n;
  bool add;          // to what is there
  const float *bias; // or nullptr
};

/// The target gets kPanelM gathered rows of a times packed b; `vectors` of the
/// panel's columns count.
template <int vectors>
void inner(int64_t k, const float *a, const float *b, const Target &t) {
  V acc[kPanelM][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < kPanelM; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j)
      acc[i][j] = V{};
  for (int64_t p = 0; p < k; ++p) {
    // The target comes nearer meanwhile, a row at a time: all at once would
    // fill the buffers that the loads need.
    if (p % kAheadSteps == 0 && p / kAheadSteps < t.m)
#pragma GCC unroll 4
      for (int j = 0; j < vectors * kWidth; j += kLineFloats)
        __builtin_prefetch(t.c + t.rows[p / kAheadSteps] + j, 1);
    V row[vectors];
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j)
      row[j] = simd::load(b + j * kWidth);
#pragma GCC unroll 16
    for (int i = 0; i < kPanelM; ++i) {
      const V x = simd::splat(a[i * kRowStride]);
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j)
        acc[i][j] = simd::fma(x, row[j], acc[i][j]);
    }
    ++a;
    b += kPanelN;
  }
  if (t.m == kPanelM && t.n == vectors * kWidth) {
    if (t.bias)
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) {
        const V add = simd::load(t.bias + j * kWidth);
#pragma GCC unroll 16
        for (int i = 0; i < kPanelM; ++i)
          acc[i][j] += add;
      }
#pragma GCC unroll 16
    for (int i = 0; i < kPanelM; ++i) {
      float *c = t.c + t.rows[i];
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) {
        if (t.add)
          acc[i][j] = simd::load(c + j * kWidth) + acc[i][j];
        simd::store(c + j * kWidth, acc[i][j]);
      }
    }
    return;
  }
  float sums[kPanelM][vectors * kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kPanelM; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j)
      simd::store(&sums[i][j * kWidth], acc[i][j]);
  for (int64_t i = 0; i < t.m; ++i)
    for (int64_t j = 0; j < t.n; ++j) {
      float &c = t.c[t.rows[i] + j];
      const float x = t.bias ? sums[i][j] + t.bias[j] : sums[i][j];
      c = t.add ? c + x : x;
    }
}

/// The filter of a group in one pass: a matrix [(tap, depth channel), column],
/// whose element lies at data[tap + channel * depthStride + column *
/// columnStride].
struct FilterView {
  const float *data;
  int64_t window, columns, depth;
  int64_t columnStride, depthStride;
};

/// Where a group's packed filter lies: grids, then panels of columns, then
/// taps, then channels, and for each a row of kPanelN.
struct PackedFilter {
  float *data;
  int64_t panels, depth;

  float *row(const Place &place, int64_t panel, int64_t channel) const {
    const int64_t tap =
        place.before * panels + panel * place.taps + place.number;
    return data + (tap * depth + channel) * kPanelN;
  }
};

/// Packs one panel of columns; zeros behind the last column.
void packPanel(const FilterView &f, const std::vector<Place> &places,
               int64_t panel, const PackedFilter &packed) {
  const int64_t j = panel * kPanelN;
  const int64_t n = std::min<int64_t>(kPanelN, f.columns - j);
  const float *from = f.data + j * f.columnStride;
  auto packRow = [&](int64_t tap, int64_t channel) {
    float *to = packed.row(places[size_t(tap)], panel, channel);
    const float *line = from + channel * f.depthStride + tap;
    for (int64_t c = 0; c < n; ++c)
      to[c] = line[c * f.columnStride];
    for (int64_t c = n; c < kPanelN; ++c)
      to[c] = 0;
  };
  if (n < kPanelN) {
    for (int64_t d = 0; d < f.depth; ++d)
      for (int64_t t = 0; t < f.window; ++t)
        packRow(t, d);
    return;
  }
  if (f.columnStride == 1) { // the columns of a row lie together
    for (int64_t d = 0; d < f.depth; ++d)
      std::memcpy(packed.row(places[0], panel, d), from + d * f.depthStride,
                  kPanelN * sizeof(float));
    return;
  }
  // Blocks of kWidth elements that follow each other in each column, turned.
  // They are taps of as many channels as it takes, or of one.
  float turned[kWidth * kPanelN];
  auto turn = [&](const float *block) {
    for (int v = 0; v < kVectors; ++v)
      simd::transposeBlock(block + v * kWidth * f.columnStride, f.columnStride,
                           turned + v * kWidth, kPanelN);
  };
  auto put = [&](int64_t at, int64_t tap, int64_t channel) {
    std::memcpy(packed.row(places[size_t(tap)], panel, channel),
                turned + at * kPanelN, kPanelN * sizeof(float));
  };
  if (f.depthStride == f.window) {
    const int64_t all = f.window * f.depth;
    int64_t x = 0, tap = 0, channel = 0;
    auto next = [&] {
      if (++tap == f.window) {
        tap = 0;
        ++channel;
      }
    };
    for (; x + kWidth <= all; x += kWidth) {
      turn(from + x);
      for (int64_t i = 0; i < kWidth; ++i, next())
        put(i, tap, channel);
    }
    for (; x < all; ++x, next())
      packRow(tap, channel);
    return;
  }
  // A block reads beyond the last tap: into the next channel's, if there is
  // one.
  for (int64_t d = 0; d + 1 < f.depth; ++d)
    for (int64_t t = 0; t < f.window; t += kWidth) {
      turn(from + d * f.depthStride + t);
      for (int64_t i = 0; i < std::min<int64_t>(kWidth, f.window - t); ++i)
        put(i, t + i, d);
    }
  for (int64_t t = 0; t < f.window; ++t)
    packRow(t, f.depth - 1);
}

} // namespace

void product(Stream &stream, const ConvParams &p, bool gradInput,
             const Windows &windows, const float *from, const float *filter,
             const float *bias, float *to, char *scratch) {
  const int64_t window = p.kernelHeight * p.kernelWidth;
  const int64_t in = p.inChannels / p.groups, out = p.outChannels / p.groups;
  FilterView view{filter,
                  window,
                  gradInput ? in : out,
                  gradInput ? out : in,
                  gradInput ? window : in * window,
                  gradInput ? in * window : window};
  Source source =
      gradInput ? Source{from, p.outHeight, p.outWidth, p.outChannels, out}
                : Source{from, p.inHeight, p.inWidth, p.inChannels, in};
  const int64_t height = gradInput ? p.inHeight : p.outHeight;
  const int64_t width = gradInput ? p.inWidth : p.outWidth;
  const int64_t pixelFloats = gradInput ? p.inChannels : p.outChannels;

  // Packed: groups, then grids, then panels.
  const int64_t panels = ceilDiv(view.columns, kPanelN);
  const int64_t groupFloats = window * view.depth * panels * kPanelN;
  float *packed = reinterpret_cast<float *>(scratch);
  parallelFor(stream, p.groups * panels, [&](int64_t number, int64_t) {
    const int64_t group = number / panels, panel = number % panels;
    FilterView one = view;
    one.data += group * out * in * window;
    packPanel(one, windows.places, panel,
              {packed + group * groupFloats, panels, view.depth});
  });

  float *gathered =
      reinterpret_cast<float *>(scratch + packedBytes(p, gradInput));
  const int64_t columns = tileColumns(p, gradInput);
  const int64_t across = ceilDiv(view.columns, columns);
  const int64_t rowTilesAll = rowTiles(p, gradInput);
  parallelFor(
      stream, tiles(p, gradInput), workersOf(tiles(p, gradInput)),
      [&](int64_t number, int64_t worker) {
        const int64_t slice = number % across;
        int64_t tile = number / across % rowTilesAll;
        const int64_t group = number / across / rowTilesAll;
        // The grid that has this tile, and its filter.
        const Grid *grid = windows.grids.data();
        const float *b = packed + group * groupFloats;
        int64_t rows, depth;
        while (true) {
          rows = p.batch * grid->height * grid->width;
          depth = int64_t(grid->taps.size()) * view.depth;
          const int64_t its = ceilDiv(rows, kTileRows);
          if (tile < its)
            break;
          tile -= its;
          b += depth * panels * kPanelN;
          ++grid;
        }
        const int64_t first = tile * kTileRows;
        const int64_t count = std::min(kTileRows, rows - first);
        Segment segment[kTileRows];
        int64_t targets[kTileRows] = {};
        Source mine = source;
        mine.data += group * view.depth;
        const int64_t pieces = segments(*grid, mine, first, count, segment);
        for (int64_t r = 0; r < count; ++r) {
          const int64_t row = first + r;
          const int64_t x = row % grid->width;
          const int64_t y = row / grid->width % grid->height;
          const int64_t n = row / grid->width / grid->height;
          targets[r] = ((n * height + grid->firstH + y * grid->stepH) * width +
                        grid->firstW + x * grid->stepW) *
                       pixelFloats;
        }
        const int64_t j1 = std::min(view.columns, (slice + 1) * columns);
        float *result = to + group * view.columns;
        if (depth == 0)
          for (int64_t r = 0; r < count; ++r)
            std::fill_n(result + targets[r] + slice * columns,
                        j1 - slice * columns, 0.0f);
        float *a = gathered + worker * (kGatherBytes / 4);
        for (int64_t k0 = 0; k0 < depth; k0 += kGemmDepth) {
          const int64_t k1 = std::min(depth, k0 + kGemmDepth);
          gather(*grid, mine, segment, pieces, k0, k1, a, kRowStride);
          for (int64_t r = count; r % kPanelM; ++r)
            std::fill_n(a + r * kRowStride, k1 - k0, 0.0f);
          for (int64_t j = slice * columns; j < j1; j += kPanelN) {
            const float *panel = b + (j / kPanelN * depth + k0) * kPanelN;
            const int64_t n = std::min<int64_t>(kPanelN, view.columns - j);
            for (int64_t r = 0; r < count; r += kPanelM) {
              const Target target{
                  result + j,
                  targets + r,
                  std::min<int64_t>(kPanelM, count - r),
                  n,
                  k0 > 0,
                  bias && k0 == 0 ? bias + group * view.columns + j : nullptr};
              (n > kWidth ? inner<kVectors> : inner<1>)(k1 - k0,
                                                        a + r * kRowStride,
                                                        panel, target);
            }
          }
        }
      });
}

} // namespace tmc::conv
