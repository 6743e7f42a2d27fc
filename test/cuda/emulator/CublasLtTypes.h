//===- CublasLtTypes.h - which products cuBLASLt has ------------*- C++ -*-===//
//
// The documentation's tables of supported types for cublasLtMatmul, row by row,
// for the types that a step of ours may use, elements of those types, and where
// in memory the scale of an fp8 element is.
//
// Of fp8's scaling modes there are those of the whole tensor and those of 128
// elements along k and of 128 x 128, which cards of compute capability 9.0
// have. Their scales are f32. With L = ceil(k / 128), for A of m rows, or B of
// n columns:
//
//     VEC128       m x L, m innermost                one for 128 along k
//     BLK128x128   L4 x ceil(m / 128), k innermost   one for 128 x 128
//
// where L4 is L rounded up to a multiple of 4: there are numbers between that
// scale nothing. m and n are multiples of 4, scales begin at multiples of 16
// bytes, and A and B aren't both in 128 x 128.
//
// Source: cuBLAS library of CUDA 13, section "cublasLtMatmul()", the tables of
// computeType, scaleType, Atype/Btype, Ctype and Bias Type, and of FP8 kernels
// with what these require; section "128-element 1D and 128x128 2D Block Scaling
// For FP8 Data Types". Where releases differ the stricter one counts: f64
// had no epilogue before, and C's leading dimension was never less than its
// rows. The documentation doesn't say where the scales of a batch are: a batch
// is refused. Nor does it say that a query wants the pointers to scales of
// blocks; the library's log does.
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
  int32_t modeA = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  int32_t modeB = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
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

/// Whether its scale pointers are of operands that have scales, those of fp8,
/// and those of blocks are there and aligned.
bool scalesFit(const MatmulOperation &op, const MatrixLayout &a,
               const MatrixLayout &b, const MatrixLayout &d);
bool isFp8(cudaDataType_t type);

/// Whether A's and B's scales are those of blocks.
bool isBlockScaled(const MatmulOperation &op);
/// Numbers that share a scale of blocks, along k.
constexpr int64_t kScaleBlock = 128;
/// The scales of blocks of an operand, which has `outer` rows of op(A) or
/// columns of op(B): how many there are in memory, and which is that of block
/// `block` along k of row or column `i`.
int64_t scalesOfBlocks(int32_t mode, int64_t outer, int64_t k);
int64_t scaleOfBlock(int32_t mode, int64_t outer, int64_t k, int64_t i,
                     int64_t block);

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
