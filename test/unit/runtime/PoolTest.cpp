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
