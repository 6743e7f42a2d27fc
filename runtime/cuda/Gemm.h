//===- Gemm.h - matrix products by cuBLASLt ---------------------*- C++ -*-===//
//
//   out[m, n] (+)= lhs[m, k] rhs[k, n] (+ bias[n])         all row-major
//
// The library is column-major, and a row-major matrix is the transpose of a
// column-major one. So the requested product is out^T = rhs^T lhs^T, and no
// data moves:
//
//            row-major         as the library sees it     operation
//   its A:   rhs [k, n]        n x k, leading dim. n      none
//            rhs [n, k] (T)    k x n, leading dim. k      transpose
//   its B:   lhs [m, k]        k x m, leading dim. k      none
//            lhs [k, m] (T)    m x k, leading dim. m      transpose
//   its C:   out [m, n]        n x m, leading dim. n
//
// Accumulation is beta = 1 on out itself. A bias is an epilogue of the library:
// one number per row of its C.
//
// For 8-bit codes the library has only products with A transposed and B not: k
// is innermost in both factors. Their scales multiply the sums. Block scales
// have the library's packed layout (Quantize.h), and multiply the sums of 128
// products. The library supports them since 12.9, on cards of compute
// capability 9.0.
//
// Bits: sums are in f32 (f64 for f64), and TF32 is used only if requested. The
// algorithm is that of the step's table (runtime/kernels/Algorithms.h), for
// whole buffers, or the first one of the library's heuristics for the shape,
// the type and the alignment of the operands; prepare() chooses it once.
// Partial sums of a split k go through the workspace in the type of the sums,
// in a fixed order, never through the output.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_GEMM_H
#define TMC_RUNTIME_CUDA_GEMM_H

#include "runtime/cuda/Cuda.h"
#include "runtime/kernels/Matmul.h"

namespace tmc::cuda {

class Gemm {
public:
  Gemm();
  ~Gemm();
  Gemm(const Gemm &) = delete;
  Gemm &operator=(const Gemm &) = delete;

  /// `params.scratchBytes` is the most workspace that the library may use,
  /// including the rounding to its alignment. Rows of the stored lhs are
  /// `lhsStride` elements apart; 0: contiguous. A stride is allowed only
  /// without a batch.
  Status prepare(const char *name, CudaDevice &device,
                 const Matmul::Params &params, int64_t lhsStride = 0);

  /// The operands of a product. `bias` is ignored unless params.bias, and
  /// scales unless params.scaled.
  struct Operands {
    const void *lhs, *rhs, *bias = nullptr;
    const void *lhsScale = nullptr, *rhsScale = nullptr;
  };
  /// Queues the product.
  void run(const Queue &queue, const Operands &operands, void *out,
           void *workspace, bool accumulate);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_GEMM_H
