//===- Matmul.h - batched matrix products -----------------------*- C++ -*-===//
//
//   out[b, i, j] = sum_k lhs[b, i, k] rhs[b, k, j] (+ bias[j])
//
// cpu: runtime/cpu/GemmTyped.h; cuda: cuBLASLt.
// Sums are in f32 (f64 for f64) and rounded once, to the type of `out`. An f32
// factor beside a 16-bit one is rounded to the 16-bit type when it is read
// (cpu). With tf32, both factors are rounded to TF32.
//
// Factors of 8 bits may have scales, by which they are multiplied (Quantize.h).
// A scale of a whole factor multiplies the sums. Scales of blocks, powers of
// two, multiply the codes first (cpu), or the sums of 128 products (cuda).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_MATMUL_H
#define TMC_RUNTIME_KERNELS_MATMUL_H

#include "runtime/kernels/Quantize.h"

namespace tmc {

/// ins: lhs [batch, m, k] (stored [batch, k, m] if transposeLhs),
///      rhs [batch, k, n] (stored [batch, n, k] if transposeRhs),
///      bias [n] if bias, scales of lhs and of rhs if scaled.
///      (`accumulate` adds to outs[0].)
/// outs: out [batch, m, n]. `accumulate` adds to it. A bias has out's type.
class Matmul : public Kernel {
public:
  struct Params {
    DType lhs, rhs, out;
    int64_t batch, m, n, k;
    bool transposeLhs, transposeRhs, bias, tf32;
    /// The block of a stored factor that shares a scale.
    bool scaled = false;
    int64_t lhsBlockRows = 0, lhsBlockColumns = 0;
    int64_t rhsBlockRows = 0, rhsBlockColumns = 0;
    bool packed = false; // layout of both factors' scales (Quantize.h)
    int64_t scratchBytes = 0;

    TMC_FIELD_GROUPS(TMC_GIVEN(lhs, rhs, out, batch, m, n, k, transposeLhs,
                               transposeRhs, bias, tf32),
                     TMC_OPTIONAL(scaled, lhsBlockRows, lhsBlockColumns,
                                  rhsBlockRows, rhsBlockColumns),
                     TMC_OPTIONAL(packed))

    /// The type to which f32 factors are rounded; F32: not rounded.
    DType readAs() const {
      return tf32 ? DType::TF32 : lhs == DType::F32 ? rhs : lhs;
    }
    /// Whether sums are multiplied by a scale.
    constexpr bool scalesSums() const {
      return scaled && (lhsBlockRows == 0 || rhsBlockRows == 0);
    }
  };
  /// The first covers types in any layout. The second covers a whole product;
  /// 8-bit codes on cuda need `fitsCodes` and k innermost in both factors.
  static constexpr bool takes(DType lhs, DType rhs, DType out, Backend backend);
  static constexpr bool takes(const Params &params, Backend backend);
  /// Whether cuBLASLt multiplies 8-bit codes of these sizes: contiguous runs
  /// are multiples of 16 bytes.
  static constexpr bool fitsCodes(int64_t n, int64_t k, DType out) {
    return k % 16 == 0 && n * sizeOf(out) % 16 == 0;
  }
  /// The same with block scales, which also need the rows of lhs in multiples
  /// of 8. (The documentation says 4; Transformer Engine's tests have found 8.)
  static constexpr bool fitsBlocks(int64_t m, int64_t n, int64_t k, DType out) {
    return m % 8 == 0 && n % 8 == 0 && fitsCodes(n, k, out);
  }
  static int64_t scratchCap(const Params &params, Backend backend);
  static int64_t unalignedProducts(const Params &params);
  TMC_KERNEL(Matmul)
};

/// Whether the library has faster kernels for rows of whole 16 bytes: by tensor
/// cores.
constexpr bool wantsAlignedRows(DType factor, bool tf32) {
  return tf32 || isHalf(factor) || isFloat8(factor);
}
/// Whether a row of so many elements is a multiple of 16 bytes.
constexpr bool isAlignedRow(int64_t elements, DType type) {
  return elements * sizeOf(type) % 16 == 0;
}

inline int64_t Matmul::unalignedProducts(const Params &p) {
  return wantsAlignedRows(p.lhs, p.tf32) &&
         !(isAlignedRow(p.transposeLhs ? p.m : p.k, p.lhs) &&
           isAlignedRow(p.transposeRhs ? p.k : p.n, p.rhs) &&
           isAlignedRow(p.n, p.out));
}

constexpr bool Matmul::takes(DType lhs, DType rhs, DType out, Backend backend) {
  if ((lhs == DType::F32 && isHalf(rhs)) || (isHalf(lhs) && rhs == DType::F32))
    return backend == Backend::Cpu && (out == DType::F32 || isHalf(out));
  if (lhs != rhs) // With FP8, one may be the type of a gradient.
    return backend == Backend::Cpu && isFloat8(lhs) && isFloat8(rhs) &&
           (out == DType::F32 || isHalf(out));
  if (backend == Backend::Cuda)
    return out == lhs ? isHalf(lhs) || lhs == DType::F32 || lhs == DType::F64
                      : isHalf(lhs) && out == DType::F32;
  return (lhs == DType::F32 || isHalf(lhs) || isFloat8(lhs)) &&
         (out == DType::F32 || isHalf(out));
}

constexpr bool Matmul::takes(const Params &p, Backend backend) {
  if (takes(p.lhs, p.rhs, p.out, backend))
    return !p.packed;
  const bool areCodes = isFloat8(p.lhs) && isFloat8(p.rhs) &&
                        (p.lhs == DType::F8E4M3 || p.rhs == DType::F8E4M3);
  const bool isWhole =
      p.scaled && !p.packed && !p.lhsBlockRows && !p.rhsBlockRows;
  // One factor's blocks may be squares.
  const bool hasBlocks = p.scaled && p.packed && p.batch == 1 &&
                         p.lhsBlockColumns == kScaleBlock &&
                         p.rhsBlockColumns == kScaleBlock &&
                         (p.lhsBlockRows == 1 || p.rhsBlockRows == 1);
  // The library supports no f32 bias beside codes.
  const bool hasResult = isHalf(p.out) || (p.out == DType::F32 && !p.bias);
  return backend == Backend::Cuda && areCodes && hasResult && !p.transposeLhs &&
         p.transposeRhs &&
         (isWhole     ? fitsCodes(p.n, p.k, p.out)
          : hasBlocks ? fitsBlocks(p.m, p.n, p.k, p.out)
                      : false);
}

/// Parts of the cpu product; see runtime/cpu/Gemm.h. The depth of the inner
/// kernel, whose panel of rhs stays in the first-level cache, and the slab of
/// lhs, which stays in the second-level cache.
constexpr int64_t kGemmDepth = 256;
constexpr int64_t kGemmSlabFloats = 1 << 16;
/// A result larger than the last-level cache should be passed over few times,
/// so its slabs are deeper.
constexpr int64_t kGemmLargeResult = int64_t(1) << 23; // floats
constexpr int64_t kGemmLargeSlabDepth = 4 * kGemmDepth;
constexpr int64_t kGemmLargeSlabFloats = 1 << 18;
/// Panels of lhs have 14 or 6 rows: slabs are cut at a multiple of both.
constexpr int64_t kGemmRowStep = 42;
/// The width of the widest cpu panel, in columns.
constexpr int64_t kGemmPanelN = 32;
/// Flops that justify handing a tile to another thread.
constexpr int64_t kGemmTileFlops = 1 << 21;

/// Columns and rows of lhs that are packed at once.
inline int64_t gemmSlabDepth(int64_t m, int64_t n, int64_t k) {
  const int64_t most =
      m * n > kGemmLargeResult ? kGemmLargeSlabDepth : kGemmDepth;
  return k < most ? k : most;
}
inline int64_t gemmSlabRows(int64_t m, int64_t n, int64_t k) {
  const int64_t floats =
      m * n > kGemmLargeResult ? kGemmLargeSlabFloats : kGemmSlabFloats;
  const int64_t most =
      (floats / (gemmSlabDepth(m, n, k) + 1) / kGemmRowStep + 1) * kGemmRowStep;
  // Of about equal height: a low last slab would read all of rhs for little
  // work.
  const int64_t slabs = (m + most - 1) / most;
  return slabs <= 1 ? m
                    : ((m + slabs - 1) / slabs + kGemmRowStep - 1) /
                          kGemmRowStep * kGemmRowStep;
}
/// Columns of a cpu product that one thread takes at a time, whole panels.
inline int64_t gemmTileColumns(int64_t m, int64_t n, int64_t k) {
  const int64_t panels =
      kGemmTileFlops /
      (2 * gemmSlabRows(m, n, k) * gemmSlabDepth(m, n, k) * kGemmPanelN + 1);
  return (panels < 1 ? 1 : panels) * kGemmPanelN;
}
/// The number of threads that can be used; each has its own scratch.
inline int64_t gemmWorkers(int64_t m, int64_t n, int64_t k) {
  const int64_t columns = gemmTileColumns(m, n, k);
  const int64_t tiles = (n + columns - 1) / columns;
  return tiles < kScratchWorkers ? tiles : kScratchWorkers;
}

/// Rows and columns of the blocks in which a narrow result is summed. Each
/// block packs its rows of lhs and columns of rhs again. A slab of rows is the
/// product's unit anyway, and with this many columns packing the rows costs a
/// few percent.
constexpr int64_t kNarrowResultRows = 7 * kGemmRowStep;
constexpr int64_t kNarrowResultColumns = 2048;

/// The scratch of a product with a narrow result or with scales: a block of
/// sums, a widened bias, and the largest scratch of a block's product.
struct NarrowResultScratch {
  int64_t block, bias, product;

  NarrowResultScratch(int64_t m, int64_t n, int64_t k) {
    m = m < kNarrowResultRows ? m : kNarrowResultRows;
    n = n < kNarrowResultColumns ? n : kNarrowResultColumns;
    const int64_t depth = k < kGemmDepth ? k : kGemmDepth;
    // gemmSlabRows() rounds up to a step; with fewer rows a tile is wider.
    const int64_t slab = kGemmSlabFloats + kGemmRowStep * kGemmDepth;
    const int64_t panels = (n + kGemmPanelN - 1) / kGemmPanelN;
    block = alignScratch(m * n * 4);
    bias = alignScratch(n * 4);
    product = alignScratch((m * depth < slab ? m * depth : slab) * 4) +
              (panels < kScratchWorkers ? panels : kScratchWorkers) *
                  alignScratch(depth * kGemmPanelN * 4);
  }
  int64_t bytes() const { return block + bias + product; }
};

/// cuBLASLt's workspace.
constexpr int64_t kCudaMatmulScratchBytes = 32 << 20;

inline int64_t Matmul::scratchCap(const Params &p, Backend backend) {
  if (backend == Backend::Cuda)
    return kCudaMatmulScratchBytes;
  if (p.out != DType::F32 || p.scalesSums())
    return NarrowResultScratch(p.m, p.n, p.k).bytes();
  const int64_t depth = p.k < kGemmDepth ? p.k : kGemmDepth;
  // One slab of lhs, and one panel of rhs per worker.
  return alignScratch(gemmSlabRows(p.m, p.n, p.k) *
                      gemmSlabDepth(p.m, p.n, p.k) * 4) +
         gemmWorkers(p.m, p.n, p.k) * alignScratch(depth * kGemmPanelN * 4);
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_MATMUL_H
