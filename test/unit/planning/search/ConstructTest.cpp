// Schedules from prices, and the smallest plans of large steps, which begin
// with them.

#include "compiler/planning/search/Construct.h"
#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/search/Checkpoint.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

/// Bytes of `linear` by prices, within `percent` of what it takes with all
/// values kept.
int64_t peakByPrices(const LinearProblem &linear, const Reach &reach,
                     int64_t percent) {
  Schedule schedule(linear, 0);
  schedule.setLimit(schedule.peakBytes() * percent / 100);
  ConstructOptions options;
  options.reach = reach;
  int64_t work = 0;
  std::vector<double> prices(linear.stages.size(), 0);
  RematPlan plan =
      constructWithin(linear, schedule.limit(), prices, options, work);
  restore(linear, schedule, plan);
  EXPECT_EQ(schedule.excess() <= 0, plan.feasible);
  return schedule.peakBytes();
}

// A block whose inputs are away as well returns only if their next uses are
// credited with more than their own recipes.
TEST(Construct, BlocksReturnWhole) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    LinearProblem linear = linearize(
        *problemOf(generateGraph({Family::Transformer, 1000, seed, false})));
    for (int64_t percent : {15, 10}) {
      int64_t near = peakByPrices(linear, {}, percent),
              far = peakByPrices(linear, {60, 1000, 16}, percent);
      EXPECT_LT(far * 5, near * 4 + near / 10);
    }
  }
}

// A plan of 40 % of the bytes, given more room: what it recomputes needlessly
// goes, and it still fits. With room for all nothing is recomputed.
TEST(Construct, WhatTheLimitDoesntNeedIsDropped) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    LinearProblem linear = linearize(
        *problemOf(generateGraph({Family::Transformer, 1000, seed, true})));
    Schedule schedule(linear, 0);
    const int64_t whole = schedule.peakBytes();
    int64_t work = 0;
    const RematPlan plan =
        constructWithin(linear, whole * 2 / 5,
                        std::vector<double>(linear.stages.size(), 0), {}, work);
    ASSERT_TRUE(plan.feasible);
    int64_t before = plan.cost;
    for (int64_t percent : {60, 80, 100}) {
      restore(linear, schedule, plan);
      schedule.setLimit(whole * percent / 100);
      dropNeedless(linear, schedule);
      EXPECT_LE(schedule.excess(), 0);
      EXPECT_LT(schedule.cost(), before) << percent;
      before = schedule.cost();
      for (const Schedule::Clone &c : schedule.clones())
        EXPECT_FALSE(schedule.isUseless(c.op, c.stage));
    }
    EXPECT_TRUE(schedule.clones().empty());
  }
}

// A walk from nothing stops at 89,088 bytes, and blocks that don't return whole
// at 49,000 or more.
TEST(Construct, SmallestPlanOfALargeStep) {
  Problem p = *problemOf(generateGraph({Family::Transformer, 2500, 1, true}));
  SolveOptions options;
  options.budgetBytes = impossibleBelow(p) - 1;
  options.wantBound = false;
  options.smallestWork = 1'000'000'000;
  absl::StatusOr<Plan> plan = solve(p, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(plan->peakBytes[0], 47'000);
}

} // namespace
