//===- RanksTest.cpp - kernels of the ranks of a mesh ---------------------===//

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

// Pieces of 16 bytes; the last may be padded.
static void exchangeAndGather(int64_t numbers) {
  constexpr int kRanks = 3;
  const RankPiecesParams params{
      .axis = Axis::Data, .ranks = kRanks, .bytes = 16, .total = 8 * numbers};
  onRanks(kRanks, [&](Threads &peers, int rank) {
    auto device = deviceWith(&peers);
    ExchangeRanks exchange(params);
    GatherRanks gather(params);
    ShardOf shard(params);
    EXPECT_TRUE(exchange.prepare(*device) && gather.prepare(*device) &&
                shard.prepare(*device));
    Longs x(numbers), y(2 * kRanks), own(2), z(numbers + 1);
    for (int64_t i = 0; i < numbers; ++i)
      x[i] = 100 * rank + i + 1;
    z[numbers] = 7;
    for (int64_t i = 0; i < 2 * kRanks; ++i)
      y[i] = -1;
    Stream &stream = device->compute();
    exchange.run(stream, {x.get()}, {y.get()}, nullptr);
    shard.run(stream, {x.get()}, {own.get()}, nullptr);
    gather.run(stream, {own.get()}, {z.get()}, nullptr);
    EXPECT_TRUE(stream.failure);
    for (int64_t r = 0; r < kRanks; ++r)
      for (int64_t i = 0; i < 2; ++i) {
        const bool isThere = 2 * rank + i < numbers;
        EXPECT_EQ(y[2 * r + i], isThere ? 100 * r + 2 * rank + i + 1 : 0);
        if (2 * r + i < numbers) {
          EXPECT_EQ(z[2 * r + i], 100 * r + 2 * r + i + 1);
        }
      }
    EXPECT_EQ(z[numbers], 7);
  });
}

TEST(Ranks, ExchangeAndGather) {
  for (int64_t numbers : {6, 5, 4, 3, 1}) {
    SCOPED_TRACE(numbers);
    exchangeAndGather(numbers);
  }
}

TEST(Ranks, AMissingNetworkIsAnError) {
  auto alone = makeDevice(1);
  ExchangeRanks exchange(
      {.axis = Axis::Data, .ranks = 2, .bytes = 8, .total = 16});
  Status s = exchange.prepare(*alone);
  EXPECT_EQ(s.code(), Code::Usage);
  EXPECT_EQ(s.message(), "the step is for 2 ranks along dp, and runs without a "
                         "network: its trainer has one, and a program gives "
                         "tmc_options.peers");
  Room room(3);
  Threads peers(room, 0);
  s = exchange.prepare(*deviceWith(&peers));
  EXPECT_EQ(s.code(), Code::Usage);
  EXPECT_EQ(s.message(), "the step is for 2 ranks along dp, and runs on 3");
}

// The first fault stays in the stream, and nothing is moved after it.
TEST(Ranks, AFaultOfTheNetworkStays) {
  Room room(1);
  Threads peers(room, 0);
  auto device = deviceWith(&peers);
  GatherRanks gather({.axis = Axis::Data, .ranks = 1, .bytes = 8, .total = 8});
  ASSERT_TRUE(gather.prepare(*device));
  Longs x(1, 5), y(1, 6);
  Stream &stream = device->compute();
  peers.fault = "rank 2 is gone";
  gather.run(stream, {x.get()}, {y.get()}, nullptr);
  peers.fault = "";
  gather.run(stream, {x.get()}, {y.get()}, nullptr);
  EXPECT_EQ(y[0], 6);
  EXPECT_EQ(stream.failure.message(), "rank 2 is gone");
  stream.failure = Status::ok();
  gather.run(stream, {x.get()}, {y.get()}, nullptr);
  EXPECT_EQ(y[0], 5);
}
