// TensorTest.cpp - rounding to element types, and how positions are counted.

#include "compiler/reference/Tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace tmc::reference;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(RoundTo, F16) {
  // 11 significant bits: above 2048 every other whole number is missing.
  EXPECT_EQ(roundTo(Element::F16, 2049), 2048); // ties to even
  EXPECT_EQ(roundTo(Element::F16, 2051), 2052);
  EXPECT_EQ(roundTo(Element::F16, 2049.001), 2050);
  EXPECT_EQ(roundTo(Element::F16, -2049), -2048);
  // 65519 is the last to round down to the largest, 65504.
  EXPECT_EQ(roundTo(Element::F16, 65519), 65504);
  EXPECT_EQ(roundTo(Element::F16, 65520), kInfinity);
  // Subnormals are multiples of 2^-24.
  EXPECT_EQ(roundTo(Element::F16, 0x1.8p-24), 0x1p-23);
  EXPECT_EQ(roundTo(Element::F16, 0x1.4p-24), 0x1p-24);
  EXPECT_EQ(roundTo(Element::F16, 0x1p-25), 0);
}

TEST(RoundTo, BF16) {
  // 8 significant bits.
  EXPECT_EQ(roundTo(Element::BF16, 257), 256);
  EXPECT_EQ(roundTo(Element::BF16, 259), 260);
  EXPECT_EQ(roundTo(Element::BF16, 3.0e38), 0x1.C4p127);
  EXPECT_EQ(roundTo(Element::BF16, 3.4e38), kInfinity);
  EXPECT_EQ(roundTo(Element::BF16, 0x1.8p-133), 0x1p-132);
}

TEST(RoundTo, F8E4M3) {
  // 4 significant bits; no infinity: what is too large becomes 448.
  EXPECT_EQ(roundTo(Element::F8E4M3, 17), 16); // ties to even
  EXPECT_EQ(roundTo(Element::F8E4M3, 19), 20);
  EXPECT_EQ(roundTo(Element::F8E4M3, 463), 448);
  EXPECT_EQ(roundTo(Element::F8E4M3, 1e9), 448);
  EXPECT_EQ(roundTo(Element::F8E4M3, -kInfinity), -448);
  EXPECT_EQ(roundTo(Element::F8E4M3, 0x1.8p-9), 0x1p-8);
  EXPECT_EQ(roundTo(Element::F8E4M3, 0x1p-10), 0);
  EXPECT_TRUE(std::isnan(roundTo(Element::F8E4M3, std::nan(""))));
}

TEST(RoundTo, F8E5M2) {
  // 3 significant bits; infinity is read, but never made.
  EXPECT_EQ(roundTo(Element::F8E5M2, 9), 8);
  EXPECT_EQ(roundTo(Element::F8E5M2, 11), 12);
  EXPECT_EQ(roundTo(Element::F8E5M2, 65536), 57344);
  EXPECT_EQ(roundTo(Element::F8E5M2, kInfinity), 57344);
  EXPECT_EQ(roundTo(Element::F8E5M2, 0x1.8p-16), 0x1p-15);
}

// Kernels compute in f32: what is a tie there is one here.
TEST(RoundTo, NarrowTypesByWayOfF32) {
  EXPECT_EQ(roundTo(Element::BF16, 257 + 1e-9), 256);
  EXPECT_EQ(roundTo(Element::F8E4M3, 17 + 1e-9), 16);
}

// All codes are read, and written as they were.
TEST(FromBytes, KeepsEveryF8) {
  for (Element element : {Element::F8E4M3, Element::F8E5M2})
    for (uint32_t bits = 0; bits < 0x100; ++bits) {
      const uint8_t code = bits;
      Tensor t = Tensor::fromBytes(element, {1}, &code);
      if (!std::isfinite(t.floats[0]))
        continue;
      EXPECT_EQ(roundTo(element, t.floats[0]), t.floats[0]) << bits;
      uint8_t back = 0;
      t.toBytes(&back);
      EXPECT_EQ(back, code);
    }
}

TEST(RoundTo, F32AndF64) {
  EXPECT_EQ(roundTo(Element::F32, 0.1), double(0.1f));
  EXPECT_EQ(roundTo(Element::F64, 0.1), 0.1);
  EXPECT_TRUE(std::isnan(roundTo(Element::BF16, std::nan(""))));
}

// Every finite half survives the way to double and back.
TEST(RoundTo, KeepsEveryF16) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    uint16_t half = bits;
    Tensor t = Tensor::fromBytes(Element::F16, {1}, &half);
    if (!std::isfinite(t.floats[0]))
      continue;
    EXPECT_EQ(roundTo(Element::F16, t.floats[0]), t.floats[0]) << bits;
  }
}

TEST(FromBytes, ReadsEveryElement) {
  const uint16_t bf16[] = {0x3F80, 0xC000}; // 1, -2
  EXPECT_EQ(Tensor::fromBytes(Element::BF16, {2}, bf16).floats,
            (std::vector<double>{1, -2}));
  const float f32[] = {0.5f, -3.0f};
  EXPECT_EQ(Tensor::fromBytes(Element::F32, {2}, f32).floats,
            (std::vector<double>{0.5, -3}));
  const int8_t i8[] = {-1, 7};
  EXPECT_EQ(Tensor::fromBytes(Element::I8, {2}, i8).ints,
            (std::vector<int64_t>{-1, 7}));
  const uint8_t i1[] = {0, 1};
  EXPECT_EQ(Tensor::fromBytes(Element::I1, {2}, i1).ints,
            (std::vector<int64_t>{0, 1}));
  const int32_t i32[] = {-5};
  EXPECT_EQ(Tensor::fromBytes(Element::I32, {1}, i32).ints[0], -5);
}

TEST(ForEachIndex, IsRowMajor) {
  std::vector<std::pair<int64_t, int64_t>> seen;
  forEachIndex({2, 3}, [&](llvm::ArrayRef<int64_t> index, int64_t position) {
    EXPECT_EQ(linearIndex(index, {2, 3}), position);
    seen.push_back({index[0], index[1]});
  });
  EXPECT_EQ(seen, (std::vector<std::pair<int64_t, int64_t>>{
                      {0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}));
  int64_t count = 0;
  forEachIndex({}, [&](llvm::ArrayRef<int64_t>, int64_t) { ++count; });
  EXPECT_EQ(count, 1);
  forEachIndex({3, 0}, [&](llvm::ArrayRef<int64_t>, int64_t) { ++count; });
  EXPECT_EQ(count, 1);
}
