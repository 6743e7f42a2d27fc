//===- GemmPairs.h - products of bf16 factors, two at a time ----*- C++ -*-===//
//
//     VDPBF16PS    sum += a.odd * b.odd;  sum += a.even * b.even
//
// AVX512-BF16's instruction rounds to nearest after each addition, and treats
// denormals as zeros, in operands and results. So packed elements hold two
// numbers along k, the first one in the odd place:
//
//     bits 31..16  a(i, 2 q)        bits 15..0  a(i, 2 q + 1)
//
// and sums have the same bits as consecutive f32 multiply-adds that flush
// denormals, as `Problem::flushesDenormals` requires. A number without a
// neighbour is paired with -0 on the left, which adds -0 and so changes
// nothing.
//
// Per number, some processors run it at twice the rate of the f32 multiply-add,
// and some at half the rate. The first product measures it.
//
// Source: Intel's and AMD's manuals of their instruction sets.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_GEMMPAIRS_H
#define TMC_RUNTIME_CPU_GEMMPAIRS_H

#include "runtime/cpu/Gemm.h"

namespace tmc::gemm {

/// Whether this library was compiled with the instruction.
bool knowsPairs();
/// Whether it is faster on this processor: both inner kernels are timed once,
/// for a few microseconds.
bool pairsAreFaster();

/// Gemm.h's run(), in pairs and in floats. The elements of both factors are
/// bf16. runPairs() requires `knowsPairs()`.
void runPairs(Stream &stream, const Problem &problem, void *scratch);
void runSingles(Stream &stream, const Problem &problem, void *scratch);

/// Gemm.h's packA, packB and inner in pairs: ceil(k / 2) packed elements deep.
/// They require `knowsPairs()`.
void packPairsA(const Matrix &a, int64_t m, int64_t k, float *to);
void packPairsB(const Matrix &b, int64_t k, int64_t n, float *to);
void innerPairs(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                float *c, int64_t ldc);

/// Products of a packed a with packed panels of b for kernels of their own. If
/// the elements of both are bf16, pairs of them are multiplied where that is
/// faster, and denormals are zeros on all processors.
class PanelProducts {
public:
  /// k: the depth of the products.
  PanelProducts(bool isBF16, int64_t k)
      : isBF16(isBF16), inPairs(isBF16 && pairsAreFaster()), k(k),
        depth(inPairs ? (k + 1) / 2 : k) {}

  void packLeft(const Matrix &a, int64_t m, float *to) const {
    (inPairs ? packPairsA : packA)(a, m, k, to);
  }
  void packRight(const Matrix &b, int64_t n, float *to) const {
    (inPairs ? packPairsB : packB)(b, k, n, to);
  }
  /// c [rows, kPanelN] = the first rows of a, which has `m` rows, times a panel
  /// of b; whole panels of rows.
  void multiply(int64_t rows, int64_t m, const float *a, const float *b,
                float *c) const {
    const simd::DenormalMode mode(isBF16);
    for (int64_t r = 0; r < rows; r += kPanelM) {
      const int64_t height = m - r < kPanelM ? m - r : kPanelM;
      const float *panel = a + r * depth;
      float *to = c + r * kPanelN;
      if (inPairs)
        innerPairs(height, kPanelN, k, panel, b, to, kPanelN);
      else
        inner(height, kPanelN, k, panel, b, to, kPanelN, false, nullptr);
    }
  }

private:
  bool isBF16, inPairs;
  int64_t k, depth;
};

} // namespace tmc::gemm

#endif // TMC_RUNTIME_CPU_GEMMPAIRS_H
