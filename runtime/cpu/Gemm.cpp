//===- Gemm.cpp - matrix products in given memory -------------------------===//

#include "runtime/cpu/Gemm.h"

#include "runtime/cpu/GemmInner.h"
#include "runtime/cpu/GemmPack.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/TransposeBlock.h"
#include "runtime/kernels/Matmul.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tmc::gemm {

using simd::kWidth;
using simd::V;

namespace {

using InnerFn = void (*)(int64_t, int64_t, const float *, const PanelB &,
                         float *, int64_t, bool, const float *, Ahead &);
template <bool RowMajor, bool Pack, int... I>
constexpr std::array<InnerFn, sizeof...(I)>
innerTable(std::integer_sequence<int, I...>) {
  return {innerRows<Singles, I + 1, RowMajor, Pack>...};
}
constexpr auto kInner =
    innerTable<false, false>(std::make_integer_sequence<int, kPanelM>());
constexpr auto kInnerPack =
    innerTable<false, true>(std::make_integer_sequence<int, kPanelM>());
constexpr auto kInnerRowMajor =
    innerTable<true, false>(std::make_integer_sequence<int, kPanelM>());

/// Packs M rows of a, whose rows are contiguous, k outermost.
template <int M>
void packRowsFixed(const float *a, int64_t rowStride, int64_t k, float *to) {
  int64_t p = 0;
  if constexpr (M <= kWidth) {
    for (; p + kWidth <= k; p += kWidth) {
      for (int i = 0; i < M; ++i) // the next panel's
        __builtin_prefetch(a + (M + i) * rowStride + p, 0, 2);
      simd::transposeBlock<M, true>(a + p, rowStride, to + p * M, M);
    }
  }
  for (; p < k; ++p)
    for (int i = 0; i < M; ++i)
      to[p * M + i] = a[i * rowStride + p];
}

/// Packs `panels` times kPanelM rows of a, whose columns are contiguous: one
/// column of all of them after the other, as they lie in memory.
void packColumns(const float *a, int64_t colStride, int64_t panels, int64_t k,
                 float *to) {
  static_assert(kPanelM <= kWidth);
  // All but the last column of a panel spill into the next one.
  for (int64_t p = 0; p + 1 < k; ++p) {
    __builtin_prefetch(a + (p + 2) * colStride);
    for (int64_t i = 0; i < panels; ++i)
      simd::store(to + (i * k + p) * kPanelM,
                  simd::load(a + p * colStride + i * kPanelM));
  }
  for (int64_t i = 0; i < panels; ++i)
    std::memcpy(to + (i * k + k - 1) * kPanelM,
                a + (k - 1) * colStride + i * kPanelM, kPanelM * sizeof(float));
}

} // namespace

void inner(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
           float *c, int64_t ldc, bool accumulate, const float *bias) {
  Ahead none;
  kInner[m - 1](n, k, a, {b, kPanelN, nullptr}, c, ldc, accumulate, bias, none);
}

void inner(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
           float *c, int64_t ldc, bool accumulate, Ahead &ahead) {
  kInner[m - 1](n, k, a, {b, kPanelN, nullptr}, c, ldc, accumulate, nullptr,
                ahead);
}

void innerRowMajor(int64_t m, int64_t n, int64_t k, const float *a,
                   const float *b, float *c, int64_t ldc, bool accumulate) {
  Ahead none;
  kInnerRowMajor[m - 1](n, k, a, {b, kPanelN, nullptr}, c, ldc, accumulate,
                        nullptr, none);
}

void packA(const Matrix &a, int64_t m, int64_t k, float *to) {
  if (!a.isPlain())
    return packNarrowA(a, m, k, to);
  const float *data = a.floats();
  int64_t i = 0;
  if (a.rowStride == 1 && a.colStride != 1 && k > 0) {
    const int64_t panels = m / kPanelM;
    packColumns(data, a.colStride, panels, k, to);
    i = panels * kPanelM;
  }
  for (; i < m; i += kPanelM) {
    const int64_t rows = std::min<int64_t>(kPanelM, m - i);
    const float *from = data + i * a.rowStride;
    if (rows == kPanelM && a.colStride == 1)
      packRowsFixed<kPanelM>(from, a.rowStride, k, to + i * k);
    else
      for (int64_t p = 0; p < k; ++p)
        for (int64_t r = 0; r < rows; ++r)
          to[i * k + p * rows + r] = from[r * a.rowStride + p * a.colStride];
  }
}

void packB(const Matrix &b, int64_t k, int64_t n, float *to) {
  if (!b.isPlain())
    return packNarrowB(b, k, n, to);
  const float *data = b.floats();
  if (b.colStride == 1 && n == kPanelN) {
    for (int64_t p = 0; p < k; ++p) {
      const float *from = data + p * b.rowStride;
      __builtin_prefetch(from + kPackAhead * b.rowStride);
      __builtin_prefetch(from + kPackAhead * b.rowStride + kWidth);
      for (int j = 0; j < kVectors; ++j)
        simd::store(to + p * kPanelN + j * kWidth,
                    simd::load(from + j * kWidth));
    }
    return;
  }
  if (b.rowStride == 1 && n == kPanelN) {
    int64_t p = 0;
    for (; p + kWidth <= k; p += kWidth)
      for (int j = 0; j < kVectors; ++j)
        simd::transposeBlock(data + p + j * kWidth * b.colStride, b.colStride,
                             to + p * kPanelN + j * kWidth, kPanelN);
    for (; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        to[p * kPanelN + j] = data[p + j * b.colStride];
    return;
  }
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < n; ++j)
      to[p * kPanelN + j] = data[p * b.rowStride + j * b.colStride];
    for (int64_t j = n; j < kPanelN; ++j)
      to[p * kPanelN + j] = 0;
  }
}

namespace {
/// The lines of the k x n panel at `b`.
Ahead linesOf(const Matrix &b, int64_t k, int64_t n) {
  Ahead ahead;
  if (n < kPanelN || b.type != DType::F32)
    return ahead; // the last panel, or so narrow that it is no faster
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
} // namespace

void run(Stream &stream, const Problem &now, void *scratch) {
  const int64_t m = now.m, n = now.n, k = now.k;
  const int64_t slabDepth = gemmSlabDepth(m, n, k);
  const int64_t slabRows = gemmSlabRows(m, n, k);
  const int64_t panels = (n + kPanelN - 1) / kPanelN;
  float *packedA = static_cast<float *>(scratch);
  float *packedB = packedA + alignScratch(slabRows * slabDepth * 4) / 4;
  const int64_t packedBFloats =
      alignScratch(std::min(k, kGemmDepth) * kPanelN * 4) / 4;
  const int64_t perTile = gemmTileColumns(m, n, k) / kPanelN;
  const int64_t tiles = (panels + perTile - 1) / perTile;
  const int64_t packRows = kPanelM * 8;

  for (int64_t i0 = 0; i0 < m; i0 += slabRows) {
    const int64_t rows = std::min(slabRows, m - i0);
    for (int64_t s0 = 0; s0 < k; s0 += slabDepth) {
      const int64_t slab = std::min(slabDepth, k - s0);
      // A depth after another, and in each the panels of rows.
      auto packTile = [&](int64_t tile, int64_t) {
        const int64_t r0 = tile * packRows;
        const int64_t height = std::min(packRows, rows - r0);
        for (int64_t d0 = 0; d0 < slab; d0 += kGemmDepth) {
          const int64_t depth = std::min(kGemmDepth, slab - d0);
          packA(now.a.at(i0 + r0, s0 + d0), height, depth,
                packedA + d0 * rows + r0 * depth);
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
            // While this block is computed, the next one comes nearer.
            const bool down = d0 + depth < slab;
            const int64_t nextD = down ? d0 + depth : 0;
            const int64_t nextJ = down ? j0 : j0 + kPanelN;
            Ahead ahead = linesOf(now.b.at(s0 + nextD, nextJ),
                                  std::min(kGemmDepth, slab - nextD),
                                  std::clamp<int64_t>(n - nextJ, 0, kPanelN));
            const int64_t lines = ahead.end;
            const int64_t share = lines * kPanelM / rows + 1;
            // The first rows pack on the way, where b lies the right way.
            const bool packNow =
                b.colStride == 1 && cols == kPanelN && b.isPlain();
            if (!packNow)
              packB(b, depth, cols, packed);
            const bool add = now.accumulate || s0 + d0 > 0;
            const float *bias =
                now.bias && s0 + d0 == 0 ? now.bias + j0 : nullptr;
            const float *rowsA = packedA + d0 * rows;
            for (int64_t r = 0; r < rows; r += kPanelM) {
              const bool first = packNow && r == 0;
              const PanelB panelB =
                  first ? PanelB{b.floats(), b.rowStride, packed}
                        : PanelB{packed, kPanelN, nullptr};
              ahead.end = std::min(lines, ahead.line + share);
              const int64_t height = std::min<int64_t>(kPanelM, rows - r);
              (first ? kInnerPack : kInner)[height - 1](
                  cols, depth, rowsA + r * depth, panelB,
                  now.c + (i0 + r) * now.ldc + j0, now.ldc, add, bias, ahead);
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
