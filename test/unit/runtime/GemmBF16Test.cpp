//===- GemmBF16Test.cpp - products of bf16 factors ------------------------===//
//
// Pairs give the bits of floats, whatever the layout, the size and the numbers;
// and those of a plain loop that rounds and flushes by arithmetic. So do tiles,
// with a loop in their order.
//
//===----------------------------------------------------------------------===//

#include "Typed.h"

#include "runtime/cpu/GemmPairs.h"
#include "runtime/cpu/GemmTiles.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/kernels/Matmul.h"
#include "runtime/kernels/Storage.h"
#include "runtime/step/Processor.h"

#include <limits>

using namespace tmc;
using namespace tmc::test;

namespace {

/// Numbers of all magnitudes, so that products and sums are denormal, too; and
/// zeros of both signs.
test::Floats wideFloats(int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  test::Floats floats(count);
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = engine();
    // Between 2^-67 and 2^-60: products are about the least normal number.
    bits = (bits & 0x807fffff) | (60 + engine() % 8) << 23;
    if (engine() % 16 == 0)
      bits &= engine() % 2 ? 0x807fffff : 0x80000000; // a denormal, or zero
    std::memcpy(&floats[i], &bits, 4);
  }
  return floats;
}

struct Case {
  DType type;
  bool readAsBF16;
};
constexpr Case kCases[] = {{DType::BF16, false},
                           {DType::F32, true},
                           {DType::F8E4M3, false},
                           {DType::F8E5M2, false}};

using RunFn = void (*)(Stream &, const gemm::Problem &, void *);

/// c, from zeros or from `before`.
test::Floats product(RunFn run, int threads, int64_t m, int64_t n, int64_t k,
                     const gemm::Matrix &a, const gemm::Matrix &b,
                     const float *bias, const test::Floats &before,
                     bool accumulate) {
  auto device = makeDevice(threads);
  test::Floats c(before);
  const Matmul::Params params{.lhs = DType::F32,
                              .rhs = DType::F32,
                              .out = DType::F32,
                              .batch = 1,
                              .m = m,
                              .n = n,
                              .k = k,
                              .transposeLhs = false,
                              .transposeRhs = false,
                              .bias = false,
                              .tf32 = false,
                              .scratchBytes = 0};
  test::Buffer<unsigned char> scratch(Matmul::scratchCap(params, Backend::Cpu),
                                      0xff);
  run(device->compute(), {m, n, k, a, b, bias, c.get(), n, accumulate},
      scratch.get());
  return c;
}

/// Element (i, j) of `a`, as it is read.
float elementOf(const Typed &a, const Case &how, int64_t at) {
  return how.readAsBF16 ? rounded<bf16>(a.values[at]) : a.values[at];
}

float flushed(float x) {
  return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.f, x)
                                                         : x;
}

/// A row of a or a column of b.
struct Line {
  const Typed &from;
  const Case &how;
  int64_t at, step;

  float operator[](int64_t p) const {
    return flushed(elementOf(from, how, at + p * step));
  }
};
float multiplyAdd(float a, float b, float sum) {
  return flushed(std::fmaf(a, b, sum));
}

/// How products [k0, k1) add up.
using SumFn = float (*)(const Line &a, const Line &b, int64_t k0, int64_t k1);

float oneByOne(const Line &a, const Line &b, int64_t k0, int64_t k1) {
  float sum = 0;
  for (int64_t p = k0; p < k1; ++p)
    sum = multiplyAdd(a[p], b[p], sum);
  return sum;
}
float asTiles(const Line &a, const Line &b, int64_t k0, int64_t k1) {
  float sum = 0;
  for (int64_t s = k0; s < k1; s += 32) {
    float chains[2] = {0, 0};
    for (int64_t p = s; p < std::min(k1, s + 32); ++p)
      chains[p % 2] = multiplyAdd(a[p], b[p], chains[p % 2]);
    sum = flushed(sum + flushed(chains[0] + chains[1]));
  }
  return sum;
}

/// One element: sums of kGemmDepth numbers each, from zero, added up.
float plain(SumFn sumOf, const Line &a, const Line &b, int64_t k) {
  float total = 0;
  for (int64_t k0 = 0; k0 < k; k0 += kGemmDepth) {
    const float sum = sumOf(a, b, k0, std::min(k, k0 + kGemmDepth));
    total = k0 ? flushed(total + sum) : sum;
  }
  return total;
}

struct Size {
  int64_t m, n, k;
};
constexpr Size kSizes[] = {{1, 1, 1},     {14, 32, 32},  {15, 33, 31},
                           {61, 77, 301}, {29, 16, 513}, {6, 130, 64},
                           {32, 9, 7},    {17, 32, 16},  {33, 5, 258}};

void compare(RunFn run, int threads, SumFn sumOf = oneByOne) {
  int64_t flushedSums = 0;
  for (const Case &left : kCases)
    for (const Case &right : kCases)
      for (const Size &size : kSizes)
        for (int which = 0; which < 4; ++which) {
          const auto [m, n, k] = size;
          SCOPED_TRACE(testing::Message()
                       << int(left.type) << " " << int(right.type) << " " << m
                       << " " << n << " " << k << " layout " << which);
          const bool wide = sizeOf(left.type) > 1 && sizeOf(right.type) > 1;
          const Typed a(left.type,
                        wide ? wideFloats(m * k, 1) : randomFloats(m * k, 1));
          const Typed b(right.type,
                        wide ? wideFloats(k * n, 2) : randomFloats(k * n, 2));
          const DType aAs = left.readAsBF16 ? DType::BF16 : DType::F32;
          const DType bAs = right.readAsBF16 ? DType::BF16 : DType::F32;
          const gemm::Matrix aMatrix = {a.get(), which & 1 ? 1 : k,
                                        which & 1 ? m : 1, left.type, aAs};
          const gemm::Matrix bMatrix = {b.get(), which & 2 ? 1 : n,
                                        which & 2 ? k : 1, right.type, bAs};
          const test::Floats zeros(m * n);
          const test::Floats c = product(run, threads, m, n, k, aMatrix,
                                         bMatrix, nullptr, zeros, false);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              const float want = plain(
                  sumOf, {a, left, i * aMatrix.rowStride, aMatrix.colStride},
                  {b, right, j * bMatrix.colStride, bMatrix.rowStride}, k);
              flushedSums += wide && want == 0;
              ASSERT_EQ(std::memcmp(&want, &c[i * n + j], 4), 0)
                  << i << ", " << j << ": " << c[i * n + j] << ", not " << want;
            }
        }
  EXPECT_GT(flushedSums, 100);
}

} // namespace

TEST(GemmPairs, FloatsFlushDenormals) { compare(gemm::runSingles, 1); }

TEST(GemmPairs, PairsGiveTheBitsOfFloats) {
  if (!gemm::knowsPairs())
    GTEST_SKIP() << "compiled without AVX512-BF16";
  compare(gemm::runPairs, 2);
}

TEST(GemmPairs, PairsAddBiasesAndOntoWhatIsThere) {
  if (!gemm::knowsPairs())
    GTEST_SKIP() << "compiled without AVX512-BF16";
  const int64_t m = 37, n = 70, k = 1337;
  const Typed a(DType::BF16, randomFloats(m * k, 1));
  const test::Floats b = randomFloats(k * n, 2), bias = randomFloats(n, 3);
  const test::Floats before = randomFloats(m * n, 4);
  const gemm::Matrix aMatrix = {a.get(), k, 1, DType::BF16};
  const gemm::Matrix bMatrix = {b.get(), n, 1, DType::F32, DType::BF16};
  for (bool accumulate : {false, true}) {
    const test::Floats pairs = product(gemm::runPairs, 1, m, n, k, aMatrix,
                                       bMatrix, bias, before, accumulate);
    const test::Floats singles = product(gemm::runSingles, 1, m, n, k, aMatrix,
                                         bMatrix, bias, before, accumulate);
    EXPECT_TRUE(pairs.sameBits(singles));
    EXPECT_FALSE(pairs.sameBits(before));
  }
}

/// Panels of kernels of their own: the bits of the plain loop, whichever way
/// they are multiplied.
TEST(GemmPairs, PanelsOfBF16GiveTheBitsOfFloats) {
  using gemm::kPanelM, gemm::kPanelN;
  constexpr Case how{DType::BF16, false};
  constexpr int64_t m = 2 * kPanelM + 3;
  int64_t flushedSums = 0;
  for (int64_t k : {1, 31, 64, 129})
    for (int64_t n : {5, int(kPanelN)}) {
      const Typed a(how.type, wideFloats(m * k, 1));
      const Typed b(how.type, wideFloats(n * k, 2)); // column after column
      test::Floats left(m * k), right(k * kPanelN), c(m * kPanelN);
      const gemm::PanelProducts panels(true, k);
      panels.packLeft({a.get(), k, 1, how.type}, m, left.get());
      panels.packRight({b.get(), 1, k, how.type}, n, right.get());
      panels.multiply(m, m, left.get(), right.get(), c.get());
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          const float want =
              plain(oneByOne, {a, how, i * k, 1}, {b, how, j * k, 1}, k);
          flushedSums += want == 0;
          ASSERT_EQ(std::memcmp(&want, &c[i * kPanelN + j], 4), 0)
              << k << ", " << n << ": " << i << ", " << j;
        }
    }
  EXPECT_GT(flushedSums, 10);
}

TEST(GemmPairs, OnlyFactorsOfBF16AreFlushed) {
  const Typed a(DType::F16, test::Floats(1, 0x1p-14f));
  const test::Floats b(1, 0x1p-120f);
  const test::Floats c =
      product(gemm::run, 1, 1, 1, 1, {a.get(), 1, 1, DType::F16},
              {b.get(), 1, 1}, nullptr, test::Floats(1), false);
  EXPECT_EQ(c[0], 0x1p-134f);
}

TEST(GemmTiles, GiveTheBitsOfTheirOrder) {
  if (!gemm::knowsTiles())
    GTEST_SKIP() << "compiled without AMX";
  if (!permitTiles())
    GTEST_SKIP() << "the operating system permits no tiles";
  compare(gemm::runTiles, 1, asTiles);
  compare(gemm::runTiles, 2, asTiles);
}

TEST(GemmTiles, AddBiasesAndOntoWhatIsThere) {
  if (!gemm::knowsTiles())
    GTEST_SKIP() << "compiled without AMX";
  if (!permitTiles())
    GTEST_SKIP() << "the operating system permits no tiles";
  // Several slabs of rows, panels that aren't full, deep slabs.
  for (const Size &size :
       {Size{37, 70, 1337}, {700, 70, 300}, {65, 1000, 40}}) {
    const auto [m, n, k] = size;
    const Typed a(DType::BF16, randomFloats(m * k, 1));
    const test::Floats b = randomFloats(k * n, 2), bias = randomFloats(n, 3);
    const test::Floats before = randomFloats(m * n, 4);
    const gemm::Matrix aMatrix = {a.get(), k, 1, DType::BF16};
    const gemm::Matrix bMatrix = {b.get(), n, 1, DType::F32, DType::BF16};
    const test::Floats sums = product(gemm::runTiles, 1, m, n, k, aMatrix,
                                      bMatrix, nullptr, before, false);
    for (bool accumulate : {false, true})
      for (int threads : {1, 3}) {
        const test::Floats got =
            product(gemm::runTiles, threads, m, n, k, aMatrix, bMatrix,
                    bias.get(), before, accumulate);
        double worst = 0;
        for (int64_t i = 0; i < m * n; ++i)
          worst =
              std::max(worst, std::abs(double(got[i]) - sums[i] - bias[i % n] -
                                       (accumulate ? before[i] : 0)));
        EXPECT_LT(worst, 2e-6 * std::sqrt(double(k)));
      }
  }
}
