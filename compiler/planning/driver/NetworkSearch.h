// NetworkSearch.h - plans of steps whose devices work together.
//
// Four nested decisions:
//
//   - *Homes.* Each content with a shard is at home whole or as a shard. The
//     search plans all of them whole, then all as shards, and then changes
//     stretches of them, by halving, while that helps.
//   - *A price* for each second of work that may run again: gathers.
//   - The plan of the projection (`moves/NetworkProjection.h`) by the search
//     for recomputation or, with a host, by that for moves.
//   - *Free bytes*: the plan is made for less than the budget, so that the work
//     has bytes to overlap with kernels (`moves/Overlap.h`).
//
// All of it in two orders: the program's, and the one in which kernels that
// read a network's results wait behind others. Mandatory work keeps its place
// in them, or starts earlier where its readers would wait. The bound is of the
// order in which the best plan starts its instructions.

#ifndef TMC_COMPILER_PLANNING_DRIVER_NETWORKSEARCH_H
#define TMC_COMPILER_PLANNING_DRIVER_NETWORKSEARCH_H

#include "compiler/planning/driver/Solve.h"

namespace tmc::planning {

/// The best plan found within the budgets in `problem.spaces`;
/// `SolveOptions::budgetBytes` is not read, and the order is fixed. `smaller`:
/// as for `solveMoves`. An error: the problem is malformed.
absl::StatusOr<Plan> solveNetwork(const Problem &problem,
                                  const SolveOptions &options,
                                  std::vector<MovedPlan> *smaller = nullptr);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_NETWORKSEARCH_H
