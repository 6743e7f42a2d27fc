//===- ConvProduct.cpp - forward pass and input gradient as products ------===//

#include "runtime/cpu/ConvProduct.h"

#include "runtime/cpu/ConvInner.h"
#include "runtime/cpu/ConvPack.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>

namespace tmc::conv {

using gemm::kPanelM;
using gemm::kPanelN;
using gemm::kVectors;
using simd::kWidth;

static_assert(kTileRows % kPanelM == 0 && kGemmPanelN % kPanelN == 0);

/// The pixel of images of height x width that row `row` of a grid computes.
static int64_t pixelOf(const Grid &grid, int64_t row, int64_t height,
                       int64_t width) {
  const int64_t x = row % grid.width;
  const int64_t y = row / grid.width % grid.height;
  const int64_t n = row / grid.width / grid.height;
  return (n * height + grid.firstH + y * grid.stepH) * width + grid.firstW +
         x * grid.stepW;
}

template <typename T>
void product(Stream &stream, const ConvParams &p, bool gradInput,
             const Windows &windows, const T *from, const void *filter, T *to,
             char *scratch) {
  constexpr bool isRounded = !std::is_same_v<T, float>;
  const int64_t window = p.kernelHeight * p.kernelWidth;
  const int64_t in = p.inChannels / p.groups, out = p.outChannels / p.groups;
  const FilterView view = viewFilter(p, gradInput, filter);
  const Source<T> source =
      gradInput ? Source<T>{from, p.outHeight, p.outWidth, p.outChannels, out}
                : Source<T>{from, p.inHeight, p.inWidth, p.inChannels, in};
  const int64_t height = gradInput ? p.inHeight : p.outHeight;
  const int64_t width = gradInput ? p.inWidth : p.outWidth;
  const int64_t pixelElements = gradInput ? p.inChannels : p.outChannels;

  // Packed order: groups, then grids, then panels.
  const int64_t panels = ceilDiv(view.columns, kPanelN);
  const int64_t groupFloats = window * view.depth * panels * kPanelN;
  float *packed = reinterpret_cast<float *>(scratch);
  parallelFor(stream, p.groups * panels, [&](int64_t number, int64_t) {
    const int64_t group = number / panels, panel = number % panels;
    packPanel(view.shifted(group * out * in * window), windows.places, panel,
              {packed + group * groupFloats, panels, view.depth});
  });

  char *workers = scratch + packedBytes(p, gradInput);
  const int64_t workerBytes = kGatherBytes + tileSumBytes(p, gradInput);
  const int64_t columns = tileColumns(p, gradInput);
  const int64_t across = ceilDiv(view.columns, columns);
  const int64_t rowTilesAll = rowTiles(p, gradInput);
  parallelFor(
      stream, tiles(p, gradInput), workersOf(tiles(p, gradInput)),
      [&](int64_t number, int64_t worker) {
        const int64_t slice = number % across;
        int64_t tile = number / across % rowTilesAll;
        const int64_t group = number / across / rowTilesAll;
        // The grid of this tile, and its filter.
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
        Segment<T> segment[kTileRows];
        int64_t pixels[kTileRows] = {}, rowsOfSums[kTileRows] = {};
        Source<T> mine = source;
        mine.data += group * view.depth;
        const int64_t pieces = segments(*grid, mine, first, count, segment);
        for (int64_t r = 0; r < count; ++r) {
          pixels[r] = pixelOf(*grid, first + r, height, width) * pixelElements;
          rowsOfSums[r] = r * columns;
        }
        const int64_t j0 = slice * columns;
        const int64_t j1 = std::min(view.columns, j0 + columns);
        T *result = to + group * view.columns + j0;
        float *a = reinterpret_cast<float *>(workers + worker * workerBytes);
        // Sums are computed in the result itself, if it is f32.
        float *sums;
        if constexpr (isRounded)
          sums = a + kGatherBytes / 4;
        else
          sums = result;
        const int64_t *targets = isRounded ? rowsOfSums : pixels;
        if (depth == 0)
          for (int64_t r = 0; r < count; ++r)
            std::fill_n(sums + targets[r], j1 - j0, 0.0f);
        for (int64_t k0 = 0; k0 < depth; k0 += kGemmDepth) {
          const int64_t k1 = std::min(depth, k0 + kGemmDepth);
          gather(*grid, mine, segment, pieces, k0, k1, a, kRowStride);
          for (int64_t r = count; r % kPanelM; ++r)
            std::fill_n(a + r * kRowStride, k1 - k0, 0.0f);
          for (int64_t j = j0; j < j1; j += kPanelN) {
            const float *panel = b + (j / kPanelN * depth + k0) * kPanelN;
            const int64_t n = std::min<int64_t>(kPanelN, view.columns - j);
            for (int64_t r = 0; r < count; r += kPanelM) {
              const Target target{sums + j - j0, targets + r,
                                  std::min<int64_t>(kPanelM, count - r), n,
                                  k0 > 0};
              (n > kWidth ? inner<kVectors, kRowStride>
                          : inner<1, kRowStride>)(k1 - k0, a + r * kRowStride,
                                                  panel, target);
            }
          }
        }
        if constexpr (isRounded)
          for (int64_t r = 0; r < count; ++r)
            narrowRow(sums + rowsOfSums[r], j1 - j0, result + pixels[r]);
      });
}

template void product(Stream &, const ConvParams &, bool, const Windows &,
                      const float *, const void *, float *, char *);
template void product(Stream &, const ConvParams &, bool, const Windows &,
                      const bf16 *, const void *, bf16 *, char *);
template void product(Stream &, const ConvParams &, bool, const Windows &,
                      const f16 *, const void *, f16 *, char *);

} // namespace tmc::conv
