//===- PoolTest.cpp - pools against naive ones ----------------------------===//

#include "Typed.h"

#include "runtime/kernels/Pool.h"

#include <array>

using namespace tmc;
using namespace tmc::test;

namespace {

PoolParams poolParams(int64_t kernel, int64_t stride, int64_t pad,
                      int64_t channels, bool include) {
  PoolParams p{};
  p.type = DType::F32;
  p.batch = 2;
  p.inHeight = 9;
  p.inWidth = 7;
  p.channels = channels;
  p.kernelHeight = p.kernelWidth = kernel;
  p.strideHeight = p.strideWidth = stride;
  p.padTop = p.padLeft = p.padBottom = p.padRight = pad;
  p.dilationHeight = p.dilationWidth = 1;
  p.outHeight = outSize(9, pad, pad, kernel, 1, stride);
  p.outWidth = outSize(7, pad, pad, kernel, 1, stride);
  p.countIncludePad = include;
  return p;
}

/// Calls body(y index, x indices of the window in row-major order).
template <typename F> void eachWindow(const PoolParams &p, F &&body) {
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t oh = 0; oh < p.outHeight; ++oh)
      for (int64_t ow = 0; ow < p.outWidth; ++ow)
        for (int64_t c = 0; c < p.channels; ++c) {
          std::vector<int64_t> taps;
          for (int64_t i = 0; i < p.kernelHeight; ++i)
            for (int64_t j = 0; j < p.kernelWidth; ++j) {
              const int64_t h = oh * p.strideHeight - p.padTop + i;
              const int64_t w = ow * p.strideWidth - p.padLeft + j;
              if (h >= 0 && h < p.inHeight && w >= 0 && w < p.inWidth)
                taps.push_back(
                    ((n * p.inHeight + h) * p.inWidth + w) * p.channels + c);
            }
          body(((n * p.outHeight + oh) * p.outWidth + ow) * p.channels + c,
               taps);
        }
}

} // namespace

TEST(Pool, MaximumAndItsGradient) {
  for (int64_t channels : {1, 16, 20})
    for (auto [kernel, stride, pad] :
         {std::array<int64_t, 3>{3, 2, 1}, {2, 2, 0}, {3, 1, 1}}) {
      const PoolParams p = poolParams(kernel, stride, pad, channels, false);
      const int64_t xs = 2 * 9 * 7 * channels;
      const int64_t ys = 2 * p.outHeight * p.outWidth * channels;
      Floats x = randomFloats(xs, 1), dy = randomFloats(ys, 2);
      for (int64_t i = 0; i < xs; i += 3)
        x[i] = 1.25f; // ties: the first one wins
      Floats y(ys), dx(xs), wantY(ys), wantX(xs);
      eachWindow(p, [&](int64_t out, const std::vector<int64_t> &taps) {
        int64_t best = taps[0];
        for (int64_t tap : taps)
          best = x[tap] > x[best] ? tap : best;
        wantY[out] = x[best];
        wantX[best] += dy[out];
      });
      runKernel<MaxPool>(2, p, {x}, {y});
      EXPECT_TRUE(y.sameBits(wantY));
      runKernel<MaxPoolGrad>(2, p, {x, dy}, {dx});
      for (int64_t i = 0; i < xs; ++i)
        ASSERT_NEAR(dx[i], wantX[i], 1e-5) << i;
    }
}

TEST(Pool, AverageAndItsGradient) {
  for (bool include : {false, true})
    for (int64_t channels : {1, 16, 20}) {
      const PoolParams p = poolParams(3, 2, 1, channels, include);
      const int64_t xs = 2 * 9 * 7 * channels;
      const int64_t ys = 2 * p.outHeight * p.outWidth * channels;
      Floats x = randomFloats(xs, 1), dy = randomFloats(ys, 2), y(ys), dx(xs);
      std::vector<double> wantY(size_t(ys), 0.0), wantX(size_t(xs), 0.0);
      eachWindow(p, [&](int64_t out, const std::vector<int64_t> &taps) {
        const double divisor = include ? 9 : double(taps.size());
        for (int64_t tap : taps) {
          wantY[size_t(out)] += x[tap] / divisor;
          wantX[size_t(tap)] += dy[out] / divisor;
        }
      });
      runKernel<AvgPool>(2, p, {x}, {y});
      expectClose(y.get(), wantY, 1e-6, "y");
      runKernel<AvgPoolGrad>(2, p, {dy}, {dx});
      expectClose(dx.get(), wantX, 1e-6, "dx");
    }
}

/// Narrow numbers: what f32 gives of the widened ones, rounded once, though
/// windows overlap.
TEST(Pool, RoundsNarrowNumbersOnce) {
  for (DType type : {DType::BF16, DType::F16})
    for (int64_t channels : {1, 16, 20, 50})
      for (auto [kernel, stride, pad] :
           {std::array<int64_t, 3>{3, 2, 1}, {2, 2, 0}, {3, 1, 1}}) {
        const PoolParams wide =
            poolParams(kernel, stride, pad, channels, pad == 1);
        PoolParams p = wide;
        p.type = type;
        const int64_t xs = 2 * 9 * 7 * channels;
        const int64_t ys = 2 * p.outHeight * p.outWidth * channels;
        Typed x(type, randomFloats(xs, 1)), dy(type, randomFloats(ys, 2));
        Floats top(ys), dtop(xs), mean(ys), dmean(xs);
        runKernel<MaxPool>(1, wide, {x.values}, {top});
        runKernel<MaxPoolGrad>(1, wide, {x.values, dy.values}, {dtop});
        runKernel<AvgPool>(1, wide, {x.values}, {mean});
        runKernel<AvgPoolGrad>(1, wide, {dy.values}, {dmean});
        for (int threads : {1, 2}) {
          Typed y(type, Floats(ys, NAN)), dx(type, Floats(xs, NAN));
          runKernel<MaxPool>(threads, p, {x}, {y});
          EXPECT_TRUE(y.bytes.sameBits(Typed(type, top).bytes));
          runKernel<MaxPoolGrad>(threads, p, {x, dy}, {dx});
          EXPECT_TRUE(dx.bytes.sameBits(Typed(type, dtop).bytes));
          runKernel<AvgPool>(threads, p, {x}, {y});
          EXPECT_TRUE(y.bytes.sameBits(Typed(type, mean).bytes));
          runKernel<AvgPoolGrad>(threads, p, {dy}, {dx});
          EXPECT_TRUE(dx.bytes.sameBits(Typed(type, dmean).bytes));
        }
      }
}

namespace {

/// The gradient of a maximum by the rule: a window's first largest element in
/// row-major order, where a NaN is larger than all numbers.
Floats naiveMaxGradient(const PoolParams &p, const Floats &x,
                        const Floats &dy) {
  Floats dx(x.size());
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t oh = 0; oh < p.outHeight; ++oh)
      for (int64_t ow = 0; ow < p.outWidth; ++ow)
        for (int64_t c = 0; c < p.channels; ++c) {
          int64_t best = -1;
          for (int64_t tap = 0; tap < p.kernelHeight * p.kernelWidth; ++tap) {
            const int64_t h = oh * p.strideHeight - p.padTop +
                              tap / p.kernelWidth * p.dilationHeight;
            const int64_t w = ow * p.strideWidth - p.padLeft +
                              tap % p.kernelWidth * p.dilationWidth;
            if (h < 0 || h >= p.inHeight || w < 0 || w >= p.inWidth)
              continue;
            const int64_t at =
                ((n * p.inHeight + h) * p.inWidth + w) * p.channels + c;
            if (best < 0 || x[at] > x[best] || x[at] != x[at])
              best = at;
          }
          if (best >= 0)
            dx[best] +=
                dy[((n * p.outHeight + oh) * p.outWidth + ow) * p.channels + c];
        }
  return dx;
}

PoolParams sizedPool(int64_t height, int64_t width, int64_t channels,
                     int64_t kernel, int64_t stride, int64_t pad,
                     int64_t dilation) {
  PoolParams p = poolParams(kernel, stride, pad, channels, false);
  p.inHeight = height;
  p.inWidth = width;
  p.dilationHeight = p.dilationWidth = dilation;
  p.outHeight = outSize(height, pad, pad, kernel, dilation, stride);
  p.outWidth = outSize(width, pad, pad, kernel, dilation, stride);
  return p;
}

} // namespace

/// On cuda: several tiles of 16 x 16, groups of vectors, smaller tiles, and
/// windows of too many taps for a tile.
TEST(Pool, GradientOfAMaximumOverManyTiles) {
  const PoolParams cases[] = {
      sizedPool(37, 20, 8, 3, 2, 1, 1),  sizedPool(17, 33, 72, 2, 2, 0, 1),
      sizedPool(20, 19, 8, 3, 1, 2, 2),  sizedPool(18, 18, 16, 2, 3, 0, 1),
      sizedPool(24, 18, 64, 7, 1, 3, 1), sizedPool(20, 21, 4, 17, 3, 8, 1),
  };
  for (const PoolParams &p : cases) {
    SCOPED_TRACE(std::to_string(p.inHeight) + " x " +
                 std::to_string(p.inWidth) + ", " +
                 std::to_string(p.kernelHeight) + " taps");
    const int64_t xs = p.batch * p.inHeight * p.inWidth * p.channels;
    const int64_t ys = p.batch * p.outHeight * p.outWidth * p.channels;
    Floats x = randomFloats(xs, 1), dy = randomFloats(ys, 2), dx(xs);
    for (int64_t i = 0; i < xs; i += 3)
      x[i] = 0.5f;
    for (int64_t i = 0; i < xs; i += 101)
      x[i] = NAN;
    for (int64_t i = 0; i < xs; i += 7)
      x[i] = -INFINITY;
    const Floats want = naiveMaxGradient(p, x, dy);
    runKernel<MaxPoolGrad>(2, p, {x, dy}, {dx});
    for (int64_t i = 0; i < xs; ++i)
      ASSERT_NEAR(dx[i], want[i], 1e-4) << i;
  }
}

/// Vectors of channels are read whole only at multiples of 16 bytes.
TEST(Pool, GivesTheSameBitsAtEveryAlignment) {
  for (DType type : {DType::F32, DType::BF16, DType::F16})
    for (int64_t channels : {8, 24, 13}) {
      PoolParams p = sizedPool(19, 18, channels, 3, 2, 1, 1);
      p.type = type;
      const int64_t xs = p.batch * p.inHeight * p.inWidth * p.channels;
      const int64_t ys = p.batch * p.outHeight * p.outWidth * p.channels;
      const Typed x(type, randomFloats(xs, 1)), dy(type, randomFloats(ys, 2));
      const Typed y(type, Floats(ys)), dx(type, Floats(xs));
      const Shifted x2(x), dy2(dy), y2(y), dx2(dx);
      runKernel<MaxPool>(1, p, {x}, {y});
      runKernel<MaxPool>(1, p, {x2.get()}, {y2.get()});
      EXPECT_TRUE(y2.sameBits(y));
      runKernel<MaxPoolGrad>(1, p, {x, dy}, {dx});
      runKernel<MaxPoolGrad>(1, p, {x2.get(), dy2.get()}, {dx2.get()});
      EXPECT_TRUE(dx2.sameBits(dx));
      runKernel<AvgPool>(1, p, {x}, {y});
      runKernel<AvgPool>(1, p, {x2.get()}, {y2.get()});
      EXPECT_TRUE(y2.sameBits(y));
      runKernel<AvgPoolGrad>(1, p, {dy}, {dx});
      runKernel<AvgPoolGrad>(1, p, {dy2.get()}, {dx2.get()});
      EXPECT_TRUE(dx2.sameBits(dx));
    }
}
