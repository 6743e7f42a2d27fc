//===- Measure.cpp - how fast the ranks of a machine reach each other -----===//
//
//   measure LIBRARY FOLDER [RANK RANKS HOST:PORT]
//
// `tmc calibrate --devices N` compiles this program and starts it N times: with
// its place, or by mpirun, which gives it one. The ranks gather and exchange
// values of 1 KiB to 64 MiB. All sizes come in turn, several times, since other
// programs take a machine for a while. Rank 0 prints
//
//     network mpi (Open MPI v4.1.4)
//     gather 1024 2.5e-05
//     exchange 1024 2.6e-05
//     ...
//
// with the bytes of a whole value and the median seconds of one call, which is
// over when it is on all ranks.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Names.h"
#include "runtime/network/World.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace tmc {
namespace {

constexpr int64_t kLeastBytes = 1 << 10, kMostBytes = 64 << 20, kFactor = 4;
constexpr int kRounds = 9;
/// Calls of small values are timed together, as many as move these bytes.
constexpr int64_t kTogetherBytes = 1 << 20;
constexpr int64_t kMostTogether = 32;
/// A rank that doesn't come ends the others.
constexpr double kStartSeconds = 30;

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class Meter {
public:
  explicit Meter(World &world)
      : network_(*world.network), ranks_(world.place.ranks),
        isFirst_(world.place.rank == 0), from_(size_t(kMostBytes)),
        to_(size_t(kMostBytes) + size_t(ranks_)),
        seconds_(static_cast<size_t>(ranks_)) {}

  Status run() {
    std::vector<int64_t> sizes;
    for (int64_t bytes = kLeastBytes; bytes <= kMostBytes; bytes *= kFactor)
      sizes.push_back(bytes);
    std::vector<std::vector<double>> gathers(sizes.size()), exchanges(gathers);
    // The first round makes the library's buffers.
    for (int round = 0; round <= kRounds; ++round)
      for (size_t i = 0; i < sizes.size(); ++i) {
        const int64_t all = sizes[i], piece = (all + ranks_ - 1) / ranks_;
        double gather, exchange;
        if (Status s = time(all, gather,
                            [&] {
                              return network_.gather(kWorld, to_.data(),
                                                     from_.data(), piece, all);
                            });
            !s)
          return s;
        if (Status s = time(all, exchange,
                            [&] {
                              return network_.exchange(
                                  kWorld, to_.data(), from_.data(), piece, all);
                            });
            !s)
          return s;
        if (round == 0)
          continue;
        gathers[i].push_back(gather);
        exchanges[i].push_back(exchange);
      }
    for (size_t i = 0; i < sizes.size() && isFirst_; ++i)
      std::printf("gather %lld %.9g\nexchange %lld %.9g\n",
                  static_cast<long long>(sizes[i]), median(gathers[i]),
                  static_cast<long long>(sizes[i]), median(exchanges[i]));
    return Status::ok();
  }

private:
  static double median(std::vector<double> &times) {
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    return times[kRounds / 2];
  }

  /// The seconds of a call that moves `bytes` bytes, on the slowest rank.
  Status time(int64_t bytes, double &seconds,
              const std::function<Status()> &call) {
    const int64_t together =
        std::clamp<int64_t>(kTogetherBytes / bytes, 1, kMostTogether);
    if (Status s = network_.barrier(kWorld); !s)
      return s;
    const double begin = now();
    for (int64_t i = 0; i < together; ++i)
      if (Status s = call(); !s)
        return s;
    const double own = (now() - begin) / double(together);
    const Status s = network_.gather(kWorld, seconds_.data(), &own, sizeof own);
    seconds = *std::max_element(seconds_.begin(), seconds_.end());
    return s;
  }

  Network &network_;
  const int64_t ranks_;
  const bool isFirst_;
  std::vector<char> from_, to_;
  std::vector<double> seconds_;
};

Status measure(int count, char **words) {
  if (count != 3 && count != 6)
    return {Code::Usage, "LIBRARY FOLDER [RANK RANKS HOST:PORT]"};
  WorldSettings settings;
  settings.library = words[1];
  settings.folder = words[2];
  settings.startSeconds = kStartSeconds;
  Place place;
  if (count == 6) {
    place.rank = place.localRank = std::atoi(words[3]);
    place.ranks = place.localRanks = std::atoi(words[4]);
    place.launcher = "tmc";
    if (!splitAddress(words[5], place.host, place.port))
      return {Code::Usage,
              std::string("there is no address in '") + words[5] + "'"};
  } else if (Status s = findPlace(place); !s) {
    return s;
  }
  if (place.ranks < 2)
    return {Code::Usage, "there is one rank"};
  World world;
  if (Status s = joinWorld(settings, place, world); !s)
    return s;
  if (place.rank == 0)
    std::printf("network %s\n", visible(world.network->description()).c_str());
  const Status done = Meter(world).run();
  return leaveWorld(world, done);
}

} // namespace
} // namespace tmc

int main(int count, char **words) {
  const tmc::Status done = tmc::measure(count, words);
  if (done)
    return 0;
  std::fprintf(stderr, "error: %s\n", tmc::visible(done.message()).c_str());
  std::fflush(stdout);
  // Threads of a network's library may wait for ranks that are gone.
  std::_Exit(static_cast<int>(done.code()));
}
