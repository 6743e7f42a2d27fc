//===- Pool.cu - two-dimensional pooling on cuda --------------------------===//
//
// A thread per element of the result. A gradient gathers: the thread of an
// input reads the windows that cover it, in row-major order of the taps.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Pool.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Stored.h"
#include "runtime/cuda/Window.h"

namespace tmc {

namespace cuda {
namespace {

constexpr int kBlock = 256;

struct Windows {
  Window h, w;
  int64_t channels, count; // threads

  Windows(const PoolParams &p, bool overInput)
      : h{p.inHeight,     p.outHeight, p.kernelHeight,
          p.strideHeight, p.padTop,    p.dilationHeight},
        w{p.inWidth,     p.outWidth, p.kernelWidth,
          p.strideWidth, p.padLeft,  p.dilationWidth},
        channels(p.channels),
        count(p.batch * p.channels *
              (overInput ? p.inHeight * p.inWidth : p.outHeight * p.outWidth)) {
  }
};

/// An element of an NHWC tensor of the given height and width.
struct Place {
  int64_t n, h, w, c;
  __device__ Place(int64_t i, int64_t height, int64_t width, int64_t channels) {
    c = i % channels;
    i /= channels;
    w = i % width;
    i /= width;
    h = i % height;
    n = i / height;
  }
};

/// Position in image n of the first largest element under a window; -1 if the
/// window covers only padding. A NaN is larger than all numbers.
__device__ int64_t firstLargest(const Windows &p, StoredIn x, int64_t n,
                                int64_t c, int64_t oh, int64_t ow) {
  int64_t at = -1;
  float top = 0;
  for (int64_t r = 0; r < p.h.taps; ++r) {
    const int64_t h = p.h.input(oh, r);
    if (h < 0)
      continue;
    for (int64_t s = 0; s < p.w.taps; ++s) {
      const int64_t w = p.w.input(ow, s);
      if (w < 0)
        continue;
      const int64_t i =
          ((n * p.h.inSize + h) * p.w.inSize + w) * p.channels + c;
      const float value = x.at(i);
      if (at < 0 || value > top || value != value) {
        at = i;
        top = value;
      }
    }
  }
  return at;
}

__global__ void __launch_bounds__(kBlock)
    maxPool(Windows p, StoredIn x, StoredOut y) {
  const int64_t i = globalThread();
  if (i >= p.count)
    return;
  const Place o(i, p.h.outSize, p.w.outSize, p.channels);
  const int64_t at = firstLargest(p, x, o.n, o.c, o.h, o.w);
  y.put(i, at < 0 ? -INFINITY : x.at(at));
}

/// Calls body(oh, ow) for each window that covers element `o` of the input.
template <typename F>
__device__ void coveringWindows(const Windows &p, const Place &o, F &&body) {
  for (int64_t r = 0; r < p.h.taps; ++r) {
    const int64_t oh = p.h.output(o.h, r);
    if (oh < 0)
      continue;
    for (int64_t s = 0; s < p.w.taps; ++s) {
      const int64_t ow = p.w.output(o.w, s);
      if (ow >= 0)
        body(oh, ow);
    }
  }
}

__device__ int64_t outputAt(const Windows &p, const Place &o, int64_t oh,
                            int64_t ow) {
  return ((o.n * p.h.outSize + oh) * p.w.outSize + ow) * p.channels + o.c;
}

__global__ void __launch_bounds__(kBlock)
    maxPoolGrad(Windows p, StoredIn x, StoredIn dy, StoredOut dx) {
  const int64_t i = globalThread();
  if (i >= p.count)
    return;
  const Place o(i, p.h.inSize, p.w.inSize, p.channels);
  float sum = 0;
  coveringWindows(p, o, [&](int64_t oh, int64_t ow) {
    if (firstLargest(p, x, o.n, o.c, oh, ow) == i)
      sum += dy.at(outputAt(p, o, oh, ow));
  });
  dx.put(i, sum);
}

__device__ float divisor(const Windows &p, bool includePad, int64_t oh,
                         int64_t ow) {
  const int64_t count =
      includePad ? p.h.taps * p.w.taps : p.h.covered(oh) * p.w.covered(ow);
  return float(count > 0 ? count : 1);
}

__global__ void __launch_bounds__(kBlock)
    avgPool(Windows p, bool includePad, StoredIn x, StoredOut y) {
  const int64_t i = globalThread();
  if (i >= p.count)
    return;
  const Place o(i, p.h.outSize, p.w.outSize, p.channels);
  float sum = 0;
  for (int64_t r = 0; r < p.h.taps; ++r) {
    const int64_t h = p.h.input(o.h, r);
    if (h < 0)
      continue;
    for (int64_t s = 0; s < p.w.taps; ++s) {
      const int64_t w = p.w.input(o.w, s);
      if (w >= 0)
        sum +=
            x.at(((o.n * p.h.inSize + h) * p.w.inSize + w) * p.channels + o.c);
    }
  }
  y.put(i, sum / divisor(p, includePad, o.h, o.w));
}

__global__ void __launch_bounds__(kBlock)
    avgPoolGrad(Windows p, bool includePad, StoredIn dy, StoredOut dx) {
  const int64_t i = globalThread();
  if (i >= p.count)
    return;
  const Place o(i, p.h.inSize, p.w.inSize, p.channels);
  float sum = 0;
  coveringWindows(p, o, [&](int64_t oh, int64_t ow) {
    sum += dy.at(outputAt(p, o, oh, ow)) / divisor(p, includePad, oh, ow);
  });
  dx.put(i, sum);
}

} // namespace
} // namespace cuda

using cuda::StoredIn;
using cuda::StoredOut;

struct MaxPool::State : cuda::Prepared {};
MaxPool::MaxPool(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
MaxPool::~MaxPool() = default;
Status MaxPool::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return Status::ok();
}
void MaxPool::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::Queue queue(*state_->device, stream, "max_pool");
  const cuda::Windows windows(params_, false);
  launch(queue, cuda::maxPool, cuda::blocksFor(windows.count, cuda::kBlock),
         dim3(cuda::kBlock), 0, windows,
         StoredIn{operand(ins, 0), params_.type},
         StoredOut{result(outs, 0), params_.type});
}

struct MaxPoolGrad::State : cuda::Prepared {};
MaxPoolGrad::MaxPoolGrad(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
MaxPoolGrad::~MaxPoolGrad() = default;
Status MaxPoolGrad::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return Status::ok();
}
void MaxPoolGrad::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::Queue queue(*state_->device, stream, "max_pool_grad");
  const cuda::Windows windows(params_, true);
  launch(queue, cuda::maxPoolGrad, cuda::blocksFor(windows.count, cuda::kBlock),
         dim3(cuda::kBlock), 0, windows,
         StoredIn{operand(ins, 0), params_.type},
         StoredIn{operand(ins, 1), params_.type},
         StoredOut{result(outs, 0), params_.type});
}

struct AvgPool::State : cuda::Prepared {};
AvgPool::AvgPool(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
AvgPool::~AvgPool() = default;
Status AvgPool::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return Status::ok();
}
void AvgPool::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::Queue queue(*state_->device, stream, "avg_pool");
  const cuda::Windows windows(params_, false);
  launch(queue, cuda::avgPool, cuda::blocksFor(windows.count, cuda::kBlock),
         dim3(cuda::kBlock), 0, windows, params_.countIncludePad,
         StoredIn{operand(ins, 0), params_.type},
         StoredOut{result(outs, 0), params_.type});
}

struct AvgPoolGrad::State : cuda::Prepared {};
AvgPoolGrad::AvgPoolGrad(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
AvgPoolGrad::~AvgPoolGrad() = default;
Status AvgPoolGrad::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return Status::ok();
}
void AvgPoolGrad::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::Queue queue(*state_->device, stream, "avg_pool_grad");
  const cuda::Windows windows(params_, true);
  launch(queue, cuda::avgPoolGrad, cuda::blocksFor(windows.count, cuda::kBlock),
         dim3(cuda::kBlock), 0, windows, params_.countIncludePad,
         StoredIn{operand(ins, 0), params_.type},
         StoredOut{result(outs, 0), params_.type});
}

} // namespace tmc
