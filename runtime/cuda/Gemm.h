//===- Gemm.h - matrix products by cuBLASLt ---------------------*- C++ -*-===//
//
//   out[m, n] (+)= lhs[m, k] rhs[k, n] (+ bias[n])         all row-major
//
// The library is column-major, where a row-major matrix is its transpose. So
// the product asked for is out^T = rhs^T lhs^T, and nothing is moved:
//
//            row-major         as the library sees it     operation
//   its A:   rhs [k, n]        n x k, leading dim. n      none
//            rhs [n, k] (T)    k x n, leading dim. k      transpose
//   its B:   lhs [m, k]        k x m, leading dim. k      none
//            lhs [k, m] (T)    m x k, leading dim. m      transpose
//   its C:   out [m, n]        n x m, leading dim. n
//
// Accumulation is beta = 1 on out itself. A bias is the library's epilogue: one
// number per row of its C.
//
// Of codes of 8 bits it has products with its A transposed and its B not: k is
// innermost in both factors. Their scales multiply the sums. Those of blocks
// are packed as it wants them (Quantize.h), and multiply the sums of 128
// products; it has them since 12.9, on cards of compute capability 9.0.
//
// Bits: sums are in f32 (f64 for f64), TF32 is used where it is asked for
// alone. The algorithm is what the library's heuristics name first for the
// shape, the type and the alignment of the operands, asked once in prepare().
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

  /// `params.scratchBytes` is what the library may take as workspace, the
  /// rounding to its alignment included. Rows of lhs as it lies in memory are
  /// `lhsStride` elements apart; 0: they follow each other. Only where there is
  /// no batch.
  Status prepare(const char *name, CudaDevice &device,
                 const Matmul::Params &params, int64_t lhsStride = 0);

  /// What a product reads. `bias` is ignored unless params.bias, and scales
  /// unless params.scaled.
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
