#include "compiler/planning/laboratory/Laboratory.h"

#include "compiler/planning/laboratory/Milp.h"
#include "compiler/planning/laboratory/MinCut.h"
#include "compiler/planning/laboratory/Optimum.h"
#include "compiler/planning/peers/Planners.h"

#include <limits>

using namespace tmc::planning;

static absl::StatusOr<std::optional<MovedPlan>>
planBelow(const Problem &problem, const OptimumLimits &limits) {
  absl::StatusOr<std::optional<OptimalPlan>> plan =
      planOptimum(problem, limits);
  if (!plan.ok() || !*plan)
    return plan.status().ok() ? absl::StatusOr<std::optional<MovedPlan>>(
                                    std::optional<MovedPlan>())
                              : plan.status();
  absl::StatusOr<Profile> profile = simulate(problem, (*plan)->solution);
  if (!profile.ok())
    return profile.status();
  if (profile->makespan != (*plan)->makespan)
    return absl::InternalError("the optimum isn't what it says");
  return MovedPlan{std::move((*plan)->solution), profile->makespan,
                   profile->spacePeakBytes};
}

absl::StatusOr<std::optional<MovedPlan>>
tmc::planning::planExactly(const Problem &problem, int64_t costBelow) {
  return planBelow(problem, {.below = costBelow});
}

void tmc::planning::registerLaboratory() {
  registerMilp();
  registerPlanner("mincut",
                  "PyTorch's: a min cut, and a knapsack of expensive values",
                  planMinCut);
  registerPlanner(
      kExactPlanner, "the fastest plan of all, of a small problem",
      [](const Problem &problem,
         const PlanRequest &) -> absl::StatusOr<Solution> {
        absl::StatusOr<std::optional<MovedPlan>> plan = planBelow(problem, {});
        if (!plan.ok())
          return plan.status();
        if (!*plan)
          return absl::NotFoundError("no plan fits the budgets");
        return std::move((*plan)->solution);
      },
      /*takesMoves=*/true);
}
