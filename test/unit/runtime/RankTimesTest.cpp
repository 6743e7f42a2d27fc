//===- RankTimesTest.cpp - the slowest of a run's ranks -------------------===//

#include "runtime/step/RankTimes.h"

#include "gtest/gtest.h"

namespace tmc {
namespace {

RankStep stepOf(double seconds, double networkSeconds, int64_t bytes = 1024) {
  RankStep step;
  step.seconds = seconds;
  step.networkSeconds = networkSeconds;
  step.highWaterBytes.device() = bytes;
  return step;
}

TEST(RankTimes, TheSlowestIsTheOneThatWaitsLeast) {
  RankTimes times;
  EXPECT_EQ(times.slowest(), -1);
  EXPECT_EQ(times.table(), "");
  times.add({stepOf(9, 1), stepOf(9, 2)});
  EXPECT_EQ(times.slowest(), 0);
  EXPECT_EQ(times.slowestSeconds(), 8);
  EXPECT_EQ(times.table().find("1 step, the slowest rank first:\n"), 0u);
  times.add({stepOf(1.0, 0.5), stepOf(1.25, 0.25)});
  EXPECT_EQ(times.slowest(), 1);
  EXPECT_EQ(times.slowestSeconds(), 1);
  times.add({stepOf(1.0, 0), stepOf(1.0, 0.5, 2048)});
  EXPECT_EQ(times.slowest(), 0);
  // Two steps: (0.5 + 1.0) / 2 and (1.0 + 0.5) / 2. The first one doesn't
  // count. Of equal ones the lower number comes first.
  EXPECT_EQ(times.table(),
            "2 steps after the first, the slowest rank first:\n"
            "  rank   own time    network  slowest in  device memory\n"
            "     0   0.7500 s   0.2500 s           1        1.0 KiB\n"
            "     1   0.7500 s   0.3750 s           1        2.0 KiB\n");
}

TEST(RankTimes, OfManyRanksEightAreShown) {
  RankTimes times;
  std::vector<RankStep> ranks(1024, stepOf(1, 0.5));
  ranks[700] = stepOf(1, 0.25);
  times.add(ranks);
  EXPECT_EQ(times.slowest(), 700);
  const std::string table = times.table();
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 11);
  EXPECT_NE(table.find("\n   700   0.7500 s"), std::string::npos) << table;
  EXPECT_NE(table.find("\n  and 1016 more\n"), std::string::npos) << table;
}

} // namespace
} // namespace tmc
