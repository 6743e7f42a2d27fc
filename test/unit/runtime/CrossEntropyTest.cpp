//===- CrossEntropyTest.cpp - the loss, plain and chunked -----------------===//

#include "Testing.h"

#include "runtime/kernels/CrossEntropy.h"

using namespace tmc;
using namespace tmc::test;

namespace {

struct Reference {
  double loss = 0;
  std::vector<double> lse, grad;
};

Reference reference(const std::vector<double> &logits, const int64_t *labels,
                    int64_t rows, int64_t vocabulary, double weight,
                    int64_t ignore) {
  Reference r;
  r.lse.resize(size_t(rows));
  r.grad.resize(size_t(rows * vocabulary));
  for (int64_t i = 0; i < rows; ++i) {
    const double *row = logits.data() + i * vocabulary;
    double top = row[0], sum = 0;
    for (int64_t v = 0; v < vocabulary; ++v)
      top = std::max(top, row[v]);
    for (int64_t v = 0; v < vocabulary; ++v)
      sum += std::exp(row[v] - top);
    const double lse = r.lse[size_t(i)] = top + std::log(sum);
    if (labels[i] == ignore)
      continue;
    r.loss += weight * (lse - row[labels[i]]);
    for (int64_t v = 0; v < vocabulary; ++v)
      r.grad[size_t(i * vocabulary + v)] =
          weight * (std::exp(row[v] - lse) - (v == labels[i]));
  }
  return r;
}

} // namespace

TEST(CrossEntropy, AgreesWithTheReference) {
  for (int64_t vocabulary : {1, 3, 16, 64, 65, 130, 1000}) {
    const int64_t rows = 9;
    CrossEntropyParams p{.type = DType::F32,
                         .labelType = DType::I64,
                         .rows = rows,
                         .vocabulary = vocabulary,
                         .ignoreIndex = -100,
                         .scratchBytes = 0};
    Floats logits = randomFloats(rows * vocabulary, 1, 5);
    Longs labels = randomLongs(rows, vocabulary, 2);
    labels[4] = -100;
    const float weight = 0.125f;
    const Reference want =
        reference({logits.get(), logits.get() + logits.size()}, labels, rows,
                  vocabulary, weight, -100);
    Floats lse(rows), grad(rows * vocabulary);
    float loss = 0;
    runKernel<CrossEntropy>(2, p, {logits, labels, &weight}, {&loss, lse});
    EXPECT_NEAR(loss, want.loss, 1e-5 * (1 + std::abs(want.loss)));
    expectClose(lse.get(), want.lse, 1e-6, "lse");
    float twice = loss;
    runKernel<CrossEntropy>(1, p, {logits, labels, &weight}, {&twice, lse},
                            true);
    EXPECT_EQ(twice, 2 * loss);

    runKernel<CrossEntropyGrad>(2, p, {logits, labels, lse, &weight}, {grad});
    expectClose(grad.get(), want.grad, 1e-6, "dlogits");
    Floats both(rows * vocabulary, NAN);
    float ofBoth = NAN;
    runKernel<CrossEntropyWithGrad>(2, p, {logits, labels, &weight, &weight},
                                    {&ofBoth, both});
    EXPECT_EQ(ofBoth, loss);
    EXPECT_TRUE(both.sameBits(grad)) << "with the loss";
    Floats copy = logits;
    runKernel<CrossEntropyWithGrad>(1, p, {copy, labels, &weight, &weight},
                                    {&ofBoth, copy});
    EXPECT_TRUE(copy.sameBits(grad)) << "with the loss, in place";
    runKernel<CrossEntropyGrad>(1, p, {logits, labels, lse, &weight}, {logits});
    EXPECT_TRUE(logits.sameBits(grad)) << "in place";
  }
}

TEST(CrossEntropy, LooksAtNoColumnBehindTheVocabulary) {
  const float bad = std::numeric_limits<float>::quiet_NaN();
  for (int64_t columns : {8, 64, 72, 1008}) {
    const int64_t rows = 5, vocabulary = columns - 7;
    CrossEntropyParams p{.type = DType::F32,
                         .labelType = DType::I64,
                         .rows = rows,
                         .vocabulary = vocabulary,
                         .ignoreIndex = -100,
                         .scratchBytes = 0};
    CrossEntropyParams padded = p;
    padded.columns = columns;
    Floats logits = randomFloats(rows * vocabulary, 1, 5),
           wide(rows * columns, bad);
    Longs labels = randomLongs(rows, vocabulary, 2);
    labels[3] = -100;
    // A maximum may pass over a NaN; a sum may not.
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < columns; ++v)
        if (v < vocabulary)
          wide[r * columns + v] = logits[r * vocabulary + v];
        else if (v % 2)
          wide[r * columns + v] = 1e30f;
    const float weight = 0.25f;
    Floats lse(rows), sameLse(rows), grad(rows * vocabulary),
        wideGrad(rows * columns, bad);
    float loss = 0, sameLoss = 0;
    runKernel<CrossEntropy>(2, p, {logits, labels, &weight}, {&loss, lse});
    runKernel<CrossEntropy>(2, padded, {wide, labels, &weight},
                            {&sameLoss, sameLse});
    EXPECT_EQ(loss, sameLoss);
    EXPECT_TRUE(lse.sameBits(sameLse));
    runKernel<CrossEntropyGrad>(2, p, {logits, labels, lse, &weight}, {grad});
    runKernel<CrossEntropyGrad>(2, padded, {wide, labels, lse, &weight},
                                {wideGrad});
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < columns; ++v)
        EXPECT_EQ(wideGrad[r * columns + v],
                  v < vocabulary ? grad[r * vocabulary + v] : 0);
    Floats both = wide;
    runKernel<CrossEntropyWithGrad>(1, padded, {both, labels, &weight, &weight},
                                    {&sameLoss, both});
    EXPECT_EQ(loss, sameLoss);
    EXPECT_TRUE(both.sameBits(wideGrad)) << "with the loss";
    runKernel<CrossEntropyGrad>(1, padded, {wide, labels, lse, &weight},
                                {wide});
    EXPECT_TRUE(wide.sameBits(wideGrad)) << "in place";
  }
}

TEST(CrossEntropy, SurvivesExtremeLogits) {
  CrossEntropyParams p{.type = DType::F32,
                       .labelType = DType::I64,
                       .rows = 1,
                       .vocabulary = 70,
                       .ignoreIndex = -100,
                       .scratchBytes = 0};
  Floats logits(70, -1e30f), lse(1), grad(70);
  logits[3] = 1e4f;
  logits[69] = -std::numeric_limits<float>::infinity();
  Longs labels(1, 3);
  const float weight = 1;
  float loss = -1;
  runKernel<CrossEntropy>(1, p, {logits, labels, &weight}, {&loss, lse});
  EXPECT_EQ(loss, 0);
  EXPECT_EQ(lse[0], 1e4f);
  runKernel<CrossEntropyGrad>(1, p, {logits, labels, lse, &weight}, {grad});
  for (int64_t v = 0; v < 70; ++v)
    EXPECT_EQ(grad[v], 0);
}

/// Also if the rows have columns behind the vocabulary.
TEST(CrossEntropy, ReportsALabelOutOfRange) {
  for (int64_t columns : {0, 16}) {
    auto device = makeDevice(1);
    CrossEntropyParams p{.type = DType::F32,
                         .labelType = DType::I64,
                         .rows = 2,
                         .vocabulary = 8,
                         .ignoreIndex = -100,
                         .columns = columns,
                         .scratchBytes = 64};
    CrossEntropy kernel(p);
    ASSERT_TRUE(kernel.prepare(*device));
    Floats logits = randomFloats(32, 1), lse(2), scratch(16);
    Longs labels(2, 8);
    const float weight = 1;
    float loss = 0;
    kernel.run(device->compute(), {logits, labels, &weight}, {&loss, lse},
               scratch.get());
    ASSERT_TRUE(device->synchronize());
    EXPECT_TRUE(device->compute().fault.set);
    EXPECT_EQ(device->compute().fault.value, 8);
    EXPECT_EQ(device->compute().fault.limit, 8);
  }
}

/// With and without a bias, whole and in chunks, one thread and two.
static void compareChunks(bool hasBias) {
  const int64_t rows = 21, channels = 24, vocabulary = 150;
  Floats x = randomFloats(rows * channels, 1),
         w = randomFloats(vocabulary * channels, 2),
         bias = randomFloats(vocabulary, 4);
  Longs labels = randomLongs(rows, vocabulary, 3);
  labels[20] = -100;
  const float weight = 0.05f;
  std::vector<double> logits(size_t(rows * vocabulary));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < vocabulary; ++v) {
      double &logit = logits[size_t(r * vocabulary + v)];
      logit = hasBias ? bias[v] : 0;
      for (int64_t c = 0; c < channels; ++c)
        logit += double(x[r * channels + c]) * w[v * channels + c];
    }
  const Reference want =
      reference(logits, labels, rows, vocabulary, weight, -100);
  std::vector<double> dx(size_t(rows * channels)),
      dw(size_t(vocabulary * channels)), db(static_cast<size_t>(vocabulary));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < vocabulary; ++v) {
      const double d = want.grad[size_t(r * vocabulary + v)];
      db[size_t(v)] += d;
      for (int64_t c = 0; c < channels; ++c) {
        dx[size_t(r * channels + c)] += d * w[v * channels + c];
        dw[size_t(v * channels + c)] += d * x[r * channels + c];
      }
    }
  for (int64_t chunk : {1, 8, 21, 64}) {
    LinearCrossEntropyParams p{.type = DType::F32,
                               .table = DType::F32,
                               .labelType = DType::I64,
                               .rows = rows,
                               .channels = channels,
                               .vocabulary = vocabulary,
                               .chunkRows = chunk,
                               .ignoreIndex = -100,
                               .bias = hasBias,
                               .tf32 = false,
                               .scratchBytes = 0};
    Floats lse(rows);
    float loss = 0;
    // A bias that isn't wanted isn't looked at.
    runKernel<LinearCrossEntropy>(2, p, {x, w, labels, &weight, bias},
                                  {&loss, lse});
    EXPECT_NEAR(loss, want.loss, 1e-5);
    expectClose(lse.get(), want.lse, 1e-6, "lse");
    struct Gradients {
      Floats x, w, b;
    };
    auto gradients = [&](int threads, Gradients &g, bool accumulate) {
      runKernel<LinearCrossEntropyGrad>(threads, p,
                                        {x, w, labels, lse, &weight, bias},
                                        {g.x, g.w, g.b}, accumulate);
    };
    // What is there before doesn't count.
    Gradients two{Floats(rows * channels), Floats(vocabulary * channels, 7.0f),
                  Floats(vocabulary, 7.0f)};
    gradients(2, two, false);
    expectClose(two.x.get(), dx, 1e-5, "dx");
    expectClose(two.w.get(), dw, 1e-5, "dw");
    if (hasBias)
      expectClose(two.b.get(), db, 1e-5, "dbias");
    Gradients one{Floats(rows * channels), Floats(vocabulary * channels),
                  Floats(vocabulary, 7.0f)};
    gradients(1, one, false);
    EXPECT_TRUE(one.x.sameBits(two.x) && one.w.sameBits(two.w) &&
                one.b.sameBits(two.b));
    gradients(1, one, true);
    auto doubled = [](std::vector<double> of) {
      for (double &d : of)
        d *= 2;
      return of;
    };
    expectClose(one.w.get(), doubled(dw), 1e-5, "accumulated dw");
    if (hasBias)
      expectClose(one.b.get(), doubled(db), 1e-5, "accumulated dbias");
    EXPECT_TRUE(one.x.sameBits(two.x)) << "dx doesn't accumulate";
    // All in one: the same bits, beside another scale than the weight.
    const float scale = 2 * weight;
    for (int threads : {1, 2}) {
      Gradients apart{Floats(rows * channels), Floats(vocabulary * channels),
                      Floats(vocabulary)};
      runKernel<LinearCrossEntropyGrad>(threads, p,
                                        {x, w, labels, lse, &scale, bias},
                                        {apart.x, apart.w, apart.b});
      Gradients both{Floats(rows * channels), Floats(vocabulary * channels),
                     Floats(vocabulary)};
      float sameLoss = 0;
      runKernel<LinearCrossEntropyWithGrad>(
          threads, p, {x, w, labels, &weight, &scale, bias},
          {&sameLoss, both.x, both.w, both.b});
      EXPECT_EQ(sameLoss, loss);
      EXPECT_TRUE(both.x.sameBits(apart.x) && both.w.sameBits(apart.w) &&
                  (!hasBias || both.b.sameBits(apart.b)));
      // What isn't wanted has no buffer.
      Floats xAlone(rows * channels), wAlone(vocabulary * channels);
      runKernel<LinearCrossEntropyWithGrad>(
          threads, p, {x, w, labels, &weight, &scale, bias},
          {&sameLoss, xAlone, nullptr, nullptr});
      runKernel<LinearCrossEntropyGrad>(threads, p,
                                        {x, w, labels, lse, &scale, bias},
                                        {nullptr, wAlone, nullptr});
      EXPECT_TRUE(xAlone.sameBits(both.x) && wAlone.sameBits(both.w));
    }
  }
}

TEST(LinearCrossEntropy, ChunksAgreeWithTheReference) { compareChunks(false); }

TEST(LinearCrossEntropy, ABiasIsAddedToEachRow) { compareChunks(true); }
