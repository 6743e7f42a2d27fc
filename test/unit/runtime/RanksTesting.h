//===- RanksTesting.h - ranks that are threads of a test --------*- C++ -*-===//
#ifndef TMC_TEST_UNIT_RUNTIME_RANKSTESTING_H
#define TMC_TEST_UNIT_RUNTIME_RANKSTESTING_H

#include "runtime/kernels/Ranks.h"
#include "runtime/step/Device.h"

#include <algorithm>
#include <barrier>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tmc::test {

/// Ranks that are threads of one process.
struct Room {
  explicit Room(int ranks) : from(size_t(ranks)), all(ranks) {}
  std::vector<const char *> from;
  std::barrier<> all;
};

class Threads : public Peers {
public:
  Threads(Room &room, int rank) : room_(room), rank_(rank) {}
  int size(Axis axis) const override {
    return axis == Axis::Data ? int(room_.from.size()) : 1;
  }
  int place(Axis) const override { return rank_; }
  Status gather(Axis, void *to, const void *from, int64_t bytes,
                int64_t total) override {
    return move(to, from, bytes, 0,
                [&](int64_t r) { return total - r * bytes; });
  }
  Status exchange(Axis, void *to, const void *from, int64_t bytes,
                  int64_t total) override {
    return move(to, from, bytes, rank_ * bytes,
                [&](int64_t) { return total - rank_ * bytes; });
  }
  Status share(Axis, int from, void *data, int64_t bytes) override {
    sharedBytes += bytes;
    if (!fault.empty())
      return {Code::World, fault};
    room_.from[size_t(rank_)] = static_cast<const char *>(data);
    room_.all.arrive_and_wait();
    if (rank_ != from)
      std::memcpy(data, room_.from[size_t(from)], size_t(bytes));
    room_.all.arrive_and_wait();
    return Status::ok();
  }
  std::string fault; // of all calls
  int64_t sharedBytes = 0;

private:
  template <typename Left>
  Status move(void *to, const void *from, int64_t bytes, int64_t at,
              const Left &left) {
    if (!fault.empty())
      return {Code::World, fault};
    room_.from[size_t(rank_)] = static_cast<const char *>(from);
    room_.all.arrive_and_wait();
    for (size_t r = 0; r < room_.from.size(); ++r)
      std::memcpy(static_cast<char *>(to) + int64_t(r) * bytes,
                  room_.from[r] + at,
                  size_t(std::clamp<int64_t>(left(int64_t(r)), 0, bytes)));
    room_.all.arrive_and_wait();
    return Status::ok();
  }
  Room &room_;
  int rank_;
};

/// Runs body(peers, rank) for each rank, in a thread of its own.
template <typename F> void onRanks(int ranks, F &&body) {
  Room room(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Threads peers(room, rank);
      body(peers, rank);
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// A device of one thread whose rank is one of `peers`.
inline std::unique_ptr<Device> deviceWith(Peers *peers) {
  std::unique_ptr<Device> device;
  DeviceOptions options;
  options.threads = 1;
  options.peers = peers;
  EXPECT_TRUE(createDevice(options, device));
  return device;
}

} // namespace tmc::test

#endif // TMC_TEST_UNIT_RUNTIME_RANKSTESTING_H
