//===- Depthwise.cpp - convolutions of single channels --------------------===//

#include "runtime/cpu/Depthwise.h"

#include "runtime/cpu/ConvPack.h"
#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>

namespace tmc::conv {

namespace {

/// Neighbouring results that are computed together in registers.
constexpr int kSide = 4;

/// The common values of a row of results at one vector of channels.
template <typename T> struct Line {
  const Grid &grid;
  const Source<T> &source;
  const T *image;      // of the source, at the channels
  const float *filter; // [window, channels], at the channels
  int64_t y, lanes;
};

/// Results x0 .. x0 + N of a line, to `to` and each `step` elements further on.
template <int N, typename T>
void someResults(const Line<T> &l, int64_t x0, T *to, int64_t step) {
  const Source<T> &s = l.source;
  simd::V acc[N] = {};
  for (const Tap &tap : l.grid.taps) {
    const int64_t h = l.y * l.grid.strideH + tap.h;
    if (h < 0 || h >= s.height)
      continue;
    const simd::V f = loadSome(l.filter + tap.index * s.stride, l.lanes);
    const T *row = l.image + h * s.width * s.stride;
    for (int i = 0; i < N; ++i) {
      const int64_t w = (x0 + i) * l.grid.strideW + tap.w;
      if (w >= 0 && w < s.width)
        acc[i] = simd::fma(loadSome(row + w * s.stride, l.lanes), f, acc[i]);
    }
  }
  for (int i = 0; i < N; ++i)
    storeSome(to + i * step, acc[i], l.lanes);
}

/// to [positions, channels] = from [channels, positions].
template <typename T>
void turn(const T *from, int64_t channels, int64_t positions, float *to) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t k = 0; k < positions; ++k)
      to[k * channels + c] = loadLanes<1>(from + c * positions + k);
}

/// Window positions of one row that are summed together in registers.
constexpr int kPositions = 4;

/// One row of dy against one row of x: adds to `sums` [positions, channels] at
/// `lanes` channels, for window positions j0 .. j0 + N.
template <int N, typename T>
void addRow(const ConvParams &p, const T *x, const T *dy, int64_t j0,
            int64_t lanes, float *sums) {
  const int64_t channels = p.outChannels;
  simd::V acc[N] = {};
  for (int64_t ow = 0; ow < p.outWidth; ++ow) {
    const simd::V d = loadSome(dy + ow * channels, lanes);
    for (int j = 0; j < N; ++j) {
      const int64_t w =
          ow * p.strideWidth - p.padLeft + (j0 + j) * p.dilationWidth;
      if (w >= 0 && w < p.inWidth)
        acc[j] = simd::fma(loadSome(x + w * channels, lanes), d, acc[j]);
    }
  }
  for (int j = 0; j < N; ++j) {
    float *sum = sums + (j0 + j) * channels;
    storeSome(sum, loadSome(sum, lanes) + acc[j], lanes);
  }
}

/// Adds one sample to `sums` [kernelHeight, kernelWidth, channels].
template <typename T>
void addSample(const ConvParams &p, const T *x, const T *dy, float *sums) {
  const int64_t channels = p.outChannels;
  for (int64_t oh = 0; oh < p.outHeight; ++oh)
    for (int64_t i = 0; i < p.kernelHeight; ++i) {
      const int64_t h = oh * p.strideHeight - p.padTop + i * p.dilationHeight;
      if (h < 0 || h >= p.inHeight)
        continue;
      const T *from = x + h * p.inWidth * channels;
      const T *grad = dy + oh * p.outWidth * channels;
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

template <typename T>
void depthwise(Stream &stream, const ConvParams &p, bool gradInput,
               const Windows &windows, const T *from, const void *filter, T *to,
               char *scratch) {
  const int64_t channels = p.groups;
  float *turned = reinterpret_cast<float *>(scratch);
  withFilterElements(p.filter, p.type, [&](auto like) {
    turn(static_cast<const decltype(like) *>(filter), channels,
         p.kernelHeight * p.kernelWidth, turned);
  });
  const Source<T> source{from, gradInput ? p.outHeight : p.inHeight,
                         gradInput ? p.outWidth : p.inWidth, channels,
                         channels};
  const int64_t height = gradInput ? p.inHeight : p.outHeight;
  const int64_t width = gradInput ? p.inWidth : p.outWidth;
  for (const Grid &grid : windows.grids)
    parallelFor(stream, p.batch * grid.height, [&](int64_t row, int64_t) {
      const int64_t n = row / grid.height, y = row % grid.height;
      const T *image = from + n * source.height * source.width * channels;
      T *result = to + ((n * height + grid.firstH + y * grid.stepH) * width +
                        grid.firstW) *
                           channels;
      const int64_t step = grid.stepW * channels;
      for (int64_t c = 0; c < channels; c += simd::kWidth) {
        const int64_t lanes = std::min<int64_t>(simd::kWidth, channels - c);
        const Line<T> line{grid, source, image + c, turned + c, y, lanes};
        int64_t at = 0;
        for (; at + kSide <= grid.width; at += kSide)
          someResults<kSide>(line, at, result + c + at * step, step);
        for (; at < grid.width; ++at)
          someResults<1>(line, at, result + c + at * step, step);
      }
    });
}

template <typename T>
void depthwiseGradFilter(Stream &stream, const ConvParams &p, const T *x,
                         const T *dy, float *out, char *scratch,
                         bool accumulate) {
  const int64_t channels = p.outChannels;
  const int64_t positions = p.kernelHeight * p.kernelWidth;
  const int64_t parts = depthwiseParts(p);
  const int64_t perPart = depthwisePartSamples(p);
  const int64_t xs = p.inHeight * p.inWidth * channels;
  const int64_t ys = p.outHeight * p.outWidth * channels;
  auto sumsOf = [&](int64_t part) {
    return reinterpret_cast<float *>(scratch + part * packedBytes(p, false));
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

#define TMC_INSTANTIATE(T)                                                     \
  template void depthwise(Stream &, const ConvParams &, bool, const Windows &, \
                          const T *, const void *, T *, char *);               \
  template void depthwiseGradFilter(Stream &, const ConvParams &, const T *,   \
                                    const T *, float *, char *, bool);
TMC_INSTANTIATE(float)
TMC_INSTANTIATE(bf16)
TMC_INSTANTIATE(f16)
#undef TMC_INSTANTIATE

} // namespace tmc::conv
