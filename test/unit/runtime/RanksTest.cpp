//===- RanksTest.cpp - kernels of the ranks of a mesh ---------------------===//

#include "RanksTesting.h"
#include "Testing.h"

using namespace tmc;
using namespace tmc::test;

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
