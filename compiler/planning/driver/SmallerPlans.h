// SmallerPlans.h - plans that leave a part of the budget free.
//
// Moves fill all free bytes, so the best plan's live bytes end close to the
// budget, and its arena may exceed it. The same plan with its moves placed in
// fewer bytes is a little slower, and needs no search:
//
//     budget 16 GiB    peak 15.99, 2.57 s    arena 16.24: doesn't fit
//                      peak 15.73, 2.58 s    arena 15.96
//                      peak 15.50, 2.59 s

#ifndef TMC_COMPILER_PLANNING_DRIVER_SMALLERPLANS_H
#define TMC_COMPILER_PLANNING_DRIVER_SMALLERPLANS_H

#include "compiler/planning/moves/Moves.h"

#include <vector>

namespace tmc::planning {

/// Adds forms of a plan that leave parts of `liveBytes` free (as in
/// `placeMoves`) and fit all budgets to `kept`: the fastest first, each with a
/// smaller peak on the device than those before it. `refused` counts invalid
/// lists. Errors: the other errors of `placeMoves`.
absl::Status keepSmallerForms(const Problem &problem, const SpaceChoice &choice,
                              const Projection &projection,
                              const Solution &planned, int64_t liveBytes,
                              std::vector<MovedPlan> &kept, int64_t &refused);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_SMALLERPLANS_H
