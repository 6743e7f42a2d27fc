//===- Gemm.cpp - matrix products by cuBLASLt ----------------------------===//

#include "runtime/cuda/Gemm.h"

#include <algorithm>
#include <cublasLt.h>

namespace tmc::cuda {

namespace {

/// The required alignment of the library's workspace, in bytes.
constexpr int64_t kWorkspaceAlign = 256;
/// Two algorithms are chosen for each product: one for operands that allow
/// 16-byte accesses, as every whole buffer does, and one for other views. A
/// view's offset within its buffer doesn't depend on the plan, so the choice
/// doesn't either.
constexpr uint32_t kVectorAlign = 16;
/// The number of requested candidates; the first one that fits is used.
constexpr int kCandidates = 16;
/// A query needs a nonnull address of block scales, but doesn't read there.
constexpr uintptr_t kSomeAddress = 256;
/// For the error message if no algorithm fits the planned scratch.
constexpr int64_t kGenerousBytes = int64_t(1) << 30;

std::string statusText(cublasStatus_t status) {
  const char *text = cublasLtGetStatusString(status);
  return text ? text : "error " + std::to_string(int(status));
}

/// The library's constant for an element type.
cudaDataType_t dataType(DType type) {
  switch (type) {
  case DType::F16:
    return CUDA_R_16F;
  case DType::BF16:
    return CUDA_R_16BF;
  case DType::F64:
    return CUDA_R_64F;
  case DType::F8E4M3:
    return CUDA_R_8F_E4M3;
  case DType::F8E5M2:
    return CUDA_R_8F_E5M2;
  default:
    return CUDA_R_32F;
  }
}

/// Runs calls until one fails, and records the failed call.
class Calls {
public:
  void operator()(cublasStatus_t status, const char *what) {
    if (failed_.isOk() && status != CUBLAS_STATUS_SUCCESS)
      (void)(failed_ = {Code::World,
                        std::string(what) + ": " + statusText(status)});
  }
  const Status &status() const { return failed_; }

private:
  Status failed_;
};

/// The single library handle of a device.
Status handleOf(CudaDevice &device, cublasLtHandle_t &handle) {
  if (!device.blas) {
    cublasLtHandle_t made = nullptr;
    if (cublasStatus_t s = cublasLtCreate(&made); s != CUBLAS_STATUS_SUCCESS)
      return {Code::World, "can't start cuBLASLt: " + statusText(s)};
    device.blas = std::shared_ptr<void>(made, [](void *p) {
      (void)cublasLtDestroy(static_cast<cublasLtHandle_t>(p));
    });
  }
  handle = static_cast<cublasLtHandle_t>(device.blas.get());
  return Status::ok();
}

} // namespace

struct Gemm::State {
  Matmul::Params params{};
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  /// For operands aligned to kVectorAlign, and for others.
  cublasLtMatmulAlgo_t aligned{}, unaligned{};
  size_t alignedBytes = 0, unalignedBytes = 0;

  ~State() {
    if (a)
      (void)cublasLtMatrixLayoutDestroy(a);
    if (b)
      (void)cublasLtMatrixLayoutDestroy(b);
    if (c)
      (void)cublasLtMatrixLayoutDestroy(c);
    if (operation)
      (void)cublasLtMatmulDescDestroy(operation);
  }

  /// A column-major matrix and its batch. Columns are `columnStride` elements
  /// apart; 0: contiguous.
  void layout(Calls &calls, cublasLtMatrixLayout_t &to, cudaDataType_t type,
              int64_t rows, int64_t cols, int64_t columnStride = 0) {
    calls(cublasLtMatrixLayoutCreate(&to, type, uint64_t(rows), uint64_t(cols),
                                     columnStride ? columnStride : rows),
          "cublasLtMatrixLayoutCreate");
    if (params.batch == 1 || !calls.status())
      return;
    const int32_t count = int32_t(params.batch);
    const int64_t stride = rows * cols;
    calls(cublasLtMatrixLayoutSetAttribute(
              to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
          "batch count");
    calls(cublasLtMatrixLayoutSetAttribute(
              to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
              sizeof stride),
          "batch stride");
  }

  template <typename T>
  void set(Calls &calls, cublasLtMatmulDescAttributes_t attribute, T value,
           const char *what) {
    calls(cublasLtMatmulDescSetAttribute(operation, attribute, &value,
                                         sizeof value),
          what);
  }

  /// Describes the layout of both factors' block scales.
  Status describeBlocks(Calls &calls) {
#if CUBLAS_VERSION >= 120900
    auto describe = [&](cublasLtMatmulDescAttributes_t mode,
                        cublasLtMatmulDescAttributes_t pointer,
                        int64_t blockRows) {
      set(calls, mode,
          blockRows == 1 ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F
                         : CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
          "scales of blocks");
      set(calls, pointer, reinterpret_cast<const void *>(kSomeAddress),
          "scales of blocks");
    };
    describe(CUBLASLT_MATMUL_DESC_A_SCALE_MODE,
             CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, params.rhsBlockRows);
    describe(CUBLASLT_MATMUL_DESC_B_SCALE_MODE,
             CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, params.lhsBlockRows);
    return Status::ok();
#else
    (void)calls;
    return {Code::Unsupported, "products of codes with scales of blocks want "
                               "cuBLAS 12.9 or newer"};
#endif
  }

  /// The first algorithm for operands of this alignment that needs at most
  /// `limit` bytes; `found` is false if there is none.
  Status choose(uint32_t alignment, int64_t limit, cublasLtMatmulAlgo_t &algo,
                size_t &bytes, bool &found) {
    found = false;
    Calls calls;
    cublasLtMatmulPreference_t preference = nullptr;
    calls(cublasLtMatmulPreferenceCreate(&preference),
          "cublasLtMatmulPreferenceCreate");
    auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                      auto value) {
      if (calls.status())
        calls(cublasLtMatmulPreferenceSetAttribute(preference, attribute,
                                                   &value, sizeof value),
              "cublasLtMatmulPreferenceSetAttribute");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(limit));
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    for (auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(operand, alignment);
    if (calls.status()) {
      cublasLtMatmulHeuristicResult_t candidates[kCandidates] = {};
      int count = 0;
      const cublasStatus_t s = cublasLtMatmulAlgoGetHeuristic(
          handle, operation, a, b, c, c, preference, kCandidates, candidates,
          &count);
      if (s != CUBLAS_STATUS_NOT_SUPPORTED)
        calls(s, "cublasLtMatmulAlgoGetHeuristic");
      for (int i = 0; i < count && !found && calls.status(); ++i)
        if (candidates[i].state == CUBLAS_STATUS_SUCCESS &&
            candidates[i].workspaceSize <= size_t(limit)) {
          algo = candidates[i].algo;
          bytes = candidates[i].workspaceSize;
          found = true;
        }
    }
    if (preference)
      (void)cublasLtMatmulPreferenceDestroy(preference);
    return calls.status();
  }

  Status chooseOrRefuse(const char *name, uint32_t alignment, int64_t limit,
                        cublasLtMatmulAlgo_t &algo, size_t &bytes) {
    bool found = false;
    if (Status s = choose(alignment, limit, algo, bytes, found); !s || found)
      return s;
    if (Status s = choose(alignment, kGenerousBytes, algo, bytes, found); !s)
      return s;
    if (found)
      return requireScratch(name, int64_t(bytes) + kWorkspaceAlign,
                            params.scratchBytes);
    return {Code::Unsupported,
            "cuBLASLt has no algorithm for a product of " +
                std::to_string(params.m) + " x " + std::to_string(params.k) +
                " and " + std::to_string(params.k) + " x " +
                std::to_string(params.n) + " of " + nameOf(params.lhs) +
                " into " + nameOf(params.out)};
  }
};

Gemm::Gemm() = default;
Gemm::~Gemm() = default;

Status Gemm::prepare(const char *name, CudaDevice &device,
                     const Matmul::Params &params, int64_t lhsStride) {
  if (params.batch > INT32_MAX)
    return {Code::Unsupported, std::string(name) + " on cuda takes at most " +
                                   std::to_string(INT32_MAX) +
                                   " products in a batch, not " +
                                   std::to_string(params.batch)};
  state_ = std::make_unique<State>();
  State &s = *state_;
  s.params = params;
  if (params.batch * params.m * params.n == 0)
    return Status::ok();
  if (Status status = handleOf(device, s.handle); !status)
    return status;

  Calls calls;
  const bool f64 = params.out == DType::F64;
  calls(cublasLtMatmulDescCreate(&s.operation,
                                 f64           ? CUBLAS_COMPUTE_64F
                                 : params.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                               : CUBLAS_COMPUTE_32F,
                                 f64 ? CUDA_R_64F : CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  if (!calls.status())
    return calls.status();
  s.set(calls, CUBLASLT_MATMUL_DESC_TRANSA,
        params.transposeRhs ? CUBLAS_OP_T : CUBLAS_OP_N, "operation of A");
  s.set(calls, CUBLASLT_MATMUL_DESC_TRANSB,
        params.transposeLhs ? CUBLAS_OP_T : CUBLAS_OP_N, "operation of B");
  if (params.bias)
    s.set(calls, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS,
          "epilogue");
  if (params.packed)
    if (Status status = s.describeBlocks(calls); !status)
      return status;
  const int64_t m = params.m, n = params.n, k = params.k;
  s.layout(calls, s.a, dataType(params.rhs), params.transposeRhs ? k : n,
           params.transposeRhs ? n : k);
  s.layout(calls, s.b, dataType(params.lhs), params.transposeLhs ? m : k,
           params.transposeLhs ? k : m, lhsStride);
  s.layout(calls, s.c, dataType(params.out), n, m);
  if (!calls.status())
    return calls.status();

  // Rounding the workspace's address up may cost the alignment once.
  const int64_t limit = params.scratchBytes - kWorkspaceAlign > 0
                            ? params.scratchBytes - kWorkspaceAlign
                            : 0;
  if (Status status = s.chooseOrRefuse(name, kVectorAlign, limit, s.aligned,
                                       s.alignedBytes);
      !status)
    return status;
  if (isFloat8(params.lhs)) { // The library supports no other alignment.
    s.unaligned = s.aligned;
    s.unalignedBytes = s.alignedBytes;
    return Status::ok();
  }
  const uint32_t least =
      uint32_t(std::min(sizeOf(params.lhs), sizeOf(params.out)));
  return s.chooseOrRefuse(name, least, limit, s.unaligned, s.unalignedBytes);
}

void Gemm::run(const Queue &queue, const Operands &operands, void *out,
               void *workspace, bool accumulate) {
  State &s = *state_;
  if (!s.handle)
    return;
  auto misaligned = [](const void *p) {
    return reinterpret_cast<uintptr_t>(p) % kVectorAlign != 0;
  };
  const Operands &o = operands;
  const bool aligned = !misaligned(o.lhs) && !misaligned(o.rhs) &&
                       !misaligned(out) &&
                       !(s.params.bias && misaligned(o.bias));
  Calls calls;
  if (s.params.bias)
    s.set(calls, CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias, "bias");
  if (s.params.scaled) {
    s.set(calls, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, o.rhsScale, "scale");
    s.set(calls, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, o.lhsScale, "scale");
  }
  const uintptr_t from = reinterpret_cast<uintptr_t>(workspace);
  void *space = reinterpret_cast<void *>((from + kWorkspaceAlign - 1) /
                                         kWorkspaceAlign * kWorkspaceAlign);
  const float one = 1, beta = accumulate ? 1 : 0;
  const double one64 = 1, beta64 = accumulate ? 1 : 0;
  const bool f64 = s.params.out == DType::F64;
  if (calls.status()) {
    const TimedLaunch timed = queue.time("cublasLt");
    calls(cublasLtMatmul(
              s.handle, s.operation,
              f64 ? static_cast<const void *>(&one64) : &one, o.rhs, s.a, o.lhs,
              s.b, f64 ? static_cast<const void *>(&beta64) : &beta, out, s.c,
              out, s.c, aligned ? &s.aligned : &s.unaligned,
              workspace ? space : nullptr,
              aligned ? s.alignedBytes : s.unalignedBytes, queue.native()),
          "cublasLtMatmul");
  }
  if (!calls.status())
    queue.device().fail(Code::World, std::string(queue.name()) + ": " +
                                         calls.status().message());
}

} // namespace tmc::cuda
