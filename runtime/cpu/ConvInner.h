//===- ConvInner.h - strided rows times a packed panel ----------*- C++ -*-===//
//
// The register-blocked kernel of runtime/cpu/Gemm.h for convolutions: its left
// rows aren't packed, and each row of its results has any address.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_CONVINNER_H
#define TMC_RUNTIME_CPU_CONVINNER_H

#include "runtime/cpu/Gemm.h"

namespace tmc::conv {

/// Steps of k between two prefetches.
constexpr int64_t kAheadSteps = 4;

/// The results of an inner kernel: m x n, row i at c + rows[i].
struct Target {
  float *c;
  const int64_t *rows;
  int64_t m, n;
  bool add; // to the existing values
};

/// The target gets gemm::kPanelM rows of a, `rowStride` floats apart, times
/// packed b; `vectors` of the panel's columns are used.
template <int vectors, int64_t rowStride>
void inner(int64_t k, const float *a, const float *b, const Target &t) {
  simd::V acc[gemm::kPanelM][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < gemm::kPanelM; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j)
      acc[i][j] = simd::V{};
  for (int64_t p = 0; p < k; ++p) {
    // Prefetches the target meanwhile, a row at a time: all rows at once would
    // fill the buffers that the loads need.
    if (p % kAheadSteps == 0 && p / kAheadSteps < t.m)
#pragma GCC unroll 4
      for (int j = 0; j < vectors * simd::kWidth; j += gemm::kLineFloats)
        __builtin_prefetch(t.c + t.rows[p / kAheadSteps] + j, 1);
    simd::V row[vectors];
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j)
      row[j] = simd::load(b + j * simd::kWidth);
#pragma GCC unroll 16
    for (int i = 0; i < gemm::kPanelM; ++i) {
      const simd::V x = simd::splat(a[i * rowStride]);
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j)
        acc[i][j] = simd::fma(x, row[j], acc[i][j]);
    }
    ++a;
    b += gemm::kPanelN;
  }
  if (t.m == gemm::kPanelM && t.n == vectors * simd::kWidth) {
#pragma GCC unroll 16
    for (int i = 0; i < gemm::kPanelM; ++i) {
      float *c = t.c + t.rows[i];
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) {
        if (t.add)
          acc[i][j] = simd::load(c + j * simd::kWidth) + acc[i][j];
        simd::store(c + j * simd::kWidth, acc[i][j]);
      }
    }
    return;
  }
  float sums[gemm::kPanelM][vectors * simd::kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < gemm::kPanelM; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j)
      simd::store(&sums[i][j * simd::kWidth], acc[i][j]);
  for (int64_t i = 0; i < t.m; ++i)
    for (int64_t j = 0; j < t.n; ++j) {
      float &c = t.c[t.rows[i] + j];
      c = t.add ? c + sums[i][j] : sums[i][j];
    }
}

} // namespace tmc::conv

#endif // TMC_RUNTIME_CPU_CONVINNER_H
