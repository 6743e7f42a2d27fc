//===- PaddedLossTest.cpp - losses in chunks whose rows are padded --------===//
//
// With rows of zeros behind the table, loss and gradients are those of the
// plain table, and the gradients of the other rows are zero.
//
//===----------------------------------------------------------------------===//

#include "test/unit/runtime/Testing.h"

#include "runtime/kernels/CrossEntropy.h"

using namespace tmc;
using namespace tmc::test;

namespace {

/// `plain` with zeros behind it.
Floats padded(const Floats &plain, int64_t count) {
  Floats all(count);
  std::copy(plain.get(), plain.get() + plain.size(), all.get());
  return all;
}

std::vector<double> wanted(const Floats &plain, int64_t count) {
  std::vector<double> all(plain.get(), plain.get() + plain.size());
  all.resize(size_t(count));
  return all;
}

} // namespace

TEST(PaddedLoss, OfChunksIsThatOfThePlainTable) {
  const int64_t rows = 19, channels = 16, vocabulary = 37, columns = 40;
  for (int64_t chunk : {4, 8, 32}) {
    LinearCrossEntropyParams p{.type = DType::F32,
                               .table = DType::F32,
                               .labelType = DType::I64,
                               .rows = rows,
                               .channels = channels,
                               .vocabulary = vocabulary,
                               .chunkRows = chunk,
                               .ignoreIndex = -100,
                               .bias = true,
                               .tf32 = false};
    LinearCrossEntropyParams wide = p;
    wide.columns = columns;
    ASSERT_TRUE(LinearCrossEntropy::takes(wide, Backend::Cuda));
    ASSERT_FALSE(LinearCrossEntropy::takes(wide, Backend::Cpu));
    Floats x = randomFloats(rows * channels, 1),
           w = randomFloats(vocabulary * channels, 2),
           bias = randomFloats(vocabulary, 3);
    Floats wideW = padded(w, columns * channels),
           wideBias = padded(bias, columns);
    // A padded column that counted would lead: its logit is the bias alone.
    for (int64_t v = 0; v < vocabulary; ++v)
      bias[v] = wideBias[v] = bias[v] - 20;
    Longs labels = randomLongs(rows, vocabulary, 4);
    labels[7] = -100;
    const float weight = 0.1f, scale = 0.3f;
    Floats lse(rows), wideLse(rows);
    float loss = 0, wideLoss = 0;
    runKernel<LinearCrossEntropy>(1, p, {x, w, labels, &weight, bias},
                                  {&loss, lse});
    runKernel<LinearCrossEntropy>(
        1, wide, {x, wideW, labels, &weight, wideBias}, {&wideLoss, wideLse});
    EXPECT_NEAR(wideLoss, loss, 1e-5);
    expectClose(wideLse.get(), wanted(lse, rows), 1e-6, "lse");
    Floats dx(rows * channels), dw(vocabulary * channels), db(vocabulary);
    Floats wideDx(rows * channels), wideDw(columns * channels, 7.0f),
        wideDb(columns, 7.0f);
    runKernel<LinearCrossEntropyGrad>(1, p, {x, w, labels, lse, &scale, bias},
                                      {dx, dw, db});
    runKernel<LinearCrossEntropyGrad>(
        1, wide, {x, wideW, labels, wideLse, &scale, wideBias},
        {wideDx, wideDw, wideDb});
    expectClose(wideDx.get(), wanted(dx, rows * channels), 1e-5, "dx");
    expectClose(wideDw.get(), wanted(dw, columns * channels), 1e-5, "dw");
    expectClose(wideDb.get(), wanted(db, columns), 1e-5, "dbias");
    for (int64_t v = vocabulary * channels; v < columns * channels; ++v)
      EXPECT_EQ(wideDw[v], 0);
    Floats bothDx(rows * channels), bothDw(columns * channels), bothDb(columns);
    float bothLoss = 0;
    runKernel<LinearCrossEntropyWithGrad>(
        1, wide, {x, wideW, labels, &weight, &scale, wideBias},
        {&bothLoss, bothDx, bothDw, bothDb});
    EXPECT_EQ(bothLoss, wideLoss);
    EXPECT_TRUE(bothDx.sameBits(wideDx) && bothDw.sameBits(wideDw) &&
                bothDb.sameBits(wideDb));
  }
}
