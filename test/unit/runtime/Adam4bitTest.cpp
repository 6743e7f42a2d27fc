//===- Adam4bitTest.cpp - moments in 4 bits against torchao's rule --------===//

#include "Adam.h"
#include "UpdateTesting.h"

#include "runtime/kernels/Adam4bit.h"

#include <algorithm>

using namespace tmc;
using namespace tmc::test;

namespace {

/// torchao's maps, made as it makes them.
std::vector<double> publishedMap(bool isSigned) {
  std::vector<double> map;
  if (!isSigned) {
    for (int k = 1; k <= 16; ++k) // linspace(0, 1, 17) without its first
      map.push_back(k / 16.0);
    return map;
  }
  map = {0, 1};
  for (int i = 0; i < 3; ++i) {
    const int items = 1 << i;
    for (int k = 0; k < items; ++k) {
      const double low = 0.1 + 0.9 * k / items;
      const double high = 0.1 + 0.9 * (k + 1) / items;
      const double mean = (low + high) / 2 * std::pow(10.0, i - 2);
      map.push_back(mean);
      map.push_back(-mean);
    }
  }
  std::sort(map.begin(), map.end());
  return map;
}

/// One moment of a tensor in 4 bits, in double but for the scales.
struct NibbleModel {
  std::vector<double> map, values;
  std::vector<uint8_t> code;
  std::vector<float> scale;
  std::vector<double> unsure; // how near a value came to half way

  NibbleModel(bool isSigned, int64_t count)
      : map(publishedMap(isSigned)), values(size_t(count)), code(size_t(count)),
        scale(size_t(count) / 128), unsure(size_t(count)) {}
  void load(const Buffer<uint8_t> &bytes, const test::Floats &scales) {
    for (size_t i = 0; i < code.size(); ++i) {
      const uint8_t byte = bytes[int64_t(i / 2)];
      code[i] = i % 2 ? byte & 15 : byte >> 4;
      values[i] = map[code[i]] * double(scales[int64_t(i / 128)]);
    }
  }
  void encode() {
    for (size_t from = 0; from < values.size(); from += 128) {
      double largest = 1e-12;
      for (size_t i = from; i < from + 128; ++i)
        largest = std::max(largest, std::abs(values[i]));
      scale[from / 128] = float(largest);
      for (size_t i = from; i < from + 128; ++i) {
        const double x = values[i] / largest;
        size_t best = 0;
        for (size_t c = 1; c < map.size(); ++c)
          if (std::abs(map[c] - x) <= std::abs(map[best] - x))
            best = c; // Half way is the upper one's.
        code[i] = uint8_t(best);
        unsure[i] = 1;
        for (size_t c = 0; c + 1 < map.size(); ++c)
          unsure[i] =
              std::min(unsure[i], std::abs(x - (map[c] + map[c + 1]) / 2));
      }
    }
  }
  /// Codes and scales that the kernel left are the model's; how many values lay
  /// half way.
  int64_t compare(const Buffer<uint8_t> &bytes,
                  const test::Floats &scales) const {
    int64_t ties = 0;
    for (size_t i = 0; i < code.size(); ++i) {
      const uint8_t byte = bytes[int64_t(i / 2)];
      const int got = i % 2 ? byte & 15 : byte >> 4;
      if (got == code[i])
        continue;
      ++ties;
      EXPECT_LT(unsure[i], 1e-5) << i;
    }
    for (size_t b = 0; b < scale.size(); ++b)
      EXPECT_NEAR(scales[int64_t(b)], scale[b], 1e-6 * scale[b]);
    return ties;
  }
};

} // namespace

TEST(AdamW4bit, HasThePublishedCodes) {
  for (bool isSigned : {false, true}) {
    const std::vector<double> map = publishedMap(isSigned);
    ASSERT_EQ(map.size(), size_t(adam::kNibbles));
    for (int c = 0; c < adam::kNibbles; ++c)
      EXPECT_EQ(adam::nibbleValue(isSigned, c), float(map[size_t(c)])) << c;
    for (int c = 0; c + 1 < adam::kNibbles; ++c) {
      const float bound = adam::nibbleBound(isSigned, c);
      const double middle = (double(adam::nibbleValue(isSigned, c)) +
                             double(adam::nibbleValue(isSigned, c + 1))) /
                            2;
      EXPECT_GE(double(bound), middle);
      EXPECT_LT(double(std::nextafter(bound, -2.0f)), middle);
    }
  }
  EXPECT_EQ(adam::nibbleValue(true, 0), -0.8875f);
  EXPECT_EQ(adam::nibbleValue(true, 7), 0);
  EXPECT_EQ(adam::nibbleValue(false, 0), 0.0625f);
}

/// Each step begins with the codes that the kernel left; it must leave those
/// that the model does, save where a value lies half way.
TEST(AdamW4bit, FollowsTheModel) {
  const int64_t count = 70016, blocks = count / 128; // more than one part
  const AdamParams params = adamParams(count);
  using Bytes = Buffer<uint8_t>;
  test::Floats p = randomFloats(count, 1), m(blocks), v(blocks);
  Bytes mc(count / 2), vc(count / 2);
  test::Floats p2(p), m2(m), v2(v);
  Bytes mc2(mc), vc2(vc);
  NibbleModel first(true, count), second(false, count);
  int64_t ties = 0;
  Buffer<float> lr(1), clip(1, 0.5f), got(1), got2(1);
  Buffer<int64_t> t(1);
  for (t[0] = 1; t[0] <= 5; ++t[0]) {
    test::Floats g = randomFloats(count, unsigned(10 + t[0]));
    for (int64_t i = 512; i < 640; ++i)
      g[i] = 0; // a block without any
    g[40000] = NAN;
    g[40001] = -INFINITY;
    lr[0] = 0.01f * float(t[0]);
    first.load(mc, m);
    second.load(vc, v);
    std::vector<double> want(p.get(), p.get() + count);
    for (int64_t i = 0; i < count; ++i) {
      const double d = g[i] * 0.5;
      if (!std::isfinite(d))
        continue;
      double &x = want[size_t(i)], &a = first.values[size_t(i)],
             &b = second.values[size_t(i)];
      x -= lr[0] * 0.1 * x;
      a += (d - a) * 0.1;
      b += (d * d - b) * 0.05;
      x -= lr[0] * (a / (1 - std::pow(0.9, t[0]))) /
           (std::sqrt(b) / std::sqrt(1 - std::pow(0.95, t[0])) + 1e-8);
    }
    first.encode();
    second.encode();
    runKernel<AdamW4bit>(1, params, {p, g, mc, m, vc, v, lr, t, clip},
                         {p, mc, m, vc, v, got});
    runKernel<AdamW4bit>(2, params, {p2, g, mc2, m2, vc2, v2, lr, t, clip},
                         {p2, mc2, m2, vc2, v2, got2});
    expectClose(p.get(), want, 1e-5, "p");
    EXPECT_TRUE(std::isnan(got[0]) && std::isnan(got2[0]));
    ties += first.compare(mc, m) + second.compare(vc, v);
  }
  EXPECT_LT(ties, count / 100);
  EXPECT_TRUE(p.sameBits(p2) && m.sameBits(m2) && v.sameBits(v2));
  EXPECT_TRUE(mc.sameBits(mc2) && vc.sameBits(vc2));
  EXPECT_EQ(m[4], 1e-12f); // The least scale.
  EXPECT_EQ(vc[256], 0);
}

TEST(AdamW4bit, LeavesAllAtStep0) {
  const int64_t count = 256, t = 0;
  const float lr = 0.1f;
  test::Floats p = randomFloats(count, 1), g = randomFloats(count, 2);
  test::Floats m(2, 0.5f), v(2, 0.25f), before(p);
  Buffer<uint8_t> mc(count / 2, 0x9a), vc(count / 2, 0x31);
  float squares = 0, want = 0;
  runKernel<AdamW4bit>(1, adamParams(count), {p, g, mc, m, vc, v, &lr, &t},
                       {p, mc, m, vc, v, &squares});
  for (int64_t i = 0; i < count; ++i)
    want += g[i] * g[i];
  EXPECT_NEAR(squares, want, 1e-4 * want);
  EXPECT_TRUE(p.sameBits(before));
  EXPECT_EQ(mc[5], 0x9a);
  EXPECT_EQ(vc[127], 0x31);
}

namespace {

/// A narrow parameter is f32's, rounded; moments are of f32 whatever it is.
template <typename Grad> void checkNarrow() {
  const int64_t count = 66048;
  AdamParams wide = adamParams(count), params = wide;
  params.param = DType::BF16;
  wide.grad = params.grad = typeOf<Grad>;
  params.stream = 5;
  Buffer<bf16> p(count);
  Buffer<Grad> g(count);
  test::Floats from = randomFloats(count, 1), grads = randomFloats(count, 2);
  for (int64_t i = 0; i < count; ++i) {
    storeLanes<1>(p.get() + i, from[i]);
    storeLanes<1>(g.get() + i, grads[i]);
  }
  test::Floats wp = widened(p), m(count / 128), v(m), wm(m), wv(m);
  Buffer<uint8_t> mc(count / 2), vc(mc), wmc(mc), wvc(mc);
  const float lr = 0.01f;
  const int64_t t = 3;
  float squares;
  runKernel<AdamW4bit>(1, wide, {wp, g, wmc, wm, wvc, wv, &lr, &t},
                       {wp, wmc, wm, wvc, wv, &squares});
  runKernel<AdamW4bit>(2, params, {p, g, mc, m, vc, v, &lr, &t},
                       {p, mc, m, vc, v, &squares});
  expectKept(p, wp, params.stream, t, 0);
  EXPECT_TRUE(mc.sameBits(wmc) && m.sameBits(wm));
  EXPECT_TRUE(vc.sameBits(wvc) && v.sameBits(wv));
}

template <typename Copy> void checkCopies() {
  const int64_t count = 66001 / 128 * 128;
  const float lr = 0.01f;
  test::Floats g = randomFloats(66001, 2);
  g[7] = NAN;
  checkCopy<Copy>(
      [&](DType type, int64_t t, test::Floats &p, auto &copy) {
        AdamParams params = adamParams(count);
        params.copy = type;
        p[7] = NAN; // Stays, as its gradient says, too, and so does its copy.
        test::Floats m(count / 128, 0.5f), v(count / 128, 0.1f);
        Buffer<uint8_t> mc(count / 2, 0xb3), vc(count / 2, 0x51);
        float squares;
        runKernel<AdamW4bit>(2, params, {p, g, mc, m, vc, v, &lr, &t},
                             {p, mc, m, vc, v, &squares, copy});
      },
      count);
}

} // namespace

TEST(AdamW4bit, KeepsParametersRoundedByChance) {
  checkNarrow<float>();
  checkNarrow<bf16>();
  checkNarrow<f16>();
}

TEST(AdamW4bit, CopiesParametersAsCastsRound) {
  checkCopies<bf16>();
  checkCopies<f16>();
}
