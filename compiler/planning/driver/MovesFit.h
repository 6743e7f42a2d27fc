// MovesFit.h - plans with moves whose arenas fit.
//
// A plan gives a live peak for each space; the budgets limit the arenas into
// which its buffers are packed. If an arena doesn't fit, the plan is packed in
// other ways; then a smaller plan of the same search is packed. If that is much
// slower, another plan is sought that leaves free the bytes lost by packing:
//
//     budget 600 MiB   plan 598, arena 606: packed by another seed, 603
//                      its smaller form, 589, arena 597: fits, 4 % slower
//                      plan for 597, arena 599: fits, 1 % slower
//
// `PlanCache` keeps the plans, and starts each search from the best known one.

#ifndef TMC_COMPILER_PLANNING_DRIVER_MOVESFIT_H
#define TMC_COMPILER_PLANNING_DRIVER_MOVESFIT_H

#include "compiler/planning/driver/Solve.h"

#include <span>
#include <string>

namespace tmc::planning {

/// A finder of plans with moves: our own search, or a planner by its name
/// (PlanBy.h).
struct MovesFinder {
  SolveOptions options = {};
  std::string planner = {};
};

/// The best plan found within the budgets in `problem.spaces`, with its arenas;
/// if none fits, the last one, not feasible. `alignments`: of buffers in each
/// space, in bytes. Errors: those of `solve`.
absl::StatusOr<Plan> fitMoves(const Problem &problem, const MovesFinder &finder,
                              std::span<const int64_t> alignments);

/// The plan of the smallest budget of the device that works, the other budgets
/// unchanged: by bisection between `low`, below which no plan exists, and
/// `high`, a budget that works (-1: none is known). Not feasible if none below
/// `high` was found.
absl::StatusOr<Plan> smallestByMoves(const Problem &problem,
                                     const MovesFinder &finder,
                                     std::span<const int64_t> alignments,
                                     int64_t low, int64_t high);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_MOVESFIT_H
