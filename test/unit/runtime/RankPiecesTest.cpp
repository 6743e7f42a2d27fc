//===- RankPiecesTest.cpp - sums and shards of the ranks, on any backend --===//

#include "RanksTesting.h"
#include "Testing.h"

using namespace tmc;
using namespace tmc::test;

// The sum of a long chain of unlike numbers shows its order.
TEST(SumPieces, AddsInTheOrderOfTheRanks) {
  for (int64_t count : {1, 7, 16, 40000})
    for (int64_t pieces : {1, 2, 3, 8}) {
      const test::Floats x = randomFloats(pieces * count, 1, 1000);
      test::Floats y(count), again(count);
      runKernel<SumPieces>(1, {DType::F32, pieces, count}, {x.get()},
                           {y.get()});
      runKernel<SumPieces>(3, {DType::F32, pieces, count}, {x.get()},
                           {again.get()});
      for (int64_t i = 0; i < count; ++i) {
        float sum = x[i];
        for (int64_t r = 1; r < pieces; ++r)
          sum += x[r * count + i];
        ASSERT_EQ(y[i], sum) << i << " of " << count << ", " << pieces;
        ASSERT_EQ(again[i], sum);
      }
    }
}

// 1 + 2^-8 + 2^-8 is 1 if each sum is rounded to bf16, and more if the last is.
TEST(SumPieces, RoundsNarrowFloatsOnce) {
  Buffer<uint16_t> x(3 * 21), y(21);
  for (int64_t i = 0; i < 21; ++i) {
    x[i] = 0x3f80;
    x[21 + i] = x[42 + i] = 0x3b80;
  }
  runKernel<SumPieces>(1, {DType::BF16, 3, 21}, {x.get()}, {y.get()});
  for (int64_t i = 0; i < 21; ++i)
    EXPECT_EQ(y[i], 0x3f81);
}

TEST(SumPieces, AddsIntegers) {
  Longs x(6), y(3);
  for (int64_t i = 0; i < 6; ++i)
    x[i] = (int64_t(1) << 53) + i;
  runKernel<SumPieces>(1, {DType::I64, 2, 3}, {x.get()}, {y.get()});
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(y[i], (int64_t(1) << 54) + 2 * i + 3);
}

// 2048 + 1 is 2048 in fp16; 2048 + 1 + 1 is 2050, rounded once.
TEST(SumPieces, RoundsHalvesOnce) {
  for (int64_t count : {1, 8, 21}) {
    Buffer<uint16_t> x(3 * count), y(count);
    for (int64_t i = 0; i < count; ++i) {
      x[i] = 0x6800;
      x[count + i] = x[2 * count + i] = 0x3c00;
    }
    runKernel<SumPieces>(1, {DType::F16, 3, count}, {x.get()}, {y.get()});
    for (int64_t i = 0; i < count; ++i)
      EXPECT_EQ(y[i], 0x6801) << i << " of " << count;
  }
}

// A view into a buffer is aligned to its element alone.
TEST(SumPieces, TakesAnyAddress) {
  const int64_t count = 1024, pieces = 4;
  const test::Floats x = randomFloats(pieces * count + 1, 2, 1000);
  test::Floats y(count), z(count + 1);
  Buffer<float> shifted(pieces * count);
  for (int64_t i = 0; i < pieces * count; ++i)
    shifted[i] = x[i + 1];
  const SumPieces::Params params{DType::F32, pieces, count};
  runKernel<SumPieces>(1, params, {shifted.get()}, {y.get()});
  runKernel<SumPieces>(1, params, {x.get() + 1}, {z.get() + 1});
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(y[i], z[i + 1]) << i;
}

// One byte, odd ends, ends within a piece and before it, whole words.
TEST(ShardOf, TakesItsPieceAndPadsIt) {
  const struct {
    int64_t bytes, total;
  } cases[] = {{1, 2},   {1, 1},    {7, 14},   {16, 17},
               {64, 90}, {64, 128}, {48, 330}, {65536, 500000}};
  for (const auto &[bytes, total] : cases)
    for (int ranks : {2, 3, 8})
      for (int rank = 0; rank < ranks && bytes * ranks >= total; ++rank) {
        Room room(ranks);
        Threads peers(room, rank);
        const auto device = deviceWith(&peers);
        ShardOf shard({.axis = Axis::Data,
                       .ranks = ranks,
                       .bytes = bytes,
                       .total = total});
        ASSERT_TRUE(shard.prepare(*device));
        Buffer<uint8_t> x(total), y(bytes, 0xee);
        for (int64_t i = 0; i < total; ++i)
          x[i] = uint8_t(i * 31 + 1);
        shard.run(device->compute(), {x.get()}, {y.get()}, nullptr);
        ASSERT_TRUE(device->synchronize());
        for (int64_t i = 0; i < bytes; ++i) {
          const int64_t at = rank * bytes + i;
          ASSERT_EQ(y[i], at < total ? uint8_t(at * 31 + 1) : 0)
              << i << " of " << bytes << ", " << total << ", rank " << rank;
        }
      }
}
