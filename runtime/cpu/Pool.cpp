//===- Pool.cpp - two-dimensional pooling on cpu --------------------------===//
//
// NHWC: the innermost loop runs over channels, one vector at a time. Parts of a
// forward pass are rows of the result; parts of a gradient are samples, because
// windows may overlap. An f32 gradient is added up in place. A narrow one is
// added up in scratch, for some channels of an image at a time, and rounded
// from there.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Pool.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>
#include <limits>

namespace tmc {

using simd::kWidth;
using simd::V;
using simd::VI;

namespace {

/// The window of one result, cut to the input, and the divisor of its average.
struct Window {
  int64_t h0, w0; // of tap (0, 0), may be negative
  const PoolParams &p;

  Window(const PoolParams &p, int64_t oh, int64_t ow)
      : h0(oh * p.strideHeight - p.padTop), w0(ow * p.strideWidth - p.padLeft),
        p(p) {}

  /// Calls body(the tap's pixel in its image) in row-major order.
  template <typename F> void each(F &&body) const {
    for (int64_t i = 0; i < p.kernelHeight; ++i) {
      const int64_t h = h0 + i * p.dilationHeight;
      if (h < 0 || h >= p.inHeight)
        continue;
      for (int64_t j = 0; j < p.kernelWidth; ++j) {
        const int64_t w = w0 + j * p.dilationWidth;
        if (w >= 0 && w < p.inWidth)
          body(h * p.inWidth + w);
      }
    }
  }

  /// The divisor of an average.
  float divisor() const {
    int64_t count = 0;
    if (p.countIncludePad) {
      // Taps beyond the declared padding (a last window that was rounded up)
      // don't count.
      for (int64_t i = 0; i < p.kernelHeight; ++i)
        for (int64_t j = 0; j < p.kernelWidth; ++j)
          count += h0 + i * p.dilationHeight < p.inHeight + p.padBottom &&
                   w0 + j * p.dilationWidth < p.inWidth + p.padRight;
    } else {
      each([&](int64_t) { ++count; });
    }
    return float(std::max<int64_t>(count, 1));
  }
};

/// Runs body(window, input of the sample, element offset of the result) for
/// each result, in parallel over rows of results.
template <typename F>
void eachResult(Stream &stream, const PoolParams &p, F &&body) {
  parallelFor(stream, p.batch * p.outHeight, [&](int64_t row, int64_t) {
    const int64_t n = row / p.outHeight, oh = row % p.outHeight;
    for (int64_t ow = 0; ow < p.outWidth; ++ow)
      body(Window(p, oh, ow), n * p.inHeight * p.inWidth * p.channels,
           (row * p.outWidth + ow) * p.channels);
  });
}

/// The place of the gradient of one window for some channels: the sums of a
/// pixel are at sums + pixel * stride.
struct Spread {
  int64_t in, out; // offsets of the sample's and of the result's channels
  int64_t lanes;
  float *sums;
  int64_t stride;
};

/// For each result in order, in parallel over samples: body(window) returns a
/// function of a Spread, which is called for all channels. scratch:
/// poolGradScratchCap().
template <typename T, typename F>
void eachGradient(Stream &stream, const PoolParams &p, T *dx, void *scratch,
                  F &&body) {
  constexpr bool isRounded = !std::is_same_v<T, float>;
  const int64_t pixels = p.inHeight * p.inWidth;
  const int64_t some = isRounded ? kPoolChannels : p.channels;
  parallelFor(
      stream, p.batch, poolGradWorkers(p), [&](int64_t n, int64_t worker) {
        const int64_t sample = n * pixels * p.channels;
        for (int64_t c0 = 0; c0 < p.channels; c0 += some) {
          const int64_t channels = std::min(some, p.channels - c0);
          float *sums;
          if constexpr (isRounded)
            sums = static_cast<float *>(scratch) +
                   worker * poolGradSumBytes(p) / 4;
          else
            sums = dx + sample;
          std::fill_n(sums, pixels * some, 0.0f);
          for (int64_t oh = 0; oh < p.outHeight; ++oh)
            for (int64_t ow = 0; ow < p.outWidth; ++ow) {
              const auto add = body(Window(p, oh, ow));
              const int64_t out =
                  ((n * p.outHeight + oh) * p.outWidth + ow) * p.channels + c0;
              for (int64_t c = 0; c < channels; c += kWidth)
                add(Spread{sample + c0 + c, out + c,
                           std::min<int64_t>(kWidth, channels - c), sums + c,
                           some});
            }
          if constexpr (isRounded)
            for (int64_t pixel = 0; pixel < pixels; ++pixel)
              narrowRow(sums + pixel * some, channels,
                        dx + sample + pixel * p.channels + c0);
        }
      });
}

template <typename T> const T *typed(const void *p) {
  return static_cast<const T *>(p);
}
template <typename T> T *typed(void *p) { return static_cast<T *>(p); }

template <typename T>
void maxPool(Stream &stream, const PoolParams &p, const T *x, T *y) {
  eachResult(stream, p, [&](const Window &window, int64_t in, int64_t out) {
    for (int64_t c = 0; c < p.channels; c += kWidth) {
      const int64_t n = std::min<int64_t>(kWidth, p.channels - c);
      V top = simd::splat(-std::numeric_limits<float>::infinity());
      window.each([&](int64_t pixel) {
        const V value = loadSome(x + in + pixel * p.channels + c, n);
        // A NaN stays a NaN.
        top = (value > top) | (value != value) ? value : top;
      });
      storeSome(y + out + c, top, n);
    }
  });
}

template <typename T>
void maxPoolGrad(Stream &stream, const PoolParams &p, const T *x, const T *dy,
                 T *dx, void *scratch) {
  eachGradient(stream, p, dx, scratch, [&](const Window &window) {
    return [=, &p](const Spread &s) {
      V top = simd::splat(-std::numeric_limits<float>::infinity());
      VI first = VI{} - 1, tap{};
      window.each([&](int64_t pixel) {
        const V value = loadSome(x + s.in + pixel * p.channels, s.lanes);
        const VI better = (value > top) | (value != value) | (first < 0);
        top = better ? value : top;
        first = better ? tap : first;
        tap += 1;
      });
      const V grad = loadSome(dy + s.out, s.lanes);
      tap = VI{};
      window.each([&](int64_t pixel) {
        float *to = s.sums + pixel * s.stride;
        storeSome(to, loadSome(to, s.lanes) + (first == tap ? grad : V{}),
                  s.lanes);
        tap += 1;
      });
    };
  });
}

template <typename T>
void avgPool(Stream &stream, const PoolParams &p, const T *x, T *y) {
  eachResult(stream, p, [&](const Window &window, int64_t in, int64_t out) {
    const V divisor = simd::splat(window.divisor());
    for (int64_t c = 0; c < p.channels; c += kWidth) {
      const int64_t n = std::min<int64_t>(kWidth, p.channels - c);
      V sum{};
      window.each([&](int64_t pixel) {
        sum += loadSome(x + in + pixel * p.channels + c, n);
      });
      storeSome(y + out + c, sum / divisor, n);
    }
  });
}

template <typename T>
void avgPoolGrad(Stream &stream, const PoolParams &p, const T *dy, T *dx,
                 void *scratch) {
  eachGradient(stream, p, dx, scratch, [&](const Window &window) {
    const V divisor = simd::splat(window.divisor());
    return [=](const Spread &s) {
      const V grad = loadSome(dy + s.out, s.lanes) / divisor;
      window.each([&](int64_t pixel) {
        float *to = s.sums + pixel * s.stride;
        storeSome(to, loadSome(to, s.lanes) + grad, s.lanes);
      });
    };
  });
}

} // namespace

struct MaxPool::State {};
MaxPool::MaxPool(const Params &params) : params_(params) {}
MaxPool::~MaxPool() = default;
Status MaxPool::prepare(Device &) { return Status::ok(); }

void MaxPool::run(Stream &stream, In ins, Out outs, void *, bool) {
  withFloats(params_.type, [&](auto like) {
    using T = decltype(like);
    maxPool(stream, params_, typed<T>(operand(ins, 0)),
            typed<T>(result(outs, 0)));
  });
}

struct MaxPoolGrad::State {};
MaxPoolGrad::MaxPoolGrad(const Params &params) : params_(params) {}
MaxPoolGrad::~MaxPoolGrad() = default;
Status MaxPoolGrad::prepare(Device &) {
  return cpu::requireScratch("max_pool_grad", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void MaxPoolGrad::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  withFloats(params_.type, [&](auto like) {
    using T = decltype(like);
    maxPoolGrad(stream, params_, typed<T>(operand(ins, 0)),
                typed<T>(operand(ins, 1)), typed<T>(result(outs, 0)), scratch);
  });
}

struct AvgPool::State {};
AvgPool::AvgPool(const Params &params) : params_(params) {}
AvgPool::~AvgPool() = default;
Status AvgPool::prepare(Device &) { return Status::ok(); }

void AvgPool::run(Stream &stream, In ins, Out outs, void *, bool) {
  withFloats(params_.type, [&](auto like) {
    using T = decltype(like);
    avgPool(stream, params_, typed<T>(operand(ins, 0)),
            typed<T>(result(outs, 0)));
  });
}

struct AvgPoolGrad::State {};
AvgPoolGrad::AvgPoolGrad(const Params &params) : params_(params) {}
AvgPoolGrad::~AvgPoolGrad() = default;
Status AvgPoolGrad::prepare(Device &) {
  return cpu::requireScratch("avg_pool_grad", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void AvgPoolGrad::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  withFloats(params_.type, [&](auto like) {
    using T = decltype(like);
    avgPoolGrad(stream, params_, typed<T>(operand(ins, 0)),
                typed<T>(result(outs, 0)), scratch);
  });
}

} // namespace tmc
