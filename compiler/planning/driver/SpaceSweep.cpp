// SpaceSweep.cpp - plans with moves for several budgets.

#include "compiler/planning/driver/SpaceSearch.h"

using namespace tmc::planning;

absl::StatusOr<std::vector<SpacePlan>>
tmc::planning::sweepBudgets(const Problem &problem, SpaceId space,
                            const std::vector<int64_t> &budgets,
                            const SpaceSearchOptions &options) {
  std::vector<SpacePlan> plans;
  for (int64_t budget : budgets) {
    Problem at = problem;
    at.spaces[space].budgetBytes = budget;
    SpaceSearchOptions how = options;
    how.known = plans.empty() || !plans.back().feasible
                    ? nullptr
                    : &plans.back().solution;
    absl::StatusOr<SpacePlan> plan = solveSpaces(at, how);
    if (!plan.ok())
      return plan.status();
    plans.push_back(std::move(*plan));
  }
  return plans;
}
