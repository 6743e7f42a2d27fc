//===- Conv.cu - two-dimensional convolution on cuda ----------------------===//
//
// Graphs of cuDNN (CudnnGraph.h) compute what the library has deterministic
// plans for. They read the filter as OHWI, in the activations' type. Unless it
// is stored so, it is copied into scratch:
//
//     scratch: [ filter, OHWI | cuDNN's workspace ]
//
// Filter gradients are f32 sums in scratch, which are added to dfilter or
// rounded to its type.
//
//     scratch: [ sums, OHWI | cuDNN's workspace ]
//
// The library has no such sums for some 16-bit shapes (CudnnConv.h). Those with
// one group are products with f32 sums instead (ConvFilter.h), also where the
// runtime was built without the library.
//
// All else is computed by plain kernels: one thread per element of y or dx, one
// block per element of dfilter. They are slow, but every sum has one order too,
// and is in f32. 16-bit filter gradients with several groups use them as well.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Conv.h"

#include "runtime/cuda/ConvFilter.h"
#include "runtime/cuda/CudnnGraph.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Stored.h"
#include "runtime/cuda/Vector.h"
#include "runtime/cuda/Window.h"

namespace tmc {

namespace cuda {
namespace {

constexpr int kBlock = 256;

struct Shape {
  int64_t batch, inChannels, outChannels, groups;
  int64_t inPerGroup, outPerGroup;
  Window h, w;

  explicit Shape(const ConvParams &p)
      : batch(p.batch), inChannels(p.inChannels), outChannels(p.outChannels),
        groups(p.groups), inPerGroup(p.inChannels / p.groups),
        outPerGroup(p.outChannels / p.groups), h{p.inHeight,
                                                 p.outHeight,
                                                 p.kernelHeight,
                                                 p.strideHeight,
                                                 p.padTop,
                                                 p.dilationHeight},
        w{p.inWidth,     p.outWidth, p.kernelWidth,
          p.strideWidth, p.padLeft,  p.dilationWidth} {}

  TMC_HD int64_t inCount() const {
    return batch * h.inSize * w.inSize * inChannels;
  }
  TMC_HD int64_t outCount() const {
    return batch * h.outSize * w.outSize * outChannels;
  }
  TMC_HD int64_t filterCount() const {
    return outChannels * inPerGroup * h.taps * w.taps;
  }
  TMC_HD int64_t inAt(int64_t n, int64_t y, int64_t x, int64_t c) const {
    return ((n * h.inSize + y) * w.inSize + x) * inChannels + c;
  }
  TMC_HD int64_t outAt(int64_t n, int64_t y, int64_t x, int64_t c) const {
    return ((n * h.outSize + y) * w.outSize + x) * outChannels + c;
  }
  /// The index in OHWI order.
  TMC_HD int64_t filterAt(int64_t o, int64_t i, int64_t r, int64_t s) const {
    return ((o * h.taps + r) * w.taps + s) * inPerGroup + i;
  }
};

/// The OIHW index of element `at` of an OHWI filter.
TMC_HD inline int64_t oihwOf(const Shape &p, int64_t at) {
  const int64_t i = at % p.inPerGroup;
  at /= p.inPerGroup;
  const int64_t s = at % p.w.taps;
  at /= p.w.taps;
  const int64_t r = at % p.h.taps, o = at / p.h.taps;
  return ((o * p.inPerGroup + i) * p.h.taps + r) * p.w.taps + s;
}

__global__ void __launch_bounds__(kBlock)
    packFilter(Shape p, StoredIn oihw, StoredOut ohwi) {
  const int64_t at = globalThread();
  if (at < p.filterCount())
    ohwi.put(at, oihw.at(oihwOf(p, at)));
}

/// `stride`: elements of ohwi for an output channel.
__global__ void __launch_bounds__(kBlock)
    unpackFilter(Shape p, const float *__restrict__ ohwi, int64_t stride,
                 StoredOut oihw, bool accumulate) {
  const int64_t at = globalThread();
  if (at >= p.filterCount())
    return;
  const int64_t perChannel = p.filterCount() / p.outChannels;
  const float sum = ohwi[at / perChannel * stride + at % perChannel];
  const int64_t to = oihwOf(p, at);
  oihw.put(to, accumulate ? oihw.at(to) + sum : sum);
}

__global__ void __launch_bounds__(kBlock)
    plainForward(Shape p, StoredIn x, StoredIn filter, StoredOut y) {
  const int64_t at = globalThread();
  if (at >= p.outCount())
    return;
  const int64_t o = at % p.outChannels, ow = at / p.outChannels % p.w.outSize;
  const int64_t oh = at / p.outChannels / p.w.outSize % p.h.outSize;
  const int64_t n = at / p.outChannels / p.w.outSize / p.h.outSize;
  const int64_t c0 = o / p.outPerGroup * p.inPerGroup;
  float sum = 0;
  for (int64_t r = 0; r < p.h.taps; ++r) {
    const int64_t ih = p.h.input(oh, r);
    if (ih < 0)
      continue;
    for (int64_t s = 0; s < p.w.taps; ++s) {
      const int64_t iw = p.w.input(ow, s);
      if (iw < 0)
        continue;
      for (int64_t i = 0; i < p.inPerGroup; ++i)
        sum = fmaf(x.at(p.inAt(n, ih, iw, c0 + i)),
                   filter.at(p.filterAt(o, i, r, s)), sum);
    }
  }
  y.put(at, sum);
}

__global__ void __launch_bounds__(kBlock)
    plainGradInput(Shape p, StoredIn dy, StoredIn filter, StoredOut dx) {
  const int64_t at = globalThread();
  if (at >= p.inCount())
    return;
  const int64_t c = at % p.inChannels, iw = at / p.inChannels % p.w.inSize;
  const int64_t ih = at / p.inChannels / p.w.inSize % p.h.inSize;
  const int64_t n = at / p.inChannels / p.w.inSize / p.h.inSize;
  const int64_t group = c / p.inPerGroup;
  float sum = 0;
  for (int64_t r = 0; r < p.h.taps; ++r) {
    const int64_t oh = p.h.output(ih, r);
    if (oh < 0)
      continue;
    for (int64_t s = 0; s < p.w.taps; ++s) {
      const int64_t ow = p.w.output(iw, s);
      if (ow < 0)
        continue;
      for (int64_t o = group * p.outPerGroup; o < (group + 1) * p.outPerGroup;
           ++o)
        sum = fmaf(dy.at(p.outAt(n, oh, ow, o)),
                   filter.at(p.filterAt(o, c % p.inPerGroup, r, s)), sum);
    }
  }
  dx.put(at, sum);
}

__global__ void __launch_bounds__(kBlock)
    plainGradFilter(Shape p, StoredIn x, StoredIn dy, StoredOut dfilter,
                    bool accumulate) {
  __shared__ float shared[kBlock];
  int64_t at = blockIdx.x; // OIHW
  const int64_t s = at % p.w.taps, r = at / p.w.taps % p.h.taps;
  at = at / p.w.taps / p.h.taps;
  const int64_t i = at % p.inPerGroup, o = at / p.inPerGroup;
  const int64_t c = o / p.outPerGroup * p.inPerGroup + i;
  const int64_t pixels = p.batch * p.h.outSize * p.w.outSize;
  float sum = 0;
  for (int64_t pixel = threadIdx.x; pixel < pixels; pixel += kBlock) {
    const int64_t ow = pixel % p.w.outSize;
    const int64_t oh = pixel / p.w.outSize % p.h.outSize;
    const int64_t n = pixel / p.w.outSize / p.h.outSize;
    const int64_t ih = p.h.input(oh, r), iw = p.w.input(ow, s);
    if (ih >= 0 && iw >= 0)
      sum = fmaf(x.at(p.inAt(n, ih, iw, c)), dy.at(p.outAt(n, oh, ow, o)), sum);
  }
  sum = blockReduce(sum, shared, AddOp{});
  if (threadIdx.x == 0)
    dfilter.put(blockIdx.x, accumulate ? dfilter.at(blockIdx.x) + sum : sum);
}

/// A pass of a convolution by the library, if it has a plan for it.
class ByCudnn {
public:
  /// The workspace begins `before` bytes behind the scratch.
  Status prepare(CudaDevice &device, ConvPass pass, const ConvParams &p,
                 int64_t before) {
    before_ = before;
    if (whyNotCudnn(p, pass))
      return Status::ok();
    Status found =
        graph_.prepare(device, pass, p, kCudaConvScratchBytes - kCudaConvAlign);
    isUsable_ = bool(found);
    return found.code() == Code::Unsupported ? Status::ok() : found;
  }
  bool isUsable() const { return isUsable_; }

  void run(const Queue &queue, const void *first, const void *second,
           void *result, void *scratch) {
    // The library would read and write elsewhere.
    if (!isAligned(first) || !isAligned(second) || !isAligned(result))
      return queue.device().fail(Code::Defect,
                                 std::string(queue.name()) +
                                     ": an operand or the result of cuDNN "
                                     "isn't at a multiple of 16 bytes");
    const uintptr_t from = reinterpret_cast<uintptr_t>(scratch) + before_;
    const uintptr_t up = (from + kCudaConvAlign - 1) / kCudaConvAlign;
    graph_.run(queue, first, second, result,
               reinterpret_cast<void *>(up * kCudaConvAlign));
  }

private:
  ConvGraph graph_;
  bool isUsable_ = false;
  int64_t before_ = 0;
};

/// The prepared state of the forward pass and the input gradient.
struct ConvState : Prepared {
  ByCudnn library;

  Status prepare(const char *name, Device &on, ConvPass pass,
                 const ConvParams &p, int64_t wanted) {
    device = &deviceOf(on);
    if (Status s = requireScratch(name, wanted, p.scratchBytes); !s)
      return s;
    return library.prepare(*device, pass, p, packedFilterBytes(p));
  }

  /// Packs the filter, then runs the library, or `plain` with `count` elements.
  template <typename Plain>
  void run(Queue &queue, const ConvParams &p, int64_t count, Plain plain,
           const void *from, const void *filter, void *to, void *scratch) {
    const Shape shape(p);
    if (packsFilter(p) || !isAligned(filter)) {
      launch(queue, packFilter, blocksFor(shape.filterCount(), kBlock),
             dim3(kBlock), 0, shape, StoredIn{filter, p.filter},
             StoredOut{scratch, p.type});
      filter = scratch;
    }
    if (library.isUsable())
      return library.run(queue, from, filter, to, scratch);
    launch(queue, plain, blocksFor(count, kBlock), dim3(kBlock), 0, shape,
           StoredIn{from, p.type}, StoredIn{filter, p.type},
           StoredOut{to, p.type});
  }
};

} // namespace
} // namespace cuda

struct Conv::State : cuda::ConvState {};
Conv::Conv(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Conv::~Conv() = default;

Status Conv::prepare(Device &device) {
  return state_->prepare("conv", device, ConvPass::Forward, params_,
                         scratchCap(params_, Backend::Cuda));
}

void Conv::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  cuda::Queue queue(*state_->device, stream, "conv");
  state_->run(queue, params_, cuda::Shape(params_).outCount(),
              cuda::plainForward, operand(ins, 0), operand(ins, 1),
              result(outs, 0), scratch);
}

struct ConvGradInput::State : cuda::ConvState {};
ConvGradInput::ConvGradInput(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
ConvGradInput::~ConvGradInput() = default;

Status ConvGradInput::prepare(Device &device) {
  return state_->prepare("conv_grad_input", device, ConvPass::GradInput,
                         params_, scratchCap(params_, Backend::Cuda));
}

void ConvGradInput::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  cuda::Queue queue(*state_->device, stream, "conv_grad_input");
  state_->run(queue, params_, cuda::Shape(params_).inCount(),
              cuda::plainGradInput, operand(ins, 0), operand(ins, 1),
              result(outs, 0), scratch);
}

struct ConvGradFilter::State : cuda::Prepared {
  cuda::ByCudnn library;
  cuda::GatheredFilter gathered; // if the library has no plan for 16 bits
  bool isGathered = false;
};
ConvGradFilter::ConvGradFilter(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
ConvGradFilter::~ConvGradFilter() = default;

Status ConvGradFilter::prepare(Device &device) {
  const Params &p = params_;
  state_->device = &cuda::deviceOf(device);
  if (Status s = cuda::requireScratch(
          "conv_grad_filter", scratchCap(p, Backend::Cuda), p.scratchBytes);
      !s)
    return s;
  if (Status s = state_->library.prepare(*state_->device, ConvPass::GradFilter,
                                         p, filterSumBytesOnCuda(p));
      !s)
    return s;
  state_->isGathered = !state_->library.isUsable() && canGatherWindows(p);
  return state_->isGathered ? state_->gathered.prepare(*state_->device, p)
                            : Status::ok();
}

void ConvGradFilter::run(Stream &stream, In ins, Out outs, void *scratch,
                         bool accumulate) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "conv_grad_filter");
  const cuda::Shape shape(p);
  const void *x = operand(ins, 0), *dy = operand(ins, 1);
  const cuda::StoredOut dfilter{result(outs, 0), p.filter};
  const dim3 block(cuda::kBlock);
  int64_t stride = shape.filterCount() / p.outChannels;
  if (state_->isGathered) {
    state_->gathered.run(queue, x, dy, scratch);
    stride = gatheredColumns(p);
  } else if (state_->library.isUsable()) {
    state_->library.run(queue, x, dy, scratch, scratch);
  } else {
    launch(queue, cuda::plainGradFilter, dim3(unsigned(shape.filterCount())),
           block, 0, shape, cuda::StoredIn{x, p.type},
           cuda::StoredIn{dy, p.type}, dfilter, accumulate);
    return;
  }
  launch(queue, cuda::unpackFilter,
         cuda::blocksFor(shape.filterCount(), cuda::kBlock), block, 0, shape,
         static_cast<const float *>(scratch), stride, dfilter, accumulate);
}

} // namespace tmc
