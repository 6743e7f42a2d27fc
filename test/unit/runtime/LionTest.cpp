//===- LionTest.cpp - Lion against its authors' formulas ------------------===//

#include "UpdateTesting.h"

using namespace tmc;
using namespace tmc::test;

namespace {

Lion::Params lionParams(int64_t count) {
  return {.param = DType::F32,
          .grad = DType::F32,
          .moment = DType::F32,
          .count = count,
          .beta1 = 0.9,
          .beta2 = 0.98,
          .weightDecay = 0.1,
          .stream = 5,
          .scratchBytes = 0};
}

/// Lion of stored types is Lion of the same values in f32, then rounded.
template <typename Param, typename Grad, typename Moment> void checkTypes() {
  const int64_t count = 66001; // more than one part, and a ragged end
  const Lion::Params wide = lionParams(count);
  Lion::Params params = wide;
  params.param = typeOf<Param>;
  params.grad = typeOf<Grad>;
  params.moment = typeOf<Moment>;
  Buffer<Param> p(count), p2(count);
  Buffer<Grad> g(count);
  Buffer<Moment> m(count), m2(count);
  auto fill = [&](auto &to, unsigned seed) {
    test::Floats from = randomFloats(count, seed);
    for (int64_t i = 0; i < count; ++i)
      storeLanes<1>(to.get() + i, from[i]);
  };
  fill(p, 1), fill(g, 2), fill(m, 3), fill(p2, 1), fill(m2, 3);
  test::Floats wp = widened(p), wg = widened(g), wm = widened(m);
  const float lr = 0.01f, clip = 0.5f;
  const int64_t t = 7;
  float squares = 0, squares2 = 0, wideSquares = 0;
  runKernel<Lion>(1, wide, {wp, wg, wm, &lr, &t, &clip},
                  {wp, wm, &wideSquares});
  runKernel<Lion>(1, params, {p, g, m, &lr, &t, &clip}, {p, m, &squares});
  runKernel<Lion>(2, params, {p2, g, m2, &lr, &t, &clip}, {p2, m2, &squares2});
  EXPECT_EQ(squares, wideSquares);
  EXPECT_EQ(squares, squares2);
  EXPECT_TRUE(p.sameBits(p2) && m.sameBits(m2));
  expectKept(p, wp, params.stream, t, 0);
  expectKept(m, wm, params.stream, t, 1);
}

} // namespace

TEST(Lion, FollowsItsAuthorsOverTenSteps) {
  const int64_t count = 70001; // more than one part, and a ragged end
  const Lion::Params params = lionParams(count);
  test::Floats p = randomFloats(count, 1), m(count), p2(p), m2(count);
  std::vector<double> wp(p.get(), p.get() + count), wm(size_t(count), 0.0);
  std::vector<bool> isUnsure(size_t(count), false);
  for (int64_t t = 1; t <= 10; ++t) {
    test::Floats g = randomFloats(count, unsigned(10 + t));
    g[3] = 0; // Always: its sign is 0.
    const float lr = 0.01f * float(t), clip = 0.5f;
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) {
      const size_t s = size_t(i);
      squares += double(g[i]) * g[i];
      const double d = g[i] * 0.5, blend = wm[s] * 0.9 + d * 0.1;
      // Rounding decides such a sign.
      if (blend != 0 && std::abs(blend) < 1e-6)
        isUnsure[s] = true;
      wp[s] *= 1 - lr * 0.1;
      wp[s] -= lr * (blend > 0 ? 1 : blend < 0 ? -1 : 0);
      wm[s] = wm[s] * 0.98 + d * 0.02;
    }
    float got = 0, got2 = 0;
    runKernel<Lion>(1, params, {p, g, m, &lr, &t, &clip}, {p, m, &got});
    runKernel<Lion>(2, params, {p2, g, m2, &lr, &t, &clip}, {p2, m2, &got2});
    EXPECT_NEAR(got, squares, 1e-5 * squares);
    EXPECT_EQ(got, got2);
  }
  int64_t unsure = 0;
  for (int64_t i = 0; i < count; ++i)
    if (isUnsure[size_t(i)]) {
      ++unsure;
      wp[size_t(i)] = p[i];
    }
  EXPECT_LT(unsure, 100);
  expectClose(p.get(), wp, 1e-5, "p");
  expectClose(m.get(), wm, 1e-6, "m");
  EXPECT_TRUE(p.sameBits(p2) && m.sameBits(m2));
}

TEST(Lion, LeavesWhereItStandsWhatHasNoSign) {
  test::Floats p(2, 1.5f), m(2), g(2);
  g[0] = 0;
  g[1] = NAN;
  const float lr = 0.5f;
  int64_t t = 1;
  Lion::Params params = lionParams(2);
  params.weightDecay = 0;
  runKernel<Lion>(1, params, {p, g, m, &lr, &t}, {p, m});
  EXPECT_EQ(p[0], 1.5f);
  EXPECT_EQ(p[1], 1.5f);
  EXPECT_EQ(m[0], 0);
  EXPECT_TRUE(std::isnan(m[1]));
}

TEST(Lion, KeepsEachTypeRoundedByChance) {
  checkTypes<bf16, float, float>();
  checkTypes<bf16, bf16, bf16>();
  checkTypes<float, bf16, bf16>();
  checkTypes<float, f16, float>();
}

template <typename Copy> static void checkCopies() {
  const int64_t count = 66001;
  const float lr = 0.01f;
  test::Floats g = randomFloats(count, 2);
  checkCopy<Copy>([&](DType type, int64_t t, test::Floats &p, auto &copy) {
    Lion::Params params = lionParams(count);
    params.copy = type;
    p[7] = NAN;
    p[8] = 1e30f; // More than f16 has.
    test::Floats m = randomFloats(count, 3);
    float squares;
    runKernel<Lion>(2, params, {p, g, m, &lr, &t}, {p, m, &squares, copy});
  });
}

TEST(Lion, CopiesParametersAsCastsRound) {
  checkCopies<bf16>();
  checkCopies<f16>();
}
