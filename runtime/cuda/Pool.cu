//===- Pool.cu - two-dimensional pooling on cuda --------------------------===//
//
// A thread has kVector channels of a pixel (Vector.h). A gradient gathers: the
// thread of an input reads the windows that cover it, in row-major order of the
// taps.
//
// A maximum's gradient asks of each window where its first largest element is.
// A block finds this once for each window that covers its tile of the input,
// and keeps it in shared memory as the number of a tap, a byte for a channel.
// Windows of more than 255 taps, or that cover a tile in too large numbers,
// take a plain kernel, in which each input searches all windows that cover it.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Pool.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Stored.h"
#include "runtime/cuda/Vector.h"
#include "runtime/cuda/Window.h"

namespace tmc {

namespace cuda {
namespace {

constexpr int kBlock = 256;

using Line = WindowOf<int>;

struct Windows {
  Line h, w;
  int64_t channels, images;
  int vectors; // of a pixel

  explicit Windows(const PoolParams &p)
      : h(toInt(heightOf(p))), w(toInt(widthOf(p))), channels(p.channels),
        images(p.batch), vectors(int(ceilDivide(p.channels, kVector))) {}

  static Window heightOf(const PoolParams &p) {
    return {p.inHeight,     p.outHeight, p.kernelHeight,
            p.strideHeight, p.padTop,    p.dilationHeight};
  }
  static Window widthOf(const PoolParams &p) {
    return {p.inWidth,     p.outWidth, p.kernelWidth,
            p.strideWidth, p.padLeft,  p.dilationWidth};
  }

  __device__ int64_t inputAt(int64_t n, int y, int x, int64_t c) const {
    return ((n * h.inSize + y) * w.inSize + x) * channels + c;
  }
  __device__ int64_t outputAt(int64_t n, int y, int x, int64_t c) const {
    return ((n * h.outSize + y) * w.outSize + x) * channels + c;
  }
};

Status checkSizes(const char *name, const PoolParams &p) {
  if (fitsInt(Windows::heightOf(p)) && fitsInt(Windows::widthOf(p)) &&
      p.channels <= INT32_MAX)
    return Status::ok();
  return {Code::Unsupported,
          std::string(name) + " on cuda takes sizes of at most 2^30"};
}

/// a / b, and the rest. Most numbers fit 32 bits, where a division is cheaper.
__device__ __forceinline__ int64_t divide(int64_t a, int b, int &rest) {
  if (a >> 32 == 0) {
    const uint32_t q = uint32_t(a) / uint32_t(b);
    rest = int(uint32_t(a) - q * uint32_t(b));
    return q;
  }
  rest = int(a % b);
  return a / b;
}

/// The channels of a thread, and their place in an NHWC tensor of the given
/// height and width.
struct Place {
  int64_t n, c;
  int h, w, count; // count: of channels

  __device__ Place(const Windows &p, int height, int width) {
    int vector;
    n = divide(divide(divide(globalThread(), p.vectors, vector), width, w),
               height, h);
    c = int64_t(vector) * kVector;
    count = p.channels - c < kVector ? int(p.channels - c) : kVector;
  }
};

/// Calls body(out, tap) for each output that uses input `in`, taps ascending.
template <typename F>
__device__ __forceinline__ void eachOutput(const Line &line, int in, F &&body) {
  int first, end;
  line.outputsOf(in, 1, first, end);
  for (int out = end - 1; out >= first; --out) {
    const int at = in + line.pad - out * line.stride;
    const int tap = line.dilation == 1 ? at : at / line.dilation;
    if (tap * line.dilation == at)
      body(out, tap);
  }
}

/// Calls body(y, x, tap) for each element under window (oh, ow) of an image.
template <typename F>
__device__ __forceinline__ void eachInput(const Windows &p, int oh, int ow,
                                          F &&body) {
  for (int r = 0; r < p.h.taps; ++r) {
    const int h = p.h.input(oh, r);
    if (h < 0)
      continue;
    for (int s = 0; s < p.w.taps; ++s) {
      const int w = p.w.input(ow, s);
      if (w >= 0)
        body(h, w, r * p.w.taps + s);
    }
  }
}

template <bool Whole, typename T>
__device__ __forceinline__ void maxOf(const Windows &p, const T *x, T *y) {
  const Place o(p, p.h.outSize, p.w.outSize);
  if (o.n >= p.images)
    return;
  float top[kVector];
#pragma unroll
  for (int i = 0; i < kVector; ++i)
    top[i] = -INFINITY;
  // A NaN is larger than all numbers.
  eachInput(p, o.h, o.w, [&](int h, int w, int) {
    float v[kVector];
    loadVector<Whole>(x + p.inputAt(o.n, h, w, o.c), o.count, v);
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      top[i] = v[i] > top[i] || v[i] != v[i] ? v[i] : top[i];
  });
  storeVector<Whole>(y + p.outputAt(o.n, o.h, o.w, o.c), o.count, top);
}

template <typename T>
__global__ void __launch_bounds__(kBlock)
    maxPool(Windows p, bool whole, const T *__restrict__ x, T *__restrict__ y) {
  if (whole)
    maxOf<true>(p, x, y);
  else
    maxOf<false>(p, x, y);
}

//===----------------------------------------------------------------------===//
// The gradient of a maximum, by tiles
//===----------------------------------------------------------------------===//

/// The cut of the input into tiles, and a block's window numbers in shared
/// memory: 8 bytes for a vector of channels.
struct Tiles {
  int height, width;                    // of a tile, in pixels
  int across;                           // vectors of a tile
  int down, right, groups;              // tiles of an image
  int windowsHigh, windowsWide;         // at most, over a tile
  static constexpr int kMostTaps = 255; // the code 255 is no tap
  static constexpr int kSide = 16, kMostAcross = 8;
  static constexpr int64_t kMostBytes = 32 << 10;

  explicit Tiles(const Windows &p) {
    groups = int(ceilDivide(p.vectors, kMostAcross));
    across = int(ceilDivide(p.vectors, groups > 0 ? groups : 1));
    for (int side = kSide; side > 0; side /= 2) {
      height = side < p.h.inSize ? side : p.h.inSize;
      width = side < p.w.inSize ? side : p.w.inSize;
      windowsHigh = (height - 1 + p.h.reach()) / p.h.stride + 1;
      windowsWide = (width - 1 + p.w.reach()) / p.w.stride + 1;
      if (bytes() <= kMostBytes)
        break;
    }
    down = int(ceilDivide(p.h.inSize, height));
    right = int(ceilDivide(p.w.inSize, width));
  }
  int64_t bytes() const {
    return int64_t(windowsHigh) * windowsWide * across * kVector;
  }
  bool fits(const Windows &p) const {
    return bytes() <= kMostBytes && int64_t(p.h.taps) * p.w.taps <= kMostTaps;
  }
};

using Taps = Lanes<uint32_t, 2>;

/// The tap of the first largest element of each of a window's channels. A NaN
/// is larger than all numbers, and the last one counts.
template <bool Whole, typename T>
__device__ __forceinline__ Taps largestTaps(const Windows &p, const T *x,
                                            int64_t n, int oh, int ow,
                                            int64_t c, int count) {
  float top[kVector];
  uint32_t taps[kVector];
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    top[i] = 0;
    taps[i] = uint32_t(Tiles::kMostTaps);
  }
  bool isFirst = true;
  eachInput(p, oh, ow, [&](int h, int w, int tap) {
    float v[kVector];
    loadVector<Whole>(x + p.inputAt(n, h, w, c), count, v);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const bool isLarger = isFirst || v[i] > top[i] || v[i] != v[i];
      top[i] = isLarger ? v[i] : top[i];
      taps[i] = isLarger ? uint32_t(tap) : taps[i];
    }
    isFirst = false;
  });
  Taps packed;
#pragma unroll
  for (int half = 0; half < 2; ++half)
    packed[half] = taps[4 * half] | taps[4 * half + 1] << 8 |
                   taps[4 * half + 2] << 16 | taps[4 * half + 3] << 24;
  return packed;
}

template <bool Whole, typename T>
__device__ __forceinline__ void maxGradOfTile(const Windows &p, const Tiles &t,
                                              const T *x, const T *dy, T *dx) {
  TMC_DYNAMIC_SHARED(shared);
  Taps *largest = reinterpret_cast<Taps *>(shared);
  int group, column, row;
  const int64_t n =
      divide(divide(divide(blockIdx.x, t.groups, group), t.right, column),
             t.down, row);
  const int h0 = row * t.height, w0 = column * t.width;
  const int v0 = group * t.across;
  const int across = p.vectors - v0 < t.across ? p.vectors - v0 : t.across;
  const int height = p.h.inSize - h0 < t.height ? p.h.inSize - h0 : t.height;
  const int width = p.w.inSize - w0 < t.width ? p.w.inSize - w0 : t.width;
  int ohFirst, ohEnd, owFirst, owEnd;
  p.h.outputsOf(h0, height, ohFirst, ohEnd);
  p.w.outputsOf(w0, width, owFirst, owEnd);
  const int wide = owEnd - owFirst;
  auto channelsOf = [&](int vector, int64_t &c) {
    c = int64_t(v0 + vector) * kVector;
    return p.channels - c < kVector ? int(p.channels - c) : kVector;
  };
  for (int i = int(threadIdx.x); i < (ohEnd - ohFirst) * wide * across;
       i += kBlock) {
    const int window = i / across, oh = window / wide;
    int64_t c;
    const int count = channelsOf(i - window * across, c);
    largest[i] = largestTaps<Whole>(p, x, n, ohFirst + oh,
                                    owFirst + window - oh * wide, c, count);
  }
  __syncthreads();
  for (int i = int(threadIdx.x); i < height * width * across; i += kBlock) {
    const int pixel = i / across, y = pixel / width, vector = i % across;
    int64_t c;
    const int count = channelsOf(vector, c);
    const int h = h0 + y, w = w0 + pixel - y * width;
    float sum[kVector] = {};
    eachOutput(p.h, h, [&](int oh, int r) {
      eachOutput(p.w, w, [&](int ow, int s) {
        const Taps taps =
            largest[((oh - ohFirst) * wide + ow - owFirst) * across + vector];
        const uint32_t tap = uint32_t(r * p.w.taps + s);
        float grad[kVector];
        loadVector<Whole>(dy + p.outputAt(n, oh, ow, c), count, grad);
#pragma unroll
        for (int k = 0; k < kVector; ++k)
          if ((taps[k / 4] >> (k % 4 * 8) & 0xffu) == tap)
            sum[k] += grad[k];
      });
    });
    storeVector<Whole>(dx + p.inputAt(n, h, w, c), count, sum);
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlock)
    maxPoolGrad(Windows p, Tiles tiles, bool whole, const T *__restrict__ x,
                const T *__restrict__ dy, T *__restrict__ dx) {
  if (whole)
    maxGradOfTile<true>(p, tiles, x, dy, dx);
  else
    maxGradOfTile<false>(p, tiles, x, dy, dx);
}

/// A thread per element.
__global__ void __launch_bounds__(kBlock, 2)
    plainMaxPoolGrad(Windows p, int64_t count, StoredIn x, StoredIn dy,
                     StoredOut dx) {
  const int64_t i = globalThread();
  if (i >= count)
    return;
  int c, w, h;
  const int64_t n = divide(divide(divide(i, int(p.channels), c), p.w.inSize, w),
                           p.h.inSize, h);
  float sum = 0;
  eachOutput(p.h, h, [&](int oh, int) {
    eachOutput(p.w, w, [&](int ow, int) {
      int64_t at = -1;
      float top = 0;
      eachInput(p, oh, ow, [&](int y, int z, int) {
        const int64_t from = p.inputAt(n, y, z, c);
        const float value = x.at(from);
        if (at < 0 || value > top || value != value) {
          at = from;
          top = value;
        }
      });
      if (at == i)
        sum += dy.at(p.outputAt(n, oh, ow, c));
    });
  });
  dx.put(i, sum);
}

//===----------------------------------------------------------------------===//
// Averages
//===----------------------------------------------------------------------===//

__device__ float divisor(const Windows &p, bool includePad, int oh, int ow) {
  const int count =
      includePad ? p.h.taps * p.w.taps : p.h.covered(oh) * p.w.covered(ow);
  return float(count > 0 ? count : 1);
}

template <bool Whole, typename T>
__device__ __forceinline__ void averageOf(const Windows &p, bool includePad,
                                          const T *x, T *y) {
  const Place o(p, p.h.outSize, p.w.outSize);
  if (o.n >= p.images)
    return;
  float sum[kVector] = {};
  eachInput(p, o.h, o.w, [&](int h, int w, int) {
    float v[kVector];
    loadVector<Whole>(x + p.inputAt(o.n, h, w, o.c), o.count, v);
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      sum[i] += v[i];
  });
  const float by = divisor(p, includePad, o.h, o.w);
#pragma unroll
  for (int i = 0; i < kVector; ++i)
    sum[i] /= by;
  storeVector<Whole>(y + p.outputAt(o.n, o.h, o.w, o.c), o.count, sum);
}

template <typename T>
__global__ void __launch_bounds__(kBlock)
    avgPool(Windows p, bool whole, bool includePad, const T *__restrict__ x,
            T *__restrict__ y) {
  if (whole)
    averageOf<true>(p, includePad, x, y);
  else
    averageOf<false>(p, includePad, x, y);
}

template <bool Whole, typename T>
__device__ __forceinline__ void averageGradOf(const Windows &p, bool includePad,
                                              const T *dy, T *dx) {
  const Place o(p, p.h.inSize, p.w.inSize);
  if (o.n >= p.images)
    return;
  float sum[kVector] = {};
  eachOutput(p.h, o.h, [&](int oh, int) {
    eachOutput(p.w, o.w, [&](int ow, int) {
      float grad[kVector];
      loadVector<Whole>(dy + p.outputAt(o.n, oh, ow, o.c), o.count, grad);
      const float by = divisor(p, includePad, oh, ow);
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        sum[i] += grad[i] / by;
    });
  });
  storeVector<Whole>(dx + p.inputAt(o.n, o.h, o.w, o.c), o.count, sum);
}

template <typename T>
__global__ void __launch_bounds__(kBlock, 2)
    avgPoolGrad(Windows p, bool whole, bool includePad,
                const T *__restrict__ dy, T *__restrict__ dx) {
  if (whole)
    averageGradOf<true>(p, includePad, dy, dx);
  else
    averageGradOf<false>(p, includePad, dy, dx);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

dim3 blocksOver(const Windows &p, const Line &h, const Line &w,
                int Line::*size) {
  return blocksFor(p.images * (h.*size) * (w.*size) * p.vectors, kBlock);
}

void queueMaxGrad(Queue &queue, const PoolParams &params, const void *x,
                  const void *dy, void *dx) {
  const Windows p(params);
  const Tiles tiles(p);
  if (!tiles.fits(p)) {
    const int64_t count = p.images * p.h.inSize * p.w.inSize * p.channels;
    launch(queue, plainMaxPoolGrad, blocksFor(count, kBlock), dim3(kBlock), 0,
           p, count, StoredIn{x, params.type}, StoredIn{dy, params.type},
           StoredOut{dx, params.type});
    return;
  }
  const dim3 grid(unsigned(p.images * tiles.down * tiles.right * tiles.groups));
  withStored(params.type, [&](auto element) {
    using T = decltype(element);
    launch(queue, maxPoolGrad<T>, grid, dim3(kBlock), tiles.bytes(), p, tiles,
           areWhole(params.channels, {x, dy, dx}), static_cast<const T *>(x),
           static_cast<const T *>(dy), static_cast<T *>(dx));
  });
}

} // namespace
} // namespace cuda

struct MaxPool::State : cuda::Prepared {};
MaxPool::MaxPool(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
MaxPool::~MaxPool() = default;
Status MaxPool::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::checkSizes("max_pool", params_);
}
void MaxPool::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::Queue queue(*state_->device, stream, "max_pool");
  const void *from = operand(ins, 0);
  void *to = result(outs, 0);
  const cuda::Windows p(params_);
  cuda::withStored(params_.type, [&](auto element) {
    using T = decltype(element);
    launch(queue, cuda::maxPool<T>,
           cuda::blocksOver(p, p.h, p.w, &cuda::Line::outSize),
           dim3(cuda::kBlock), 0, p,
           cuda::areWhole(params_.channels, {from, to}),
           static_cast<const T *>(from), static_cast<T *>(to));
  });
}

struct MaxPoolGrad::State : cuda::Prepared {};
MaxPoolGrad::MaxPoolGrad(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
MaxPoolGrad::~MaxPoolGrad() = default;
Status MaxPoolGrad::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::checkSizes("max_pool_grad", params_);
}
void MaxPoolGrad::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::Queue queue(*state_->device, stream, "max_pool_grad");
  cuda::queueMaxGrad(queue, params_, operand(ins, 0), operand(ins, 1),
                     result(outs, 0));
}

struct AvgPool::State : cuda::Prepared {};
AvgPool::AvgPool(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
AvgPool::~AvgPool() = default;
Status AvgPool::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::checkSizes("avg_pool", params_);
}
void AvgPool::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::Queue queue(*state_->device, stream, "avg_pool");
  const void *from = operand(ins, 0);
  void *to = result(outs, 0);
  const cuda::Windows p(params_);
  cuda::withStored(params_.type, [&](auto element) {
    using T = decltype(element);
    launch(queue, cuda::avgPool<T>,
           cuda::blocksOver(p, p.h, p.w, &cuda::Line::outSize),
           dim3(cuda::kBlock), 0, p,
           cuda::areWhole(params_.channels, {from, to}),
           params_.countIncludePad, static_cast<const T *>(from),
           static_cast<T *>(to));
  });
}

struct AvgPoolGrad::State : cuda::Prepared {};
AvgPoolGrad::AvgPoolGrad(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
AvgPoolGrad::~AvgPoolGrad() = default;
Status AvgPoolGrad::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::checkSizes("avg_pool_grad", params_);
}
void AvgPoolGrad::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::Queue queue(*state_->device, stream, "avg_pool_grad");
  const void *from = operand(ins, 0);
  void *to = result(outs, 0);
  const cuda::Windows p(params_);
  cuda::withStored(params_.type, [&](auto element) {
    using T = decltype(element);
    launch(queue, cuda::avgPoolGrad<T>,
           cuda::blocksOver(p, p.h, p.w, &cuda::Line::inSize),
           dim3(cuda::kBlock), 0, p,
           cuda::areWhole(params_.channels, {from, to}),
           params_.countIncludePad, static_cast<const T *>(from),
           static_cast<T *>(to));
  });
}

} // namespace tmc
