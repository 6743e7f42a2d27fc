#include "compiler/planning/driver/Plan.h"

#include "compiler/planning/model/Verify.h"

using namespace tmc::planning;

std::optional<std::string> tmc::planning::verifyPlan(const Problem &problem,
                                                     const Plan &plan,
                                                     int64_t budgetBytes) {
  return verifySolution(problem, plan.solution,
                        {plan.peakBytes[0],
                         plan.cost,
                         budgetBytes,
                         {plan.peakBytes.begin() + 1, plan.peakBytes.end()}});
}
