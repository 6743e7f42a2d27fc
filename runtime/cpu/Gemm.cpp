//===- Gemm.cpp - single-precision matrix products in given memory --------===//

#include "runtime/cpu/Gemm.h"

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

/// The inner kernel for exactly M rows and N vectors of columns.
/// a's element (i, p) is at a[p * M + i], or, if RowMajor, a[i * kPanelN + p].
template <int M, int N, bool RowMajor>
[[gnu::always_inline]] inline void innerFixed(int64_t k, const float *a,
                                              const float *b, V (&acc)[M][N]) {
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j)
      acc[i][j] = V{};
  for (int64_t p = 0; p < k; ++p) {
    V row[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j)
      row[j] = simd::load(b + j * kWidth);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const V x = simd::splat(a[RowMajor ? i * kPanelN : i]);
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j)
        acc[i][j] = simd::fma(x, row[j], acc[i][j]);
    }
    a += RowMajor ? 1 : M;
    b += kPanelN;
  }
}

template <int M, bool RowMajor>
void innerRows(int64_t n, int64_t k, const float *a, const float *b, float *c,
               int64_t ldc, bool accumulate, const float *bias) {
  // What will be written or added to; its rows lie far apart.
  for (int i = 0; i < M; ++i)
    for (int64_t j = 0; j < n; j += 16)
      __builtin_prefetch(c + i * ldc + j, 1);
  V acc[M][kVectors];
  innerFixed<M, kVectors, RowMajor>(k, a, b, acc);
  if (n == kPanelN) {
    if (bias) {
      for (int j = 0; j < kVectors; ++j) {
        const V add = simd::load(bias + j * kWidth);
#pragma GCC unroll 16
        for (int i = 0; i < M; ++i)
          acc[i][j] += add;
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        float *to = c + i * ldc + j * kWidth;
        simd::store(to, accumulate ? simd::load(to) + acc[i][j] : acc[i][j]);
      }
    return;
  }
  float rows[M][kPanelN];
  std::memcpy(rows, acc, sizeof rows);
  for (int i = 0; i < M; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const float x = bias ? rows[i][j] + bias[j] : rows[i][j];
      c[i * ldc + j] = accumulate ? c[i * ldc + j] + x : x;
    }
}

using InnerFn = void (*)(int64_t, int64_t, const float *, const float *,
                         float *, int64_t, bool, const float *);
template <bool RowMajor, int... I>
constexpr std::array<InnerFn, sizeof...(I)>
innerTable(std::integer_sequence<int, I...>) {
  return {innerRows<I + 1, RowMajor>...};
}
constexpr auto kInner =
    innerTable<false>(std::make_integer_sequence<int, kPanelM>());
constexpr auto kInnerRowMajor =
    innerTable<true>(std::make_integer_sequence<int, kPanelM>());

/// Packs M rows of a, whose rows are contiguous, k outermost.
template <int M>
void packRowsFixed(const float *a, int64_t rowStride, int64_t k, float *to) {
  int64_t p = 0;
  if constexpr (M <= kWidth) {
    // Whole vectors of k, transposed through a small block.
    for (; p + kWidth <= k; p += kWidth) {
      alignas(64) float block[kWidth][kWidth];
      if constexpr (M == kWidth) {
        simd::transposeBlock(a + p, rowStride, &block[0][0], kWidth);
      } else {
        alignas(64) float rows[kWidth][kWidth] = {};
        for (int i = 0; i < M; ++i)
          simd::store(rows[i], simd::load(a + i * rowStride + p));
        simd::transposeBlock(&rows[0][0], kWidth, &block[0][0], kWidth);
      }
      for (int q = 0; q < kWidth; ++q)
        std::memcpy(to + (p + q) * M, block[q], M * sizeof(float));
    }
  }
  for (; p < k; ++p)
    for (int i = 0; i < M; ++i)
      to[p * M + i] = a[i * rowStride + p];
}

} // namespace

void inner(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
           float *c, int64_t ldc, bool accumulate, const float *bias) {
  kInner[m - 1](n, k, a, b, c, ldc, accumulate, bias);
}

void innerRowMajor(int64_t m, int64_t n, int64_t k, const float *a,
                   const float *b, float *c, int64_t ldc, bool accumulate) {
  kInnerRowMajor[m - 1](n, k, a, b, c, ldc, accumulate, nullptr);
}

void packA(const Matrix &a, int64_t m, int64_t k, float *to) {
  for (int64_t i = 0; i < m; i += kPanelM) {
    const int64_t rows = std::min<int64_t>(kPanelM, m - i);
    const float *from = a.data + i * a.rowStride;
    if (rows == kPanelM && a.colStride == 1)
      packRowsFixed<kPanelM>(from, a.rowStride, k, to);
    else if (rows == kPanelM && a.rowStride == 1)
      for (int64_t p = 0; p < k; ++p)
        std::memcpy(to + p * kPanelM, from + p * a.colStride,
                    kPanelM * sizeof(float));
    else
      for (int64_t p = 0; p < k; ++p)
        for (int64_t r = 0; r < rows; ++r)
          to[p * rows + r] = from[r * a.rowStride + p * a.colStride];
    to += rows * k;
  }
}

void packB(const Matrix &b, int64_t k, int64_t n, float *to) {
  if (b.colStride == 1 && n == kPanelN) {
    for (int64_t p = 0; p < k; ++p) {
      const float *from = b.data + p * b.rowStride;
      // Rows lie far apart: the hardware doesn't see them coming.
      __builtin_prefetch(from + 8 * b.rowStride);
      __builtin_prefetch(from + 8 * b.rowStride + kWidth);
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
        simd::transposeBlock(b.data + p + j * kWidth * b.colStride, b.colStride,
                             to + p * kPanelN + j * kWidth, kPanelN);
    for (; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        to[p * kPanelN + j] = b.data[p + j * b.colStride];
    return;
  }
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < n; ++j)
      to[p * kPanelN + j] = b.data[p * b.rowStride + j * b.colStride];
    for (int64_t j = n; j < kPanelN; ++j)
      to[p * kPanelN + j] = 0;
  }
}

namespace {
/// Asks for lines [from, to) of the k x n panel at `b`, so that packing it
/// finds it near. Returns how many lines the panel has.
int64_t prefetchPanel(const Matrix &b, int64_t k, int64_t n, int64_t from,
                      int64_t to) {
  constexpr int64_t floats = 16; // of a cache line
  const bool rows = b.colStride == 1;
  const int64_t perRow = ((rows ? n : k) + floats - 1) / floats;
  const int64_t stride = rows ? b.rowStride : b.colStride;
  const int64_t lines = perRow * (rows ? k : n);
  for (int64_t line = from; line < std::min(lines, to); ++line)
    __builtin_prefetch(b.data + line / perRow * stride + line % perRow * floats,
                       0, 2);
  return lines;
}
} // namespace

void run(Stream &stream, const Problem &problem, void *scratch, int64_t batch,
         int64_t aStride, int64_t bStride, int64_t cStride) {
  const int64_t m = problem.m, n = problem.n, k = problem.k;
  const int64_t blockM = std::min(m, kGemmBlockM);
  const int64_t blockK = std::min(k, kGemmBlockK);
  const int64_t panels = (n + kPanelN - 1) / kPanelN;
  float *packedA = static_cast<float *>(scratch);
  float *packedB = packedA + alignScratch(blockM * blockK * 4) / 4;
  const int64_t packedBFloats = alignScratch(blockK * kPanelN * 4) / 4;
  // Panels of columns per tile: enough work to be worth handing out.
  const int64_t panelFlops = 2 * blockM * blockK * kPanelN;
  const int64_t perTile =
      std::max<int64_t>(1, (1 << 21) / std::max<int64_t>(1, panelFlops));
  const int64_t tiles = (panels + perTile - 1) / perTile;
  const int64_t packRows = kPanelM * 8;

  for (int64_t item = 0; item < batch; ++item) {
    Problem now = problem;
    now.a.data += item * aStride;
    now.b.data += item * bStride;
    now.c += item * cStride;
    for (int64_t i0 = 0; i0 < m; i0 += blockM) {
      const int64_t rows = std::min(blockM, m - i0);
      for (int64_t p0 = 0; p0 < k; p0 += blockK) {
        const int64_t depth = std::min(blockK, k - p0);
        const Matrix a{now.a.data + i0 * now.a.rowStride + p0 * now.a.colStride,
                       now.a.rowStride, now.a.colStride};
        auto packTile = [&](int64_t tile, int64_t) {
          const int64_t r0 = tile * packRows;
          const Matrix part{a.data + r0 * a.rowStride, a.rowStride,
                            a.colStride};
          packA(part, std::min(packRows, rows - r0), depth,
                packedA + r0 * depth);
        };
        const int64_t packTiles = (rows + packRows - 1) / packRows;
        if (tiles == 1)
          for (int64_t tile = 0; tile < packTiles; ++tile)
            packTile(tile, 0);
        else
          parallelFor(stream, packTiles, packTile);
        const bool add = now.accumulate || p0 > 0;
        const float *bias = p0 == 0 ? now.bias : nullptr;
        auto computeTile = [&](int64_t tile, int64_t worker) {
          float *packed = packedB + worker * packedBFloats;
          const int64_t last = std::min(panels, (tile + 1) * perTile);
          for (int64_t panel = tile * perTile; panel < last; ++panel) {
            const int64_t j0 = panel * kPanelN;
            const int64_t cols = std::min<int64_t>(kPanelN, n - j0);
            const Matrix b{now.b.data + p0 * now.b.rowStride +
                               j0 * now.b.colStride,
                           now.b.rowStride, now.b.colStride};
            packB(b, depth, cols, packed);
            // While this panel is computed, the next one comes nearer.
            Matrix next = b;
            next.data += kPanelN * b.colStride;
            const int64_t nextCols =
                std::clamp<int64_t>(n - j0 - kPanelN, 0, kPanelN);
            const int64_t lines = prefetchPanel(next, depth, nextCols, 0, 0);
            const int64_t share = lines * kPanelM / rows + 1;
            int64_t line = 0;
            for (int64_t r = 0; r < rows; r += kPanelM, line += share) {
              prefetchPanel(next, depth, nextCols, line, line + share);
              inner(std::min<int64_t>(kPanelM, rows - r), cols, depth,
                    packedA + r * depth, packed,
                    now.c + (i0 + r) * now.ldc + j0, now.ldc, add,
                    bias ? bias + j0 : nullptr);
            }
          }
        };
        if (tiles == 1)
          computeTile(0, 0);
        else
          parallelFor(stream, tiles, kScratchWorkers, computeTile);
      }
    }
  }
}

} // namespace tmc::gemm
