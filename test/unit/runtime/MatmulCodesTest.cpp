//===- MatmulCodesTest.cpp - products that decode frozen weights ----------===//
//
// A product that decodes has the bits of Dequantize and Matmul in turn.
// FrozenCodesTest.cpp compares the codes with those of bitsandbytes.
//
//===----------------------------------------------------------------------===//

#include "Testing.h"

#include "runtime/kernels/Dequantize.h"
#include "runtime/kernels/MatmulCodes.h"
#include "runtime/kernels/Storage.h"

#include <cstring>
#include <random>

using namespace tmc;
using namespace tmc::test;

namespace {

template <typename T> constexpr DType dtypeOf() {
  return std::is_same_v<T, float>  ? DType::F32
         : std::is_same_v<T, bf16> ? DType::BF16
                                   : DType::F16;
}

struct Case {
  int64_t m, n, k;
};
/// Ragged panels and rows, several depths, several slabs, single rows.
constexpr Case kCases[] = {
    {61, 77, 320}, {5, 64, 128}, {310, 96, 64}, {1, 33, 64}, {7, 128, 576}};

template <typename T> Buffer<T> drawn(int64_t count, unsigned seed) {
  std::mt19937 draw(seed);
  Buffer<T> values(count);
  for (int64_t i = 0; i < count; ++i) {
    const float value = float(draw() % 2048) / 1024 - 1;
    if constexpr (std::is_same_v<T, float>)
      values[i] = value;
    else if constexpr (std::is_integral_v<T>)
      values[i] = T(draw());
    else
      values[i] = narrow<T>(value);
  }
  return values;
}

/// Positive maxima.
Buffer<float> maxima(int64_t count, unsigned seed) {
  Buffer<float> values = drawn<float>(count, seed);
  for (int64_t i = 0; i < count; ++i)
    values[i] = 0.01f + std::fabs(values[i]);
  return values;
}

template <typename T, typename Out>
void compare(const Case &c, int flags, bool byRows, bool nested, int threads) {
  const bool turnedLhs = flags & 1, turnedRhs = flags & 2, bias = flags & 4,
             adds = flags & 8;
  const int64_t count = c.n * c.k, blocks = count / frozen::kBlock;
  const int64_t rows = turnedRhs ? c.n : c.k;
  const auto lhs = drawn<T>(c.m * c.k, 1);
  const auto codes = drawn<int8_t>(byRows ? count : count / 2, 2);
  const auto absmax = maxima(byRows ? rows : blocks, 3);
  const auto mapped = drawn<uint8_t>(blocks, 4);
  const auto outer = maxima(frozen::nestedFloats(blocks), 5);
  const auto row = drawn<Out>(c.n, 6), before = drawn<Out>(c.m * c.n, 7);
  const void *most = nested ? static_cast<const void *>(&mapped[0])
                            : static_cast<const void *>(&absmax[0]);
  const void *nestedMost = nested ? &outer[0] : nullptr;

  Buffer<T> weight(count);
  Buffer<Out> want(c.m * c.n), got(c.m * c.n);
  for (int64_t i = 0; i < c.m * c.n; ++i)
    want[i] = got[i] = before[i];
  const DType type = dtypeOf<T>(), out = dtypeOf<Out>();
  runKernel<Dequantize>(
      threads,
      {type, byRows ? rows : 1, count / (byRows ? rows : 1), byRows, nested, 0},
      {&codes[0], most, nestedMost}, {&weight[0]});
  MatmulCodes::Params p{type,      out,  c.m,    c.n,    c.k, turnedLhs,
                        turnedRhs, bias, byRows, nested, 0};
  runKernel<Matmul>(threads, p.plain(),
                    {&lhs[0], &weight[0], bias ? &row[0] : nullptr}, {&want[0]},
                    adds);
  runKernel<MatmulCodes>(
      threads, p,
      {&lhs[0], &codes[0], most, nestedMost, bias ? &row[0] : nullptr},
      {&got[0]}, adds);
  ASSERT_EQ(std::memcmp(&got[0], &want[0], sizeof(Out) * size_t(c.m * c.n)), 0)
      << c.m << " x " << c.n << " x " << c.k << ", flags " << flags
      << (byRows   ? ", by rows"
          : nested ? ", nested"
                   : "");
}

template <typename T, typename Out> void compareAll() {
  for (const Case &c : kCases)
    for (int flags = 0; flags < 16; ++flags)
      for (int format = 0; format < 3; ++format)
        if (format == 2 || c.n * c.k % frozen::kBlock == 0)
          compare<T, Out>(c, flags, format == 2, format == 1, 1 + flags % 2);
}

} // namespace

TEST(MatmulCodes, IsDequantizeThenMatmulInF32) { compareAll<float, float>(); }
TEST(MatmulCodes, IsDequantizeThenMatmulInBF16) {
  compareAll<bf16, bf16>();
  compareAll<bf16, float>();
}
TEST(MatmulCodes, IsDequantizeThenMatmulInF16) { compareAll<f16, f16>(); }

// 3 * 127 * (1 / 127), rounded twice, is 3.
TEST(MatmulCodes, TheLargestCodeIsTheMaximum) {
  const int8_t codes[3] = {127, -127, 0};
  const float absmax[1] = {3};
  float out[3];
  runKernel<Dequantize>(1, {DType::F32, 1, 3, true, false, 0}, {codes, absmax},
                        {out});
  EXPECT_EQ(out[0], 3.0f);
  EXPECT_EQ(out[1], -3.0f);
  EXPECT_EQ(out[2], 0.0f);
}
