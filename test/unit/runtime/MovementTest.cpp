//===- MovementTest.cpp - transposes, pads, copies, gathers ---------------===//

#include "Testing.h"

#include "runtime/kernels/Movement.h"

#include <numeric>

using namespace tmc;
using namespace tmc::test;

namespace {

template <typename T> Buffer<T> counting(int64_t count) {
  Buffer<T> b(count);
  for (int64_t i = 0; i < count; ++i)
    b[i] = T(i * 7 + 1);
  return b;
}

template <typename T>
void checkTranspose(DType type, std::vector<int64_t> shape,
                    std::vector<int64_t> perm) {
  int64_t count = 1;
  for (int64_t d : shape)
    count *= d;
  Buffer<T> x = counting<T>(count), y(count);
  runKernel<Transpose>(2, {type, shape, perm, 0}, {x}, {y});
  std::vector<int64_t> at(shape.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    // `at` is the index into the result.
    std::vector<int64_t> from(shape.size());
    for (size_t d = 0; d < shape.size(); ++d)
      from[size_t(perm[d])] = at[d];
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      offset = offset * shape[d] + from[d];
    ASSERT_EQ(y[i], x[offset]) << i;
    for (size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[size_t(perm[d])])
        break;
      at[d] = 0;
    }
  }
}

} // namespace

TEST(Transpose, EveryPermutation) {
  std::vector<int64_t> perm = {0, 1, 2, 3};
  do {
    checkTranspose<float>(DType::F32, {3, 17, 5, 33}, perm);
    checkTranspose<uint16_t>(DType::BF16, {3, 17, 5, 33}, perm);
  } while (std::next_permutation(perm.begin(), perm.end()));
  checkTranspose<float>(DType::F32, {100, 130}, {1, 0});
  checkTranspose<uint16_t>(DType::BF16, {100, 130}, {1, 0});
  checkTranspose<uint16_t>(DType::BF16, {130, 100}, {1, 0});
  checkTranspose<uint16_t>(DType::BF16, {2, 301, 70}, {0, 2, 1});
  checkTranspose<float>(DType::F32, {2, 301, 70}, {0, 2, 1});
  checkTranspose<uint16_t>(DType::BF16, {20, 7, 5}, {2, 0, 1});
  checkTranspose<int64_t>(DType::I64, {9, 11}, {1, 0});
  checkTranspose<uint8_t>(DType::I1, {9, 11}, {1, 0});
  checkTranspose<float>(DType::F32, {5}, {0});
  checkTranspose<float>(DType::F32, {1, 1}, {1, 0});
}

TEST(Concat, PutsPiecesSideBySide) {
  Floats a = counting<float>(3 * 4), b = randomFloats(3 * 2, 1), y(3 * 6);
  runKernel<Concat>(2, {DType::F32, 3, {4, 2}, 0}, {a, b}, {y});
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t c = 0; c < 6; ++c)
      EXPECT_EQ(y[r * 6 + c], c < 4 ? a[r * 4 + c] : b[r * 2 + c - 4]);
}

TEST(Pad, ZerosAroundAndBetween) {
  // [2, 3] at low [1, 2], steps [2, 1], in [5, 6].
  Floats x = counting<float>(6), y(30, 9.0f);
  runKernel<Pad>(1, {DType::F32, {2, 3}, {5, 6}, {1, 2}, {2, 1}, 0}, {x}, {y});
  for (int64_t r = 0; r < 5; ++r)
    for (int64_t c = 0; c < 6; ++c) {
      const bool in = (r == 1 || r == 3) && c >= 2 && c < 5;
      EXPECT_EQ(y[r * 6 + c], in ? x[(r - 1) / 2 * 3 + c - 2] : 0);
    }
}

TEST(Fill, ZerosItsBytesOnly) {
  Buffer<unsigned char> y(3000001, 7);
  runKernel<Fill>(2, {3000000, 0}, {}, {y});
  EXPECT_EQ(std::count(y.get(), y.get() + 3000000, 0), 3000000);
  EXPECT_EQ(y[3000000], 7);
}

TEST(Copy, FollowsStrides) {
  // Column 1 of three in [4, 3, 5], to a contiguous [4, 5].
  Floats x = counting<float>(60), y(20), sum(20, 1.0f);
  const Copy::Params p{DType::F32, {4, 5}, {15, 1}, {5, 1}, 5, 0, 0};
  runKernel<Copy>(2, p, {x}, {y});
  runKernel<Copy>(2, p, {x}, {sum}, true);
  for (int64_t r = 0; r < 4; ++r)
    for (int64_t c = 0; c < 5; ++c) {
      EXPECT_EQ(y[r * 5 + c], x[r * 15 + 5 + c]);
      EXPECT_EQ(sum[r * 5 + c], x[r * 15 + 5 + c] + 1);
    }
  // A broadcast, and a reversal.
  Floats b(12);
  runKernel<Copy>(1, {DType::F32, {3, 4}, {0, -1}, {4, 1}, 3, 0, 0}, {x}, {b});
  for (int64_t i = 0; i < 12; ++i)
    EXPECT_EQ(b[i], x[3 - i % 4]);
}

namespace {

/// Copies rows [shape[0], shape[1]] of elements of `bytes` bytes. Both buffers
/// start `inFirst` and `outFirst` elements behind an aligned place, and a row
/// of `inStep` and `outStep` elements behind the one before.
void checkRows(DType type, int64_t rows, int64_t columns, int64_t inStep,
               int64_t outStep, int64_t inFirst, int64_t outFirst) {
  const int64_t bytes = sizeOf(type);
  SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns) + " of " +
               std::to_string(bytes) + " bytes, steps " +
               std::to_string(inStep) + " " + std::to_string(outStep) +
               ", from " + std::to_string(inFirst) + " to " +
               std::to_string(outFirst));
  Buffer<uint8_t> x((inFirst + rows * inStep + columns) * bytes);
  for (int64_t i = 0; i < x.size(); ++i)
    x[i] = uint8_t(i * 37 + i / 251);
  const int64_t size = (outFirst + rows * outStep + columns) * bytes;
  Buffer<uint8_t> offset(size, 9), moved(size, 9), want(size, 9);
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(want + (outFirst + r * outStep) * bytes,
                x + (inFirst + r * inStep) * bytes, size_t(columns * bytes));
  // By offsets of the move, and by addresses.
  runKernel<Copy>(
      2,
      {type, {rows, columns}, {inStep, 1}, {outStep, 1}, inFirst, outFirst, 0},
      {x}, {offset});
  EXPECT_TRUE(offset.sameBits(want));
  runKernel<Copy>(2,
                  {type, {rows, columns}, {inStep, 1}, {outStep, 1}, 0, 0, 0},
                  {x + inFirst * bytes}, {moved + outFirst * bytes});
  EXPECT_TRUE(moved.sameBits(want));
}

} // namespace

/// On cuda words of 16 bytes are moved, where all rows allow it.
TEST(Copy, MovesRowsAtEveryAlignment) {
  for (DType type : {DType::I1, DType::BF16, DType::F32, DType::I64}) {
    const int64_t word = 16 / sizeOf(type);
    for (int64_t columns :
         {int64_t(0), int64_t(1), word, 3 * word, 2 * word + 1, word / 2})
      for (int64_t first : {int64_t(0), int64_t(1), word / 2, word}) {
        checkRows(type, 5, columns, columns + 2 * word, columns, first, 0);
        checkRows(type, 3, columns, columns, columns + 1, 0, first);
      }
    checkRows(type, 0, word, word, word, 0, 0);
    checkRows(type, 37, 40 * word, 41 * word, 42 * word, word, 2 * word);
    checkRows(type, 1, 1100 * word, 0, 0, 0, 0); // more than a block's
  }
}

TEST(Copy, AddsRowsAtEveryAlignment) {
  for (int64_t columns : {8, 7, 520})
    for (int64_t first : {0, 1, 4}) {
      Floats x = randomFloats(3 * columns + first, 1);
      Floats y = randomFloats(3 * (columns + 4) + first, 2), sum(y);
      runKernel<Copy>(1,
                      {DType::F32,
                       {3, columns},
                       {columns, 1},
                       {columns + 4, 1},
                       first,
                       first,
                       0},
                      {x}, {sum}, true);
      for (int64_t i = 0; i < y.size(); ++i) {
        const int64_t r = (i - first) / (columns + 4),
                      c = (i - first) % (columns + 4);
        const bool isMoved = i >= first && r < 3 && c < columns;
        EXPECT_EQ(sum[i], isMoved ? y[i] + x[first + r * columns + c] : y[i]);
      }
    }
}

TEST(Gather, AndItsGradient) {
  Floats x = randomFloats(2 * 5 * 3, 1), y(2 * 4 * 3);
  Longs index(4);
  index[0] = 4;
  index[1] = -5; // position 0
  index[2] = 4;
  index[3] = 2;
  const int64_t at[] = {4, 0, 4, 2};
  runKernel<Gather>(2, {DType::F32, DType::I64, 2, 5, 3, 4, 0}, {x, index},
                    {y});
  for (int64_t o = 0; o < 2; ++o)
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 3; ++j)
        EXPECT_EQ(y[(o * 4 + i) * 3 + j], x[(o * 5 + at[i]) * 3 + j]);
  Floats dx(30, 1.0f);
  runKernel<GatherGrad>(2, {DType::F32, DType::I64, 2, 5, 3, 4, 0}, {index, y},
                        {dx});
  for (int64_t o = 0; o < 2; ++o)
    for (int64_t a = 0; a < 5; ++a)
      for (int64_t j = 0; j < 3; ++j) {
        float want = 0;
        for (int64_t i = 0; i < 4; ++i)
          want += at[i] == a ? y[(o * 4 + i) * 3 + j] : 0;
        EXPECT_EQ(dx[(o * 5 + a) * 3 + j], want);
      }
}

TEST(Gather, ReportsAnIndexOutOfRange) {
  auto device = makeDevice(1);
  Gather kernel({DType::F32, DType::I64, 1, 5, 1, 2, 0});
  ASSERT_TRUE(kernel.prepare(*device));
  Floats x(5), y(2);
  Longs index(2, -6);
  kernel.run(device->compute(), {x, index}, {y}, nullptr);
  ASSERT_TRUE(device->synchronize());
  EXPECT_TRUE(device->compute().fault.set);
  EXPECT_EQ(device->compute().fault.value, -6);
}
