//===- StorageTest.cpp - narrow types of kernels against an independent model //

#include "runtime/kernels/Storage.h"

#include "test/cuda/emulator/Types.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

using namespace tmc;

namespace {

template <typename T> struct Model;
template <> struct Model<bf16> {
  static constexpr emulator::Format format = emulator::kBf16;
  static constexpr bool saturates = false;
};
template <> struct Model<f16> {
  static constexpr emulator::Format format = emulator::kF16;
  static constexpr bool saturates = false;
};
template <> struct Model<f8e4m3> {
  static constexpr emulator::Format format = emulator::kE4M3;
  static constexpr bool saturates = true;
};
template <> struct Model<f8e5m2> {
  static constexpr emulator::Format format = emulator::kE5M2;
  static constexpr bool saturates = true;
};

template <typename T> class Storage : public testing::Test {
protected:
  static constexpr emulator::Format format = Model<T>::format;
  static constexpr uint32_t codes = 1u << (8 * sizeof(T));

  static uint32_t encode(float x) {
    return emulator::encode(format, x, Model<T>::saturates);
  }
  static T of(uint32_t bits) { return {decltype(T::bits)(bits)}; }
};
using Types = testing::Types<bf16, f16, f8e4m3, f8e5m2>;
TYPED_TEST_SUITE(Storage, Types);

/// Equal bits, or both NaN.
testing::AssertionResult same(float a, float b) {
  if (std::isnan(a) ? std::isnan(b) : bitsAs<int32_t>(a) == bitsAs<int32_t>(b))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << a << " and " << b;
}

/// Where rounding turns: all codes' values, the middles between neighbours, the
/// floats next to them, and random ones.
std::vector<float> hardFloats(emulator::Format format) {
  std::vector<float> hard = {0.0f,     1e-45f,    0x1p-149f, 3.4e38f,
                             INFINITY, 0x1p-126f, 65519.99f, 65520.0f};
  for (uint32_t bits = 0; bits < format.largest(); ++bits) {
    const double low = emulator::decode(format, bits);
    const double high = emulator::decode(format, bits + 1);
    const float middle = float((low + high) / 2);
    for (float x : {float(low), middle, std::nextafterf(middle, 0.0f),
                    std::nextafterf(middle, INFINITY)})
      hard.push_back(x);
  }
  const float largest = emulator::decode(format, format.largest());
  hard.insert(hard.end(), {largest, std::nextafterf(largest, INFINITY),
                           largest * 1.03f, largest * 1.07f});
  std::mt19937 engine(1);
  for (int i = 0; i < 200000; ++i) {
    const float x = bitsAs<float>(uint32_t(engine()));
    if (!std::isnan(x))
      hard.push_back(x);
  }
  for (size_t i = 0, n = hard.size(); i < n; ++i)
    hard.push_back(-hard[i]);
  while (hard.size() % kLanes)
    hard.push_back(1.0f);
  return hard;
}

} // namespace

TYPED_TEST(Storage, WidensEveryCode) {
  using T = TypeParam;
  std::vector<T> codes;
  for (uint32_t bits = 0; bits < this->codes; ++bits)
    codes.push_back(this->of(bits));
  for (uint32_t bits = 0; bits < this->codes; ++bits) {
    const float expected = emulator::decode(this->format, bits);
    ASSERT_TRUE(same(widen(codes[bits]), expected)) << bits;
    // The text that machines without conversions run.
    ASSERT_TRUE(same(widenBits<T>(uint32_t(bits)), expected)) << bits;
    const Floats<kLanes> lanes =
        loadLanes<kLanes>(&codes[bits / kLanes * kLanes]);
    ASSERT_TRUE(same(lanes[bits % kLanes], expected)) << bits;
  }
}

TYPED_TEST(Storage, NarrowsToTheNearestEven) {
  using T = TypeParam;
  const std::vector<float> all = hardFloats(this->format);
  std::vector<T> stored(all.size());
  for (size_t i = 0; i < all.size(); i += kLanes)
    storeLanes<kLanes>(&stored[i], loadLanes<kLanes>(&all[i]));
  for (size_t i = 0; i < all.size(); ++i) {
    const uint32_t expected = this->encode(all[i]);
    ASSERT_EQ(stored[i].bits, expected) << all[i];
    ASSERT_EQ(narrow<T>(all[i]).bits, expected) << all[i];
    ASSERT_EQ(narrowBits<T>(all[i]), expected) << all[i];
  }
}

TYPED_TEST(Storage, RoundsAsThroughMemory) {
  using T = TypeParam;
  const std::vector<float> all = hardFloats(this->format);
  for (size_t i = 0; i < all.size(); i += kLanes) {
    const Floats<kLanes> lanes = rounded<T>(loadLanes<kLanes>(&all[i]));
    for (int k = 0; k < kLanes; ++k) {
      ASSERT_TRUE(same(lanes[k], widen(narrow<T>(all[i + k])))) << all[i + k];
      ASSERT_TRUE(same(rounded<T>(all[i + k]), lanes[k])) << all[i + k];
    }
  }
}

TYPED_TEST(Storage, KeepsNans) {
  using T = TypeParam;
  for (uint32_t bits : {0x7fc00000u, 0x7f800001u, 0xffffffffu, 0x7fffffffu}) {
    const float nan = bitsAs<float>(bits);
    EXPECT_TRUE(std::isnan(widen(narrow<T>(nan)))) << bits;
    EXPECT_TRUE(std::isnan(rounded<T>(nan))) << bits;
    T stored[kLanes];
    storeLanes<kLanes>(stored, splat<kLanes>(nan));
    for (T one : stored)
      EXPECT_EQ(one.bits, narrow<T>(nan).bits) << bits;
  }
}
