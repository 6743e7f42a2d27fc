// ExpectTrue.h - what a plan with moves says of itself, against the verifier.

#ifndef TMC_TEST_UNIT_PLANNING_EXPECTTRUE_H
#define TMC_TEST_UNIT_PLANNING_EXPECTTRUE_H

#include "compiler/planning/driver/MovesSearch.h"
#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/laboratory/Laboratory.h"
#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

namespace tmc::planning {

/// The verifier finds these peaks and this makespan, within all budgets.
inline void expectHolds(const Problem &p, const Solution &solution,
                        const std::vector<int64_t> &peakBytes,
                        int64_t makespan) {
  Claim claim{peakBytes[0],
              makespan,
              p.spaces[0].budgetBytes,
              {peakBytes.begin() + 1, peakBytes.end()}};
  std::optional<std::string> fault = verifySolution(p, solution, claim);
  ASSERT_FALSE(fault) << *fault << printProblem(p);
  for (size_t s = 1; s < p.spaces.size(); ++s)
    if (p.spaces[s].budgetBytes >= 0) {
      ASSERT_LE(peakBytes[s], p.spaces[s].budgetBytes);
    }
}

/// So it does of the plan, which is no quicker than what is proved, and of the
/// smaller ones, each of which is smaller and slower than those before it.
inline void expectTrue(const Problem &p, const Plan &plan,
                       const std::vector<MovedPlan> &smallerOnes = {}) {
  ASSERT_NO_FATAL_FAILURE(
      expectHolds(p, plan.solution, plan.peakBytes, plan.cost));
  ASSERT_GE(plan.cost, plan.certificate.provenCost);
  for (size_t i = 0; i < smallerOnes.size(); ++i) {
    const MovedPlan &smaller = smallerOnes[i];
    ASSERT_NO_FATAL_FAILURE(
        expectHolds(p, smaller.solution, smaller.peakBytes, smaller.makespan));
    ASSERT_GE(smaller.makespan, plan.cost);
    if (i) {
      ASSERT_GT(smaller.makespan, smallerOnes[i - 1].makespan);
      ASSERT_LT(smaller.peakBytes[0], smallerOnes[i - 1].peakBytes[0]);
    }
  }
}

/// A plan by the planner of this name within the problem's budgets; not
/// feasible if it finds none.
inline absl::StatusOr<Plan> planWith(std::string_view planner, const Problem &p,
                                     SolveOptions options = {}) {
  registerLaboratory();
  options.budgetBytes = p.spaces[0].budgetBytes;
  absl::StatusOr<Plan> plan = planBy(planner, p, options);
  if (absl::IsNotFound(plan.status()))
    return Plan();
  return plan;
}

/// Plans for fifty budgets of one space, each from the plan before: `found` of
/// them have a plan, `steps` of these are faster than the one before, and none
/// is slower.
struct Sweep {
  int64_t found = 0, steps = 0;
};
inline Sweep sweep(const Problem &p, SpaceId space, int64_t mostBytes) {
  Sweep swept;
  std::optional<Plan> before;
  for (int64_t i = 1; i <= 50; ++i) {
    Problem at = p;
    at.spaces[space].budgetBytes = mostBytes * i / 50;
    SolveOptions options;
    options.coarse = true;
    options.start = before ? &before->solution : nullptr;
    absl::StatusOr<Plan> plan = solveMoves(at, options);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    if (!plan.ok() || !plan->feasible) {
      EXPECT_FALSE(before) << i;
      continue;
    }
    expectTrue(at, *plan);
    if (swept.found++) {
      EXPECT_LE(plan->cost, before->cost) << i;
      swept.steps += plan->cost < before->cost;
    }
    before = *std::move(plan);
  }
  return swept;
}

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_EXPECTTRUE_H
