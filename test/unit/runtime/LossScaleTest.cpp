//===- LossScaleTest.cpp - scaled losses, and steps that are skipped ------===//

#include "Adam.h"
#include "Testing.h"

#include "runtime/kernels/Adafactor.h"
#include "runtime/kernels/Adam.h"
#include "runtime/kernels/Lion.h"

#include <limits>
#include <random>

using namespace tmc;
using namespace tmc::test;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Scale {
  float scale = 65536;
  int64_t clean = 0, count = 0, step = -1;

  void run(const LossScale::Params &params, float norm) {
    runKernel<LossScale>(1, params, {&norm, &scale, &clean, &count},
                         {&scale, &clean, &count, &step});
  }
};

} // namespace

TEST(LossScale, FollowsGradScaler) {
  const LossScale::Params params{
      .growth = 2, .backoff = 0.5, .interval = 5, .scratchBytes = 0};
  Scale got;
  // As torch.amp documents it: the scale, its growth tracker, steps taken.
  double scale = 65536;
  int tracker = 0, steps = 0, skipped = 0, grown = 0;
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    const unsigned kind = random() % 8;
    const float norm = kind == 0                 ? kInf
                       : kind == 1 && i % 3 == 0 ? std::nanf("")
                                                 : float(random() % 100);
    got.run(params, norm);
    if (std::isfinite(norm)) {
      ++steps;
      EXPECT_EQ(got.step, steps);
      if (++tracker == 5) {
        scale *= 2;
        tracker = 0;
        ++grown;
      }
    } else {
      ++skipped;
      EXPECT_EQ(got.step, 0);
      scale *= 0.5;
      tracker = 0;
    }
    ASSERT_EQ(got.scale, scale) << "after " << i;
    ASSERT_EQ(got.clean, tracker);
    ASSERT_EQ(got.count, steps);
  }
  EXPECT_GT(skipped, 20);
  EXPECT_GT(grown, 20);
}

TEST(LossScale, StaysFiniteAndMayStayAsItIs) {
  Scale large;
  large.scale = 0x1.8p127f;
  large.run({.growth = 2, .backoff = 0.5, .interval = 1, .scratchBytes = 0}, 1);
  EXPECT_EQ(large.scale, 0x1.8p127f);
  EXPECT_EQ(large.clean, 0);

  Scale fixed;
  fixed.scale = 1000;
  for (float norm : {1.0f, kInf, 2.0f})
    fixed.run({.growth = 2, .backoff = 0.5, .interval = 0, .scratchBytes = 0},
              norm);
  EXPECT_EQ(fixed.scale, 1000);
  EXPECT_EQ(fixed.count, 2);
  EXPECT_EQ(fixed.step, 2);
}

TEST(GradNorm, TakesTheScaleOut) {
  float squares[] = {9 * 64 * 64, 16 * 64 * 64}, scale = 64;
  auto run = [&](double maxNorm, const float *first, float &norm, float &clip) {
    runKernel<GradNorm>(
        1,
        {.count = 2, .maxNorm = maxNorm, .isScaled = true, .scratchBytes = 0},
        {first, squares + 1, &scale}, {&norm, &clip});
  };
  float norm = 0, clip = 0;
  run(2, squares, norm, clip);
  EXPECT_EQ(norm, 5);
  EXPECT_EQ(clip, float(2 / (5 + 1e-6) / 64));
  run(0, squares, norm, clip);
  EXPECT_EQ(clip, 1.0f / 64);
  float infinite = kInf;
  run(2, &infinite, norm, clip);
  EXPECT_EQ(norm, kInf);
}

TEST(GradNorm, OfNoNumberClipsNothing) {
  for (float square : {kInf, std::nanf("")})
    for (double maxNorm : {0.0, 2.0}) {
      float norm = 0, clip = 1;
      runKernel<GradNorm>(1,
                          {.count = 1,
                           .maxNorm = maxNorm,
                           .isScaled = false,
                           .scratchBytes = 0},
                          {&square}, {&norm, &clip});
      EXPECT_FALSE(std::isfinite(norm));
      EXPECT_TRUE(std::isnan(clip)) << "norm " << norm << ", of " << maxNorm;
    }
}

namespace {

/// Some bytes, all of them different from their neighbours.
Vector<char> noise(size_t bytes, unsigned seed) {
  Vector<char> data(bytes);
  std::mt19937 random(seed);
  for (char &byte : data)
    byte = char(random() % 60); // Of floats, none is NaN.
  return data;
}

} // namespace

TEST(Updates, LeaveEverythingAtStepZeroAndWhereTheNormIsNoNumber) {
  constexpr int64_t count = 70001;
  // Half of it as codes of 4 bits, whose blocks have half the elements.
  constexpr int64_t packed = count / 2 / 128 * 128;
  const auto codes = size_t(count);
  const auto blocks = size_t((count + adam::kCodeBlock - 1) / adam::kCodeBlock);
  const float lr = 0.1f;
  Floats g = randomFloats(count, 1);
  g[777] = kInf;
  for (DType kept : {DType::F32, DType::BF16}) {
    const size_t bytes = size_t(count) * (kept == DType::F32 ? 4 : 2);
    // Parameter, two moments; codes and maxima of two moments.
    std::vector<Vector<char>> at;
    for (size_t size :
         {bytes, bytes, bytes, codes, 4 * blocks, codes, 4 * blocks})
      at.push_back(noise(size, unsigned(at.size())));
    const auto before = at;
    auto p = [&](size_t i) { return at[i].data(); };
    AdamParams adam = adamParams(count);
    adam.param = adam.moment = kept;
    const Sgd::Params sgd{.param = kept,
                          .grad = DType::F32,
                          .moment = kept,
                          .count = count,
                          .momentum = 0.9,
                          .dampening = 0,
                          .weightDecay = 0.1,
                          .nesterov = false,
                          .stream = 0,
                          .scratchBytes = 0};
    AdamParams adam4bit = adam;
    adam4bit.count = packed;
    const Lion::Params lion{.param = kept,
                            .grad = DType::F32,
                            .moment = kept,
                            .count = count,
                            .beta1 = 0.9,
                            .beta2 = 0.99,
                            .weightDecay = 0.1,
                            .stream = 0,
                            .scratchBytes = 0};
    const Adafactor::Params adafactor{.param = kept,
                                      .grad = DType::F32,
                                      .count = count,
                                      .batch = 1,
                                      .rows = 0,
                                      .columns = 0,
                                      .beta2Decay = -0.8,
                                      .eps1 = 1e-30,
                                      .eps2 = 1e-3,
                                      .d = 1,
                                      .weightDecay = 0.1,
                                      .stream = 0,
                                      .scratchBytes = 0};
    auto run = [&](int64_t t, float clip) {
      float squares[6] = {};
      runKernel<AdamW>(2, adam, {p(0), g, p(1), p(2), &lr, &t, &clip},
                       {p(0), p(1), p(2), squares});
      runKernel<AdamW8bit>(2, adam,
                           {p(0), g, p(3), p(4), p(5), p(6), &lr, &t, &clip},
                           {p(0), p(3), p(4), p(5), p(6), squares + 1});
      runKernel<Sgd>(2, sgd, {p(0), g, p(1), &lr, &t, &clip},
                     {p(0), p(1), squares + 2});
      runKernel<Lion>(2, lion, {p(0), g, p(1), &lr, &t, &clip},
                      {p(0), p(1), squares + 3});
      runKernel<AdamW4bit>(2, adam4bit,
                           {p(0), g, p(3), p(4), p(5), p(6), &lr, &t, &clip},
                           {p(0), p(3), p(4), p(5), p(6), squares + 4});
      if (kept == DType::F32)
        runKernel<Adafactor>(2, adafactor,
                             {p(0), g, p(1), nullptr, &lr, &t, &clip},
                             {p(0), p(1), nullptr, squares + 5});
      else
        squares[5] = kInf;
      for (float square : squares)
        EXPECT_EQ(square, kInf);
    };
    run(0, 1);
    EXPECT_EQ(at, before);
    run(1, std::nanf(""));
    EXPECT_EQ(at, before);
    run(1, 1);
    for (size_t i = 0; i < at.size(); ++i)
      EXPECT_NE(at[i], before[i]) << "the other steps do move " << i;
  }
}
