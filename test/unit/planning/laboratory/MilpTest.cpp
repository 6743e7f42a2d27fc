// The MILP's answers against every solution of small graphs.

#include "test/unit/planning/RandomProblem.h"

#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/laboratory/Laboratory.h"
#include "compiler/planning/laboratory/Milp.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

TEST(Milp, FindsTheOptimumOfSmallGraphs) {
  if (!hasMilp())
    GTEST_SKIP() << "built without a solver";
  registerLaboratory();
  int budgets = 0, costlier = 0, recomputing = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    Problem p = randomProblem(random, kRandomGraph);
    for (auto [peak, best] : worthwhileBudgets(p, 2)) {
      SolveOptions options;
      options.budgetBytes = peak;
      options.effort.mostWork = 400'000;
      absl::StatusOr<Plan> plan = planBy("milp", p, options, "");
      ASSERT_TRUE(plan.ok()) << seed << ": " << plan.status().message();
      // More than two recomputations may be cheaper still; that one stage
      // makes the same value twice is what the program can't say.
      ASSERT_TRUE(plan->feasible) << seed << " at " << peak;
      EXPECT_LE(plan->cost, best) << seed << " at " << peak;
      Plan ours = *solve(p, options);
      ASSERT_GE(plan->cost, plan->baseCost + ours.provenExtraCost()) << seed;
      costlier += ours.feasible && plan->cost > ours.cost;
      ++budgets;
      recomputing += recomputedExecutions(p, plan->solution) > 0;
    }
  }
  EXPECT_GT(budgets, 30);
  EXPECT_EQ(recomputing, budgets);
  EXPECT_EQ(costlier, 0);
}

TEST(Milp, WhatALaterSlotReadsStays) {
  if (!hasMilp())
    GTEST_SKIP() << "built without a solver";
  registerLaboratory();
  // z; a; b = f(a); c = g(a, b); w; h; m = k(c, w). While h runs, w and h leave
  // 15 bytes: not c's 30. To make b and c again from a takes 2 and 115 bytes at
  // c, for a is still read there; to make w again takes 50 and 95 bytes. z
  // leaves nothing below 110.
  Graph graph;
  graph.nodes = {{110, 1}, {10, 20}, {10, 1}, {30, 1},
                 {65, 50}, {30, 1},  {0, 1}};
  graph.edges = {{1, 2}, {1, 3}, {2, 3}, {3, 6}, {4, 6}};
  Problem p = *problemOf(graph);
  EXPECT_EQ(simulate(p, baseSolution(p))->peakBytes, 125);
  SolveOptions options;
  options.budgetBytes = 110;
  Plan plan = *planBy("milp", p, options, "");
  EXPECT_TRUE(plan.feasible);
  EXPECT_EQ(plan.cost - plan.baseCost, 50);
}

TEST(Milp, SaysWhatItDoesNotTake) {
  registerLaboratory();
  auto answer = [](const Problem &p) {
    SolveOptions options;
    options.budgetBytes = 1;
    return std::string(planBy("milp", p, options, "").status().message());
  };
  Random random(3);
  RandomShape shape;
  shape.trips = 3;
  Problem loop = randomProblem(random, shape);
  absl::StatusOr<Solution> none = planMilp(loop, {});
  ASSERT_EQ(none.status().code(), absl::StatusCode::kUnimplemented);
  if (!hasMilp()) {
    EXPECT_EQ(answer(loop),
              "planner 'milp' needs CBC, without which this was built (install "
              "coinor-libcbc-dev, configure and build again)");
    return;
  }
  EXPECT_EQ(answer(loop),
            "planner 'milp' takes no loops, and 'body' runs 3 times");
  Problem large =
      *problemOf(generateGraph({Family::RandomLayered, 1000, 1, false}));
  PlanRequest request;
  request.budgetBytes =
      simulate(large, baseSolution(large))->peakBytes * 9 / 10;
  EXPECT_EQ(planMilp(large, request).status().message(),
            "planner 'milp' would need more than 600000 entries for these 1000 "
            "instructions: it is meant for about a hundred");
}

} // namespace
