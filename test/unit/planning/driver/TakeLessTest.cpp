// Plans that take less beside the device: moves that had room on the device go,
// those that the budget or the time asks for stay.

#include "compiler/planning/driver/TakeLess.h"
#include "compiler/planning/driver/MovesAmounts.h"
#include "compiler/planning/driver/MovesSearch.h"
#include "compiler/planning/laboratory/GenerateStep.h"
#include "compiler/planning/model/Verify.h"

#include "test/unit/planning/ExpectTrue.h"
#include "test/unit/planning/SpaceProblem.h"

#include <gtest/gtest.h>

#include <cstdio>

using namespace tmc::planning;

namespace {

/// a, b and c are made, t takes `room` bytes, and d reads all three. Each may
/// leave for the host.
SpaceProblem withThree(int64_t room) {
  SpaceProblem w;
  w.p.spaces.resize(2);
  w.p.engines.resize(4);
  w.p.addSegment("step");
  for (const char *name : {"a", "b", "c"}) {
    w.value(name);
    w.form(std::string(name) + "@host", name);
    w.p.addInstruction(0, w.recipe(name, "", name));
  }
  w.value("t", room);
  w.value("d", 1).liveOut = true;
  w.p.addInstruction(0, w.recipe("t", "", "t"));
  w.p.addInstruction(0, w.recipe("d", "a b c", "d"));
  for (const std::string name : {"a", "b", "c"}) {
    w.move("put" + name, name, name + "@host", kD2H, 5);
    w.move("get" + name, name + "@host", name, kH2D, 5);
  }
  return w;
}

MovedPlan planOf(const SpaceProblem &w, const std::string &list) {
  const Solution solution = w.list(list);
  absl::StatusOr<Profile> profile = simulate(w.p, solution);
  EXPECT_TRUE(profile.ok()) << profile.status().message();
  return {solution, profile->makespan, profile->spacePeakBytes};
}

constexpr char kAllMove[] = "a b puta( c putb( t )puta )putb putc( )putc "
                            "geta( getb( getc( )geta )getb )getc d";

TEST(TakeLess, CountsWhatAPlanTakes) {
  const SpaceProblem w = withThree(50);
  const MovedPlan plan = planOf(w, kAllMove);
  const Taken taken = takenBy(w.p, plan.solution, plan.peakBytes);
  EXPECT_EQ(taken.bytes, 300);
  EXPECT_EQ(taken.movedBytes, 600);
  EXPECT_EQ(taken.updates, 0);
  EXPECT_LT((Taken{0, 300, 600, 9}), (Taken{1, 0, 0, 0}));
  EXPECT_LT((Taken{0, 299, 600, 9}), (Taken{0, 300, 0, 0}));
}

TEST(TakeLess, EveryMoveGoesWhereAllFits) {
  const SpaceProblem w = withThree(50);
  MovedPlan plan = planOf(w, kAllMove);
  dropMoves(w.p, 350, plan.makespan, 40, plan);
  EXPECT_EQ(plan.makespan, 50);
  EXPECT_EQ(plan.peakBytes, (std::vector<int64_t>{350, 0}));
  EXPECT_EQ(plan.solution.segments[0].size(), 5u);
  EXPECT_TRUE(measure(w.p, plan.solution).ok());
}

/// Two of the three fit beside t.
TEST(TakeLess, MovesThatTheBudgetAsksForStay) {
  const SpaceProblem w = withThree(150);
  MovedPlan plan = planOf(w, "a b c puta( putb( putc( )puta )putb )putc t "
                             "geta( getb( getc( )geta )getb )getc d");
  const int64_t before = plan.makespan;
  dropMoves(w.p, 350, before, 40, plan);
  EXPECT_LE(plan.makespan, before);
  EXPECT_EQ(plan.peakBytes[0], 350);
  EXPECT_EQ(plan.peakBytes[1], 100);
  EXPECT_TRUE(measure(w.p, plan.solution).ok());
}

TEST(TakeLess, NoTrialsDropNothing) {
  const SpaceProblem w = withThree(50);
  MovedPlan plan = planOf(w, kAllMove);
  dropMoves(w.p, 350, plan.makespan, 0, plan);
  EXPECT_EQ(plan.peakBytes[1], 300);
}

/// Beside the search without the row, a step is at most 0.05 % longer and takes
/// no more.
TEST(TakeLess, AtMostATwoThousandthForLess) {
  int64_t less = 0;
  for (uint64_t seed = 1; seed <= 2; ++seed)
    for (double share : {0.9, 0.7, 0.5}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << share);
      Problem p = generateStep({.layers = 6, .seed = seed});
      p.spaces[0].budgetBytes =
          int64_t(share * double(simulate(p, baseSolution(p))->peakBytes));
      SolveOptions without;
      without.without.add(Strategy::Leaner);
      absl::StatusOr<Plan> lean = solveMoves(p, {}),
                           fast = solveMoves(p, without);
      ASSERT_TRUE(lean.ok() && fast.ok());
      ASSERT_TRUE(lean->feasible && fast->feasible);
      expectTrue(p, *lean);
      EXPECT_LE(lean->cost, fast->cost + fast->cost / kLeanPart);
      const Taken a = takenBy(p, lean->solution, lean->peakBytes),
                  b = takenBy(p, fast->solution, fast->peakBytes);
      EXPECT_LE(a, b);
      less += a < b;
    }
  std::printf("  %lld of 6 plans take less\n", (long long)less);
  EXPECT_GE(less, 2);
}

} // namespace
