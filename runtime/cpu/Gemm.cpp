//===- Gemm.cpp - matrix products in given memory -------------------------===//

#include "runtime/cpu/Gemm.h"

#include "runtime/cpu/GemmPack.h"
#include "runtime/cpu/GemmPairs.h"
#include "runtime/cpu/GemmRun.h"
#include "runtime/cpu/GemmTiles.h"
#include "runtime/cpu/TransposeBlock.h"

#include <algorithm>

namespace tmc::gemm {

using simd::kWidth;
using simd::V;

namespace {

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

/// Packs `panels` times kPanelM rows of a, whose columns are contiguous: column
/// after column, in the order of memory.
void packColumns(const float *a, int64_t colStride, int64_t panels, int64_t k,
                 float *to) {
  static_assert(kPanelM <= kWidth);
  // Each column of a panel except the last one also writes into the next
  // column.
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
  kInnerTable<Singles>[m - 1](n, k, a, {b, kPanelN, nullptr}, c, ldc,
                              accumulate, bias, none);
}

void inner(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
           float *c, int64_t ldc, bool accumulate, Ahead &ahead) {
  kInnerTable<Singles>[m - 1](n, k, a, {b, kPanelN, nullptr}, c, ldc,
                              accumulate, nullptr, ahead);
}

void innerRowMajor(int64_t m, int64_t n, int64_t k, const float *a,
                   const float *b, float *c, int64_t ldc, bool accumulate) {
  Ahead none;
  kInnerTable<Singles, true>[m - 1](n, k, a, {b, kPanelN, nullptr}, c, ldc,
                                    accumulate, nullptr, none);
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

void runSingles(Stream &stream, const Problem &problem, void *scratch) {
  runWith<Singles>(stream, problem, scratch);
}

void run(Stream &stream, const Problem &problem, void *scratch) {
  if (problem.flushesDenormals()) {
    if (knowsTiles())
      return runTiles(stream, problem, scratch);
    if (pairsAreFaster())
      return runPairs(stream, problem, scratch);
  }
  runSingles(stream, problem, scratch);
}

} // namespace tmc::gemm
