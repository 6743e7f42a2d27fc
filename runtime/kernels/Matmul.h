//===- Matmul.h - batched matrix products -----------------------*- C++ -*-===//
//
//   out[b, i, j] = sum_k lhs[b, i, k] rhs[b, k, j] (+ bias[j])
//
// cpu: runtime/cpu/Gemm.h, and GemmTyped.h for narrow types; cuda: cuBLASLt.
// Sums are in f32 (f64 for f64) and rounded once, to the type of `out`.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_MATMUL_H
#define TMC_RUNTIME_KERNELS_MATMUL_H

#include "runtime/kernels/Kernel.h"

namespace tmc {

/// ins: lhs [batch, m, k] (stored [batch, k, m] if transposeLhs),
///      rhs [batch, k, n] (stored [batch, n, k] if transposeRhs),
///      bias [n] if bias. (What `accumulate` adds to is outs[0]; a fourth in is
///      ignored.)
/// outs: out [batch, m, n]. `accumulate` adds to it. A bias has out's type.
class Matmul : public Kernel {
public:
  struct Params {
    DType lhs, rhs, out;
    int64_t batch, m, n, k;
    bool transposeLhs, transposeRhs, bias;
    int64_t scratchBytes;

    bool isSingle() const {
      return lhs == DType::F32 && rhs == DType::F32 && out == DType::F32;
    }
  };
  static constexpr bool takes(DType lhs, DType rhs, DType out, Backend backend);
  static int64_t scratchCap(const Params &params, Backend backend);
  TMC_KERNEL(Matmul)
};

constexpr bool Matmul::takes(DType lhs, DType rhs, DType out, Backend backend) {
  if (lhs != rhs) // Of FP8, one may be a gradient's.
    return backend == Backend::Cpu && isFloat8(lhs) && isFloat8(rhs) &&
           (out == DType::F32 || isHalf(out));
  if (backend == Backend::Cuda)
    return out == lhs ? isHalf(lhs) || lhs == DType::F32 || lhs == DType::F64
                      : isHalf(lhs) && out == DType::F32;
  return (lhs == DType::F32 || isHalf(lhs) || isFloat8(lhs)) &&
         (out == DType::F32 || isHalf(out));
}

/// Parts of the cpu product; see runtime/cpu/Gemm.h. The depth of the inner
/// kernel, whose panel of rhs stays in the first-level cache, and the slab of
/// lhs that stays in the second-level one.
constexpr int64_t kGemmDepth = 256;
constexpr int64_t kGemmSlabFloats = 1 << 16;
/// A result that the last-level cache doesn't keep is passed over as seldom as
/// possible: slabs are deeper there.
constexpr int64_t kGemmLargeResult = int64_t(1) << 23; // floats
constexpr int64_t kGemmLargeSlabDepth = 4 * kGemmDepth;
constexpr int64_t kGemmLargeSlabFloats = 1 << 18;
/// Panels of lhs have 14 rows, or 6: slabs are cut at a multiple of both.
constexpr int64_t kGemmRowStep = 42;
/// No cpu panel is wider, in columns.
constexpr int64_t kGemmPanelN = 32;
/// Work that is worth handing to another thread.
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
  // Of about equal height: a low last slab would read all of rhs for little.
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
/// Threads that it can use: each has scratch of its own.
inline int64_t gemmWorkers(int64_t m, int64_t n, int64_t k) {
  const int64_t columns = gemmTileColumns(m, n, k);
  const int64_t tiles = (n + columns - 1) / columns;
  return tiles < kScratchWorkers ? tiles : kScratchWorkers;
}

/// Rows, columns and depth of the blocks in which narrow operands are widened:
/// each block is used as often as the other is long, so that widening costs a
/// few percent. The depth is whole steps of kGemmDepth: sums are the same.
constexpr int64_t kTypedBlock = 2 * kGemmDepth;

/// The blocks of one product, as widened floats: of an operand or result that
/// is f32 none is needed; then what the product of blocks takes.
struct TypedGemmScratch {
  int64_t lhs, rhs, out, bias, product;

  explicit TypedGemmScratch(const Matmul::Params &p) {
    const int64_t m = p.m < kTypedBlock ? p.m : kTypedBlock;
    const int64_t n = p.n < kTypedBlock ? p.n : kTypedBlock;
    const int64_t k = p.k < kTypedBlock ? p.k : kTypedBlock;
    const int64_t depth = p.k < kGemmDepth ? p.k : kGemmDepth;
    const int64_t slab = kGemmSlabFloats + kGemmRowStep * kGemmDepth;
    const int64_t panels = (n + kGemmPanelN / 2 - 1) / (kGemmPanelN / 2);
    lhs = p.lhs == DType::F32 ? 0 : alignScratch(m * k * 4);
    rhs = p.rhs == DType::F32 ? 0 : alignScratch(k * n * 4);
    out = p.out == DType::F32 ? 0 : alignScratch(m * n * 4);
    bias = p.out == DType::F32 || !p.bias ? 0 : alignScratch(n * 4);
    product = alignScratch((m * depth < slab ? m * depth : slab) * 4) +
              (panels < kScratchWorkers ? panels : kScratchWorkers) *
                  alignScratch(depth * kGemmPanelN * 4);
  }
  int64_t bytes() const { return lhs + rhs + out + bias + product; }
};

/// cuBLASLt's workspace.
constexpr int64_t kCudaMatmulScratchBytes = 32 << 20;

inline int64_t Matmul::scratchCap(const Params &p, Backend backend) {
  if (backend == Backend::Cuda)
    return kCudaMatmulScratchBytes;
  if (!p.isSingle())
    return TypedGemmScratch(p).bytes();
  const int64_t depth = p.k < kGemmDepth ? p.k : kGemmDepth;
  // One slab of lhs, and one panel of rhs per worker.
  return alignScratch(gemmSlabRows(p.m, p.n, p.k) *
                      gemmSlabDepth(p.m, p.n, p.k) * 4) +
         gemmWorkers(p.m, p.n, p.k) * alignScratch(depth * kGemmPanelN * 4);
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_MATMUL_H
