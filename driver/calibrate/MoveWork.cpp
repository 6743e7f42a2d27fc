#include "driver/calibrate/MoveWork.h"

#include "compiler/emit/Emit.h"

#include <algorithm>
#include <cmath>

using namespace tmc;

namespace {

/// A step's queue holds this many pieces and an event before its caller must
/// wait (kMostQueued in runtime/step/Step.cpp).
constexpr int64_t kMostPieces = 1000;
/// Products aren't queued on the cpu, and cuda's queue is longer.
constexpr int64_t kMostProducts = 4096;
/// Enough pieces to have several large and several small ones.
constexpr int64_t kLeastPieces = 12;
constexpr double kWorkSeconds = 1;

double bytesOf(EngineKind engine, const MoveWork &work) {
  if (engine == EngineKind::Compute)
    return double(MoveWork::productBytes());
  if (engine == EngineKind::Host)
    return double(work.updateBytes());
  constexpr int64_t every = MoveWork::kSmallEvery;
  return double((every - 1) * work.largeBytes + MoveWork::kSmallBytes) / every;
}

int64_t mostOf(EngineKind engine) {
  return engine == EngineKind::Compute ? kMostProducts : kMostPieces;
}

/// Bytes of the spaces with addresses, and of the others.
int64_t sumOf(const MoveWork &work, bool hasAddresses) {
  int64_t sum = 0;
  for (auto [space, bytes] : work.arenaBytes())
    sum += space.hasAddresses == hasAddresses ? bytes : 0;
  return sum;
}
int64_t inMemory(const MoveWork &work) { return sumOf(work, true); }
int64_t onDisk(const MoveWork &work) { return sumOf(work, false); }

} // namespace

tmc::Expected<MoveWork> tmc::workThatFits(int64_t memoryBytes,
                                          int64_t roomBytes,
                                          const std::string &directory) {
  // Other programs need the rest, and a disk that is nearly full is slow.
  constexpr int64_t kOfMemory = 4, kOfRoom = 2;
  MoveWork work;
  auto fits = [&](int64_t memoryShare, int64_t roomShare) {
    return (memoryBytes < 0 || inMemory(work) <= memoryBytes / memoryShare) &&
           (roomBytes < 0 || onDisk(work) <= roomBytes / roomShare);
  };
  while (work.largeBytes > MoveWork::kLeastLargeBytes &&
         !fits(kOfMemory, kOfRoom))
    work.largeBytes /= 2;
  if (fits(1, 1))
    return work;
  if (roomBytes >= 0 && onDisk(work) > roomBytes)
    return Failure::world("'" + directory + "' has " +
                          readableBytes(roomBytes) +
                          " free; a file's rates are measured with " +
                          readableBytes(onDisk(work)))
        .note("--nvme=DIR measures a file elsewhere");
  return Failure::world("the machine has " + readableBytes(memoryBytes) +
                        " of memory free; transfers are measured with " +
                        readableBytes(inMemory(work)));
}

MoveWork tmc::firstWork(const MoveWork &fitting) {
  MoveWork work = fitting;
  work.largeBytes = MoveWork::kLeastLargeBytes;
  for (auto [engine, pieces] : work.pieces)
    pieces = engine.copies ? kLeastPieces : kLeastPieces / 2;
  work.pieces[EngineKind::Network] = 0; // There is one device.
  return work;
}

MoveWork tmc::balancedWork(const MoveWork &fitting, const EngineRates &rates) {
  MoveWork work = fitting;
  auto secondsOf = [&](EngineKind engine, const Channel &channel) {
    return channel.seconds(bytesOf(engine, work));
  };
  auto slowest = [&] {
    double seconds = 0;
    for (const auto &[engine, channel] : rates)
      if (engine != EngineKind::Compute)
        seconds = std::max(seconds, secondsOf(engine, channel));
    return seconds;
  };
  while (work.largeBytes > MoveWork::kLeastLargeBytes &&
         kLeastPieces * slowest() > kWorkSeconds)
    work.largeBytes /= 2;
  double seconds = kWorkSeconds;
  for (const auto &[engine, channel] : rates)
    seconds =
        std::min(seconds, double(mostOf(engine)) * secondsOf(engine, channel));
  work.pieces = firstWork(fitting).pieces;
  for (const auto &[engine, channel] : rates)
    work.pieces[engine] =
        std::clamp<int64_t>(std::llround(seconds / secondsOf(engine, channel)),
                            work.pieces[engine], mostOf(engine));
  return work;
}
