//===- OptimizerTypesTest.cpp - updates of what is kept in 16 bits --------===//

#include "Adam.h"
#include "UpdateTesting.h"

#include "runtime/kernels/Adam.h"

#include <algorithm>

using namespace tmc;
using namespace tmc::test;

namespace {

/// AdamW of stored types is AdamW of the same values in f32, then rounded.
template <typename Param, typename Grad, typename Moment> void checkTypes() {
  const int64_t count = 66001; // more than one part, and a ragged end
  const AdamParams wide = test::adamParams(count);
  AdamParams params = wide;
  params.param = typeOf<Param>;
  params.grad = typeOf<Grad>;
  params.moment = typeOf<Moment>;
  params.stream = 5;
  Buffer<Param> p(count), p2(count);
  Buffer<Grad> g(count);
  Buffer<Moment> m(count), v(count), m2(count), v2(count);
  auto fill = [&](auto &to, unsigned seed, float least) {
    test::Floats from = randomFloats(count, seed);
    for (int64_t i = 0; i < count; ++i) {
      const float x = least ? std::abs(from[i]) + least : from[i];
      storeLanes<1>(to.get() + i, x);
    }
  };
  fill(p, 1, 0), fill(g, 2, 0), fill(m, 3, 0), fill(v, 4, 0.1f);
  fill(p2, 1, 0), fill(m2, 3, 0), fill(v2, 4, 0.1f);
  test::Floats wp = widened(p), wg = widened(g), wm = widened(m),
               wv = widened(v);
  const float lr = 0.01f, clip = 0.5f;
  const int64_t t = 7;
  float squares = 0, squares2 = 0, wideSquares = 0;
  runKernel<AdamW>(1, wide, {wp, wg, wm, wv, &lr, &t, &clip},
                   {wp, wm, wv, &wideSquares});
  runKernel<AdamW>(1, params, {p, g, m, v, &lr, &t, &clip},
                   {p, m, v, &squares});
  runKernel<AdamW>(2, params, {p2, g, m2, v2, &lr, &t, &clip},
                   {p2, m2, v2, &squares2});
  EXPECT_EQ(squares, wideSquares);
  EXPECT_EQ(squares, squares2);
  EXPECT_TRUE(p.sameBits(p2) && m.sameBits(m2) && v.sameBits(v2));
  expectKept(p, wp, params.stream, t, 0);
  expectKept(m, wm, params.stream, t, 1);
  expectKept(v, wv, params.stream, t, 2);
}

template <typename Copy> void checkCopies() {
  const int64_t count = 66001;
  const float lr = 0.01f;
  test::Floats g = randomFloats(count, 2);
  g[0] = 1e30f; // Of SGD's, more than 65520.
  g[count - 1] = NAN;
  checkCopy<Copy>([&](DType type, int64_t t, test::Floats &p, auto &copy) {
    AdamParams params = test::adamParams(count);
    params.copy = type;
    test::Floats m = randomFloats(count, 3), v(count, 1.0f);
    float squares;
    runKernel<AdamW>(2, params, {p, g, m, v, &lr, &t},
                     {p, m, v, &squares, copy});
  });
  checkCopy<Copy>([&](DType type, int64_t t, test::Floats &p, auto &copy) {
    Sgd::Params params{.param = DType::F32,
                       .grad = DType::F32,
                       .moment = DType::F32,
                       .copy = type,
                       .count = count,
                       .momentum = 0,
                       .dampening = 0,
                       .weightDecay = 0.1,
                       .nesterov = false,
                       .stream = 0,
                       .scratchBytes = 0};
    float squares;
    runKernel<Sgd>(2, params, {p, g, nullptr, &lr, &t},
                   {p, nullptr, &squares, copy});
  });
  checkCopy<Copy>([&](DType type, int64_t t, test::Floats &p, auto &copy) {
    AdamParams params = test::adamParams(count);
    params.copy = type;
    const int64_t blocks = (count + adam::kCodeBlock - 1) / adam::kCodeBlock;
    Buffer<uint8_t> m(count, 200), v(count, 100);
    test::Floats mMost(blocks, 0.5f), vMost(blocks, 0.1f);
    float squares;
    p[7] = NAN; // Stays, as its gradient says, too, and so does its copy.
    runKernel<AdamW8bit>(2, params, {p, g, m, mMost, v, vMost, &lr, &t},
                         {p, m, mMost, v, vMost, &squares, copy});
  });
}

} // namespace

TEST(Updates, CopyParametersAsCastsRound) {
  checkCopies<bf16>();
  checkCopies<f16>();
}

TEST(AdamW, KeepsEachTypeRoundedByChance) {
  checkTypes<bf16, float, float>();
  checkTypes<bf16, bf16, bf16>();
  checkTypes<float, bf16, bf16>();
  checkTypes<bf16, float, bf16>();
  checkTypes<float, bf16, float>();
  checkTypes<float, f16, float>();
  checkTypes<bf16, f16, bf16>();
}

TEST(Stochastic, IsRightInTheMean) {
  const Philox draws = roundingDraws(3, 11);
  // A sixteenth and fifteen sixteenths above a bf16, of either sign; a
  // subnormal; what bf16 holds.
  for (float x : {1.00048828125f, -1.00732421875f, 1.0e-40f, 3.0f}) {
    const int64_t count = 100000;
    double sum = 0, unit = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float y = widen(bf16{
          uint16_t(stochasticBits(x, roundingBits(draws, i, int(i % 3))))});
      sum += y;
      unit = std::max(unit, std::abs(double(y) - x));
    }
    // Four deviations of the mean of so many.
    EXPECT_NEAR(sum / double(count), x, 4 * unit / std::sqrt(double(count)));
  }
  EXPECT_EQ(stochasticBits(INFINITY, 0xffffu), 0x7f80u);
  EXPECT_EQ(stochasticBits(-INFINITY, 0xffffu), 0xff80u);
  EXPECT_GT(stochasticBits(NAN, 0xffffu) & 0x7fffu, 0x7f80u);
}
