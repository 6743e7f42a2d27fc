//===- GemmInner.h - the register-blocked kernel of products ----*- C++ -*-===//
//
// Multiplies M rows of a packed panel of a with a panel of b (Gemm.h), with all
// sums in registers.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_GEMMINNER_H
#define TMC_RUNTIME_CPU_GEMMINNER_H

#include "runtime/cpu/Gemm.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tmc::gemm {

using simd::kWidth;
using simd::V;

/// Products of floats.
struct Singles {
  static constexpr int kStep = 1;
  static constexpr bool kPacksOnTheWay = true;
  static V fma(V a, V b, V c) { return simd::fma(a, b, c); }
  static constexpr auto packA = gemm::packA;
  static constexpr auto packB = gemm::packB;
};

/// Steps of k between two prefetches.
constexpr int64_t kAheadSteps = 8;
/// Rows of b between packing a row and prefetching another.
constexpr int64_t kPackAhead = 8;

/// The source of b for the inner kernel: packed, or in place and packed during
/// the product.
struct PanelB {
  const float *data;
  int64_t stride; // kPanelN if packed
  float *pack;    // or nullptr
};

/// acc += a b for exactly M rows, by `Arithmetic::fma`: an element of a and b
/// is a float, or other four bytes that it multiplies. Element (i, p) of a is
/// at a[p * M + i], or, if RowMajor, at a[i * kPanelN + p].
template <typename Arithmetic, int M, bool RowMajor, bool Pack>
[[gnu::always_inline]] inline void
innerFixed(int64_t k, const float *a, PanelB b, const float *c, int64_t ldc,
           Ahead &ahead, V (&acc)[M][kVectors]) {
  constexpr int64_t cLines =
      (kPanelN + kLineFloats - 1) / kLineFloats; // of a row of c
  const int64_t looks = (k + kAheadSteps - 1) / kAheadSteps;
  const int64_t perLook = (ahead.end - ahead.line + looks - 1) / looks;
  const int64_t cPerLook = (M * cLines + looks - 1) / looks;
  int64_t cLine = 0;
  for (int64_t p0 = 0; p0 < k; p0 += kAheadSteps) {
    for (int64_t n = 0; n < cPerLook && cLine < M * cLines; ++n, ++cLine)
      __builtin_prefetch(
          c + cLine / cLines * ldc + cLine % cLines * kLineFloats, 1);
    ahead.fetch(perLook);
    const int64_t end = std::min(k, p0 + kAheadSteps);
    for (int64_t p = p0; p < end; ++p) {
      V row[kVectors];
      if (Pack) // The hardware prefetcher doesn't follow rows of b.
#pragma GCC unroll 4
        for (int j = 0; j < kPanelN; j += kLineFloats)
          __builtin_prefetch(b.data + kPackAhead * b.stride + j);
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        row[j] = simd::load(b.data + j * kWidth);
        if (Pack)
          simd::store(b.pack + j * kWidth, row[j]);
      }
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
        const V x = simd::splat(a[RowMajor ? i * kPanelN : i]);
#pragma GCC unroll 4
        for (int j = 0; j < kVectors; ++j)
          acc[i][j] = Arithmetic::fma(x, row[j], acc[i][j]);
      }
      a += RowMajor ? 1 : M;
      b.data += Pack ? b.stride : kPanelN;
      if (Pack)
        b.pack += kPanelN;
    }
  }
}

/// The sums at the start: zeros, or the values of c.
template <int M>
[[gnu::always_inline]] inline void startSums(bool goesOn, int64_t n,
                                             const float *c, int64_t ldc,
                                             V (&acc)[M][kVectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      const float *at = c + i * ldc + j * kWidth;
      const int64_t count = goesOn ? n - j * kWidth : 0;
      acc[i][j] = count >= kWidth ? simd::load(at)
                  : count > 0     ? simd::loadPart(at, count)
                                  : V{};
    }
}

template <typename Arithmetic, int M, bool RowMajor, bool Pack>
void innerRows(int64_t n, int64_t k, const float *a, const PanelB &b, float *c,
               int64_t ldc, bool accumulate, const float *bias, Ahead &ahead) {
  V acc[M][kVectors];
  // If k is cut into pieces as wide as a panel, the sum continues from c, so
  // that the pieces' width doesn't change the bits.
  const bool goesOn = RowMajor && accumulate;
  startSums<M>(goesOn, n, c, ldc, acc);
  innerFixed<Arithmetic, M, RowMajor, Pack>(k, a, b, c, ldc, ahead, acc);
  accumulate = accumulate && !goesOn;
  if (n == kPanelN) {
    if (bias) {
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) {
        const V add = simd::load(bias + j * kWidth);
#pragma GCC unroll 16
        for (int i = 0; i < M; ++i)
          acc[i][j] += add;
      }
    }
    if (accumulate) {
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < kVectors; ++j)
          acc[i][j] = simd::load(c + i * ldc + j * kWidth) + acc[i][j];
    }
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j)
        simd::store(c + i * ldc + j * kWidth, acc[i][j]);
    return;
  }
  float rows[M][kPanelN];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j)
      simd::store(&rows[i][j * kWidth], acc[i][j]);
  for (int i = 0; i < M; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const float x = bias ? rows[i][j] + bias[j] : rows[i][j];
      c[i * ldc + j] = accumulate ? c[i * ldc + j] + x : x;
    }
}

} // namespace tmc::gemm

#endif // TMC_RUNTIME_CPU_GEMMINNER_H
