//===- GemmRun.h - the loops of products ------------------------*- C++ -*-===//
//
// The loops of Gemm.h around any inner kernel. An `Arithmetic` defines packed
// elements of four bytes each:
//
//     kStep             numbers along k in an element: 1, or 2
//     kPacksOnTheWay    whether the inner kernel may pack a plain b
//     fma(a, b, c)      c plus the products of the elements of a and b
//     packA, packB      as in Gemm.h, ceil(k / kStep) elements deep
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_GEMMRUN_H
#define TMC_RUNTIME_CPU_GEMMRUN_H

#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/GemmInner.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/kernels/Matmul.h"

#include <algorithm>

namespace tmc::gemm {

using InnerFn = void (*)(int64_t, int64_t, const float *, const PanelB &,
                         float *, int64_t, bool, const float *, Ahead &);

/// Inner kernels by their number of rows, minus one.
template <typename Arithmetic, bool RowMajor, bool Pack, int... I>
constexpr std::array<InnerFn, sizeof...(I)>
innerTable(std::integer_sequence<int, I...>) {
  return {innerRows<Arithmetic, I + 1, RowMajor, Pack>...};
}
template <typename Arithmetic, bool RowMajor = false, bool Pack = false>
constexpr auto kInnerTable = innerTable<Arithmetic, RowMajor, Pack>(
    std::make_integer_sequence<int, kPanelM>());

/// The cache lines of the k x n panel at `b`.
inline Ahead linesOf(const Matrix &b, int64_t k, int64_t n) {
  Ahead ahead;
  if (n < kPanelN || b.type != DType::F32 || b.stored)
    return ahead; // the last panel, or too narrow for a gain
  ahead.base = b.floats();
  if (b.colStride == 1) {
    constexpr int64_t perRow = (kPanelN + kLineFloats - 1) / kLineFloats;
    ahead.mask = perRow - 1;
    ahead.shift = perRow == 1 ? 0 : 1;
    ahead.fast = kLineFloats;
    ahead.slow = b.rowStride;
    ahead.end = perRow * k;
  } else {
    static_assert((kPanelN & (kPanelN - 1)) == 0);
    ahead.mask = kPanelN - 1;
    ahead.shift = __builtin_ctz(kPanelN);
    ahead.fast = b.colStride;
    ahead.slow = kLineFloats;
    ahead.end = (k + kLineFloats - 1) / kLineFloats * kPanelN;
  }
  return ahead;
}

/// The cut of a product, and the places of its packed parts in scratch: one
/// slab of a, and a panel of b for each worker.
struct Cuts {
  int64_t slabDepth, slabRows;
  int64_t panels, perTile, tiles; // panels have kPanelN columns
  float *packedA, *packedB;
  int64_t packedBFloats; // of a worker

  Cuts(const Problem &p, void *scratch)
      : slabDepth(gemmSlabDepth(p.m, p.n, p.k)),
        slabRows(gemmSlabRows(p.m, p.n, p.k)),
        panels((p.n + kPanelN - 1) / kPanelN),
        perTile(gemmTileColumns(p.m, p.n, p.k) / kPanelN),
        tiles((panels + perTile - 1) / perTile),
        packedA(static_cast<float *>(scratch)),
        packedB(packedA + alignScratch(slabRows * slabDepth * 4) / 4),
        packedBFloats(alignScratch(std::min(p.k, kGemmDepth) * kPanelN * 4) /
                      4) {}
};

/// Gemm.h's run(), in `Arithmetic`.
template <typename Arithmetic>
void runWith(Stream &stream, const Problem &now, void *scratch) {
  static_assert(kGemmDepth % Arithmetic::kStep == 0);
  auto packedDepth = [](int64_t depth) {
    return (depth + Arithmetic::kStep - 1) / Arithmetic::kStep;
  };
  const int64_t m = now.m, n = now.n, k = now.k;
  const auto [slabDepth, slabRows, panels, perTile, tiles, packedA, packedB,
              packedBFloats] = Cuts(now, scratch);
  const int64_t packRows = kPanelM * 8;
  const bool flushes = now.flushesDenormals();

  for (int64_t i0 = 0; i0 < m; i0 += slabRows) {
    const int64_t rows = std::min(slabRows, m - i0);
    for (int64_t s0 = 0; s0 < k; s0 += slabDepth) {
      const int64_t slab = std::min(slabDepth, k - s0);
      // One depth after another, and in each the panels of rows.
      auto packTile = [&](int64_t tile, int64_t) {
        const int64_t r0 = tile * packRows;
        const int64_t height = std::min(packRows, rows - r0);
        for (int64_t d0 = 0; d0 < slab; d0 += kGemmDepth) {
          const int64_t depth = std::min(kGemmDepth, slab - d0);
          Arithmetic::packA(now.a.at(i0 + r0, s0 + d0), height, depth,
                            packedA + packedDepth(d0) * rows +
                                r0 * packedDepth(depth));
        }
      };
      const int64_t packTiles = (rows + packRows - 1) / packRows;
      if (tiles == 1)
        for (int64_t tile = 0; tile < packTiles; ++tile)
          packTile(tile, 0);
      else
        parallelFor(stream, packTiles, packTile);
      auto computeTile = [&](int64_t tile, int64_t worker) {
        float *packed = packedB + worker * packedBFloats;
        const int64_t last = std::min(panels, (tile + 1) * perTile);
        for (int64_t panel = tile * perTile; panel < last; ++panel) {
          const int64_t j0 = panel * kPanelN;
          const int64_t cols = std::min<int64_t>(kPanelN, n - j0);
          for (int64_t d0 = 0; d0 < slab; d0 += kGemmDepth) {
            const int64_t depth = std::min(kGemmDepth, slab - d0);
            const Matrix b = now.b.at(s0 + d0, j0);
            // While this block is computed, the next one is prefetched.
            const bool down = d0 + depth < slab;
            const int64_t nextD = down ? d0 + depth : 0;
            const int64_t nextJ = down ? j0 : j0 + kPanelN;
            Ahead ahead = linesOf(now.b.at(s0 + nextD, nextJ),
                                  std::min(kGemmDepth, slab - nextD),
                                  std::clamp<int64_t>(n - nextJ, 0, kPanelN));
            const int64_t lines = ahead.end;
            const int64_t share = lines * kPanelM / rows + 1;
            // The first rows pack during the product, if the layout of b allows
            // it.
            const bool packNow = Arithmetic::kPacksOnTheWay &&
                                 b.colStride == 1 && cols == kPanelN &&
                                 b.isPlain();
            if (b.stored) {
              alignas(64) char decodedB[kDecodedBytes];
              Arithmetic::packB(decoded(b, depth, cols, decodedB), depth, cols,
                                packed);
            } else if (!packNow) {
              Arithmetic::packB(b, depth, cols, packed);
            }
            // Not while packing: widening of codes uses denormals.
            const simd::DenormalMode mode(flushes);
            const bool add = now.accumulate || s0 + d0 > 0;
            const float *bias =
                now.bias && s0 + d0 == 0 ? now.bias + j0 : nullptr;
            const float *rowsA = packedA + packedDepth(d0) * rows;
            for (int64_t r = 0; r < rows; r += kPanelM) {
              const bool first = packNow && r == 0;
              const PanelB panelB =
                  first ? PanelB{b.floats(), b.rowStride, packed}
                        : PanelB{packed, kPanelN, nullptr};
              ahead.end = std::min(lines, ahead.line + share);
              const int64_t height = std::min<int64_t>(kPanelM, rows - r);
              const InnerFn kernel =
                  first ? kInnerTable<Arithmetic, false,
                                      Arithmetic::kPacksOnTheWay>[height - 1]
                        : kInnerTable<Arithmetic>[height - 1];
              kernel(cols, packedDepth(depth), rowsA + r * packedDepth(depth),
                     panelB, now.c + (i0 + r) * now.ldc + j0, now.ldc, add,
                     bias, ahead);
            }
          }
        }
      };
      if (tiles == 1)
        computeTile(0, 0);
      else
        parallelFor(stream, tiles, gemmWorkers(m, n, k), computeTile);
    }
  }
}

} // namespace tmc::gemm

#endif // TMC_RUNTIME_CPU_GEMMRUN_H
