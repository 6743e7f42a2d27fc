//===- PhiloxTest.cpp - the random numbers are the published ones ---------===//

#include "runtime/kernels/Philox.h"

#include "gtest/gtest.h"

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
