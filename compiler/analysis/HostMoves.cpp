#include "compiler/analysis/HostMoves.h"

#include <algorithm>
#include <cmath>

using namespace tmc;

static planning::MoveRate rateOf(double bytesPerSecond, double latencySeconds) {
  // Limits that keep the planner's integers from overflowing.
  constexpr double kMostBytesPerSecond = 1e15, kMostLatencySeconds = 1e3;
  constexpr double kPicoseconds = 1e12;
  return {std::max<int64_t>(
              1, std::llround(std::min(bytesPerSecond, kMostBytesPerSecond))),
          std::llround(std::min(latencySeconds, kMostLatencySeconds) *
                       kPicoseconds)};
}

static planning::MoveRate rateOf(const Channel &channel) {
  return rateOf(channel.bytesPerSecond, channel.latencySeconds);
}

planning::MoveOptions tmc::moveOptionsOf(const Target &target) {
  const HostDescription &host = target.host;
  planning::MoveOptions options;
  options.toHost = rateOf(host.toHost);
  options.toDevice = rateOf(host.toDevice);
  options.update =
      rateOf(host.updates.bytesPerSecond, host.updates.launchSeconds);
  options.hostBudget = host.memoryBytes;
  options.fileRead = rateOf(target.file.read);
  options.fileWrite = rateOf(target.file.write);
  options.fileBudget = target.file.bytes;
  return options;
}
