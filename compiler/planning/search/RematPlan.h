// RematPlan.h - which recomputations a schedule has, as plain data.
//
// A `Schedule` holds live bytes at every moment and changes step by step; a
// `RematPlan` is what is kept of it: small, comparable, and restored into any
// schedule of the same linear problem.

#ifndef TMC_COMPILER_PLANNING_SEARCH_REMATPLAN_H
#define TMC_COMPILER_PLANNING_SEARCH_REMATPLAN_H

#include "compiler/planning/search/Schedule.h"

namespace tmc::planning {

/// A schedule as plain data.
struct RematPlan {
  std::vector<Schedule::Clone> clones;
  std::vector<std::pair<int32_t, int32_t>> variants; // (stage, index) if not 0.
  /// The recomputations in the order in which they run, where a schedule can't
  /// say it (`Beam.h`): `clones` are then the nearest that it can say.
  std::vector<Schedule::Clone> sequence;
  int64_t cost = 0;
  bool feasible = false;
};

RematPlan rematPlanOf(const LinearProblem &linear, const Schedule &schedule);
/// The recomputations and recipes of a solution whose first executions may
/// stand in another order: each recomputation goes to the stage it ran before.
/// Neither its cost nor whether it fits is known.
RematPlan rematPlanOf(const LinearProblem &linear, const Solution &solution);
/// Changes `schedule` into `plan`.
void restore(const LinearProblem &linear, Schedule &schedule,
             const RematPlan &plan);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_REMATPLAN_H
