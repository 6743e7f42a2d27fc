// RandomTest.cpp - Philox by the vectors of its authors, and the rule by which
// elements are numbered.

#include "compiler/reference/Philox.h"

#include <gtest/gtest.h>

using namespace tmc::reference;
using Words = std::array<uint32_t, 4>;

// The three known answers of Random123's kat_vectors for philox4x32-10.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                       {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Uniform, TakesWordsAsTheRuleSays) {
  // Elements 4 to 7 of stream 2 in step 9 share a counter.
  Words words = philox4x32({1, 0, 2, 9}, {0x89abcdef, 0x01234567});
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(uniform(0x0123456789abcdef, 9, 2, 4 + i),
              double(words[i] >> 8) / 16777216.0);
}

TEST(Uniform, CountsPastFourBillion) {
  int64_t index = int64_t(5) << 34; // idx / 4 = 5 * 2^32
  Words words = philox4x32({0, 5, 0, 0}, {7, 0});
  EXPECT_EQ(uniform(7, 0, 0, index), double(words[0] >> 8) / 16777216.0);
}

TEST(Uniform, FillsTheInterval) {
  double sum = 0, least = 1, largest = 0;
  constexpr int64_t count = 100000;
  for (int64_t i = 0; i < count; ++i) {
    double u = uniform(1, 2, 3, i);
    sum += u;
    least = std::min(least, u);
    largest = std::max(largest, u);
  }
  // The mean of n uniforms deviates by 0.29 / sqrt(n) = 0.0009; four times
  // that.
  EXPECT_NEAR(sum / count, 0.5, 0.0037);
  EXPECT_GE(least, 0);
  EXPECT_LT(largest, 1);
  EXPECT_LT(least, 0.001);
  EXPECT_GT(largest, 0.999);
}
