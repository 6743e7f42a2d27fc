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

/// Blocks of the cpu product; see runtime/cpu/Gemm.h.
constexpr int64_t kGemmBlockM = 1050; // a multiple of 14 and of 6
constexpr int64_t kGemmBlockK = 384;
/// No cpu panel is wider, in columns.
constexpr int64_t kGemmPanelN = 32;
/// Work that is worth handing to another thread.
constexpr int64_t kGemmTileFlops = 1 << 21;

/// Columns of a cpu product that one thread takes at a time, whole panels.
inline int64_t gemmTileColumns(int64_t m, int64_t k) {
  const int64_t rows = m < kGemmBlockM ? m : kGemmBlockM;
  const int64_t depth = k < kGemmBlockK ? k : kGemmBlockK;
  const int64_t panels = kGemmTileFlops / (2 * rows * depth * kGemmPanelN + 1);
  return (panels < 1 ? 1 : panels) * kGemmPanelN;
}
/// Threads that it can use: each has scratch of its own.
inline int64_t gemmWorkers(int64_t m, int64_t n, int64_t k) {
  const int64_t columns = gemmTileColumns(m, k);
  const int64_t tiles = (n + columns - 1) / columns;
  return tiles < kScratchWorkers ? tiles : kScratchWorkers;
}
/// cuBLASLt's workspace.
constexpr int64_t kCudaMatmulScratchBytes = 32 << 20;

inline int64_t Matmul::scratchCap(const Params &p, Backend backend) {
  if (backend == Backend::Cuda)
    return kCudaMatmulScratchBytes;
  const int64_t rows = p.m < kGemmBlockM ? p.m : kGemmBlockM;
  const int64_t depth = p.k < kGemmBlockK ? p.k : kGemmBlockK;
  // One block of lhs, and one panel of rhs per worker.
  return alignScratch(rows * depth * 4) +
         gemmWorkers(p.m, p.n, p.k) * alignScratch(depth * kGemmPanelN * 4);
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_MATMUL_H
