#include "compiler/planning/driver/Plan.h"

#include "compiler/planning/model/Verify.h"

using namespace tmc::planning;

bool tmc::planning::fitsBudgets(const Problem &problem,
                                const std::vector<int64_t> &peakBytes) {
  for (size_t s = 0; s < peakBytes.size(); ++s)
    if (int64_t budget = problem.spaces[s].budgetBytes;
        budget >= 0 && peakBytes[s] + problem.reservedOf(SpaceId(s)) > budget)
      return false;
  return true;
}

std::optional<std::string> tmc::planning::verifyPlan(const Problem &problem,
                                                     const Plan &plan,
                                                     int64_t budgetBytes) {
  return verifySolution(problem, plan.solution,
                        {plan.peakBytes[0],
                         plan.cost,
                         budgetBytes,
                         {plan.peakBytes.begin() + 1, plan.peakBytes.end()}});
}
