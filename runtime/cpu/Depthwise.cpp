//===- Depthwise.cpp - the filter gradient of depthwise windows -----------===//

#include "runtime/cpu/Depthwise.h"

#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/Simd.h"

#include <algorithm>

namespace tmc::cpu {

namespace {

/// Window positions of one row that are summed side by side in registers.
constexpr int kPositions = 4;

/// One row of dy against one row of x: adds to `sums` [positions, channels] at
/// `lanes` channels, for window positions j0 .. j0 + N.
template <int N>
void addRow(const ConvParams &p, const float *x, const float *dy, int64_t j0,
            int64_t lanes, float *sums) {
  const int64_t channels = p.outChannels;
  const bool whole = lanes == simd::kWidth;
  auto read = [&](const float *at) {
    return whole ? simd::load(at) : simd::loadPart(at, lanes);
  };
  simd::V acc[N] = {};
  for (int64_t ow = 0; ow < p.outWidth; ++ow) {
    const simd::V d = read(dy + ow * channels);
    for (int j = 0; j < N; ++j) {
      const int64_t w =
          ow * p.strideWidth - p.padLeft + (j0 + j) * p.dilationWidth;
      if (w >= 0 && w < p.inWidth)
        acc[j] = simd::fma(read(x + w * channels), d, acc[j]);
    }
  }
  for (int j = 0; j < N; ++j) {
    float *sum = sums + (j0 + j) * channels;
    if (whole)
      simd::store(sum, simd::load(sum) + acc[j]);
    else
      simd::storePart(sum, simd::loadPart(sum, lanes) + acc[j], lanes);
  }
}

/// All of one sample, added to `sums` [kernelHeight, kernelWidth, channels].
void addSample(const ConvParams &p, const float *x, const float *dy,
               float *sums) {
  const int64_t channels = p.outChannels;
  for (int64_t oh = 0; oh < p.outHeight; ++oh)
    for (int64_t i = 0; i < p.kernelHeight; ++i) {
      const int64_t h = oh * p.strideHeight - p.padTop + i * p.dilationHeight;
      if (h < 0 || h >= p.inHeight)
        continue;
      const float *from = x + h * p.inWidth * channels;
      const float *grad = dy + oh * p.outWidth * channels;
      float *row = sums + i * p.kernelWidth * channels;
      for (int64_t c = 0; c < channels; c += simd::kWidth) {
        const int64_t lanes = std::min<int64_t>(simd::kWidth, channels - c);
        int64_t j = 0;
        for (; j + kPositions <= p.kernelWidth; j += kPositions)
          addRow<kPositions>(p, from + c, grad + c, j, lanes, row + c);
        for (; j < p.kernelWidth; ++j)
          addRow<1>(p, from + c, grad + c, j, lanes, row + c);
      }
    }
}

} // namespace

void depthwiseGradFilter(Stream &stream, const ConvParams &p, const float *x,
                         const float *dy, float *out, char *scratch,
                         bool accumulate) {
  const int64_t channels = p.outChannels;
  const int64_t positions = p.kernelHeight * p.kernelWidth;
  const int64_t parts = convParts(p), perPart = convPartSamples(p);
  const int64_t xs = p.inHeight * p.inWidth * channels;
  const int64_t ys = p.outHeight * p.outWidth * channels;
  auto sumsOf = [&](int64_t part) {
    return reinterpret_cast<float *>(scratch + part * packedFilterBytes(p));
  };
  parallelFor(stream, parts, [&](int64_t part, int64_t) {
    float *sums = sumsOf(part);
    std::fill_n(sums, positions * channels, 0.0f);
    const int64_t end = std::min(p.batch, (part + 1) * perPart);
    for (int64_t n = part * perPart; n < end; ++n)
      addSample(p, x + n * xs, dy + n * ys, sums);
  });
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t k = 0; k < positions; ++k) {
      float sum = sumsOf(0)[k * channels + c];
      for (int64_t part = 1; part < parts; ++part)
        sum += sumsOf(part)[k * channels + c];
      float &to = out[c * positions + k];
      to = accumulate ? to + sum : sum;
    }
}

} // namespace tmc::cpu
