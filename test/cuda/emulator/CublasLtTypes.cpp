//===- CublasLtTypes.cpp - which products cuBLASLt has --------------------===//

#include "test/cuda/emulator/CublasLtTypes.h"

#include "test/cuda/emulator/Types.h"

#include <cstring>
#include <initializer_list>

namespace tmc::emulator {

bool isFp8(cudaDataType_t type) {
  return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

namespace {

struct Row {
  cublasComputeType_t compute;
  cudaDataType_t scale, a, b, c, d, bias;
  bool epilogue;
};

// Regular products. Complex and integer ones are left out.
constexpr Row kRegular[] = {
    {CUBLAS_COMPUTE_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F,
     CUDA_R_16F, CUDA_R_16F, true},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF,
     CUDA_R_16BF, CUDA_R_16BF, true},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F,
     CUDA_R_16F, CUDA_R_16F, true},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F,
     CUDA_R_32F, CUDA_R_32F, true},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F,
     CUDA_R_32F, CUDA_R_32F, true},
    {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
     CUDA_R_32F, CUDA_R_32F, true},
    {CUBLAS_COMPUTE_32F_FAST_16F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
     CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, true},
    {CUBLAS_COMPUTE_32F_FAST_16BF, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
     CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, true},
    {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
     CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, true},
    {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F,
     CUDA_R_64F, CUDA_R_64F, false},
};

/// Whether A and B have one scale each, or blocks of which one's are vectors.
bool areModesSupported(const MatmulOperation &op, const MatrixLayout &d) {
  const auto whole = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F,
             vectors = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
             squares = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
  if (op.modeA == whole && op.modeB == whole)
    return true;
  const bool isPair = (op.modeA == vectors && op.modeB == vectors) ||
                      (op.modeA == vectors && op.modeB == squares) ||
                      (op.modeA == squares && op.modeB == vectors);
  return isPair && !isFp8(d.type) && d.batch == 1 && d.rows % 4 == 0 &&
         d.cols % 4 == 0;
}

bool isFp8Supported(const MatmulOperation &op, const MatrixLayout &a,
                    const MatrixLayout &b, const MatrixLayout &c,
                    const MatrixLayout &d) {
  // A transposed, B not, and every dimension a multiple of 16 bytes.
  if (op.compute != CUBLAS_COMPUTE_32F || op.scale != CUDA_R_32F ||
      op.transA != CUBLAS_OP_T || op.transB != CUBLAS_OP_N ||
      !areModesSupported(op, d))
    return false;
  if (a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2)
    return false;
  for (const MatrixLayout *l : {&a, &b, &c, &d})
    if (l->rows * bytesOf(l->type) % 16 ||
        size_t(l->ld) * bytesOf(l->type) % 16)
      return false;
  cudaDataType_t bias = CUDA_R_16BF;
  switch (c.type) {
  case CUDA_R_32F:
    if (d.type != CUDA_R_32F)
      return false;
    break;
  case CUDA_R_16F:
    bias = CUDA_R_16F;
    [[fallthrough]];
  case CUDA_R_16BF:
    if (d.type == CUDA_R_8F_E5M2 && a.type == CUDA_R_8F_E4M3 &&
        b.type == CUDA_R_8F_E4M3)
      return false;
    if (d.type != c.type && !isFp8(d.type))
      return false;
    break;
  default:
    return false;
  }
  return !(op.epilogue & CUBLASLT_EPILOGUE_BIAS) || op.biasType == bias ||
         op.biasType == -1;
}

} // namespace

cudaDataType_t biasType(const MatmulOperation &op, const MatrixLayout &a,
                        const MatrixLayout &c, const MatrixLayout &d) {
  if (op.biasType >= 0)
    return cudaDataType_t(op.biasType);
  if (isFp8(a.type))
    return c.type == CUDA_R_16F ? CUDA_R_16F : CUDA_R_16BF;
  return d.type;
}

// Source: cublasLt.h, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER and those behind it.
bool scalesFit(const MatmulOperation &op, const MatrixLayout &a,
               const MatrixLayout &b, const MatrixLayout &d) {
  auto fits = [](const void *scale, int32_t mode, const MatrixLayout &operand) {
    if (mode == CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F)
      return !scale || isFp8(operand.type);
    return scale && isFp8(operand.type) &&
           reinterpret_cast<uintptr_t>(scale) % 16 == 0;
  };
  return fits(op.scaleA, op.modeA, a) && fits(op.scaleB, op.modeB, b) &&
         (!op.scaleD || isFp8(d.type));
}

bool isBlockScaled(const MatmulOperation &op) {
  return op.modeA != CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
}

namespace {
int64_t blocksOf(int64_t count) {
  return (count + kScaleBlock - 1) / kScaleBlock;
}
int64_t squaresAlongK(int64_t k) { return (blocksOf(k) + 3) / 4 * 4; }
} // namespace

int64_t scalesOfBlocks(int32_t mode, int64_t outer, int64_t k) {
  return mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F
             ? outer * blocksOf(k)
             : squaresAlongK(k) * blocksOf(outer);
}

int64_t scaleOfBlock(int32_t mode, int64_t outer, int64_t k, int64_t i,
                     int64_t block) {
  return mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F
             ? i + block * outer
             : block + i / kScaleBlock * squaresAlongK(k);
}

bool isSupported(const MatmulOperation &op, const MatrixLayout &a,
                 const MatrixLayout &b, const MatrixLayout &c,
                 const MatrixLayout &d) {
  const uint32_t known = CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU |
                         CUBLASLT_EPILOGUE_BIAS;
  if (op.epilogue & ~known) // the stand-in has no others
    return false;
  if (isFp8(a.type) || isFp8(b.type))
    return isFp8(a.type) && isFp8(b.type) && isFp8Supported(op, a, b, c, d);
  const bool plain = op.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
  for (const Row &row : kRegular)
    if (row.compute == op.compute && row.scale == op.scale && row.a == a.type &&
        row.b == b.type && row.c == c.type && row.d == d.type)
      return plain || (row.epilogue && biasType(op, a, c, d) == row.bias);
  return false;
}

size_t bytesOf(cudaDataType_t type) {
  switch (type) {
  case CUDA_R_64F:
    return 8;
  case CUDA_R_32F:
  case CUDA_R_32I:
    return 4;
  case CUDA_R_16F:
  case CUDA_R_16BF:
    return 2;
  default:
    return 1;
  }
}

namespace {
const Format *formatOf(cudaDataType_t type) {
  return type == CUDA_R_16F       ? &kF16
         : type == CUDA_R_16BF    ? &kBf16
         : type == CUDA_R_8F_E4M3 ? &kE4M3
         : type == CUDA_R_8F_E5M2 ? &kE5M2
                                  : nullptr;
}
} // namespace

double readElement(const void *from, cudaDataType_t type, int64_t i) {
  if (type == CUDA_R_64F)
    return static_cast<const double *>(from)[i];
  if (type == CUDA_R_32F)
    return static_cast<const float *>(from)[i];
  const Format *format = formatOf(type);
  if (!format)
    return 0;
  return bytesOf(type) == 2
             ? decode(*format, static_cast<const uint16_t *>(from)[i])
             : decode(*format, static_cast<const uint8_t *>(from)[i]);
}

void writeElement(void *to, cudaDataType_t type, int64_t i, double value) {
  if (type == CUDA_R_64F) {
    static_cast<double *>(to)[i] = value;
  } else if (type == CUDA_R_32F) {
    static_cast<float *>(to)[i] = float(value);
  } else if (const Format *format = formatOf(type)) {
    if (bytesOf(type) == 2)
      static_cast<uint16_t *>(to)[i] = uint16_t(encode(*format, float(value)));
    else // the library saturates
      static_cast<uint8_t *>(to)[i] =
          uint8_t(encode(*format, float(value), true));
  }
}

double scaleOf(const void *p) {
  return p ? double(*static_cast<const float *>(p)) : 1;
}

} // namespace tmc::emulator
