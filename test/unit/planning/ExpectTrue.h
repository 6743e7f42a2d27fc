// ExpectTrue.h - what a plan with moves says of itself, against the verifier.

#ifndef TMC_TEST_UNIT_PLANNING_EXPECTTRUE_H
#define TMC_TEST_UNIT_PLANNING_EXPECTTRUE_H

#include "compiler/planning/driver/SpaceSearch.h"
#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

namespace tmc::planning {

/// The verifier finds the plan's makespan and peaks, within all budgets, and
/// the plan is no quicker than what is proved.
inline void expectTrue(const Problem &p, const SpacePlan &plan) {
  Claim claim{plan.peakBytes[0],
              plan.makespan,
              p.spaces[0].budgetBytes,
              {plan.peakBytes.begin() + 1, plan.peakBytes.end()}};
  std::optional<std::string> fault = verifySolution(p, plan.solution, claim);
  ASSERT_FALSE(fault) << *fault << printProblem(p);
  ASSERT_GE(plan.makespan, plan.provenMakespan);
  for (size_t s = 1; s < p.spaces.size(); ++s)
    if (p.spaces[s].budgetBytes >= 0) {
      ASSERT_LE(plan.peakBytes[s], p.spaces[s].budgetBytes);
    }
}

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_EXPECTTRUE_H
