// FusedMathTest.cpp - the functions of fused kernels: their errors, that vector
// and scalar agree bit for bit, and that draws are Philox's.

#include "runtime/kernels/Draws.h"
#include "runtime/kernels/Math.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace tmc;

namespace {

/// The largest error of f against exact on [low, high), in units in the last
/// place; expects each lane to have the bits of the scalar function.
template <typename F, typename G>
double worstUlp(F f, G exact, double low, double high) {
  constexpr int kPoints = 1 << 18;
  double worst = 0;
  for (int i = 0; i < kPoints; i += kLanes) {
    Floats<kLanes> x;
    for (int k = 0; k < kLanes; ++k)
      x[k] = float(low + (high - low) * ((i + k) / double(kPoints)));
    const Floats<kLanes> y = f(x);
    for (int k = 0; k < kLanes; ++k) {
      const float scalar = f(float(x[k]));
      EXPECT_EQ(bitsAs<uint32_t>(scalar), bitsAs<uint32_t>(float(y[k])))
          << "at " << x[k];
      const double right = exact(double(x[k]));
      const double unit =
          right == 0 ? std::ldexp(1.0, -149)
                     : std::ldexp(1.0, std::max(-149, std::ilogb(right) - 23));
      worst = std::max(worst, std::fabs(double(scalar) - right) / unit);
    }
  }
  return worst;
}

// On cuda the units of a card are less exact than these stand-ins for them.
#ifdef TMC_CUDA
constexpr double kExp = 3;
#else
constexpr double kExp = 1;
#endif

TEST(FusedMath, ErrorsAreSmall) {
  auto exp = [](auto x) { return math::exp(x); };
  EXPECT_LE(worstUlp(
                exp, [](double x) { return std::exp(x); }, -103, 88.5),
            kExp);
  auto atan = [](auto x) { return math::atan(x); };
  EXPECT_LE(worstUlp(
                atan, [](double x) { return std::atan(x); }, -20, 20),
            1);
  auto log = [](auto x) { return math::log(x); };
  EXPECT_LE(worstUlp(
                log, [](double x) { return std::log(x); }, 0.5, 2),
            1);
  EXPECT_LE(worstUlp(
                log, [](double x) { return std::log(x); }, 1e-38, 1e3),
            1);
  auto tanh = [](auto x) { return math::tanh(x); };
  EXPECT_LE(worstUlp(
                tanh, [](double x) { return std::tanh(x); }, -12, 12),
            3);
  EXPECT_LE(worstUlp(
                tanh, [](double x) { return std::tanh(x); }, -.1, .1),
            3);
  auto erf = [](auto x) { return math::erf(x); };
  EXPECT_LE(worstUlp(
                erf, [](double x) { return std::erf(x); }, -5, 5),
            3);
  auto log1p = [](auto x) { return math::log1p(x); };
  EXPECT_LE(worstUlp(
                log1p, [](double x) { return std::log1p(x); }, -.9, 2),
            2);
}

TEST(FusedMath, SpecialValues) {
  const float inf = INFINITY;
  EXPECT_EQ(math::exp(-inf), 0);
  EXPECT_EQ(math::exp(100.0f), inf);
  EXPECT_EQ(math::tanh(-inf), -1);
  EXPECT_EQ(math::erf(inf), 1);
  EXPECT_EQ(math::log(0.0f), -inf);
  EXPECT_TRUE(std::isnan(math::log(-1.0f)));
  for (float y : {math::exp(NAN), math::tanh(NAN), math::erf(NAN),
                  math::log(NAN), max(0.0f, float(NAN)), min(float(NAN), 0.0f)})
    EXPECT_TRUE(std::isnan(y));
}

TEST(FusedMath, DrawsAreThoseOfPhilox) {
  const int64_t seed[2] = {0x123456789abcdef, 7};
  const Philox philox(seed, 5);
  // Aligned to a quad and not, and across the 32 bits of a counter's word.
  for (uint64_t first : {uint64_t(0), uint64_t(7), (uint64_t(1) << 34) - 64}) {
    Draws draws(seed, 5, first);
    int64_t at = 0;
    for (; at < 256; at += kLanes) {
      const Floats<kLanes> u = draws.at<kLanes>(at);
      for (int k = 0; k < kLanes; ++k)
        EXPECT_EQ(u[k], philox.uniformAt(first + at + k));
    }
    for (; at < 300; ++at)
      EXPECT_EQ(draws.at<1>(at), philox.uniformAt(first + at));
  }
}

} // namespace
