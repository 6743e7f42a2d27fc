//===- WatchTest.cpp - who is gone or stands still, by given times --------===//

#include "runtime/network/Watch.h"

#include "gtest/gtest.h"

namespace tmc {
namespace {

/// Three ranks with a limit of 120 s, heard at time 0.
struct Three {
  Watch watch{{{"a", 300}, {"b", 311}, {"c", 322}}, 120, 0};
  int64_t changes[3] = {};

  void at(int rank, double now, const char *place, bool isInCall = false,
          bool changes = true) {
    Progress progress;
    progress.step = 41;
    progress.changes = this->changes[rank] += changes;
    progress.isInStep = *place != 0;
    progress.isInCall = isInCall;
    progress.place = place;
    watch.hear(rank, progress, now);
  }
};

TEST(Watch, ARankIsGone) {
  Three three;
  EXPECT_EQ(three.watch.gone(1),
            "rank 1 (host b, process 311) is gone before the first step");
  three.at(1, 1, "w");
  EXPECT_EQ(three.watch.gone(1),
            "rank 1 (host b, process 311) is gone in step 41");
  three.at(1, 2, "");
  EXPECT_EQ(three.watch.gone(1),
            "rank 1 (host b, process 311) is gone after step 41");
}

TEST(Watch, ARankIsSilent) {
  Three three;
  three.at(1, 10, "h.7.mlp.w");
  three.at(0, 100, "x");
  three.at(2, 100, "x");
  EXPECT_EQ(three.watch.look(129.9, true), "");
  EXPECT_EQ(three.watch.look(130, true),
            "rank 1 (host b, process 311) has been silent for 120 s in step "
            "41, at 'h.7.mlp.w'");
  three.watch.leave(1);
  EXPECT_EQ(three.watch.look(130, true), "");
}

TEST(Watch, ARankStandsStillAndOthersWait) {
  Three three;
  for (const double now : {10.0, 50.0, 100.0, 130.0}) {
    three.at(0, now, "gather w", true, now == 10);
    three.at(1, now, "h.7.mlp.w", false, now == 10);
    three.at(2, now, "gather w", true, now == 10);
    EXPECT_EQ(three.watch.look(now, false), "");
  }
  EXPECT_EQ(three.watch.look(130, true),
            "rank 1 (host b, process 311) has stood still for 120 s in step "
            "41, at 'h.7.mlp.w'; rank 0 waits in 'gather w'");
}

TEST(Watch, AllWait) {
  Three three;
  for (const double now : {0.0, 119.0, 120.0}) {
    for (int rank = 0; rank < 3; ++rank)
      three.at(rank, now, rank == 1 ? "send w" : "gather w", true, now == 0);
    EXPECT_EQ(three.watch.look(now, true),
              now < 120 ? ""
                        : "all ranks wait for each other: rank 0 in step 41 in "
                          "'gather w', rank 1 in step 41 in 'send w', rank 2 "
                          "in step 41 in 'gather w'");
  }
}

TEST(Watch, ARankThatSavesOrGoesOnIsWaitedFor) {
  Three three;
  for (const double now : {0.0, 100.0, 200.0}) {
    three.at(0, now, "gather w", true, now == 0);
    three.at(1, now, "", false, now == 0);   // it saves
    three.at(2, now, "matmul", false, true); // it goes on
    EXPECT_EQ(three.watch.look(now, true), "");
  }
}

TEST(Watch, NoLimit) {
  Watch watch({{"a", 1}, {"b", 2}}, 0, 0);
  EXPECT_EQ(watch.look(1e9, true), "");
}

} // namespace
} // namespace tmc
