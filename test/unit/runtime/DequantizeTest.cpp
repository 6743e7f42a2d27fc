//===- DequantizeTest.cpp - frozen weights back from codes ----------------===//
//
// The kernel against the functions of runtime/kernels/FrozenCodes.h, bit for
// bit, on both backends.
//
//===----------------------------------------------------------------------===//

#include "Testing.h"

#include "runtime/kernels/Dequantize.h"
#include "runtime/kernels/Storage.h"

using namespace tmc;
using namespace tmc::test;

namespace {

template <typename T> T rounded(float value) {
  if constexpr (std::is_same_v<T, float>)
    return value;
  else
    return narrow<T>(value);
}

template <typename T> Buffer<T> drawnBytes(int64_t count, unsigned seed) {
  std::mt19937 draw(seed);
  Buffer<T> bytes(count);
  for (int64_t i = 0; i < count; ++i)
    bytes[i] = T(draw());
  return bytes;
}

/// Blocks within a tile of the cpu, over several, and more than one of its
/// nested blocks.
constexpr int64_t kCounts[] = {64, 4096, 16384 + 192, 64 * 300};

template <typename T> void blocksAre(DType type, bool nested) {
  for (const int64_t count : kCounts) {
    const int64_t blocks = count / frozen::kBlock;
    const auto codes = drawnBytes<uint8_t>(count / 2, 1);
    const auto mapped = drawnBytes<uint8_t>(blocks, 2);
    const test::Floats absmax = randomFloats(blocks, 3),
                       outer = randomFloats(frozen::nestedFloats(blocks), 4);
    Buffer<T> got(count), want(count);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t b = i / frozen::kBlock;
      const float most =
          nested ? frozen::nestedAbsmax(frozen::dynamicMap().value[mapped[b]],
                                        outer[b / frozen::kNestedBlock],
                                        outer[outer.size() - 1])
                 : absmax[b];
      want[i] =
          rounded<T>(frozen::levels().value[frozen::codeAt(codes, i)] * most);
    }
    const void *maxima = nested ? static_cast<const void *>(mapped.get())
                                : static_cast<const void *>(absmax.get());
    runKernel<Dequantize>(2, {type, 1, count, false, nested, 0},
                          {codes, maxima, nested ? outer.get() : nullptr},
                          {got});
    ASSERT_TRUE(got.sameBits(want)) << count << (nested ? ", nested" : "");
  }
}

template <typename T> void rowsAre(DType type) {
  for (const int64_t columns : {1, 16, 77, 1024}) {
    const int64_t rows = 37;
    const auto codes = drawnBytes<int8_t>(rows * columns, 1);
    const test::Floats absmax = randomFloats(rows, 2);
    Buffer<T> got(rows * columns), want(rows * columns);
    for (int64_t i = 0; i < rows * columns; ++i)
      want[i] = rounded<T>(frozen::rowValue(codes[i], absmax[i / columns]));
    runKernel<Dequantize>(2, {type, rows, columns, true, false, 0},
                          {codes, absmax}, {got});
    ASSERT_TRUE(got.sameBits(want)) << columns;
  }
}

} // namespace

TEST(Dequantize, BlocksAreThoseOfTheFormat) {
  for (const bool nested : {false, true}) {
    blocksAre<float>(DType::F32, nested);
    blocksAre<bf16>(DType::BF16, nested);
    blocksAre<f16>(DType::F16, nested);
  }
}

TEST(Dequantize, RowsAreThoseOfTheFormat) {
  rowsAre<float>(DType::F32);
  rowsAre<bf16>(DType::BF16);
  rowsAre<f16>(DType::F16);
}
