//===- Depthwise.cpp - convolutions of single channels --------------------===//

#include "runtime/cpu/Depthwise.h"

#include "runtime/cpu/ConvPack.h"
#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>
#include <type_traits>

namespace tmc::conv {

namespace {

/// Neighbouring results that are computed together in registers.
constexpr int kSide = simd::kWidth >= 16 ? 8 : 4;

/// Calls f(std::integral_constant<int, n>) for a count of neighbouring taps for
/// which there is code of its own, or with 0.
template <typename F> void withTaps(int64_t count, F &&f) {
  switch (count) {
  case 1:
    return f(std::integral_constant<int, 1>());
  case 2:
    return f(std::integral_constant<int, 2>());
  case 3:
    return f(std::integral_constant<int, 3>());
  case 4:
    return f(std::integral_constant<int, 4>());
  case 5:
    return f(std::integral_constant<int, 5>());
  case 7:
    return f(std::integral_constant<int, 7>());
  default:
    return f(std::integral_constant<int, 0>());
  }
}

/// The taps of a grid as rows of `across` taps side by side; 0: they aren't.
int64_t tapsAcross(const Grid &grid) {
  const int64_t taps = int64_t(grid.taps.size());
  int64_t across = 0;
  while (across < taps && grid.taps[size_t(across)].h == grid.taps[0].h &&
         grid.taps[size_t(across)].w == grid.taps[0].w + across)
    ++across;
  const bool isOneRow =
      across < taps && grid.taps[size_t(across)].h == grid.taps[0].h;
  return isOneRow ? 0 : across;
}

/// The common values of a row of results at one vector of channels.
template <typename T> struct Line {
  const Grid &grid;
  const Source<T> &source;
  const T *image;      // of the source, at the channels
  const float *filter; // [window, channels], at the channels
  int64_t y;
};

/// Results x0 .. x0 + count of a line, count <= kSide, to `to` and each `step`
/// elements further on. Each pixel is loaded once for all of its windows.
template <int Across, int Stride, typename L, typename T>
void someResults(const Line<T> &l, L lanes, int64_t x0, int64_t count, T *to,
                 int64_t step) {
  const Source<T> &s = l.source;
  const int64_t taps = int64_t(l.grid.taps.size());
  simd::V acc[kSide] = {};
  for (int64_t t = 0; t < taps; t += Across) {
    const Tap *tap = &l.grid.taps[size_t(t)];
    const int64_t h = l.y * l.grid.strideH + tap->h;
    if (h < 0 || h >= s.height)
      continue;
    simd::V filter[Across];
#pragma GCC unroll 8
    for (int j = 0; j < Across; ++j)
      filter[j] = lanes.load(l.filter + tap[j].index * s.stride);
    const T *row = l.image + h * s.width * s.stride;
    const int64_t first = x0 * Stride + tap->w;
#pragma GCC unroll 32
    for (int p = 0; p < (kSide - 1) * Stride + Across; ++p) {
      const int64_t w = first + p;
      if (w < 0 || w >= s.width)
        continue;
      const simd::V x = lanes.load(row + w * s.stride);
#pragma GCC unroll 8
      for (int i = 0; i < kSide; ++i)
        if (p >= i * Stride && p < i * Stride + Across)
          acc[i] = simd::fma(x, filter[p - i * Stride], acc[i]);
    }
  }
  for (int i = 0; i < count; ++i)
    lanes.store(to + i * step, acc[i]);
}

/// One result of a line with any taps.
template <typename L, typename T>
void oneResult(const Line<T> &l, L lanes, int64_t x0, T *to) {
  const Source<T> &s = l.source;
  simd::V acc = {};
  for (const Tap &tap : l.grid.taps) {
    const int64_t h = l.y * l.grid.strideH + tap.h;
    const int64_t w = x0 * l.grid.strideW + tap.w;
    if (h >= 0 && h < s.height && w >= 0 && w < s.width)
      acc = simd::fma(lanes.load(l.image + (h * s.width + w) * s.stride),
                      lanes.load(l.filter + tap.index * s.stride), acc);
  }
  lanes.store(to, acc);
}

/// All results of a line, `step` elements apart.
template <int Across, int Stride, typename L, typename T>
void lineOfResults(const Line<T> &l, L lanes, T *to, int64_t step) {
  if constexpr (Across == 0)
    for (int64_t x = 0; x < l.grid.width; ++x)
      oneResult(l, lanes, x, to + x * step);
  else
    for (int64_t x = 0; x < l.grid.width; x += kSide)
      someResults<Across, Stride>(l, lanes, x,
                                  std::min<int64_t>(kSide, l.grid.width - x),
                                  to + x * step, step);
}

/// to [positions, channels] = from [channels, positions].
template <typename T>
void turn(const T *from, int64_t channels, int64_t positions, float *to) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t k = 0; k < positions; ++k)
      to[k * channels + c] = loadLanes<1>(from + c * positions + k);
}

/// Window positions of one row that are summed together in registers, if the
/// window has no code of its own.
constexpr int kPositions = 4;

/// One row of dy against one row of x: adds to `sums` [positions, channels],
/// for window positions j0 .. j0 + N.
template <int N, typename L, typename T>
void addRow(const ConvParams &p, L lanes, const T *x, const T *dy, int64_t j0,
            float *sums) {
  const int64_t channels = p.outChannels;
  simd::V acc[N] = {};
  for (int64_t ow = 0; ow < p.outWidth; ++ow) {
    const simd::V d = lanes.load(dy + ow * channels);
    for (int j = 0; j < N; ++j) {
      const int64_t w =
          ow * p.strideWidth - p.padLeft + (j0 + j) * p.dilationWidth;
      if (w >= 0 && w < p.inWidth)
        acc[j] = simd::fma(lanes.load(x + w * channels), d, acc[j]);
    }
  }
  for (int j = 0; j < N; ++j) {
    float *sum = sums + (j0 + j) * channels;
    lanes.store(sum, lanes.load(sum) + acc[j]);
  }
}

/// The same for a whole window of `Across` neighbours. The pixels under it are
/// in registers, zeros beside the image; each is loaded once.
template <int Across, int Stride, typename L, typename T>
void addWindow(const ConvParams &p, L lanes, const T *x, const T *dy,
               float *sums) {
  const int64_t channels = p.outChannels;
  simd::V acc[Across] = {}, pixels[Across] = {};
  int64_t next = -p.padLeft;
  auto pixel = [&] {
    const bool isInside = next >= 0 && next < p.inWidth;
    const simd::V v = isInside ? lanes.load(x + next * channels) : simd::V{};
    ++next;
    return v;
  };
#pragma GCC unroll 8
  for (int j = Stride; j < Across; ++j)
    pixels[j] = pixel();
  for (int64_t ow = 0; ow < p.outWidth; ++ow) {
#pragma GCC unroll 8
    for (int j = 0; j < Across; ++j)
      pixels[j] = j + Stride < Across ? pixels[j + Stride] : pixel();
    const simd::V d = lanes.load(dy + ow * channels);
#pragma GCC unroll 8
    for (int j = 0; j < Across; ++j)
      acc[j] = simd::fma(pixels[j], d, acc[j]);
  }
#pragma GCC unroll 8
  for (int j = 0; j < Across; ++j) {
    float *sum = sums + j * channels;
    lanes.store(sum, lanes.load(sum) + acc[j]);
  }
}

/// Adds one sample to `sums` [kernelHeight, kernelWidth, channels].
template <int Across, int Stride, typename T>
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
      eachVector(channels, [&](auto lanes, int64_t c) {
        if constexpr (Across != 0)
          return addWindow<Across, Stride>(p, lanes, from + c, grad + c,
                                           row + c);
        int64_t j = 0;
        for (; j + kPositions <= p.kernelWidth; j += kPositions)
          addRow<kPositions>(p, lanes, from + c, grad + c, j, row + c);
        for (; j < p.kernelWidth; ++j)
          addRow<1>(p, lanes, from + c, grad + c, j, row + c);
      });
    }
}

/// Calls f with `across` and `stride` as integral constants: 0 and 1 if there
/// is no code for them.
template <typename F> void withWindow(int64_t across, int64_t stride, F &&f) {
  using std::integral_constant;
  withTaps(stride <= 2 ? across : 0, [&](auto n) {
    // A stride of 2 is that of a forward pass and a filter gradient, whose
    // windows are odd.
    if constexpr (n % 2 == 1 && n > 1)
      if (stride == 2)
        return f(n, integral_constant<int, 2>());
    if (stride == 2)
      return f(integral_constant<int, 0>(), integral_constant<int, 1>());
    f(n, integral_constant<int, 1>());
  });
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
    withWindow(tapsAcross(grid), grid.strideW, [&](auto across, auto stride) {
      parallelFor(stream, p.batch * grid.height, [&](int64_t row, int64_t) {
        const int64_t n = row / grid.height, y = row % grid.height;
        const T *image = from + n * source.height * source.width * channels;
        T *result = to + ((n * height + grid.firstH + y * grid.stepH) * width +
                          grid.firstW) *
                             channels;
        eachVector(channels, [&](auto lanes, int64_t c) {
          const Line<T> line{grid, source, image + c, turned + c, y};
          lineOfResults<across(), stride()>(line, lanes, result + c,
                                            grid.stepW * channels);
        });
      });
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
  const int64_t across = p.dilationWidth == 1 ? p.kernelWidth : 0;
  withWindow(across, p.strideWidth, [&](auto window, auto stride) {
    parallelFor(stream, parts, [&](int64_t part, int64_t) {
      float *sums = sumsOf(part);
      std::fill_n(sums, positions * channels, 0.0f);
      const int64_t end = std::min(p.batch, (part + 1) * perPart);
      for (int64_t n = part * perPart; n < end; ++n)
        addSample<window(), stride()>(p, x + n * xs, dy + n * ys, sums);
    });
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
