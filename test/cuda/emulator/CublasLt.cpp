//===- CublasLt.cpp - a stand-in for cuBLASLt -----------------------------===//
//
// The part of cuBLASLt's interface that runtime/cuda/Gemm.cpp uses, over plain
// loops, from the library's documentation: column-major matrices with leading
// dimensions and strided batches, operations on A and B, a bias per row of D,
// alpha and beta. It refuses what the documentation forbids: sizes that don't
// agree, an unaligned workspace or one of the wrong size, operands less aligned
// than the algorithm was chosen for. The workspace is overwritten with garbage.
//
//===----------------------------------------------------------------------===//

#include <cublasLt.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t transA = CUBLAS_OP_N, transB = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr;
};
struct Layout {
  cudaDataType_t type;
  uint64_t rows, cols;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t reductions = 0xffffffffu;
  uint32_t alignment[4] = {256, 256, 256, 256};
};
/// What the stand-in keeps in an algorithm's opaque words.
struct Algorithm {
  uint64_t workspace;
  uint32_t alignment[4];
};
constexpr uint64_t kWorkspace = 64 << 10;

Operation &of(cublasLtMatmulDesc_t p) {
  return *reinterpret_cast<Operation *>(p);
}
Layout &of(cublasLtMatrixLayout_t p) { return *reinterpret_cast<Layout *>(p); }
Preference &of(cublasLtMatmulPreference_t p) {
  return *reinterpret_cast<Preference *>(p);
}

template <typename T>
void multiply(const Operation &op, const void *alphaAt, const void *aAt,
              const Layout &a, const void *bAt, const Layout &b,
              const void *betaAt, void *dAt, const Layout &d) {
  const T alpha = *static_cast<const T *>(alphaAt);
  const T beta = *static_cast<const T *>(betaAt);
  const int64_t k = int64_t(op.transA == CUBLAS_OP_N ? a.cols : a.rows);
  for (int64_t n = 0; n < d.batch; ++n) {
    const T *x = static_cast<const T *>(aAt) + n * a.stride;
    const T *y = static_cast<const T *>(bAt) + n * b.stride;
    T *out = static_cast<T *>(dAt) + n * d.stride;
    std::vector<T> sums(d.rows);
    for (int64_t j = 0; j < int64_t(d.cols); ++j) {
      std::fill(sums.begin(), sums.end(), T(0));
      for (int64_t l = 0; l < k; ++l) {
        const T right =
            op.transB == CUBLAS_OP_N ? y[l + j * b.ld] : y[j + l * b.ld];
        const T *left = op.transA == CUBLAS_OP_N ? x + l * a.ld : x + l;
        const int64_t step = op.transA == CUBLAS_OP_N ? 1 : a.ld;
        for (int64_t i = 0; i < int64_t(d.rows); ++i)
          sums[size_t(i)] += left[i * step] * right;
      }
      for (int64_t i = 0; i < int64_t(d.rows); ++i) {
        T sum = alpha * sums[size_t(i)];
        if (op.epilogue == CUBLASLT_EPILOGUE_BIAS)
          sum += static_cast<const T *>(op.bias)[i];
        T &to = out[i + j * d.ld];
        to = beta != 0 ? sum + beta * to : sum;
      }
    }
  }
}

bool agree(const Operation &op, const Layout &a, const Layout &b,
           const Layout &d) {
  const uint64_t m = op.transA == CUBLAS_OP_N ? a.rows : a.cols;
  const uint64_t k = op.transA == CUBLAS_OP_N ? a.cols : a.rows;
  const uint64_t k2 = op.transB == CUBLAS_OP_N ? b.rows : b.cols;
  const uint64_t n = op.transB == CUBLAS_OP_N ? b.cols : b.rows;
  auto dense = [](const Layout &x) { return x.ld >= int64_t(x.rows); };
  return m == d.rows && n == d.cols && k == k2 && dense(a) && dense(b) &&
         dense(d) && a.batch == d.batch && b.batch == d.batch &&
         (op.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
          op.epilogue == CUBLASLT_EPILOGUE_BIAS);
}

bool misaligned(const void *p, uint32_t alignment) {
  return reinterpret_cast<uintptr_t>(p) % alignment != 0;
}

} // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new char);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<char *>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
const char *cublasLtGetStatusString(cublasStatus_t) {
  return "an emulated failure";
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *p,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *p = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t p) {
  delete &of(p);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t p,
                               cublasLtMatmulDescAttributes_t attribute,
                               const void *value, size_t bytes) {
  auto set = [&](auto &to) {
    if (bytes != sizeof to)
      return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return set(of(p).transA);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return set(of(p).transB);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return set(of(p).epilogue);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return set(of(p).bias);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *p,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld) {
  *p = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{type, rows, cols, ld});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t p) {
  delete &of(p);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t p,
                                 cublasLtMatrixLayoutAttribute_t attribute,
                                 const void *value, size_t bytes) {
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == 4)
    std::memcpy(&of(p).batch, value, 4);
  else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET &&
           bytes == 8)
    std::memcpy(&of(p).stride, value, 8);
  else
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p) {
  *p = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  delete &of(p);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t p,
    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
    size_t bytes) {
  auto set = [&](auto &to) {
    if (bytes != sizeof to)
      return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    return set(of(p).workspace);
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    return set(of(p).reductions);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    return set(of(p).alignment[0]);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    return set(of(p).alignment[1]);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    return set(of(p).alignment[2]);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
    return set(of(p).alignment[3]);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
    cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference,
    int requested, cublasLtMatmulHeuristicResult_t results[], int *count) {
  *count = 0;
  if (requested < 1 || c != d || !agree(of(operation), of(a), of(b), of(d)))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (of(preference).workspace < kWorkspace)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  Algorithm algorithm{kWorkspace, {}};
  std::memcpy(algorithm.alignment, of(preference).alignment,
              sizeof algorithm.alignment);
  static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));
  std::memcpy(&results[0].algo, &algorithm, sizeof algorithm);
  results[0].workspaceSize = kWorkspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                              const void *alpha, const void *aAt,
                              cublasLtMatrixLayout_t a, const void *bAt,
                              cublasLtMatrixLayout_t b, const void *beta,
                              const void *cAt, cublasLtMatrixLayout_t c,
                              void *dAt, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspaceBytes, cudaStream_t) {
  Algorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  if (!agree(of(operation), of(a), of(b), of(d)) || cAt != dAt || c != d ||
      workspaceBytes != algorithm.workspace || misaligned(workspace, 256) ||
      misaligned(aAt, algorithm.alignment[0]) ||
      misaligned(bAt, algorithm.alignment[1]) ||
      misaligned(cAt, algorithm.alignment[2]) ||
      misaligned(dAt, algorithm.alignment[3]))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memset(workspace, 0xff, workspaceBytes);
  const Operation &op = of(operation);
  if (op.compute == CUBLAS_COMPUTE_32F && of(d).type == CUDA_R_32F)
    multiply<float>(op, alpha, aAt, of(a), bAt, of(b), beta, dAt, of(d));
  else if (op.compute == CUBLAS_COMPUTE_64F && of(d).type == CUDA_R_64F)
    multiply<double>(op, alpha, aAt, of(a), bAt, of(b), beta, dAt, of(d));
  else
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}
}
