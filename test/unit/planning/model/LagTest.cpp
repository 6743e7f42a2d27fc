// The worked example of R19, its checks, and loops that lag against the same
// loops unrolled.

#include "test/unit/Rounds.h"
#include "test/unit/planning/Lagging.h"

#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/laboratory/Optimum.h"
#include "compiler/planning/laboratory/ProblemReader.h"
#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

#include <cstdio>

using namespace tmc::planning;

namespace {

using Row = std::vector<int64_t>;

/// The example of R19: f makes t, g reads the t of two trips before.
SpaceProblem pipeline(int64_t trips) {
  SpaceProblem w;
  w.p.spaces.resize(1);
  w.p.engines.resize(1);
  w.p.addSegment("body", trips);
  w.value("t", 10);
  Value &c = w.value("c", 10);
  c.kind = ValueKind::Carried;
  c.carriedFrom = w.id("t");
  w.p.values.back().lag = 2;
  w.value("y", 0);
  w.p.addInstruction(0, w.recipe("f", "", "t"));
  w.p.addInstruction(0, w.recipe("g", "c", "y"));
  return w;
}

TEST(Lag, ThreeInstancesAreAliveInAMiddleTrip) {
  SpaceProblem w = pipeline(5);
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  const Solution s = baseSolution(w.p);
  EXPECT_EQ(simulate(w.p, s)->liveBytes,
            (Row{10, 10, 20, 20, 30, 30, 30, 20, 20, 10}));
  // A hundred trips are shown as these five.
  w = pipeline(100);
  EXPECT_EQ(simulate(w.p, s)->liveBytes.size(), 10u);
  EXPECT_EQ(simulate(w.p, s)->makespan, 2000);
  EXPECT_EQ(measure(w.p, s)->cost, 2000);
  EXPECT_EQ(measure(w.p, s)->peakBytes, 30);
  // With fewer trips nothing is read.
  w = pipeline(2);
  EXPECT_EQ(simulate(w.p, s)->liveBytes, (Row{10, 0, 10, 0}));
}

TEST(Lag, ProblemsAreCheckedAndPrinted) {
  SpaceProblem w = pipeline(4);
  absl::StatusOr<Problem> read = parseProblem(printProblem(w.p));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->values[1].lag, 2);
  EXPECT_EQ(printProblem(*read), printProblem(w.p));
  for (int32_t lag : {-1, 0, kMostLag + 1}) {
    w.p.values[1].lag = lag;
    EXPECT_NE(check(w.p).message().find("lags by " + std::to_string(lag)),
              std::string::npos);
  }
  w.p.values[1].lag = 1;
  w.p.values[0].lag = 2;
  EXPECT_NE(check(w.p).message().find("a carried value lags"),
            std::string::npos);
}

TEST(Lag, NothingPlansThemYet) {
  const SpaceProblem w = pipeline(4);
  EXPECT_TRUE(absl::IsUnimplemented(solve(w.p, {}).status()));
  EXPECT_TRUE(absl::IsUnimplemented(planBy("none", w.p, {}).status()));
  EXPECT_TRUE(absl::IsUnimplemented(planOptimum(w.p).status()));
  EXPECT_EQ(prove(w.p).provenCost, 0);
}

/// Timeline, verifier and the unrolled loop have the same peaks and times on
/// every list, and refuse the same lists.
TEST(Lag, LoopsAreAsTheyAreUnrolled) {
  Random random(19);
  int64_t lists = 0, valid = 0, lagging = 0;
  const int64_t problems = tmc::test::rounds(240, 800);
  for (int64_t i = 0; i < problems && !HasFatalFailure(); ++i) {
    const Problem p = laggingLoop(random, i % 2);
    ASSERT_TRUE(check(p).ok()) << check(p).message() << printProblem(p);
    EveryList(p, i % 4 ? 1 : 2, [&](const Solution &bare) {
      if (HasFatalFailure())
        return;
      Solution s = bare;
      takeOverwrites(p, s);
      absl::StatusOr<Profile> profile = simulate(p, s);
      absl::StatusOr<Claim> claim = measure(p, s);
      const Unrolled flat(p, s);
      absl::StatusOr<Profile> all = simulate(flat.p, flat.s);
      const bool isRight = flat.isRight && all.ok();
      ASSERT_EQ(profile.ok(), claim.ok())
          << profile.status().message() << " / " << claim.status().message()
          << printProblem(p);
      // An unrolled value has one writer, so none is in flight twice (R11).
      const bool isTwice = profile.status().message().find(
                               "while other work") != absl::string_view::npos;
      ASSERT_EQ(profile.ok(), isRight && !isTwice)
          << profile.status().message() << " / " << all.status().message()
          << printProblem(p);
      ++lists;
      if (!profile.ok())
        return;
      ++valid;
      lagging += hasLag(p);
      ASSERT_EQ(profile->spacePeakBytes, all->spacePeakBytes)
          << printProblem(p);
      ASSERT_EQ(profile->makespan, all->makespan) << printProblem(p);
      ASSERT_EQ(claim->cost, all->makespan) << printProblem(p);
      ASSERT_EQ(claim->peakBytes, all->peakBytes) << printProblem(p);
      for (size_t space = 1; space < p.spaces.size(); ++space)
        ASSERT_EQ(claim->otherPeakBytes[space - 1], all->spacePeakBytes[space])
            << printProblem(p);
    }).run();
  }
  std::printf("  %lld lists, %lld valid, %lld of them lag\n", (long long)lists,
              (long long)valid, (long long)lagging);
  EXPECT_GT(valid, lists / 10);
  EXPECT_GT(lagging, valid / 2);
}

} // namespace
