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

TEST(GatheredFilter, AddsPiecesOfPixels) {
  // Windows of 3 x 3 with padding and a stride, 27 columns, 60 pixels.
  ConvParams p{};
  p.type = DType::BF16;
  p.filter = DType::F32;
  p.batch = 2;
  p.inHeight = 11;
  p.inWidth = 10;
  p.inChannels = 3;
  p.outHeight = 6;
  p.outWidth = 5;
  p.outChannels = 4;
  p.kernelHeight = p.kernelWidth = 3;
  p.strideHeight = p.strideWidth = 2;
  p.padTop = p.padLeft = p.padBottom = p.padRight = 1;
  p.dilationHeight = p.dilationWidth = 1;
  p.groups = 1;
  const int64_t columns = gatheredColumns(p);
  ASSERT_EQ(columns, 32);
  Typed x(p.type, randomFloats(p.batch * p.inHeight * p.inWidth * 3, 1));
  Typed dy(p.type, randomFloats(p.batch * p.outHeight * p.outWidth * 4, 2));
  std::vector<double> want(size_t(4 * columns), 0.0);
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t oh = 0; oh < p.outHeight; ++oh)
      for (int64_t ow = 0; ow < p.outWidth; ++ow)
        for (int64_t tap = 0; tap < 9; ++tap) {
          const int64_t h = oh * 2 - 1 + tap / 3, w = ow * 2 - 1 + tap % 3;
          if (h < 0 || h >= p.inHeight || w < 0 || w >= p.inWidth)
            continue;
          for (int64_t o = 0; o < 4; ++o)
            for (int64_t c = 0; c < 3; ++c)
              want[size_t(o * columns + tap * 3 + c)] +=
                  double(dy.values[((n * 6 + oh) * 5 + ow) * 4 + o]) *
                  x.values[((n * 11 + h) * 10 + w) * 3 + c];
        }
  // 60 pixels in pieces of 8, of 24, and in one.
  for (int64_t bytes : {int64_t(1), 24 * columns * 2, int64_t(1) << 20}) {
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
      EXPECT_NEAR(got[i], want[i], 1e-5) << bytes << " bytes, " << i;
  }
}
