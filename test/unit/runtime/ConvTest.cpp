//===- ConvTest.cpp - convolutions and pools against naive ones -----------===//

#include "Testing.h"

#include "runtime/kernels/Conv.h"
#include "runtime/kernels/Pool.h"

using namespace tmc;
using namespace tmc::test;

namespace {

int64_t outSize(int64_t in, int64_t low, int64_t high, int64_t kernel,
                int64_t dilation, int64_t stride) {
  return (in + low + high - (kernel - 1) * dilation - 1) / stride + 1;
}

ConvParams convParams(int64_t batch, int64_t size, int64_t in, int64_t out,
                      int64_t kernel, int64_t stride, int64_t pad,
                      int64_t dilation = 1, int64_t groups = 1) {
  ConvParams p{};
  p.type = DType::F32;
  p.batch = batch;
  p.inHeight = size;
  p.inWidth = size + 1;
  p.inChannels = in;
  p.outChannels = out;
  p.kernelHeight = p.kernelWidth = kernel;
  p.strideHeight = p.strideWidth = stride;
  p.padTop = p.padLeft = pad;
  p.padBottom = pad;
  p.padRight = pad;
  p.dilationHeight = p.dilationWidth = dilation;
  p.groups = groups;
  p.outHeight = outSize(p.inHeight, pad, pad, kernel, dilation, stride);
  p.outWidth = outSize(p.inWidth, pad, pad, kernel, dilation, stride);
  return p;
}

/// Calls body(x index, filter index, y index) for each multiply-add.
template <typename F> void eachProduct(const ConvParams &p, F &&body) {
  const int64_t ci = p.inChannels / p.groups, co = p.outChannels / p.groups;
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t oh = 0; oh < p.outHeight; ++oh)
      for (int64_t ow = 0; ow < p.outWidth; ++ow)
        for (int64_t i = 0; i < p.kernelHeight; ++i)
          for (int64_t j = 0; j < p.kernelWidth; ++j) {
            const int64_t h =
                oh * p.strideHeight - p.padTop + i * p.dilationHeight;
            const int64_t w =
                ow * p.strideWidth - p.padLeft + j * p.dilationWidth;
            if (h < 0 || h >= p.inHeight || w < 0 || w >= p.inWidth)
              continue;
            for (int64_t o = 0; o < p.outChannels; ++o)
              for (int64_t c = 0; c < ci; ++c)
                body(((n * p.inHeight + h) * p.inWidth + w) * p.inChannels +
                         o / co * ci + c,
                     ((o * ci + c) * p.kernelHeight + i) * p.kernelWidth + j,
                     ((n * p.outHeight + oh) * p.outWidth + ow) *
                             p.outChannels +
                         o);
          }
}

void checkConv(ConvParams p) {
  SCOPED_TRACE(std::to_string(p.inChannels) + " to " +
               std::to_string(p.outChannels) + " channels in " +
               std::to_string(p.groups) + " groups, window " +
               std::to_string(p.kernelHeight));
  const int64_t xs = p.batch * p.inHeight * p.inWidth * p.inChannels;
  const int64_t ys = p.batch * p.outHeight * p.outWidth * p.outChannels;
  const int64_t fs = p.outChannels * (p.inChannels / p.groups) *
                     p.kernelHeight * p.kernelWidth;
  Floats x = randomFloats(xs, 1), f = randomFloats(fs, 2),
         dy = randomFloats(ys, 3), bias = randomFloats(p.outChannels, 4);
  std::vector<double> y(size_t(ys), 0.0), dx(size_t(xs), 0.0),
      df(size_t(fs), 0.0);
  eachProduct(p, [&](int64_t xi, int64_t fi, int64_t yi) {
    y[size_t(yi)] += double(x[xi]) * f[fi];
    dx[size_t(xi)] += double(dy[yi]) * f[fi];
    df[size_t(fi)] += double(dy[yi]) * x[xi];
  });
  const double tolerance = 1e-4;
  Floats gy(ys), gx(xs), gf(fs, 3.0f), gy2(ys), gx2(xs), gf2(fs);
  runKernel<Conv>(1, p, {x, f}, {gy});
  expectClose(gy.get(), y, tolerance, "y");
  runKernel<ConvGradInput>(1, p, {dy, f}, {gx});
  expectClose(gx.get(), dx, tolerance, "dx");
  runKernel<ConvGradFilter>(1, p, {x, dy}, {gf});
  expectClose(gf.get(), df, tolerance, "dfilter");
  runKernel<Conv>(2, p, {x, f}, {gy2});
  runKernel<ConvGradInput>(2, p, {dy, f}, {gx2});
  runKernel<ConvGradFilter>(2, p, {x, dy}, {gf2});
  EXPECT_TRUE(gy.sameBits(gy2) && gx.sameBits(gx2) && gf.sameBits(gf2))
      << "one thread and two differ";
  runKernel<ConvGradFilter>(1, p, {x, dy}, {gf2}, true);
  for (double &d : df)
    d *= 2;
  expectClose(gf2.get(), df, tolerance, "accumulated dfilter");
  p.bias = true;
  runKernel<Conv>(1, p, {x, f, bias}, {gy});
  for (int64_t i = 0; i < ys; ++i)
    y[size_t(i)] += bias[i % p.outChannels];
  expectClose(gy.get(), y, tolerance, "y with a bias");
}

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

TEST(Conv, AgreesWithTheNaiveOne) {
  checkConv(convParams(2, 8, 3, 16, 3, 1, 1));
  checkConv(convParams(5, 9, 16, 20, 3, 2, 1));
  checkConv(convParams(4, 14, 64, 32, 1, 1, 0));
  checkConv(convParams(3, 7, 8, 8, 3, 1, 2, 2));
  checkConv(convParams(2, 8, 16, 32, 3, 1, 1, 1, 4));
  checkConv(convParams(2, 8, 32, 32, 3, 1, 1, 1, 32)); // depthwise
  checkConv(convParams(2, 12, 48, 48, 7, 1, 3, 1, 48));
  checkConv(convParams(2, 12, 20, 20, 5, 2, 2, 1, 20));
  checkConv(convParams(3, 12, 24, 24, 3, 2, 1, 2, 24));
  checkConv(convParams(2, 12, 7, 7, 9, 1, 4, 1, 7));
  checkConv(convParams(2, 12, 16, 32, 3, 1, 1, 1, 16)); // two filters a channel
  checkConv(convParams(2, 12, 128, 128, 3, 1, 1, 1, 32));
  checkConv(convParams(2, 12, 24, 36, 5, 2, 2, 1, 2));
  checkConv(convParams(2, 16, 3, 24, 8, 8, 0)); // patches
  checkConv(convParams(2, 6, 40, 40, 1, 2, 0, 1, 2));
  checkConv(convParams(1, 16, 3, 8, 7, 2, 3));
  checkConv(convParams(9, 16, 64, 64, 3, 1, 1)); // several parts, one smaller
}

TEST(Conv, RefusesTooLittleScratch) {
  auto device = makeDevice(1);
  ConvParams p = convParams(2, 8, 3, 16, 3, 1, 1);
  p.scratchBytes = 100;
  Conv kernel(p);
  EXPECT_EQ(kernel.prepare(*device).code(), Code::OverBudget);
}

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
