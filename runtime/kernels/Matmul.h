//===- Matmul.h - batched matrix products -----------------------*- C++ -*-===//
//
//   out[b, i, j] = sum_k lhs[b, i, k] rhs[b, k, j] (+ bias[j])
//
// cpu: runtime/cpu/Gemm.h; cuda: cuBLASLt.
// Products accumulate in f32 (f64 for f64).
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
/// outs: out [batch, m, n]. `accumulate` adds to it.
class Matmul : public Kernel {
public:
  struct Params {
    DType type;
    int64_t batch, m, n, k;
    bool transposeLhs, transposeRhs, bias;
    int64_t scratchBytes;
  };
  static int64_t scratchCap(const Params &params, Backend backend);
  TMC_KERNEL(Matmul)
};

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
/// cuBLASLt's workspace.
constexpr int64_t kCudaMatmulScratchBytes = 32 << 20;

inline int64_t Matmul::scratchCap(const Params &p, Backend backend) {
  if (backend == Backend::Cuda)
    return kCudaMatmulScratchBytes;
  const int64_t depth = p.k < kGemmDepth ? p.k : kGemmDepth;
  // One slab of lhs, and one panel of rhs per worker.
  return alignScratch(gemmSlabRows(p.m, p.n, p.k) *
                      gemmSlabDepth(p.m, p.n, p.k) * 4) +
         gemmWorkers(p.m, p.n, p.k) * alignScratch(depth * kGemmPanelN * 4);
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_MATMUL_H
