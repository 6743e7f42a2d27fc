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

planning::MoveOptions tmc::moveOptionsOf(const Target &target,
                                         const PerSpace<int64_t> &budgets) {
  planning::MoveOptions options;
  options.toHost = rateOf(target.copies[EngineKind::DeviceToHost]);
  options.toDevice = rateOf(target.copies[EngineKind::HostToDevice]);
  options.update =
      rateOf(target.updates.bytesPerSecond, target.updates.launchSeconds);
  options.hostBandwidth = target.hostBytesPerSecond > 0
                              ? rateOf(target.hostBytesPerSecond, 0).bandwidth
                              : 0;
  options.hostBudget = budgets[SpaceKind::Host];
  options.fileRead = rateOf(target.copies[EngineKind::FileRead]);
  options.fileWrite = rateOf(target.copies[EngineKind::FileWrite]);
  options.fileBudget = budgets[SpaceKind::File];
  if (options.fileBudget == 0) // There is no file.
    options.fileRead.bandwidth = options.fileWrite.bandwidth = 0;
  return options;
}
