//===- ConvFilterTest.cpp - filter gradients in pieces of pixels ----------===//
//
// What ConvTest.cpp asks of whole kernels, of pieces as small as large images
// make them.
//
//===----------------------------------------------------------------------===//

#include "Typed.h"

#include "runtime/cuda/ConvFilter.h"

using namespace tmc;
using namespace tmc::test;

namespace {

/// Windows of `kernel` squared of 2 images of 11 x 10, padded by 1.
ConvParams filterOf(int64_t channels, int64_t kernel, int64_t stride,
                    int64_t dilation) {
  ConvParams p{};
  p.type = DType::BF16;
  p.filter = DType::F32;
  p.batch = 2;
  p.inHeight = 11;
  p.inWidth = 10;
  p.inChannels = channels;
  p.outHeight = outSize(11, 1, 1, kernel, dilation, stride);
  p.outWidth = outSize(10, 1, 1, kernel, dilation, stride);
  p.outChannels = 4;
  p.kernelHeight = p.kernelWidth = kernel;
  p.strideHeight = p.strideWidth = stride;
  p.padTop = p.padLeft = p.padBottom = p.padRight = 1;
  p.dilationHeight = p.dilationWidth = dilation;
  p.groups = 1;
  return p;
}

std::vector<double> naiveSums(const ConvParams &p, const Floats &x,
                              const Floats &dy) {
  const int64_t columns = gatheredColumns(p), taps = p.kernelWidth;
  std::vector<double> sums(size_t(p.outChannels * columns), 0.0);
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t oh = 0; oh < p.outHeight; ++oh)
      for (int64_t ow = 0; ow < p.outWidth; ++ow)
        for (int64_t tap = 0; tap < taps * taps; ++tap) {
          const int64_t h =
              oh * p.strideHeight - 1 + tap / taps * p.dilationHeight;
          const int64_t w =
              ow * p.strideWidth - 1 + tap % taps * p.dilationWidth;
          if (h < 0 || h >= p.inHeight || w < 0 || w >= p.inWidth)
            continue;
          for (int64_t o = 0; o < p.outChannels; ++o)
            for (int64_t c = 0; c < p.inChannels; ++c)
              sums[size_t(o * columns + tap * p.inChannels + c)] +=
                  double(dy[((n * p.outHeight + oh) * p.outWidth + ow) *
                                p.outChannels +
                            o]) *
                  x[((n * p.inHeight + h) * p.inWidth + w) * p.inChannels + c];
        }
  return sums;
}

/// Compares sums over pieces of at most `bytes` of windows.
void checkSums(const ConvParams &p, const void *x, const void *dy,
               const std::vector<double> &want, int64_t bytes) {
  auto device = makeDevice(1);
  cuda::CudaDevice &on = cuda::deviceOf(*device);
  cuda::GatheredFilter gathered;
  ASSERT_TRUE(gathered.prepare(on, p, bytes));
  Buffer<unsigned char> scratch(ConvGradFilter::scratchCap(p, Backend::Cuda),
                                0xff);
  cuda::Queue queue(on, device->compute(), "conv_grad_filter");
  gathered.run(queue, x, dy, scratch.get());
  ASSERT_TRUE(device->synchronize());
  const float *got = reinterpret_cast<const float *>(scratch.get());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-4) << bytes << " bytes, " << i;
}

} // namespace

TEST(GatheredFilter, AddsPiecesOfPixels) {
  // Rows of 27 columns and 5 zeros; whole vectors of channels; dilated windows;
  // one tap; and 12 channels, of which vectors cross from one tap to the next.
  const ConvParams cases[] = {filterOf(3, 3, 2, 1),  filterOf(16, 3, 1, 1),
                              filterOf(8, 3, 2, 2),  filterOf(24, 1, 2, 1),
                              filterOf(12, 2, 1, 3), filterOf(1, 3, 1, 1)};
  for (const ConvParams &p : cases) {
    SCOPED_TRACE(std::to_string(p.inChannels) + " channels");
    const Typed x(
        p.type,
        randomFloats(p.batch * p.inHeight * p.inWidth * p.inChannels, 1));
    const Typed dy(
        p.type,
        randomFloats(p.batch * p.outHeight * p.outWidth * p.outChannels, 2));
    const auto want = naiveSums(p, x.values, dy.values);
    // Pieces of 8 pixels, of 24, and one of all.
    for (int64_t bytes :
         {int64_t(1), 24 * gatheredColumns(p) * 2, int64_t(1) << 20})
      checkSums(p, x, dy, want, bytes);
    checkSums(p, Shifted(x).get(), dy, want, int64_t(1) << 20);
  }
}
