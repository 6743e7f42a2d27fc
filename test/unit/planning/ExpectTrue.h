// ExpectTrue.h - what a plan with moves says of itself, against the verifier.

#ifndef TMC_TEST_UNIT_PLANNING_EXPECTTRUE_H
#define TMC_TEST_UNIT_PLANNING_EXPECTTRUE_H

#include "compiler/planning/driver/SpaceSearch.h"
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
inline void expectTrue(const Problem &p, const SpacePlan &plan) {
  ASSERT_NO_FATAL_FAILURE(
      expectHolds(p, plan.solution, plan.peakBytes, plan.makespan));
  ASSERT_GE(plan.makespan, plan.provenMakespan);
  for (size_t i = 0; i < plan.smaller.size(); ++i) {
    const MovedPlan &smaller = plan.smaller[i];
    ASSERT_NO_FATAL_FAILURE(
        expectHolds(p, smaller.solution, smaller.peakBytes, smaller.makespan));
    ASSERT_GE(smaller.makespan, plan.makespan);
    if (i) {
      ASSERT_GT(smaller.makespan, plan.smaller[i - 1].makespan);
      ASSERT_LT(smaller.peakBytes[0], plan.smaller[i - 1].peakBytes[0]);
    }
  }
}

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_EXPECTTRUE_H
