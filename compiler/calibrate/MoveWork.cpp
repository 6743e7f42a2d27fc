#include "compiler/calibrate/MoveWork.h"

#include "compiler/emit/Emit.h"

#include <algorithm>
#include <cmath>

using namespace tmc;

namespace {

constexpr const char *kTransfers[] = {"d2h", "h2d", "write", "read"};

/// A step's queue holds this many pieces and an event before its caller must
/// wait (kMostQueued in runtime/step/Step.cpp).
constexpr int64_t kMostPieces = 1000;
/// Products aren't queued on the cpu, and cuda's queue is longer.
constexpr int64_t kMostProducts = 4096;
/// Enough pieces to have several large and several small ones.
constexpr int64_t kLeastPieces = 12;
constexpr double kWorkSeconds = 1;

double bytesOf(const std::string &engine, const MoveWork &work) {
  if (engine == "compute")
    return double(MoveWork::productBytes());
  if (engine == "host")
    return double(work.updateBytes());
  constexpr int64_t every = MoveWork::kSmallEvery;
  return double((every - 1) * work.largeBytes + MoveWork::kSmallBytes) / every;
}

int64_t mostOf(const std::string &engine) {
  return engine == "compute" ? kMostProducts : kMostPieces;
}

} // namespace

tmc::Expected<MoveWork> tmc::workThatFits(int64_t memoryBytes,
                                          int64_t roomBytes,
                                          const std::string &directory) {
  // Other programs need the rest, and a disk that is nearly full is slow.
  constexpr int64_t kOfMemory = 4, kOfRoom = 2;
  MoveWork work;
  auto fits = [&](int64_t memoryShare, int64_t roomShare) {
    return (memoryBytes < 0 || work.deviceBytes() + work.hostBytes() <=
                                   memoryBytes / memoryShare) &&
           (roomBytes < 0 || work.fileBytes() <= roomBytes / roomShare);
  };
  while (work.largeBytes > MoveWork::kLeastLargeBytes &&
         !fits(kOfMemory, kOfRoom))
    work.largeBytes /= 2;
  if (fits(1, 1))
    return work;
  if (roomBytes >= 0 && work.fileBytes() > roomBytes)
    return Failure::world("'" + directory + "' has " +
                          readableBytes(roomBytes) +
                          " free; a file's rates are measured with " +
                          readableBytes(work.fileBytes()))
        .note("--nvme=DIR measures a file elsewhere");
  return Failure::world("the machine has " + readableBytes(memoryBytes) +
                        " of memory free; transfers are measured with " +
                        readableBytes(work.deviceBytes() + work.hostBytes()));
}

MoveWork tmc::firstWork(const MoveWork &fitting) {
  MoveWork work = fitting;
  work.largeBytes = MoveWork::kLeastLargeBytes;
  for (const char *engine : kTransfers)
    work.pieces[engine] = kLeastPieces;
  work.pieces["host"] = work.pieces["compute"] = kLeastPieces / 2;
  return work;
}

MoveWork tmc::balancedWork(const MoveWork &fitting, const EngineRates &rates) {
  MoveWork work = fitting;
  auto secondsOf = [&](const std::string &engine, const Channel &channel) {
    return channel.seconds(bytesOf(engine, work));
  };
  auto slowest = [&] {
    double seconds = 0;
    for (const auto &[engine, channel] : rates)
      if (engine != "compute")
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
