#include "compiler/planning/driver/OfferPlan.h"

#include <utility>

using namespace tmc::planning;

bool tmc::planning::isRefused(const absl::StatusOr<MovedPlan> &moved,
                              int64_t &refused) {
  if (moved.ok())
    refused += moved->refused;
  const bool isWrong = absl::IsFailedPrecondition(moved.status());
  refused += isWrong;
  return isWrong;
}

bool tmc::planning::offerPlan(const Problem &problem, MovedPlan plan,
                              Plan &best) {
  if (!fitsBudgets(problem, plan.peakBytes))
    return false;
  if (!best.feasible || plan.makespan < best.cost) {
    best.solution = std::move(plan.solution);
    best.feasible = true;
    best.cost = plan.makespan;
    best.peakBytes = std::move(plan.peakBytes);
  }
  return true;
}
