// FreeOrder.h - plans for whichever order of the instructions is best.
//
// Orders are sought that hold fewer bytes (`search/Order.h`). They are
// compared by plans with an eighth of the work; the cheapest goes on. A
// thorough search also plans the program's own order as if it were fixed,
// unless it is proved that this can't win, so that freedom never costs
// anything.

#ifndef TMC_COMPILER_PLANNING_DRIVER_FREEORDER_H
#define TMC_COMPILER_PLANNING_DRIVER_FREEORDER_H

#include "compiler/planning/driver/Solve.h"

#include <chrono>

namespace tmc::planning {

/// The best plan for the program's own order. `start`: of the time limit.
absl::StatusOr<Plan> solveFixed(const Problem &problem,
                                const SolveOptions &options,
                                std::chrono::steady_clock::time_point start);

/// The best plan for any order; the budget is at least 0.
absl::StatusOr<Plan> solveFree(const Problem &problem,
                               const SolveOptions &options,
                               std::chrono::steady_clock::time_point start);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_FREEORDER_H
