//===- Matmul.h - batched matrix products -----------------------*- C++ -*-===//
//
//   out[b, i, j] = sum_k lhs[b, i, k] rhs[b, k, j] (+ bias[j])
//
// cpu: oneDNN on tiles that are a function of the shape; cuda: cuBLASLt.
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

/// The most parts that a cpu product is cut into.
constexpr int64_t kMatmulTiles = 4;
/// What one part may take for packed operands on cpu.
constexpr int64_t kMatmulTileScratchBytes = 1 << 20;
/// cuBLASLt's workspace.
constexpr int64_t kCudaMatmulScratchBytes = 32 << 20;

inline int64_t Matmul::scratchCap(const Params &, Backend backend) {
  if (backend == Backend::Cuda)
    return kCudaMatmulScratchBytes;
  return kMatmulTiles * kMatmulTileScratchBytes;
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_MATMUL_H
