// FreeOrder.h - plans with a free order of the instructions.
//
// The search seeks orders that hold fewer bytes (`search/Order.h`). It compares
// them by plans with an eighth of the work, and plans the cheapest in full. A
// thorough search also plans the program's own order with all of the work,
// unless a bound proves that this can't win, so a free order never costs more
// than the program's.

#ifndef TMC_COMPILER_PLANNING_DRIVER_FREEORDER_H
#define TMC_COMPILER_PLANNING_DRIVER_FREEORDER_H

#include "compiler/planning/driver/Solve.h"

#include <chrono>

namespace tmc::planning {

/// The best plan for the program's own order. `start`: the time limit counts
/// from here.
absl::StatusOr<Plan> solveFixed(const Problem &problem,
                                const SolveOptions &options,
                                std::chrono::steady_clock::time_point start);

/// The best plan for any order; the budget is at least 0.
absl::StatusOr<Plan> solveFree(const Problem &problem,
                               const SolveOptions &options,
                               std::chrono::steady_clock::time_point start);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_FREEORDER_H
