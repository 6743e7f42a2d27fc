// A beam's plans are right on the full problem, as cheap as can be on small
// ones, and there where recomputations have to be chosen together.

#include "test/unit/planning/RandomProblem.h"

#include "compiler/planning/bound/Bound.h"
#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/laboratory/Graph.h"
#include "compiler/planning/search/Beam.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

/// What a beam finds within `limit`, checked; -1: nothing.
int64_t extraCostByBeam(const Problem &p, int64_t limit) {
  LinearProblem linear = linearize(p);
  std::vector<double> found = ascend(GapModel(p), {limit}, {.work = 100'000})
                                  .prices[0],
                      prices(linear.stages.size(), 0);
  for (size_t k = 0, at = 0; k < prices.size(); ++k)
    if (linear.stages[k].instruction != kNone)
      prices[k] = found[at++];
  BeamOptions options;
  options.work = 3'000'000;
  int64_t work = 0;
  RematPlan plan =
      beam(linear, limit - linear.constantBytes, prices, options, work);
  EXPECT_GT(work, 0);
  if (!plan.feasible)
    return -1;
  absl::StatusOr<Claim> claim = measure(p, solutionOf(p, linear, plan));
  EXPECT_TRUE(claim.ok()) << claim.status().message();
  if (claim.ok()) {
    EXPECT_LE(claim->peakBytes, limit);
    EXPECT_EQ(claim->cost, baseCost(p) + plan.cost);
  }
  return plan.cost;
}

TEST(Beam, AgreesWithBruteForce) {
  int budgets = 0, missed = 0, costlier = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    RandomShape shape;
    shape.prologue = 0;
    shape.body = 4;
    shape.epilogue = 1;
    shape.carried = seed % 3 == 0;
    shape.overwrites = seed % 2 == 0;
    Problem p = randomProblem(random, shape);
    for (auto [peak, best] : worthwhileBudgets(p, 2)) {
      int64_t found = extraCostByBeam(p, peak);
      ASSERT_FALSE(HasFailure()) << "at " << peak;
      ++budgets;
      missed += found < 0;
      costlier += found >= 0 && baseCost(p) + found > best;
    }
  }
  EXPECT_GT(budgets, 100);
  EXPECT_LT(missed * 20, budgets) << missed << " of " << budgets;
  EXPECT_LT(costlier * 20, budgets) << costlier << " of " << budgets;
}

// Plans of loops hold what they hold over all trips.
TEST(Beam, PlansLoopsRightly) {
  int found = 0;
  for (int64_t trips : {2, 3, 5})
    for (uint64_t seed = 0; seed < 60; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " trips " +
                   std::to_string(trips));
      Random random(seed);
      RandomShape shape{.prologue = 2, .body = 6, .epilogue = 3};
      shape.trips = trips;
      Problem p = randomProblem(random, shape);
      int64_t base = simulate(p, baseSolution(p))->peakBytes;
      for (int64_t percent : {90, 75})
        found += extraCostByBeam(p, base * percent / 100) >= 0;
      ASSERT_FALSE(HasFailure());
    }
  EXPECT_GT(found, 60);
}

// Values that depend on each other at random, and little room: here each plan
// makes about as many values again as there are, and a walk from plan to plan
// finds none of them.
TEST(Beam, FindsPlansWhereRoomIsScarce) {
  struct Case {
    int64_t nodes;
    uint64_t seed;
    double most; // Overhead in percent; found by an integer program or better.
  };
  for (auto [nodes, seed, most] :
       {Case{16, 2, 71.8814}, Case{20, 2, 38.8943}, Case{20, 3, 62.4749}}) {
    SCOPED_TRACE(std::to_string(nodes) + " nodes, seed " +
                 std::to_string(seed));
    Problem p =
        *problemOf(generateGraph({Family::RandomLayered, nodes, seed, false}));
    int64_t base = simulate(p, baseSolution(p))->peakBytes;
    SolveOptions options;
    options.budgetBytes = (base * 3 + 3) / 4;
    options.effort.mostWork = 40'000'000;
    Plan plan = *solve(p, options);
    ASSERT_TRUE(plan.feasible);
    EXPECT_EQ(
        verifySolution(p, plan.solution,
                       {plan.peakBytes[0], plan.cost, options.budgetBytes}),
        std::nullopt);
    EXPECT_LT(plan.overheadPct(), most + 0.0001);
    EXPECT_LE(plan.provenExtraCost(), plan.cost - plan.baseCost);
  }
}

} // namespace
