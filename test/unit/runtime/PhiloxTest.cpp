//===- PhiloxTest.cpp - the random numbers are the published ones ---------===//

#include "runtime/kernels/Philox.h"
#include "runtime/step/Normal.h"

#include "gtest/gtest.h"

#include <cmath>
#include <vector>

using namespace tmc;

// The known-answer vectors that were published with Random123 (kat_vectors,
// "philox4x32 10").
TEST(Philox, KnownAnswers) {
  struct Known {
    uint32_t counter[4], key[2], out[4];
  };
  const Known known[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Known &k : known) {
    const PhiloxWords w = philox4x32(k.counter[0], k.counter[1], k.counter[2],
                                     k.counter[3], k.key[0], k.key[1]);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(w.w[i], k.out[i]);
  }
}

TEST(Philox, ElementsFollowTheContract) {
  const int64_t seed[2] = {0x1122334455667788, 7};
  const Philox philox(seed, 3);
  const uint64_t index = (5ull << 32) + 4 * 9 + 2; // quad 2^30 * 5 + 9, word 2
  const PhiloxWords w =
      philox4x32(uint32_t(index / 4), uint32_t(index / 4 >> 32), 3, 7,
                 0x55667788, 0x11223344);
  EXPECT_EQ(philox.word(index), w.w[2]);
  EXPECT_EQ(philox.uniformAt(index), float(w.w[2] >> 8) / 16777216.0f);
}

TEST(Philox, ThresholdIsTheComparisonOfUniforms) {
  for (double p : {0.0, 0.1, 0.25, 0.5, 0.9, 0.999, 1.0 / 16777216}) {
    const uint32_t threshold = philoxThreshold(p);
    for (int64_t near = -2; near <= 2; ++near) {
      const int64_t u = int64_t(threshold) + near;
      if (u < 0 || u >= 16777216)
        continue;
      const uint32_t word = uint32_t(u) << 8 | 0x5a;
      EXPECT_EQ((word >> 8) >= threshold, double(Philox::uniform(word)) >= p)
          << p;
    }
  }
}

TEST(Normal, IsTheInverseOfTheDistribution) {
  const int64_t seed[2] = {11, 0};
  const Philox philox(seed, 5);
  std::vector<float> x(1000000);
  normalNumbers(philox, 8, int64_t(x.size()), 2, x.data());
  double mean = 0, square = 0, fourth = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double z = x[i] / 2;
    mean += z / double(x.size());
    square += z * z / double(x.size());
    fourth += z * z * z * z / double(x.size());
    const double u = ((philox.word(8 + i) >> 8) + 0.5) / 16777216;
    // In the distribution, where it is smaller: 1e-6 relative at worst.
    const double p = 0.5 * std::erfc(std::abs(z) / std::sqrt(2.0));
    const double want = std::min(u, 1 - u);
    ASSERT_NEAR(p, want, 2e-5 * want + 1e-8) << u << " " << z;
  }
  EXPECT_NEAR(mean, 0, 5e-3);
  EXPECT_NEAR(square, 1, 5e-3);
  EXPECT_NEAR(fourth, 3, 5e-2);
  // A piece from the middle is the same numbers.
  std::vector<float> piece(1001);
  normalNumbers(philox, 8 + 4000, 1001, 2, piece.data());
  for (size_t i = 0; i < piece.size(); ++i)
    ASSERT_EQ(piece[i], x[4000 + i]);
}

TEST(Uniform, IsTheWordOfTheElement) {
  const int64_t seed[2] = {11, 0};
  const Philox philox(seed, 5);
  constexpr float kSize = 0.125f; // A power of two: nothing is rounded.
  std::vector<float> x(100001);
  uniformNumbers(philox, 8, int64_t(x.size()), kSize, x.data());
  double mean = 0, square = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(x[i], kSize * (2 * Philox::uniform(philox.word(8 + i)) - 1));
    ASSERT_GE(x[i], -kSize);
    ASSERT_LT(x[i], kSize);
    mean += x[i] / double(x.size());
    square += double(x[i]) * x[i] / double(x.size());
  }
  EXPECT_NEAR(mean, 0, 1e-3);
  EXPECT_NEAR(square, kSize * kSize / 3, 1e-4);
  std::vector<float> piece(1001);
  uniformNumbers(philox, 8 + 4000, 1001, kSize, piece.data());
  for (size_t i = 0; i < piece.size(); ++i)
    ASSERT_EQ(piece[i], x[4000 + i]);
}
