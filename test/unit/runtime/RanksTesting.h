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

/// Ranks that are threads of one process. All come to each call.
struct Room {
  explicit Room(const Mesh &mesh)
      : mesh(mesh), from(size_t(mesh.ranks())), all(int(mesh.ranks())) {}
  explicit Room(int ranks) : Room(Mesh{.data = ranks}) {}
  const Mesh mesh;
  std::vector<const char *> from;
  std::barrier<> all;
};

class Threads : public Peers {
public:
  Threads(Room &room, int rank) : room_(room), rank_(rank) {}
  int size(Axis axis) const override { return room_.mesh.size(axis); }
  int place(Axis axis) const override { return room_.mesh.place(axis, rank_); }
  Status gather(Axis axis, void *to, const void *from, int64_t bytes,
                int64_t total) override {
    return move(axis, to, from, bytes, 0,
                [&](int64_t r) { return total - r * bytes; });
  }
  Status exchange(Axis axis, void *to, const void *from, int64_t bytes,
                  int64_t total) override {
    const int64_t own = place(axis) * bytes;
    return move(axis, to, from, bytes, own,
                [&](int64_t) { return total - own; });
  }
  Status share(Axis axis, int from, void *data, int64_t bytes) override {
    sharedBytes += bytes;
    if (!fault.empty())
      return {Code::World, fault};
    room_.from[size_t(rank_)] = static_cast<const char *>(data);
    room_.all.arrive_and_wait();
    const int owner = room_.mesh.group(axis, rank_)[size_t(from)];
    if (rank_ != owner)
      std::memcpy(data, room_.from[size_t(owner)], size_t(bytes));
    room_.all.arrive_and_wait();
    return Status::ok();
  }
  std::string fault; // of all calls
  int64_t sharedBytes = 0;

private:
  template <typename Left>
  Status move(Axis axis, void *to, const void *from, int64_t bytes, int64_t at,
              const Left &left) {
    if (!fault.empty())
      return {Code::World, fault};
    room_.from[size_t(rank_)] = static_cast<const char *>(from);
    room_.all.arrive_and_wait();
    int64_t r = 0;
    for (const int member : room_.mesh.group(axis, rank_)) {
      std::memcpy(static_cast<char *>(to) + r * bytes,
                  room_.from[size_t(member)] + at,
                  size_t(std::clamp<int64_t>(left(r), 0, bytes)));
      ++r;
    }
    room_.all.arrive_and_wait();
    return Status::ok();
  }
  Room &room_;
  int rank_;
};

/// Runs body(peers, rank) for each rank, in a thread of its own.
template <typename F> void onMesh(const Mesh &mesh, F &&body) {
  Room room(mesh);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < int(mesh.ranks()); ++rank)
    threads.emplace_back([&, rank] {
      Threads peers(room, rank);
      body(peers, rank);
    });
  for (std::thread &thread : threads)
    thread.join();
}
template <typename F> void onRanks(int ranks, F &&body) {
  onMesh(Mesh{.data = ranks}, body);
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
