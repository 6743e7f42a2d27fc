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
                float *c, int64_t ldc, bool accumulate);
/// Gemm.h's innerRowMajor in pairs: row i of a at a + i * kPanelN.
void innerRowMajorPairs(int64_t m, int64_t n, int64_t k, const float *a,
                        const float *b, float *c, int64_t ldc, bool accumulate);
/// Rounds floats [k, kPanelN] and packs them in place as packPairsB does.
void packTilePairs(float *tile, int64_t k);
/// Rounds floats [rows, kPanelN] and packs neighbours in a row. Row i goes to
/// to + i * kPanelN, half as many packed elements; `to` may be the tile.
void packTileRowPairs(const float *tile, int64_t rows, float *to);

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
        innerPairs(height, kPanelN, k, panel, b, to, kPanelN, false);
      else
        inner(height, kPanelN, k, panel, b, to, kPanelN, false, nullptr);
    }
  }

private:
  bool isBF16, inPairs;
  int64_t k, depth;
};

/// Products with tiles of floats [rows, kPanelN] that a kernel computes. If
/// their other factors are bf16, tiles are rounded to bf16 when they enter a
/// product, denormals are zeros, and pairs are multiplied where that is faster.
class TileProducts {
public:
  explicit TileProducts(bool isBF16)
      : TileProducts(isBF16, isBF16 && pairsAreFaster()) {}
  /// `inPairs` requires `isBF16` and `knowsPairs()`.
  TileProducts(bool isBF16, bool inPairs) : isBF16(isBF16), inPairs(inPairs) {}

  void packLeft(const Matrix &a, int64_t m, int64_t k, float *to) const {
    (inPairs ? packPairsA : packA)(a, m, k, to);
  }
  void packRight(const Matrix &b, int64_t k, int64_t n, float *to) const {
    (inPairs ? packPairsB : packB)(b, k, n, to);
  }

  /// A tile is prepared in this order: it is rounded, its rows become left
  /// factors, and the whole becomes a right factor. For rows in pairs, `to` has
  /// half of each row of kPanelN floats; returns where the rows are.
  void round(float *tile, int64_t rows) const {
    if (isBF16 && !inPairs)
      roundNormals(tile, rows * kPanelN);
  }
  const float *asRows(const float *tile, int64_t rows, float *to) const {
    if (!inPairs)
      return tile;
    packTileRowPairs(tile, rows, to);
    return to;
  }
  void asRight(float *tile, int64_t rows) const {
    if (inPairs)
      packTilePairs(tile, rows);
  }

  /// c [m, kPanelN] (+)= a tile: the first k of the `depth` numbers in each row
  /// of a. k is even or `depth`.
  void multiply(int64_t m, int64_t depth, int64_t k, const float *a,
                const float *tile, float *c, bool accumulate) const {
    const simd::DenormalMode mode(isBF16);
    const int64_t stride = inPairs ? (depth + 1) / 2 : depth;
    for (int64_t i = 0; i < m; i += kPanelM) {
      const int64_t height = m - i < kPanelM ? m - i : kPanelM;
      float *to = c + i * kPanelN;
      if (inPairs)
        innerPairs(height, kPanelN, k, a + i * stride, tile, to, kPanelN,
                   accumulate);
      else
        inner(height, kPanelN, k, a + i * stride, tile, to, kPanelN, accumulate,
              nullptr);
    }
  }
  /// c [m, n] (+)= rows b, with m <= kPanelM and n <= kPanelN.
  void multiplyRows(int64_t m, int64_t n, int64_t k, const float *rows,
                    const float *b, float *c, int64_t ldc,
                    bool accumulate) const {
    (inPairs ? innerRowMajorPairs : innerRowMajor)(m, n, k, rows, b, c, ldc,
                                                   accumulate);
  }
  /// True if sums and what is rounded treat denormals as zeros.
  bool flushesDenormals() const { return isBF16; }

private:
  /// Rounds to bf16, denormals to zeros.
  static void roundNormals(float *x, int64_t count);

  bool isBF16, inPairs;
};

} // namespace tmc::gemm

#endif // TMC_RUNTIME_CPU_GEMMPAIRS_H
