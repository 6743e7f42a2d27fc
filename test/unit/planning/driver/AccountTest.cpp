// AccountTest.cpp - an account adds up to what the simulation counts, and its
// gaps say what the plan did.

#include "compiler/planning/driver/Account.h"
#include "test/unit/planning/RandomProblem.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

/// a1 a2 a3 of 100 bytes and cost 5, each read by the next and again on the way
/// back, with nothing to spare for all three.
static Problem stack() {
  Problem p;
  SegmentId s = p.addSegment("step");
  ValueId x = p.addValue({"x", 10, ValueClass::Batch, ValueKind::Persistent});
  std::vector<ValueId> forward = {x};
  for (int i = 1; i <= 3; ++i) {
    ValueId a = p.addValue({"a" + std::to_string(i), 100});
    Recipe r;
    r.name = "f" + std::to_string(i);
    r.reads = {forward.back()};
    r.writes = {a};
    r.cost = 5;
    r.recomputable = true;
    p.addInstruction(s, r);
    forward.push_back(a);
  }
  ValueId back = kNone;
  for (int i = 3; i >= 1; --i) {
    ValueId g = p.addValue({"g" + std::to_string(i), 10});
    Recipe r;
    r.name = "b" + std::to_string(i);
    r.reads = {forward[i]};
    if (back != kNone)
      r.reads.push_back(back);
    r.writes = {g};
    r.cost = 5;
    p.addInstruction(s, r);
    back = g;
  }
  p.values[back].liveOut = true;
  return p;
}

TEST(Account, TellsWhatWasMadeAgainAndWhatItPaid) {
  Problem p = stack();
  // a1 a2 a3 and x: 310 bytes at f3 and b3. One of a1, a2 must go.
  absl::StatusOr<Plan> plan = solve(p, {.budgetBytes = 230});
  ASSERT_TRUE(plan.ok());
  ASSERT_TRUE(plan->feasible);
  absl::StatusOr<Account> told = account(p, *plan);
  ASSERT_TRUE(told.ok());
  int64_t paid = 0, broken = 0;
  for (const GapDecision &gap : told->gaps) {
    EXPECT_EQ(gap.leastCost, 5);
    EXPECT_EQ(gap.held, gap.paidCost == 0) << p.values[gap.value].name;
    paid += gap.paidCost;
    broken += !gap.held;
  }
  EXPECT_EQ(paid, plan->cost - plan->baseCost);
  EXPECT_GE(broken, 1);
  EXPECT_EQ(told->levers.plainPeak, 320); // b3 makes g3 beside them.
  EXPECT_EQ(told->levers.planPeak, plan->peakBytes);
  EXPECT_EQ(told->levers.recomputeCost, paid);
}

TEST(Account, AddsUpToTheSimulation) {
  int recomputing = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Problem p =
        randomProblem(random, {.prologue = 3, .body = 4, .epilogue = 4});
    absl::StatusOr<Profile> base = simulate(p, baseSolution(p));
    if (!base.ok())
      continue;
    SolveOptions options;
    options.budgetBytes = base->peakBytes * 8 / 10;
    options.effort.mostWork = 200'000;
    absl::StatusOr<Plan> plan = solve(p, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    recomputing += plan->stats.recomputedExecutions > 0;
    absl::StatusOr<Account> told = account(p, *plan);
    ASSERT_TRUE(told.ok()) << told.status();
    // One trip: every moment is a row, so the intervals are all there is.
    std::vector<int64_t> live(told->rows.size(), 0);
    for (const LiveInterval &interval : told->intervals)
      for (int32_t row = interval.begin; row < interval.end; ++row) {
        int64_t bytes = p.values[interval.value].bytes;
        if (interval.storageOf != kNone && row == interval.begin)
          bytes -= std::min(
              bytes, p.values[told->intervals[interval.storageOf].value].bytes);
        live[row] += bytes;
      }
    for (size_t row = 0; row < live.size(); ++row)
      EXPECT_EQ(live[row] + p.recipes[told->rows[row].recipe].workspaceBytes,
                told->rows[row].liveBytes)
          << "row " << row;
    EXPECT_EQ(told->rows[told->peakRow].liveBytes, plan->peakBytes);
  }
  EXPECT_GT(recomputing, 20);
}
