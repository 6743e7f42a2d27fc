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

void product(Stream &stream, const ConvParams &p, bool gradInput,
             const Windows &windows, const float *from, const float *filter,
             const float *bias, float *to, char *scratch) {
  const int64_t window = p.kernelHeight * p.kernelWidth;
  const int64_t in = p.inChannels / p.groups, out = p.outChannels / p.groups;
  const FilterView view = viewFilter(p, gradInput, filter);
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
              (n > kWidth ? inner<kVectors, kRowStride>
                          : inner<1, kRowStride>)(k1 - k0, a + r * kRowStride,
                                                  panel, target);
            }
          }
        }
      });
}

} // namespace tmc::conv
