#include "driver/verify/LocalPeers.h"

#include <algorithm>
#include <cstring>
#include <thread>

using namespace tmc;

LocalPeers::LocalPeers(const Mesh &mesh)
    : mesh(mesh), seats(size_t(mesh.ranks())), shown(size_t(mesh.ranks())) {
  for (int rank = 0; rank < int(mesh.ranks()); ++rank) {
    Seat &seat = seats[rank];
    seat = {this, rank, {}};
    seat.peers.size = sizeof(tmc_peers);
    for (Axis axis : {Axis::Data, Axis::Tensor, Axis::Pipeline}) {
      seat.peers.ranks[size_t(axis)] = mesh.size(axis);
      seat.peers.place[size_t(axis)] = mesh.place(axis, rank);
    }
    seat.peers.context = &seat;
    seat.peers.gather = gather;
    seat.peers.exchange = exchange;
    seat.peers.share = share;
  }
}

void LocalPeers::runAll(const std::function<bool(int rank)> &run) {
  isBroken = false;
  present = 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < int(seats.size()); ++rank)
    threads.emplace_back([&, rank] {
      const bool isFine = run(rank);
      std::lock_guard lock(mutex);
      isBroken |= !isFine;
      changed.notify_all();
    });
  for (std::thread &thread : threads)
    thread.join();
}

bool LocalPeers::wait(std::unique_lock<std::mutex> &lock) {
  const int64_t meeting = meetings;
  if (++present == int64_t(seats.size())) {
    present = 0;
    ++meetings;
    changed.notify_all();
  }
  changed.wait(lock, [&] { return meetings != meeting || isBroken; });
  return meetings != meeting;
}

int LocalPeers::meet(int rank, const void *from, const Copy &copy) {
  std::unique_lock lock(mutex);
  shown[rank] = static_cast<const char *>(from);
  if (!wait(lock))
    return 1;
  lock.unlock();
  copy(shown);
  lock.lock();
  // Until then no rank may write over the bytes that it shows.
  return wait(lock) ? 0 : 1;
}

int LocalPeers::gather(void *context, int32_t axis, void *to, const void *from,
                       int64_t bytes, int64_t total) {
  Seat &seat = *static_cast<Seat *>(context);
  return seat.table->meet(seat.rank, from, [&](const auto &sources) {
    int64_t at = 0;
    for (int member : seat.table->mesh.group(Axis(axis), seat.rank)) {
      char *place = static_cast<char *>(to) + at;
      const int64_t some = std::clamp<int64_t>(total - at, 0, bytes);
      if (place != sources[member] && some > 0)
        std::memcpy(place, sources[member], size_t(some));
      at += bytes;
    }
  });
}

int LocalPeers::exchange(void *context, int32_t axis, void *to,
                         const void *from, int64_t bytes, int64_t total) {
  Seat &seat = *static_cast<Seat *>(context);
  return seat.table->meet(seat.rank, from, [&](const auto &sources) {
    char *place = static_cast<char *>(to);
    const int64_t own = bytes * seat.table->mesh.place(Axis(axis), seat.rank);
    const int64_t some = std::clamp<int64_t>(total - own, 0, bytes);
    for (int member : seat.table->mesh.group(Axis(axis), seat.rank)) {
      if (some > 0)
        std::memcpy(place, sources[member] + own, size_t(some));
      place += bytes;
    }
  });
}

int LocalPeers::share(void *context, int32_t axis, int32_t from, void *data,
                      int64_t bytes) {
  Seat &seat = *static_cast<Seat *>(context);
  return seat.table->meet(seat.rank, data, [&](const auto &sources) {
    const int owner = seat.table->mesh.group(Axis(axis), seat.rank)[from];
    if (owner != seat.rank)
      std::memcpy(data, sources[owner], size_t(bytes));
  });
}
