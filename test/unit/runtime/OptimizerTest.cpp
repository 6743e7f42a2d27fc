//===- OptimizerTest.cpp - updates against PyTorch's formulas -------------===//

#include "Testing.h"

#include "runtime/kernels/Optimizer.h"

using namespace tmc;
using namespace tmc::test;

TEST(AdamW, FollowsPyTorchOverTenSteps) {
  const int64_t count = 70001; // more than one part, and a ragged end
  AdamW::Params params{.type = DType::F32,
                       .count = count,
                       .beta1 = 0.9,
                       .beta2 = 0.95,
                       .epsilon = 1e-8,
                       .weightDecay = 0.1,
                       .scratchBytes = 0};
  Floats p = randomFloats(count, 1), m(count), v(count);
  Floats p2(p), m2(count), v2(count);
  std::vector<double> wp(p.get(), p.get() + count), wm(size_t(count), 0.0),
      wv(size_t(count), 0.0);
  for (int64_t t = 1; t <= 10; ++t) {
    Floats g = randomFloats(count, unsigned(10 + t));
    const float lr = 0.01f * float(t), clip = 0.5f;
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) {
      const size_t s = size_t(i);
      squares += double(g[i]) * g[i];
      const double d = g[i] * 0.5;
      wp[s] *= 1 - lr * 0.1;
      wm[s] += (d - wm[s]) * 0.1;
      wv[s] = 0.95 * wv[s] + 0.05 * d * d;
      wp[s] -= lr / (1 - std::pow(0.9, t)) * wm[s] /
               (std::sqrt(wv[s]) / std::sqrt(1 - std::pow(0.95, t)) + 1e-8);
    }
    float got = 0, got2 = 0;
    runKernel<AdamW>(1, params, {p, g, m, v, &lr, &t, &clip}, {p, m, v, &got});
    runKernel<AdamW>(2, params, {p2, g, m2, v2, &lr, &t, &clip},
                     {p2, m2, v2, &got2});
    EXPECT_NEAR(got, squares, 1e-5 * squares);
    EXPECT_EQ(got, got2);
  }
  expectClose(p.get(), wp, 1e-5, "p");
  expectClose(m.get(), wm, 1e-6, "m");
  expectClose(v.get(), wv, 1e-6, "v");
  EXPECT_TRUE(p.sameBits(p2) && m.sameBits(m2) && v.sameBits(v2));
}

TEST(Sgd, FollowsPyTorch) {
  const int64_t count = 100;
  for (bool nesterov : {false, true})
    for (double momentum : {0.0, 0.9}) {
      if (nesterov && momentum == 0)
        continue;
      Sgd::Params params{.type = DType::F32,
                         .count = count,
                         .momentum = momentum,
                         .dampening = nesterov ? 0 : 0.1,
                         .weightDecay = 0.01,
                         .nesterov = nesterov,
                         .scratchBytes = 0};
      Floats p = randomFloats(count, 1), b(count, 99.0f);
      std::vector<double> wp(p.get(), p.get() + count), wb(size_t(count), 0.0);
      for (int64_t t = 1; t <= 5; ++t) {
        Floats g = randomFloats(count, unsigned(t + 3));
        const float lr = 0.1f;
        for (int64_t i = 0; i < count; ++i) {
          const size_t s = size_t(i);
          double d = g[i] + 0.01 * wp[s];
          if (momentum != 0) {
            wb[s] = t == 1 ? d : momentum * wb[s] + (1 - params.dampening) * d;
            d = nesterov ? d + momentum * wb[s] : wb[s];
          }
          wp[s] -= lr * d;
        }
        runKernel<Sgd>(1, params,
                       {p, g, momentum != 0 ? b.get() : nullptr, &lr, &t},
                       {p, momentum != 0 ? b.get() : nullptr});
      }
      expectClose(p.get(), wp, 1e-5, "p");
    }
}

TEST(GradNorm, AddsAndClips) {
  Floats g = randomFloats(150000, 1);
  float squares = 0, squares2 = 0;
  SquareSum::Params params{
      .type = DType::F32, .count = 150000, .scratchBytes = 0};
  runKernel<SquareSum>(1, params, {g}, {&squares});
  runKernel<SquareSum>(2, params, {g}, {&squares2});
  EXPECT_EQ(squares, squares2);
  double want = 0;
  for (int64_t i = 0; i < g.size(); ++i)
    want += double(g[i]) * g[i];
  EXPECT_NEAR(squares, want, 1e-5 * want);

  const float other = 16;
  float norm = 0, clip = 0;
  runKernel<GradNorm>(1, {.count = 2, .maxNorm = 1, .scratchBytes = 0},
                      {&squares, &other}, {&norm, &clip});
  EXPECT_NEAR(norm, std::sqrt(want + 16), 1e-2);
  EXPECT_NEAR(clip, 1 / (norm + 1e-6), 1e-7);
  const float tiny = 0.25f;
  runKernel<GradNorm>(1, {.count = 1, .maxNorm = 1, .scratchBytes = 0}, {&tiny},
                      {&norm, &clip});
  EXPECT_EQ(norm, 0.5f);
  EXPECT_EQ(clip, 1);
}
