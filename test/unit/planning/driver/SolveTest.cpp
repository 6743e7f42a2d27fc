// SolveTest.cpp - what a search is told beside its budget: where to begin, what
// to spare, and what is too expensive to be recomputed.

#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

static Problem transformer(int64_t nodes, uint64_t seed) {
  return *problemOf(generateGraph({Family::Transformer, nodes, seed, false}));
}

/// Plans in the program's own order, within so much of its peak.
static SolveOptions within(const Problem &problem, int64_t percent,
                           int64_t work) {
  SolveOptions options;
  options.effort.mostWork = work;
  options.budgetBytes =
      measure(problem, baseSolution(problem))->peakBytes * percent / 100;
  return options;
}

TEST(Solve, AStartIsNeverLost) {
  Problem p = transformer(250, 2);
  SolveOptions options = within(p, 50, 20'000'000);
  absl::StatusOr<Plan> good = solve(p, options);
  ASSERT_TRUE(good.ok() && good->feasible);
  options.effort.mostWork = 10'000;
  absl::StatusOr<Plan> poor = solve(p, options);
  ASSERT_TRUE(poor.ok());
  EXPECT_TRUE(!poor->feasible || poor->cost > good->cost);
  options.start = &good->solution;
  absl::StatusOr<Plan> started = solve(p, options);
  ASSERT_TRUE(started.ok() && started->feasible);
  EXPECT_LE(started->cost, good->cost);
}

// That something expensive could be recomputed never makes a plan more
// expensive.
TEST(Solve, WhatIsDearIsKept) {
  int costlier = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed)
    for (size_t expensive : {30, 60})
      for (int64_t percent : {45, 60}) {
        SCOPED_TRACE("seed " + std::to_string(seed) + " instruction " +
                     std::to_string(expensive) + " at " +
                     std::to_string(percent));
        Problem p = transformer(150, seed);
        Recipe &recipe = p.recipes[p.instructions[expensive].recipes[0]];
        recipe.cost = baseCost(p) / 3;
        p.values[recipe.writes[0]].bytes *= 4;
        SolveOptions options = within(p, percent, 2'000'000);
        absl::StatusOr<Plan> free = solve(p, options);
        recipe.recomputable = false;
        absl::StatusOr<Plan> kept = solve(p, options);
        ASSERT_TRUE(free.ok() && kept.ok());
        EXPECT_GE(free->feasible, kept->feasible);
        if (kept->feasible) {
          EXPECT_LE(free->cost, kept->cost);
          costlier += kept->cost > kept->baseCost;
        }
      }
  EXPECT_GT(costlier, 5);
}

TEST(Solve, WhatIsDearIsKeptIfAsked) {
  int freely = 0, kept = 0;
  for (size_t expensive : {10, 20, 30, 40, 50})
    for (int64_t percent : {35, 40, 45, 50}) {
      SCOPED_TRACE("instruction " + std::to_string(expensive) + " at " +
                   std::to_string(percent));
      Problem p = transformer(150, 1);
      Recipe &recipe = p.recipes[p.instructions[expensive].recipes[0]];
      recipe.cost = baseCost(p) / 20;
      p.values[recipe.writes[0]].bytes *= 4;
      SolveOptions options = within(p, percent, 2'000'000);
      options.expensive = Expensive::Free;
      absl::StatusOr<Plan> plan = solve(p, options);
      ASSERT_TRUE(plan.ok());
      freely += plan->feasible && recomputesExpensive(p, plan->solution);
      options.expensive = Expensive::Held;
      plan = solve(p, options);
      ASSERT_TRUE(plan.ok());
      if (!plan->feasible)
        continue;
      EXPECT_FALSE(recomputesExpensive(p, plan->solution));
      ++kept;
    }
  EXPECT_GT(freely, 0);
  EXPECT_GT(kept, 0);
}

// What is to stay free while an instruction runs stays free, beside a limit
// that every plan keeps; and what is proved is what was proved without it.
TEST(Solve, SparesWhatIsAskedFor) {
  Problem p = transformer(120, 2);
  SolveOptions options = within(p, 60, 20'000'000);
  absl::StatusOr<Plan> plain = solve(p, options);
  ASSERT_TRUE(plain.ok() && plain->feasible);
  auto liveAt = [&](const Plan &plan, InstructionId i) {
    Profile profile = *simulate(p, plan.solution);
    for (size_t m = 0; m < profile.moments.size(); ++m)
      if (plan.solution.segments[0][size_t(profile.moments[m].index)]
              .instruction == i)
        return profile.liveBytes[m];
    return int64_t(-1);
  };
  int changed = 0;
  for (InstructionId i = 20; i < 100; i += 8) {
    options.headroom.assign(p.instructions.size(), 0);
    options.headroom[size_t(i)] = options.budgetBytes / 20;
    absl::StatusOr<Plan> headroom = solve(p, options);
    ASSERT_TRUE(headroom.ok());
    EXPECT_EQ(headroom->impossibleBelowBytes, plain->impossibleBelowBytes);
    if (!headroom->feasible)
      continue;
    int64_t most = options.budgetBytes - options.headroom[size_t(i)];
    EXPECT_LE(liveAt(*headroom, i), most) << "at " << i;
    changed += liveAt(*plain, i) > most;
  }
  EXPECT_GT(changed, 0);
}
