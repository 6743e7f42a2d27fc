//===- Dnn.cpp - convolutions by cuDNN ------------------------------------===//
//
// All functions used here exist since cuDNN 7, and version 9 still has them.
// Without its header, or with TMC_WITHOUT_CUDNN, the backend has only plain
// convolutions.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Dnn.h"

#if __has_include(<cudnn.h>) && !defined(TMC_WITHOUT_CUDNN)
#include "runtime/cuda/CudnnHandle.h"

namespace tmc::cuda {

namespace {

constexpr int kCandidates = 16;
constexpr int64_t kWorkspaceAlign = 256;

/// Runs calls until one fails, and records the failed call.
class Calls {
public:
  bool operator()(cudnnStatus_t status, const char *what) {
    if (failed_.isOk() && status != CUDNN_STATUS_SUCCESS)
      (void)(failed_ = {Code::World, std::string(what) + ": " +
                                         cudnnGetErrorString(status)});
    return failed_.isOk();
  }
  const Status &status() const { return failed_; }

private:
  Status failed_;
};

bool fitsInt(std::initializer_list<int64_t> values) {
  for (int64_t v : values)
    if (v < 0 || v > INT32_MAX)
      return false;
  return true;
}

} // namespace

namespace {

/// The library's constant for an element type.
cudnnDataType_t dataType(DType type) {
  switch (type) {
  case DType::BF16:
    return CUDNN_DATA_BFLOAT16;
  case DType::F16:
    return CUDNN_DATA_HALF;
  default:
    return CUDNN_DATA_FLOAT;
  }
}

} // namespace

struct DnnConv::State {
  ConvKind kind = ConvKind::Forward;
  bool isNarrow = false;
  bool usable = false;
  cudnnHandle_t handle = nullptr;
  cudnnTensorDescriptor_t x = nullptr, y = nullptr;
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t window = nullptr;
  int algorithm = 0; // of the enumeration of its kind
  size_t bytes = 0;

  ~State() {
    if (x)
      (void)cudnnDestroyTensorDescriptor(x);
    if (y)
      (void)cudnnDestroyTensorDescriptor(y);
    if (filter)
      (void)cudnnDestroyFilterDescriptor(filter);
    if (window)
      (void)cudnnDestroyConvolutionDescriptor(window);
  }

  Status describe(const ConvParams &p) {
    Calls call;
    isNarrow = isHalf(p.type);
    const cudnnDataType_t type = dataType(p.type);
    const cudnnTensorFormat_t nhwc = CUDNN_TENSOR_NHWC;
    call(cudnnCreateTensorDescriptor(&x), "cudnnCreateTensorDescriptor") &&
        call(cudnnCreateTensorDescriptor(&y), "cudnnCreateTensorDescriptor") &&
        call(cudnnCreateFilterDescriptor(&filter),
             "cudnnCreateFilterDescriptor") &&
        call(cudnnCreateConvolutionDescriptor(&window),
             "cudnnCreateConvolutionDescriptor") &&
        call(cudnnSetTensor4dDescriptor(x, nhwc, type, int(p.batch),
                                        int(p.inChannels), int(p.inHeight),
                                        int(p.inWidth)),
             "cudnnSetTensor4dDescriptor") &&
        call(cudnnSetTensor4dDescriptor(y, nhwc, type, int(p.batch),
                                        int(p.outChannels), int(p.outHeight),
                                        int(p.outWidth)),
             "cudnnSetTensor4dDescriptor") &&
        call(cudnnSetFilter4dDescriptor(filter, type, nhwc, int(p.outChannels),
                                        int(p.inChannels / p.groups),
                                        int(p.kernelHeight),
                                        int(p.kernelWidth)),
             "cudnnSetFilter4dDescriptor") &&
        call(cudnnSetConvolution2dDescriptor(
                 window, int(p.padTop), int(p.padLeft), int(p.strideHeight),
                 int(p.strideWidth), int(p.dilationHeight),
                 int(p.dilationWidth), CUDNN_CROSS_CORRELATION,
                 CUDNN_DATA_FLOAT),
             "cudnnSetConvolution2dDescriptor") &&
        call(cudnnSetConvolutionGroupCount(window, int(p.groups)),
             "cudnnSetConvolutionGroupCount") &&
        call(cudnnSetConvolutionMathType(window, isNarrow ? CUDNN_TENSOR_OP_MATH
                                                          : CUDNN_FMA_MATH),
             "cudnnSetConvolutionMathType");
    return call.status();
  }

  /// The workspace of an algorithm with these descriptors.
  cudnnStatus_t workspaceOf(int algo, size_t &wanted) const {
    switch (kind) {
    case ConvKind::Forward:
      return cudnnGetConvolutionForwardWorkspaceSize(
          handle, x, filter, window, y, cudnnConvolutionFwdAlgo_t(algo),
          &wanted);
    case ConvKind::GradInput:
      return cudnnGetConvolutionBackwardDataWorkspaceSize(
          handle, filter, y, window, x, cudnnConvolutionBwdDataAlgo_t(algo),
          &wanted);
    default:
      return cudnnGetConvolutionBackwardFilterWorkspaceSize(
          handle, x, y, window, filter, cudnnConvolutionBwdFilterAlgo_t(algo),
          &wanted);
    }
  }

  /// Whether products use the operands unrounded: f32 stays f32.
  bool isExact(cudnnMathType_t math) const {
    return math == CUDNN_FMA_MATH || math == CUDNN_DEFAULT_MATH ||
           (isNarrow && math == CUDNN_TENSOR_OP_MATH);
  }

  /// Takes the first candidate that is deterministic, exact and fits.
  template <typename Perf>
  void take(const Perf *candidates, int count, int64_t limit) {
    for (int i = 0; i < count && !usable; ++i) {
      const Perf &c = candidates[i];
      if (c.status != CUDNN_STATUS_SUCCESS ||
          c.determinism != CUDNN_DETERMINISTIC || !isExact(c.mathType))
        continue;
      size_t wanted = 0;
      if (workspaceOf(int(c.algo), wanted) != CUDNN_STATUS_SUCCESS ||
          wanted > size_t(limit))
        continue;
      usable = true;
      algorithm = int(c.algo);
      bytes = wanted;
    }
  }

  /// A status other than success means that there are no candidates.
  void choose(int64_t limit) {
    int count = 0;
    if (kind == ConvKind::Forward) {
      cudnnConvolutionFwdAlgoPerf_t candidates[kCandidates] = {};
      if (cudnnGetConvolutionForwardAlgorithm_v7(
              handle, x, filter, window, y, kCandidates, &count, candidates) ==
          CUDNN_STATUS_SUCCESS)
        take(candidates, count, limit);
    } else if (kind == ConvKind::GradInput) {
      cudnnConvolutionBwdDataAlgoPerf_t candidates[kCandidates] = {};
      if (cudnnGetConvolutionBackwardDataAlgorithm_v7(
              handle, filter, y, window, x, kCandidates, &count, candidates) ==
          CUDNN_STATUS_SUCCESS)
        take(candidates, count, limit);
    } else {
      cudnnConvolutionBwdFilterAlgoPerf_t candidates[kCandidates] = {};
      if (cudnnGetConvolutionBackwardFilterAlgorithm_v7(
              handle, x, y, window, filter, kCandidates, &count, candidates) ==
          CUDNN_STATUS_SUCCESS)
        take(candidates, count, limit);
    }
  }
};

DnnConv::DnnConv() : state_(std::make_unique<State>()) {}
DnnConv::~DnnConv() = default;

Status DnnConv::prepare(CudaDevice &device, ConvKind kind, const ConvParams &p,
                        int64_t workspaceBytes) {
  State &s = *state_;
  s.kind = kind;
  if (p.padTop != p.padBottom || p.padLeft != p.padRight ||
      !fitsInt({p.batch, p.inHeight, p.inWidth, p.inChannels, p.outHeight,
                p.outWidth, p.outChannels, p.kernelHeight, p.kernelWidth,
                p.padTop, p.padLeft, p.strideHeight, p.strideWidth,
                p.dilationHeight, p.dilationWidth}))
    return Status::ok();
  if (Status status = cudnnHandleOf(device, s.handle); !status)
    return status;
  if (Status status = s.describe(p); !status)
    return status;
  // The library computes the size of the result; other rounding rules may
  // differ.
  int n = 0, c = 0, h = 0, w = 0;
  if (cudnnGetConvolution2dForwardOutputDim(s.window, s.x, s.filter, &n, &c, &h,
                                            &w) != CUDNN_STATUS_SUCCESS ||
      n != p.batch || c != p.outChannels || h != p.outHeight || w != p.outWidth)
    return Status::ok();
  s.choose(workspaceBytes - kWorkspaceAlign);
  return Status::ok();
}

bool DnnConv::usable() const { return state_->usable; }
int64_t DnnConv::workspaceBytes() const { return int64_t(state_->bytes); }

void DnnConv::run(const Queue &queue, const void *first, const void *second,
                  void *result, void *workspace) {
  const State &s = *state_;
  const uintptr_t from = reinterpret_cast<uintptr_t>(workspace);
  void *space = reinterpret_cast<void *>((from + kWorkspaceAlign - 1) /
                                         kWorkspaceAlign * kWorkspaceAlign);
  const float one = 1, zero = 0;
  const TimedLaunch timed = queue.time("cudnn");
  Calls call;
  switch (s.kind) {
  case ConvKind::Forward:
    call(cudnnConvolutionForward(s.handle, &one, s.x, first, s.filter, second,
                                 s.window,
                                 cudnnConvolutionFwdAlgo_t(s.algorithm), space,
                                 s.bytes, &zero, s.y, result),
         "cudnnConvolutionForward");
    break;
  case ConvKind::GradInput:
    call(cudnnConvolutionBackwardData(
             s.handle, &one, s.filter, second, s.y, first, s.window,
             cudnnConvolutionBwdDataAlgo_t(s.algorithm), space, s.bytes, &zero,
             s.x, result),
         "cudnnConvolutionBackwardData");
    break;
  case ConvKind::GradFilter:
    call(cudnnConvolutionBackwardFilter(
             s.handle, &one, s.x, first, s.y, second, s.window,
             cudnnConvolutionBwdFilterAlgo_t(s.algorithm), space, s.bytes,
             &zero, s.filter, result),
         "cudnnConvolutionBackwardFilter");
    break;
  }
  if (!call.status())
    queue.device().fail(Code::World, std::string(queue.name()) + ": " +
                                         call.status().message());
}

} // namespace tmc::cuda

#else

namespace tmc::cuda {

struct DnnConv::State {};
DnnConv::DnnConv() = default;
DnnConv::~DnnConv() = default;
Status DnnConv::prepare(CudaDevice &, ConvKind, const ConvParams &, int64_t) {
  return Status::ok();
}
bool DnnConv::usable() const { return false; }
int64_t DnnConv::workspaceBytes() const { return 0; }
void DnnConv::run(const Queue &, const void *, const void *, void *, void *) {}

} // namespace tmc::cuda

#endif
