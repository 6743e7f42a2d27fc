//===- Pool.cpp - two-dimensional pooling on cpu --------------------------===//
//
// NHWC: the innermost loop runs over channels, one vector at a time. Forward
// parts are rows of the result; gradient parts are samples, because windows may
// overlap.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Pool.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/Simd.h"

#include <algorithm>
#include <limits>

namespace tmc {

using simd::kWidth;
using simd::V;
using simd::VI;

namespace {

/// The window of one result, cut to the input; and in how many elements it lies
/// in the padded input.
struct Window {
  int64_t h0, w0; // of tap (0, 0), may be negative
  const PoolParams &p;

  Window(const PoolParams &p, int64_t oh, int64_t ow)
      : h0(oh * p.strideHeight - p.padTop), w0(ow * p.strideWidth - p.padLeft),
        p(p) {}

  /// Calls body(element offset of the tap's pixel) in row-major order.
  template <typename F> void each(F &&body) const {
    for (int64_t i = 0; i < p.kernelHeight; ++i) {
      const int64_t h = h0 + i * p.dilationHeight;
      if (h < 0 || h >= p.inHeight)
        continue;
      for (int64_t j = 0; j < p.kernelWidth; ++j) {
        const int64_t w = w0 + j * p.dilationWidth;
        if (w >= 0 && w < p.inWidth)
          body((h * p.inWidth + w) * p.channels);
      }
    }
  }

  /// What an average divides by.
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

V loadSome(const float *p, int64_t count) {
  return count == kWidth ? simd::load(p) : simd::loadPart(p, count);
}
void storeSome(float *p, V v, int64_t count) {
  if (count == kWidth)
    simd::store(p, v);
  else
    simd::storePart(p, v, count);
}

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

/// The same in order of the results, in parallel over samples; dx is zeroed.
template <typename F>
void eachGradient(Stream &stream, const PoolParams &p, float *dx, F &&body) {
  parallelFor(stream, p.batch, [&](int64_t n, int64_t) {
    const int64_t image = p.inHeight * p.inWidth * p.channels;
    std::fill_n(dx + n * image, image, 0.0f);
    for (int64_t oh = 0; oh < p.outHeight; ++oh)
      for (int64_t ow = 0; ow < p.outWidth; ++ow)
        body(Window(p, oh, ow), n * image,
             ((n * p.outHeight + oh) * p.outWidth + ow) * p.channels);
  });
}

const float *floats(const void *p) { return static_cast<const float *>(p); }
float *floats(void *p) { return static_cast<float *>(p); }

} // namespace

struct MaxPool::State {};
MaxPool::MaxPool(const Params &params) : params_(params) {}
MaxPool::~MaxPool() = default;
Status MaxPool::prepare(Device &) { return Status::ok(); }

void MaxPool::run(Stream &stream, In ins, Out outs, void *, bool) {
  const float *x = floats(operand(ins, 0));
  float *y = floats(result(outs, 0));
  const int64_t channels = params_.channels;
  eachResult(stream, params_,
             [&](const Window &window, int64_t in, int64_t out) {
               for (int64_t c = 0; c < channels; c += kWidth) {
                 const int64_t n = std::min<int64_t>(kWidth, channels - c);
                 V top = simd::splat(-std::numeric_limits<float>::infinity());
                 window.each([&](int64_t at) {
                   const V value = loadSome(x + in + at + c, n);
                   // A NaN stays.
                   top = (value > top) | (value != value) ? value : top;
                 });
                 storeSome(y + out + c, top, n);
               }
             });
}

struct MaxPoolGrad::State {};
MaxPoolGrad::MaxPoolGrad(const Params &params) : params_(params) {}
MaxPoolGrad::~MaxPoolGrad() = default;
Status MaxPoolGrad::prepare(Device &) { return Status::ok(); }

void MaxPoolGrad::run(Stream &stream, In ins, Out outs, void *, bool) {
  const float *x = floats(operand(ins, 0));
  const float *dy = floats(operand(ins, 1));
  float *dx = floats(result(outs, 0));
  const int64_t channels = params_.channels;
  eachGradient(
      stream, params_, dx, [&](const Window &window, int64_t in, int64_t out) {
        for (int64_t c = 0; c < channels; c += kWidth) {
          const int64_t n = std::min<int64_t>(kWidth, channels - c);
          V top = simd::splat(-std::numeric_limits<float>::infinity());
          VI first = VI{} - 1, tap{};
          window.each([&](int64_t at) {
            const V value = loadSome(x + in + at + c, n);
            const VI better = (value > top) | (value != value) | (first < 0);
            top = better ? value : top;
            first = better ? tap : first;
            tap += 1;
          });
          const V grad = loadSome(dy + out + c, n);
          tap = VI{};
          window.each([&](int64_t at) {
            float *to = dx + in + at + c;
            storeSome(to, loadSome(to, n) + (first == tap ? grad : V{}), n);
            tap += 1;
          });
        }
      });
}

struct AvgPool::State {};
AvgPool::AvgPool(const Params &params) : params_(params) {}
AvgPool::~AvgPool() = default;
Status AvgPool::prepare(Device &) { return Status::ok(); }

void AvgPool::run(Stream &stream, In ins, Out outs, void *, bool) {
  const float *x = floats(operand(ins, 0));
  float *y = floats(result(outs, 0));
  const int64_t channels = params_.channels;
  eachResult(
      stream, params_, [&](const Window &window, int64_t in, int64_t out) {
        const V divisor = simd::splat(window.divisor());
        for (int64_t c = 0; c < channels; c += kWidth) {
          const int64_t n = std::min<int64_t>(kWidth, channels - c);
          V sum{};
          window.each([&](int64_t at) { sum += loadSome(x + in + at + c, n); });
          storeSome(y + out + c, sum / divisor, n);
        }
      });
}

struct AvgPoolGrad::State {};
AvgPoolGrad::AvgPoolGrad(const Params &params) : params_(params) {}
AvgPoolGrad::~AvgPoolGrad() = default;
Status AvgPoolGrad::prepare(Device &) { return Status::ok(); }

void AvgPoolGrad::run(Stream &stream, In ins, Out outs, void *, bool) {
  const float *dy = floats(operand(ins, 0));
  float *dx = floats(result(outs, 0));
  const int64_t channels = params_.channels;
  eachGradient(stream, params_, dx,
               [&](const Window &window, int64_t in, int64_t out) {
                 const V divisor = simd::splat(window.divisor());
                 for (int64_t c = 0; c < channels; c += kWidth) {
                   const int64_t n = std::min<int64_t>(kWidth, channels - c);
                   const V grad = loadSome(dy + out + c, n) / divisor;
                   window.each([&](int64_t at) {
                     float *to = dx + in + at + c;
                     storeSome(to, loadSome(to, n) + grad, n);
                   });
                 }
               });
}

} // namespace tmc
