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
template <typename Arithmetic, int M, int Vectors, bool RowMajor, bool Pack>
[[gnu::always_inline]] inline void
innerFixed(int64_t k, const float *a, PanelB b, const float *c, int64_t ldc,
           Ahead &ahead, V (&acc)[M][Vectors]) {
  constexpr int64_t cLines =
      (Vectors * kWidth + kLineFloats - 1) / kLineFloats; // of a row of c
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
      V row[Vectors];
      if (Pack) // The hardware prefetcher doesn't follow rows of b.
#pragma GCC unroll 4
        for (int j = 0; j < kPanelN; j += kLineFloats)
          __builtin_prefetch(b.data + kPackAhead * b.stride + j);
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) {
        row[j] = simd::load(b.data + j * kWidth);
        if (Pack)
          simd::store(b.pack + j * kWidth, row[j]);
      }
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
        const V x = simd::splat(a[RowMajor ? i * kPanelN : i]);
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; ++j)
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
template <int M, int Vectors>
[[gnu::always_inline]] inline void startSums(bool goesOn, int64_t n,
                                             const float *c, int64_t ldc,
                                             V (&acc)[M][Vectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
      const float *at = c + i * ldc + j * kWidth;
      const int64_t count = goesOn ? n - j * kWidth : 0;
      acc[i][j] = count >= kWidth ? simd::load(at)
                  : count > 0     ? simd::loadPart(at, count)
                                  : V{};
    }
}

/// c (+)= acc (+ bias) for the first n columns; the last vector of them isn't
/// full.
template <int M, int Vectors>
[[gnu::always_inline]] inline void
putPart(int64_t n, const float *bias, float *c, int64_t ldc, bool accumulate,
        V (&acc)[M][Vectors]) {
#pragma GCC unroll 4
  for (int j = 0; j < Vectors; ++j) {
    const int64_t count = std::min<int64_t>(kWidth, n - j * kWidth);
    if (count <= 0)
      break;
    const bool whole = count == kWidth;
    const float *add = bias + j * kWidth;
    const V more = !bias   ? V{}
                   : whole ? simd::load(add)
                           : simd::loadPart(add, count);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      float *at = c + i * ldc + j * kWidth;
      V x = bias ? acc[i][j] + more : acc[i][j];
      if (accumulate)
        x = (whole ? simd::load(at) : simd::loadPart(at, count)) + x;
      if (whole)
        simd::store(at, x);
      else
        simd::storePart(at, x, count);
    }
  }
}

/// innerRows() with the first `Vectors` vectors of the panel's columns.
template <typename Arithmetic, int M, int Vectors, bool RowMajor, bool Pack>
[[gnu::always_inline]] inline void
innerVectors(int64_t n, int64_t k, const float *a, const PanelB &b, float *c,
             int64_t ldc, bool accumulate, const float *bias, Ahead &ahead) {
  V acc[M][Vectors];
  // If k is cut into pieces as wide as a panel, the sum continues from c, so
  // that the pieces' width doesn't change the bits.
  const bool goesOn = RowMajor && accumulate;
  startSums(goesOn, n, c, ldc, acc);
  innerFixed<Arithmetic, M, Vectors, RowMajor, Pack>(k, a, b, c, ldc, ahead,
                                                     acc);
  accumulate = accumulate && !goesOn;
  if (n < Vectors * kWidth)
    return putPart(n, bias, c, ldc, accumulate, acc);
  if (bias) {
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) {
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
      for (int j = 0; j < Vectors; ++j)
        acc[i][j] = simd::load(c + i * ldc + j * kWidth) + acc[i][j];
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j)
      simd::store(c + i * ldc + j * kWidth, acc[i][j]);
}

/// c [M, n] (+)= a b (+ bias). A panel of few columns takes half the time.
template <typename Arithmetic, int M, bool RowMajor, bool Pack>
void innerRows(int64_t n, int64_t k, const float *a, const PanelB &b, float *c,
               int64_t ldc, bool accumulate, const float *bias, Ahead &ahead) {
  if constexpr (!Pack)
    if (n <= kWidth)
      return innerVectors<Arithmetic, M, 1, RowMajor, Pack>(
          n, k, a, b, c, ldc, accumulate, bias, ahead);
  innerVectors<Arithmetic, M, kVectors, RowMajor, Pack>(
      n, k, a, b, c, ldc, accumulate, bias, ahead);
}

} // namespace tmc::gemm

#endif // TMC_RUNTIME_CPU_GEMMINNER_H
