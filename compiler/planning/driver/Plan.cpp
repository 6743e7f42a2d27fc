#include "compiler/planning/driver/Plan.h"

#include "compiler/planning/model/Verify.h"

using namespace tmc::planning;

Problem tmc::planning::provenProblem(const Problem &problem, const Plan &plan) {
  return isOneSpace(problem) || hasNetwork(problem)
             ? inOrder(problem, plan.orders)
             : problem;
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
