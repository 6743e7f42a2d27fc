//===- TypesTest.cpp - bf16, fp16 and fp8 against independent roundings ---===//

#include "test/cuda/emulator/Types.h"

#include "runtime/kernels/Storage.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

using namespace tmc::emulator;

namespace {

/// All finite values of a format, with their bits, from the smallest.
std::vector<std::pair<double, uint32_t>> valuesOf(Format f) {
  std::vector<std::pair<double, uint32_t>> values;
  for (uint32_t bits = 0; bits <= f.largest(); ++bits)
    values.emplace_back(decode(f, bits), bits);
  return values;
}

float randomFloat(std::mt19937 &engine) {
  const uint32_t bits = engine();
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

} // namespace

TEST(Types, EveryValueComesBack) {
  for (Format f : {kBf16, kF16, kE4M3, kE5M2}) {
    const auto values = valuesOf(f);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(encode(f, float(values[i].first)), values[i].second);
      EXPECT_EQ(encode(f, -float(values[i].first)),
                values[i].second | f.sign());
      EXPECT_TRUE(i == 0 || values[i].first > values[i - 1].first) << i;
    }
  }
}

TEST(Types, HalfWayGoesToTheEvenOne) {
  for (Format f : {kF16, kE4M3, kE5M2}) { // their midpoints are floats
    const auto values = valuesOf(f);
    for (size_t i = 1; i < values.size(); ++i) {
      const double low = values[i - 1].first, high = values[i].first;
      const float middle = float((low + high) / 2);
      const uint32_t even =
          values[i].second % 2 ? values[i - 1].second : values[i].second;
      EXPECT_EQ(encode(f, middle), even);
      EXPECT_EQ(encode(f, std::nextafterf(middle, 1e30f)), values[i].second);
      EXPECT_EQ(encode(f, std::nextafterf(middle, 0)), values[i - 1].second);
    }
  }
}

TEST(Types, LargestValues) {
  EXPECT_EQ(decode(kF16, kF16.largest()), 65504);
  EXPECT_EQ(decode(kE4M3, kE4M3.largest()), 448);
  EXPECT_EQ(decode(kE5M2, kE5M2.largest()), 57344);
  EXPECT_EQ(encode(kE4M3, 464), 0x7e); // half way to 480: even is 448
  EXPECT_EQ(encode(kE4M3, 465), 0x7f); // NaN
  EXPECT_EQ(encode(kE4M3, 1e9f, true), 0x7e);
  EXPECT_EQ(encode(kE4M3, -INFINITY, true), 0xfe);
  EXPECT_EQ(encode(kE4M3, NAN, true), 0x7f);
  EXPECT_EQ(encode(kE5M2, 61439), 0x7b);
  EXPECT_EQ(encode(kE5M2, 61440), 0x7c); // infinity
  EXPECT_EQ(encode(kE5M2, 61440, true), 0x7b);
  EXPECT_EQ(encode(kF16, 65520), 0x7c00);
  EXPECT_EQ(encode(kF16, 65519.99f), 0x7bff);
  EXPECT_TRUE(std::isnan(decode(kE4M3, 0x7f)));
  EXPECT_TRUE(std::isinf(decode(kE5M2, 0x7c)));
}

TEST(Types, AgreesWithOtherRoundings) {
  std::mt19937 engine(1);
  for (int i = 0; i < 1000000; ++i) {
    const float x = randomFloat(engine);
    if (std::isnan(x))
      continue;
    // The kernels' own conversions, and the compiler's.
    ASSERT_EQ(__float2bfloat16_rn(x).bits, tmc::narrow<tmc::bf16>(x).bits) << x;
    ASSERT_EQ(__float2half_rn(x).bits, tmc::narrow<tmc::f16>(x).bits) << x;
    const _Float16 half = _Float16(x);
    uint16_t bits;
    std::memcpy(&bits, &half, 2);
    ASSERT_EQ(__float2half_rn(x).bits, bits) << x;
  }
}
