//===- Bandwidth.cpp - how fast the cards of a run reach each other -------===//
//
//   bandwidth LIBRARY FOLDER        for each rank, by a launcher or TMC_RANK
//
// The ranks gather and exchange bytes of their cards, from 64 KiB to 256 MiB,
// by a library of a step's folder: nccl queues on a stream, and gloo and mpi
// go through pinned memory. Rank 0 prints for each size the bytes of a whole
// value, the median seconds of a call on the slowest rank, and the bytes that a
// rank sends a second:
//
//     nccl (2.28.9), 8 ranks
//     gather       65536  2.1e-05 s    2.7 GB/s
//     exchange     65536  2.4e-05 s    2.4 GB/s
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Ranks.h"
#include "runtime/network/World.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace tmc {
namespace {

constexpr int64_t kLeastBytes = 64 << 10, kMostBytes = 256 << 20, kFactor = 8;
constexpr int kRounds = 9;

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Status check(cudaError_t error) {
  return error == cudaSuccess ? Status::ok()
                              : Status(Code::World, cudaGetErrorString(error));
}

class Meter {
public:
  Meter(World &world, int64_t mostBytes)
      : network_(*world.network), place_(world.place), most_(mostBytes) {}

  Status open() {
    int cards = 0;
    if (Status s = check(cudaGetDeviceCount(&cards)); !s)
      return s;
    if (Status s = check(cudaSetDevice(cardOf(place_.localRank, cards))); !s)
      return s;
    for (char **card : {&from_, &to_}) {
      if (Status s =
              check(cudaMalloc(reinterpret_cast<void **>(card), size_t(most_)));
          !s)
        return s;
      if (Status s = check(cudaMemsetAsync(*card, 1, size_t(most_), nullptr));
          !s)
        return s;
    }
    for (char **host : {&sent_, &came_})
      if (Status s = check(cudaHostAlloc(reinterpret_cast<void **>(host),
                                         size_t(most_), cudaHostAllocDefault));
          !s)
        return s;
    if (Status s = check(cudaStreamSynchronize(nullptr)); !s)
      return s;
    return check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }

  Status run() {
    for (int64_t all = kLeastBytes; all <= most_; all *= kFactor) {
      const int64_t piece = all / place_.ranks;
      if (Status s =
              report("gather", piece,
                     [&] { return call(piece, piece * place_.ranks, true); });
          !s)
        return s;
      if (Status s = report("exchange", piece,
                            [&] {
                              return call(piece * place_.ranks,
                                          piece * place_.ranks, false);
                            });
          !s)
        return s;
    }
    return Status::ok();
  }

private:
  /// One call that sends and receives so many bytes, until it has ended.
  Status call(int64_t sent, int64_t received, bool gathers) {
    const int64_t piece = received / place_.ranks;
    if (CardNetwork *card = network_.card()) {
      if (Status s = gathers ? card->gather(kWorld, to_, from_, piece, received,
                                            stream_)
                             : card->exchange(kWorld, to_, from_, piece,
                                              received, stream_);
          !s)
        return s;
      return check(cudaStreamSynchronize(stream_));
    }
    if (Status s = copy(sent_, from_, sent); !s)
      return s;
    if (Status s = gathers ? network_.gather(kWorld, came_, sent_, piece)
                           : network_.exchange(kWorld, came_, sent_, piece);
        !s)
      return s;
    return copy(to_, came_, received);
  }
  Status copy(void *to, const void *from, int64_t bytes) {
    if (Status s = check(cudaMemcpyAsync(to, from, size_t(bytes),
                                         cudaMemcpyDefault, stream_));
        !s)
      return s;
    return check(cudaStreamSynchronize(stream_));
  }

  Status report(const char *name, int64_t piece,
                const std::function<Status()> &call) {
    std::vector<double> times, all(static_cast<size_t>(place_.ranks));
    // The first round makes the library's buffers.
    for (int round = 0; round <= kRounds; ++round) {
      if (Status s = network_.barrier(kWorld); !s)
        return s;
      const double begin = now();
      if (Status s = call(); !s)
        return s;
      const double own = now() - begin;
      if (Status s = network_.gather(kWorld, all.data(), &own, sizeof own); !s)
        return s;
      if (round > 0)
        times.push_back(*std::max_element(all.begin(), all.end()));
    }
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    const double seconds = times[kRounds / 2];
    if (place_.rank == 0)
      std::printf("%-8s %10lld  %.2e s  %6.1f GB/s\n", name,
                  static_cast<long long>(piece * place_.ranks), seconds,
                  double(piece * (place_.ranks - 1)) / seconds * 1e-9);
    return Status::ok();
  }

  Network &network_;
  const Place place_;
  const int64_t most_;
  char *from_ = nullptr, *to_ = nullptr;   // on the card
  char *sent_ = nullptr, *came_ = nullptr; // pinned
  cudaStream_t stream_ = nullptr;
};

Status measure(int count, char **words) {
  if (count != 3 && count != 4)
    return {Code::Usage, "LIBRARY FOLDER [MOST-BYTES]"};
  WorldSettings settings;
  settings.library = words[1];
  settings.folder = words[2];
  Place place;
  if (Status s = findPlace(place); !s)
    return s;
  if (place.ranks < 2)
    return {Code::Usage, "there is one rank"};
  World world;
  if (Status s = joinWorld(settings, place, world); !s)
    return s;
  if (place.rank == 0)
    std::printf("%s, %d ranks\n", world.network->description().c_str(),
                place.ranks);
  Meter meter(world, count == 4 ? std::atoll(words[3]) : kMostBytes);
  Status done = meter.open();
  if (done)
    done = meter.run();
  return leaveWorld(world, done);
}

} // namespace
} // namespace tmc

int main(int count, char **words) {
  const tmc::Status done = tmc::measure(count, words);
  if (!done)
    std::fprintf(stderr, "error: %s\n", done.message().c_str());
  std::fflush(stdout);
  // Threads of a network's library may wait for ranks that are gone.
  std::_Exit(done ? 0 : static_cast<int>(done.code()));
}
