//===- ReadAsTest.cpp - f32 factors that are rounded as they are read -----===//

#include "Testing.h"
#include "Typed.h"

#include "runtime/kernels/CrossEntropy.h"
#include "runtime/kernels/Matmul.h"
#include "runtime/kernels/Storage.h"

using namespace tmc;
using namespace tmc::test;

namespace {

/// `x` with 11 significant bits, by arithmetic.
float toTF32(float x) {
  if (x == 0 || !std::isfinite(x))
    return x;
  int exponent;
  (void)std::frexp(double(x), &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent, -125) - 11);
  return float(std::nearbyint(double(x) / unit) * unit);
}

test::Floats toTF32(const test::Floats &x) {
  test::Floats y(x.size());
  for (int64_t i = 0; i < x.size(); ++i)
    y[i] = toTF32(x[i]);
  return y;
}

Matmul::Params product(int64_t m, int64_t n, int64_t k, int which) {
  return {.lhs = DType::F32,
          .rhs = DType::F32,
          .out = DType::F32,
          .batch = 2,
          .m = m,
          .n = n,
          .k = k,
          .transposeLhs = (which & 1) != 0,
          .transposeRhs = (which & 2) != 0,
          .bias = false,
          .tf32 = false,
          .scratchBytes = 0};
}

/// The norm of the difference, of that of `want`.
double distance(const test::Floats &got, const test::Floats &want) {
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    difference += std::pow(double(got[i]) - want[i], 2);
    norm += std::pow(double(want[i]), 2);
  }
  return std::sqrt(difference / norm);
}

/// Ragged panels on each side, and more than one depth.
constexpr int64_t kM = 61, kN = 77, kK = 301;

} // namespace

TEST(TF32, RoundsToNearestEven) {
  std::mt19937 random(1);
  int64_t changed = 0;
  for (int i = 0; i < 200000; ++i) {
    // Ties and their neighbours among them.
    uint32_t bits = random();
    if (i % 4 == 0)
      bits = (bits & ~0x1fffu) | 0x1000u;
    if (i % 4 == 1)
      bits = (bits & ~0x1fffu) | 0xfffu;
    float x;
    std::memcpy(&x, &bits, 4);
    const float got = rounded<tf32>(x), want = toTF32(x);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(got));
      continue;
    }
    ASSERT_EQ(got, want) << x;
    changed += got != x;
  }
  EXPECT_GT(changed, 190000);
  EXPECT_EQ(rounded<tf32>(3.4028234e38f), INFINITY);
}

TEST(Matmul, RoundsBothFactorsToTF32) {
  const test::Floats a = randomFloats(2 * kM * kK, 1),
                     b = randomFloats(2 * kK * kN, 2);
  const test::Floats ra = toTF32(a), rb = toTF32(b);
  for (int which = 0; which < 4; ++which) {
    SCOPED_TRACE(which);
    Matmul::Params p = product(kM, kN, kK, which);
    test::Floats plain(2 * kM * kN), want(plain), got(plain);
    runKernel<Matmul>(1, p, {a, b}, {plain});
    runKernel<Matmul>(1, p, {ra, rb}, {want});
    p.tf32 = true;
    runKernel<Matmul>(2, p, {a, b}, {got});
    if (kBackend == Backend::Cpu) {
      EXPECT_TRUE(got.sameBits(want));
    }
    // The library may add up otherwise; TF32's own rounding is far larger.
    EXPECT_LE(distance(got, want), 1e-6);
    EXPECT_GE(distance(got, plain), 1e-4);
  }
}

TEST(LinearCrossEntropy, RoundsItsFactorsToTF32) {
  const int64_t rows = 21, channels = 24, vocabulary = 610;
  test::Longs labels = randomLongs(rows, vocabulary, 3);
  labels[20] = -100;
  const float weight = 0.05f;
  const test::Floats x = randomFloats(rows * channels, 1),
                     w = randomFloats(vocabulary * channels, 2);
  const LinearCrossEntropyParams p{.type = DType::F32,
                                   .table = DType::F32,
                                   .labelType = DType::I64,
                                   .rows = rows,
                                   .channels = channels,
                                   .vocabulary = vocabulary,
                                   .chunkRows = 64,
                                   .ignoreIndex = -100,
                                   .bias = false,
                                   .tf32 = true,
                                   .scratchBytes = 0};
  float loss = 0, want = 0;
  test::Floats dx(x.size()), dw(w.size()), lse(rows), wantX(dx), wantW(dw);
  runKernel<LinearCrossEntropyWithGrad>(
      2, p, {x, w, labels, &weight, &weight, nullptr},
      {&loss, dx, dw, nullptr});
  // The same in pieces.
  test::Floats logits(rows * vocabulary), dlogits(logits);
  auto multiply = [&](const test::Floats &a, const test::Floats &b, int64_t m,
                      int64_t n, int64_t k, int which, test::Floats &to) {
    Matmul::Params q = product(m, n, k, which);
    q.batch = 1;
    q.tf32 = true;
    runKernel<Matmul>(1, q, {a, b}, {to});
  };
  multiply(x, w, rows, vocabulary, channels, 2, logits);
  const CrossEntropyParams whole{.type = DType::F32,
                                 .labelType = DType::I64,
                                 .rows = rows,
                                 .vocabulary = vocabulary,
                                 .ignoreIndex = -100,
                                 .scratchBytes = 0};
  runKernel<CrossEntropy>(1, whole, {logits, labels, &weight}, {&want, lse});
  runKernel<CrossEntropyGrad>(1, whole, {logits, labels, lse, &weight},
                              {dlogits});
  multiply(dlogits, w, rows, channels, vocabulary, 0, wantX);
  multiply(dlogits, x, vocabulary, channels, rows, 1, wantW);
  EXPECT_EQ(loss, want);
  if (kBackend == Backend::Cpu) {
    EXPECT_TRUE(dx.sameBits(wantX));
    EXPECT_TRUE(dw.sameBits(wantW));
  }
  for (int64_t i = 0; i < dx.size(); ++i)
    EXPECT_NEAR(dx[i], wantX[i], 1e-6);
}

#if !defined(TMC_CUDA_EMULATED) && !defined(TMC_TEST_ON_CARD)
// Of the other backend's products both factors have one type.

TEST(Matmul, RoundsAnF32FactorToTheOthersType) {
  const test::Floats a = randomFloats(2 * kM * kK, 1),
                     b = randomFloats(2 * kK * kN, 2);
  for (DType type : {DType::BF16, DType::F16})
    for (int which = 0; which < 4; ++which) {
      SCOPED_TRACE(std::string(nameOf(type)) + std::to_string(which));
      Typed narrowA(type, a), narrowB(type, b);
      Matmul::Params p = product(kM, kN, kK, which);
      test::Floats want(2 * kM * kN), left(want), right(want);
      p.lhs = p.rhs = type;
      runKernel<Matmul>(1, p, {narrowA, narrowB}, {want});
      p.lhs = DType::F32;
      runKernel<Matmul>(2, p, {a, narrowB}, {left});
      EXPECT_TRUE(left.sameBits(want));
      p.lhs = type;
      p.rhs = DType::F32;
      runKernel<Matmul>(2, p, {narrowA, b}, {right});
      EXPECT_TRUE(right.sameBits(want));
    }
}

TEST(LinearCrossEntropy, RoundsAnF32TableToTheTypeOfX) {
  const int64_t rows = 21, channels = 24, vocabulary = 610;
  test::Longs labels = randomLongs(rows, vocabulary, 3);
  const float weight = 0.05f;
  Typed x(DType::BF16, randomFloats(rows * channels, 1));
  const test::Floats w = randomFloats(vocabulary * channels, 2);
  Typed narrowW(DType::BF16, w);
  LinearCrossEntropyParams p{.type = DType::BF16,
                             .table = DType::BF16,
                             .labelType = DType::I64,
                             .rows = rows,
                             .channels = channels,
                             .vocabulary = vocabulary,
                             .chunkRows = 8,
                             .ignoreIndex = -100,
                             .bias = false,
                             .tf32 = false,
                             .scratchBytes = 0};
  float loss = 0, want = 0;
  test::Floats dw(w.size()), wantW(dw);
  Typed dx(DType::BF16, x.values), wantX(DType::BF16, x.values);
  runKernel<LinearCrossEntropyWithGrad>(
      1, p, {x, narrowW, labels, &weight, &weight, nullptr},
      {&want, wantX, wantW, nullptr});
  p.table = DType::F32;
  runKernel<LinearCrossEntropyWithGrad>(
      2, p, {x, w, labels, &weight, &weight, nullptr},
      {&loss, dx, dw, nullptr});
  EXPECT_EQ(loss, want);
  EXPECT_TRUE(dx.bytes.sameBits(wantX.bytes));
  EXPECT_TRUE(dw.sameBits(wantW));
}
#endif
