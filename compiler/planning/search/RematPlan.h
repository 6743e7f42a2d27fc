// RematPlan.h - the recomputations of a schedule, as plain data.
//
// A `Schedule` holds live bytes at every moment and changes step by step. A
// `RematPlan` is a small, comparable copy of it that can be restored into any
// schedule of the same linear problem.

#ifndef TMC_COMPILER_PLANNING_SEARCH_REMATPLAN_H
#define TMC_COMPILER_PLANNING_SEARCH_REMATPLAN_H

#include "compiler/planning/search/Schedule.h"

namespace tmc::planning {

/// A schedule as plain data.
struct RematPlan {
  std::vector<Schedule::Clone> clones;
  std::vector<std::pair<int32_t, int32_t>> variants; // (stage, index) if not 0.
  /// The recomputations in execution order, if a schedule can't express that
  /// order (`Beam.h`); `clones` is then the nearest schedule.
  std::vector<Schedule::Clone> sequence;
  int64_t cost = 0;
  bool feasible = false;
};

RematPlan rematPlanOf(const LinearProblem &linear, const Schedule &schedule);
/// The recomputations and recipes of a solution whose first executions may
/// stand in another order: each recomputation goes to the stage that it ran
/// before. `cost` and `feasible` are not set.
RematPlan rematPlanOf(const LinearProblem &linear, const Solution &solution);
/// Changes `schedule` into `plan`.
void restore(const LinearProblem &linear, Schedule &schedule,
             const RematPlan &plan);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_REMATPLAN_H
