//===- CublasLtTypes.h - which products cuBLASLt has ------------*- C++ -*-===//
//
// The documentation's tables of supported types for cublasLtMatmul, row by row,
// for the types that a step of ours may use, and elements of those types.
//
// Source: cuBLAS library of CUDA 13, section "cublasLtMatmul()", the tables of
// computeType, scaleType, Atype/Btype, Ctype and Bias Type, and of FP8 kernels
// with what these require. Where releases differ the stricter one counts: f64
// had no epilogue before, and C's leading dimension was never less than its
// rows.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_CUBLASLTTYPES_H
#define TMC_TEST_CUDA_EMULATOR_CUBLASLTTYPES_H

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>

namespace tmc::emulator {

struct MatmulOperation {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  int32_t transA = CUBLAS_OP_N, transB = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr;
  int64_t biasStride = 0;
  int32_t biasType = -1; // that of D
  const void *scaleA = nullptr, *scaleB = nullptr, *scaleD = nullptr;
};
struct MatrixLayout {
  cudaDataType_t type = CUDA_R_32F;
  uint64_t rows = 0, cols = 0;
  int64_t ld = 0;
  int32_t batch = 1;
  int64_t stride = 0;
};

/// Whether the documentation lists this combination of types, operations,
/// epilogue and, for fp8, layout.
bool isSupported(const MatmulOperation &op, const MatrixLayout &a,
                 const MatrixLayout &b, const MatrixLayout &c,
                 const MatrixLayout &d);

/// Whether its scale pointers are of operands that have scales: those of fp8.
bool scalesFit(const MatmulOperation &op, const MatrixLayout &a,
               const MatrixLayout &b, const MatrixLayout &d);
bool isFp8(cudaDataType_t type);

/// What the bias is made of; where nothing is said, of D's type, or, of
/// products of fp8, of bf16 or C's fp16. Source: cublasLt.h,
/// CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE.
cudaDataType_t biasType(const MatmulOperation &op, const MatrixLayout &a,
                        const MatrixLayout &c, const MatrixLayout &d);

size_t bytesOf(cudaDataType_t type);
/// Element `i`, widened; and rounded back to its type.
double readElement(const void *from, cudaDataType_t type, int64_t i);
void writeElement(void *to, cudaDataType_t type, int64_t i, double value);
/// What a scale pointer of fp8 points to; 1 where there is none.
double scaleOf(const void *p);

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_CUBLASLTTYPES_H
