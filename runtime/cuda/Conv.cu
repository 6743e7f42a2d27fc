//===- Conv.cu - two-dimensional convolution on cuda ----------------------===//
//
// By cuDNN (Dnn.h) on a copy of the filter as OHWI, in scratch:
//
//     scratch: [ filter, OHWI | cuDNN's workspace ]
//
// Shapes that cuDNN doesn't take go through plain kernels: one thread per
// element of y or dx, one block per element of dfilter; slow, but every sum has
// one order there too.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Conv.h"

#include "runtime/cuda/Dnn.h"
#include "runtime/cuda/Launch.h"
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
  /// OIHW.
  TMC_HD int64_t filterAt(int64_t o, int64_t i, int64_t r, int64_t s) const {
    return ((o * inPerGroup + i) * h.taps + r) * w.taps + s;
  }
};

/// Element `at` of an OHWI filter stands there in the OIHW one.
TMC_HD inline int64_t oihwOf(const Shape &p, int64_t at) {
  const int64_t i = at % p.inPerGroup;
  at /= p.inPerGroup;
  const int64_t s = at % p.w.taps;
  at /= p.w.taps;
  return p.filterAt(at / p.h.taps, i, at % p.h.taps, s);
}

__global__ void __launch_bounds__(kBlock)
    packFilter(Shape p, const float *__restrict__ oihw,
               float *__restrict__ ohwi) {
  const int64_t at = globalThread();
  if (at < p.filterCount())
    ohwi[at] = oihw[oihwOf(p, at)];
}

__global__ void __launch_bounds__(kBlock)
    unpackFilter(Shape p, const float *__restrict__ ohwi, float *oihw,
                 bool accumulate) {
  const int64_t at = globalThread();
  if (at >= p.filterCount())
    return;
  float &to = oihw[oihwOf(p, at)];
  to = accumulate ? to + ohwi[at] : ohwi[at];
}

__global__ void __launch_bounds__(kBlock)
    addBias(int64_t count, int64_t channels, const float *__restrict__ bias,
            float *y) {
  const int64_t i = globalThread();
  if (i < count)
    y[i] += bias[i % channels];
}

__global__ void __launch_bounds__(kBlock)
    plainForward(Shape p, const float *__restrict__ x,
                 const float *__restrict__ filter,
                 const float *__restrict__ bias, float *__restrict__ y) {
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
        sum = fmaf(x[p.inAt(n, ih, iw, c0 + i)], filter[p.filterAt(o, i, r, s)],
                   sum);
    }
  }
  y[at] = bias ? sum + bias[o] : sum;
}

__global__ void __launch_bounds__(kBlock)
    plainGradInput(Shape p, const float *__restrict__ dy,
                   const float *__restrict__ filter, float *__restrict__ dx) {
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
        sum = fmaf(dy[p.outAt(n, oh, ow, o)],
                   filter[p.filterAt(o, c % p.inPerGroup, r, s)], sum);
    }
  }
  dx[at] = sum;
}

__global__ void __launch_bounds__(kBlock)
    plainGradFilter(Shape p, const float *__restrict__ x,
                    const float *__restrict__ dy, float *dfilter,
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
      sum = fmaf(x[p.inAt(n, ih, iw, c)], dy[p.outAt(n, oh, ow, o)], sum);
  }
  sum = blockReduce(sum, shared, AddOp{});
  if (threadIdx.x == 0)
    dfilter[blockIdx.x] = accumulate ? dfilter[blockIdx.x] + sum : sum;
}

/// What the three classes remember.
struct ConvState : Prepared {
  DnnConv dnn;

  Status prepare(const char *name, Device &on, ConvKind kind,
                 const ConvParams &p, int64_t wanted) {
    device = &deviceOf(on);
    if (Status s = requireScratch(name, wanted, p.scratchBytes); !s)
      return s;
    return dnn.prepare(*device, kind, p, p.scratchBytes - packedFilterBytes(p));
  }
};

float *floats(void *p) { return static_cast<float *>(p); }
const float *floats(const void *p) { return static_cast<const float *>(p); }

} // namespace
} // namespace cuda

using cuda::floats;

struct Conv::State : cuda::ConvState {};
Conv::Conv(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Conv::~Conv() = default;

Status Conv::prepare(Device &device) {
  return state_->prepare("conv", device, cuda::ConvKind::Forward, params_,
                         scratchCap(params_, Backend::Cuda));
}

void Conv::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  cuda::Queue queue(*state_->device, stream, "conv");
  const cuda::Shape shape(params_);
  const float *x = floats(operand(ins, 0)), *filter = floats(operand(ins, 1));
  const float *bias = params_.bias ? floats(operand(ins, 2)) : nullptr;
  float *y = floats(result(outs, 0));
  const dim3 block(cuda::kBlock);
  const dim3 outBlocks = cuda::blocksFor(shape.outCount(), cuda::kBlock);
  if (!state_->dnn.usable()) {
    launch(queue, cuda::plainForward, outBlocks, block, 0, shape, x, filter,
           bias, y);
    return;
  }
  launch(queue, cuda::packFilter,
         cuda::blocksFor(shape.filterCount(), cuda::kBlock), block, 0, shape,
         filter, floats(scratch));
  state_->dnn.run(queue, x, scratch, y,
                  static_cast<char *>(scratch) + packedFilterBytes(params_));
  if (bias)
    launch(queue, cuda::addBias, outBlocks, block, 0, shape.outCount(),
           shape.outChannels, bias, y);
}

struct ConvGradInput::State : cuda::ConvState {};
ConvGradInput::ConvGradInput(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
ConvGradInput::~ConvGradInput() = default;

Status ConvGradInput::prepare(Device &device) {
  return state_->prepare("conv_grad_input", device, cuda::ConvKind::GradInput,
                         params_, scratchCap(params_, Backend::Cuda));
}

void ConvGradInput::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  cuda::Queue queue(*state_->device, stream, "conv_grad_input");
  const cuda::Shape shape(params_);
  const float *dy = floats(operand(ins, 0)), *filter = floats(operand(ins, 1));
  float *dx = floats(result(outs, 0));
  const dim3 block(cuda::kBlock);
  if (!state_->dnn.usable()) {
    launch(queue, cuda::plainGradInput,
           cuda::blocksFor(shape.inCount(), cuda::kBlock), block, 0, shape, dy,
           filter, dx);
    return;
  }
  launch(queue, cuda::packFilter,
         cuda::blocksFor(shape.filterCount(), cuda::kBlock), block, 0, shape,
         filter, floats(scratch));
  state_->dnn.run(queue, dy, scratch, dx,
                  static_cast<char *>(scratch) + packedFilterBytes(params_));
}

struct ConvGradFilter::State : cuda::ConvState {};
ConvGradFilter::ConvGradFilter(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
ConvGradFilter::~ConvGradFilter() = default;

Status ConvGradFilter::prepare(Device &device) {
  return state_->prepare("conv_grad_filter", device, cuda::ConvKind::GradFilter,
                         params_, scratchCap(params_, Backend::Cuda));
}

void ConvGradFilter::run(Stream &stream, In ins, Out outs, void *scratch,
                         bool accumulate) {
  cuda::Queue queue(*state_->device, stream, "conv_grad_filter");
  const cuda::Shape shape(params_);
  const float *x = floats(operand(ins, 0)), *dy = floats(operand(ins, 1));
  float *dfilter = floats(result(outs, 0));
  const dim3 block(cuda::kBlock);
  if (!state_->dnn.usable()) {
    launch(queue, cuda::plainGradFilter, dim3(unsigned(shape.filterCount())),
           block, 0, shape, x, dy, dfilter, accumulate);
    return;
  }
  state_->dnn.run(queue, x, dy, scratch,
                  static_cast<char *>(scratch) + packedFilterBytes(params_));
  launch(queue, cuda::unpackFilter,
         cuda::blocksFor(shape.filterCount(), cuda::kBlock), block, 0, shape,
         floats(scratch), dfilter, accumulate);
}

} // namespace tmc
