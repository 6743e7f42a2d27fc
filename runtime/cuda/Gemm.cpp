//===- Gemm.cpp - matrix products by cuBLASLt ----------------------------===//

#include "runtime/cuda/Gemm.h"

#include "runtime/cuda/GemmAlgorithms.h"

#include <algorithm>

namespace tmc::cuda {

namespace {

/// Two algorithms are chosen for each product: one for operands that allow
/// 16-byte accesses, as every whole buffer does, and one for other views. A
/// view's offset within its buffer doesn't depend on the plan, so the choice
/// doesn't either.
constexpr uint32_t kVectorAlign = 16;
/// The number of requested candidates; the first one that fits is used, or so
/// many are timed.
constexpr int kCandidates = 16;
constexpr size_t kTimedCandidates = 8;
/// A query needs a nonnull address of block scales, but doesn't read there.
constexpr uintptr_t kSomeAddress = 256;
/// For the error message if no algorithm fits the planned scratch.
constexpr int64_t kGenerousBytes = int64_t(1) << 30;

std::string statusText(cublasStatus_t status) {
  const char *text = cublasLtGetStatusString(status);
  return text ? text : "error " + std::to_string(int(status));
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
  GemmCall call;
  /// For operands aligned to kVectorAlign, and for others.
  GemmAlgorithm aligned, unaligned;

  ~State() {
    for (cublasLtMatrixLayout_t layout : {call.a, call.b, call.c})
      if (layout)
        (void)cublasLtMatrixLayoutDestroy(layout);
    if (call.operation)
      (void)cublasLtMatmulDescDestroy(call.operation);
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
    calls(cublasLtMatmulDescSetAttribute(call.operation, attribute, &value,
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

  /// The library's candidates for operands of this alignment that need at most
  /// `limit` bytes, from the one that it holds for the fastest on.
  Status findCandidates(uint32_t alignment, int64_t limit,
                        std::vector<GemmAlgorithm> &found) {
    found.clear();
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
          call.handle, call.operation, call.a, call.b, call.c, call.c,
          preference, kCandidates, candidates, &count);
      if (s != CUBLAS_STATUS_NOT_SUPPORTED)
        calls(s, "cublasLtMatmulAlgoGetHeuristic");
      for (int i = 0; i < count && calls.status(); ++i)
        if (candidates[i].state == CUBLAS_STATUS_SUCCESS &&
            candidates[i].workspaceSize <= size_t(limit))
          found.push_back({candidates[i].algo, candidates[i].workspaceSize});
    }
    if (preference)
      (void)cublasLtMatmulPreferenceDestroy(preference);
    return calls.status();
  }

  /// The library's first candidate.
  Status choose(const char *name, uint32_t alignment, int64_t limit,
                GemmAlgorithm &to) {
    std::vector<GemmAlgorithm> found;
    if (Status s = findCandidates(alignment, limit, found); !s)
      return s;
    if (!found.empty()) {
      to = found[0];
      return Status::ok();
    }
    if (Status s = findCandidates(alignment, kGenerousBytes, found); !s)
      return s;
    if (!found.empty())
      return requireScratch(name,
                            int64_t(found[0].workspaceBytes) + kWorkspaceAlign,
                            params.scratchBytes);
    return {Code::Unsupported,
            "cuBLASLt has no algorithm for a product of " +
                std::to_string(params.m) + " x " + std::to_string(params.k) +
                " and " + std::to_string(params.k) + " x " +
                std::to_string(params.n) + " of " + nameOf(params.lhs) +
                " into " + nameOf(params.out)};
  }

  /// Takes the aligned algorithm from the step's table; false if the table has
  /// none for this product and library.
  bool chooseFrom(AlgorithmChoice &table, const std::string &product,
                  int64_t limit) {
    const ProductAlgorithm *numbers =
        table.find(product, int64_t(cublasLtGetVersion()));
    std::optional<GemmAlgorithm> made;
    if (numbers)
      made = algorithmOf(*numbers, call, params, limit);
    if (!made)
      return false;
    table.use(*numbers);
    aligned = *made;
    return true;
  }

  /// Times the first candidates, as a table will name them, and adds the
  /// fastest one to `tuning`.
  Status tune(CudaDevice &device, const std::string &product, int64_t lhsStride,
              int64_t limit, AlgorithmTuning &tuning) {
    tuning.library = int64_t(cublasLtGetVersion());
    if (tuning.knows(product))
      return Status::ok();
    std::vector<GemmAlgorithm> found, timed;
    if (Status s = findCandidates(kVectorAlign, limit, found); !s)
      return s;
    std::vector<ProductAlgorithm> numbers;
    for (const GemmAlgorithm &candidate : found) {
      const std::optional<ProductAlgorithm> its =
          numbersOf(candidate.algorithm);
      if (!its || !isReproducible(*its) || timed.size() == kTimedCandidates)
        continue;
      if (auto made = algorithmOf(*its, call, params, limit)) {
        timed.push_back(*made);
        numbers.push_back(*its);
      }
    }
    const std::optional<TunedOperands> at =
        TunedOperands::place(device, params, lhsStride);
    std::vector<double> seconds;
    if (at) {
      const Queue queue(device, device.compute(), "matmul");
      if (Status s = timeCandidates(
              device, timed,
              [&](const GemmAlgorithm &algorithm) {
                return multiply(queue, at->operands, at->out, at->workspace,
                                false, algorithm);
              },
              seconds);
          !s)
        return s;
    }
    size_t fastest = seconds.size();
    for (size_t i = 0; i < seconds.size(); ++i)
      if (seconds[i] >= 0 &&
          (fastest == seconds.size() || seconds[i] < seconds[fastest]))
        fastest = i;
    if (fastest == seconds.size()) {
      tuning.skipped.push_back(product);
      return Status::ok();
    }
    tuning.products.push_back({product, numbers[fastest], seconds[fastest],
                               std::max(seconds[0], seconds[fastest]),
                               int(timed.size())});
    return Status::ok();
  }

  /// Queues the product.
  Status multiply(const Queue &queue, const Operands &operands, void *out,
                  void *workspace, bool accumulate,
                  const GemmAlgorithm &algorithm) {
    Calls calls;
    if (params.bias)
      set(calls, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias, "bias");
    if (params.scaled) {
      set(calls, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.rhsScale,
          "scale");
      set(calls, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.lhsScale,
          "scale");
    }
    const uintptr_t from = reinterpret_cast<uintptr_t>(workspace);
    void *space = reinterpret_cast<void *>((from + kWorkspaceAlign - 1) /
                                           kWorkspaceAlign * kWorkspaceAlign);
    const float one = 1, beta = accumulate ? 1 : 0;
    const double one64 = 1, beta64 = accumulate ? 1 : 0;
    const bool f64 = params.out == DType::F64;
    if (calls.status()) {
      const TimedLaunch timed = queue.time("cublasLt");
      calls(cublasLtMatmul(call.handle, call.operation,
                           f64 ? static_cast<const void *>(&one64) : &one,
                           operands.rhs, call.a, operands.lhs, call.b,
                           f64 ? static_cast<const void *>(&beta64) : &beta,
                           out, call.c, out, call.c, &algorithm.algorithm,
                           workspace ? space : nullptr,
                           algorithm.workspaceBytes, queue.native()),
            "cublasLtMatmul");
    }
    return calls.status();
  }

  /// Describes the product to the library.
  Status describe(int64_t lhsStride) {
    Calls calls;
    calls(cublasLtMatmulDescCreate(&call.operation, computeType(params),
                                   scaleType(params)),
          "cublasLtMatmulDescCreate");
    if (!calls.status())
      return calls.status();
    set(calls, CUBLASLT_MATMUL_DESC_TRANSA,
        params.transposeRhs ? CUBLAS_OP_T : CUBLAS_OP_N, "operation of A");
    set(calls, CUBLASLT_MATMUL_DESC_TRANSB,
        params.transposeLhs ? CUBLAS_OP_T : CUBLAS_OP_N, "operation of B");
    if (params.bias)
      set(calls, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS,
          "epilogue");
    if (params.packed)
      if (Status status = describeBlocks(calls); !status)
        return status;
    const int64_t m = params.m, n = params.n, k = params.k;
    layout(calls, call.a, dataType(params.rhs), params.transposeRhs ? k : n,
           params.transposeRhs ? n : k);
    layout(calls, call.b, dataType(params.lhs), params.transposeLhs ? m : k,
           params.transposeLhs ? k : m, lhsStride);
    layout(calls, call.c, dataType(params.out), n, m);
    return calls.status();
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
  if (Status status = handleOf(device, s.call.handle); !status)
    return status;
  if (Status status = s.describe(lhsStride); !status)
    return status;

  // Rounding the workspace's address up may cost the alignment once.
  const int64_t limit = params.scratchBytes - kWorkspaceAlign > 0
                            ? params.scratchBytes - kWorkspaceAlign
                            : 0;
  const std::string product = productText(params, lhsStride);
  if (device.tuning)
    if (Status status =
            s.tune(device, product, lhsStride, limit, *device.tuning);
        !status)
      return status;
  if (!s.chooseFrom(device.algorithms, product, limit))
    if (Status status = s.choose(name, kVectorAlign, limit, s.aligned); !status)
      return status;
  if (isFloat8(params.lhs)) { // The library supports no other alignment.
    s.unaligned = s.aligned;
    return Status::ok();
  }
  const uint32_t least =
      uint32_t(std::min(sizeOf(params.lhs), sizeOf(params.out)));
  return s.choose(name, least, limit, s.unaligned);
}

void Gemm::run(const Queue &queue, const Operands &operands, void *out,
               void *workspace, bool accumulate) {
  State &s = *state_;
  if (!s.call.handle)
    return;
  auto misaligned = [](const void *p) {
    return reinterpret_cast<uintptr_t>(p) % kVectorAlign != 0;
  };
  const bool aligned = !misaligned(operands.lhs) && !misaligned(operands.rhs) &&
                       !misaligned(out) &&
                       !(s.params.bias && misaligned(operands.bias));
  if (Status status = s.multiply(queue, operands, out, workspace, accumulate,
                                 aligned ? s.aligned : s.unaligned);
      !status)
    queue.device().fail(Code::World,
                        std::string(queue.name()) + ": " + status.message());
}

} // namespace tmc::cuda
