//===- RanksTest.cpp - kernels of the ranks of a mesh ---------------------===//

#include "Testing.h"

#include "runtime/kernels/Ranks.h"

#include <barrier>
#include <thread>

using namespace tmc;
using namespace tmc::test;

namespace {

/// Ranks that are threads of one process.
struct Room {
  explicit Room(int ranks) : from(size_t(ranks)), all(ranks) {}
  std::vector<const char *> from;
  std::barrier<> all;
};

class Threads final : public Peers {
public:
  Threads(Room &room, int rank) : room_(room), rank_(rank) {}
  int size(Axis axis) const override {
    return axis == Axis::Data ? int(room_.from.size()) : 1;
  }
  int place(Axis) const override { return rank_; }
  Status gather(Axis, void *to, const void *from, int64_t bytes) override {
    return move(to, from, bytes, 0);
  }
  Status exchange(Axis, void *to, const void *from, int64_t bytes) override {
    return move(to, from, bytes, rank_ * bytes);
  }
  std::string fault; // of all calls

private:
  Status move(void *to, const void *from, int64_t bytes, int64_t at) {
    if (!fault.empty())
      return {Code::World, fault};
    room_.from[size_t(rank_)] = static_cast<const char *>(from);
    room_.all.arrive_and_wait();
    for (size_t r = 0; r < room_.from.size(); ++r)
      std::memcpy(static_cast<char *>(to) + int64_t(r) * bytes,
                  room_.from[r] + at, size_t(bytes));
    room_.all.arrive_and_wait();
    return Status::ok();
  }
  Room &room_;
  int rank_;
};

std::unique_ptr<Device> deviceWith(Peers *peers) {
  std::unique_ptr<Device> device;
  DeviceOptions options;
  options.threads = 1;
  options.peers = peers;
  EXPECT_TRUE(createDevice(options, device));
  return device;
}

} // namespace

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

TEST(Ranks, ExchangeAndGather) {
  constexpr int kRanks = 3;
  Room room(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&room, rank] {
      Threads peers(room, rank);
      auto device = deviceWith(&peers);
      ExchangeRanks exchange(
          {.axis = Axis::Data, .ranks = kRanks, .bytes = 16});
      GatherRanks gather({.axis = Axis::Data, .ranks = kRanks, .bytes = 16});
      EXPECT_TRUE(exchange.prepare(*device) && gather.prepare(*device));
      Longs x(2 * kRanks), y(2 * kRanks), z(2 * kRanks);
      for (int64_t i = 0; i < 2 * kRanks; ++i)
        x[i] = 100 * rank + i;
      exchange.run(device->compute(), {x.get()}, {y.get()}, nullptr);
      gather.run(device->compute(), {x.get()}, {z.get()}, nullptr);
      EXPECT_TRUE(device->synchronize());
      for (int64_t r = 0; r < kRanks; ++r)
        for (int64_t i = 0; i < 2; ++i) {
          EXPECT_EQ(y[2 * r + i], 100 * r + 2 * rank + i);
          EXPECT_EQ(z[2 * r + i], 100 * r + i);
        }
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(Ranks, AMissingNetworkIsAnError) {
  auto alone = makeDevice(1);
  ExchangeRanks exchange({.axis = Axis::Data, .ranks = 2, .bytes = 8});
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

// The first fault voids the step, and nothing is moved after it.
TEST(Ranks, AFaultOfTheNetworkIsTheStepsError) {
  Room room(1);
  Threads peers(room, 0);
  auto device = deviceWith(&peers);
  GatherRanks gather({.axis = Axis::Data, .ranks = 1, .bytes = 8});
  ASSERT_TRUE(gather.prepare(*device));
  Longs x(1, 5), y(1, 6);
  peers.fault = "rank 2 is gone";
  gather.run(device->compute(), {x.get()}, {y.get()}, nullptr);
  peers.fault = "";
  gather.run(device->compute(), {x.get()}, {y.get()}, nullptr);
  EXPECT_EQ(y[0], 6);
  EXPECT_EQ(device->synchronize().message(), "rank 2 is gone");
  gather.run(device->compute(), {x.get()}, {y.get()}, nullptr);
  EXPECT_EQ(y[0], 5);
  EXPECT_TRUE(device->synchronize());
}
