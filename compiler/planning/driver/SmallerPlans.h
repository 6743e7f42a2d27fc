// SmallerPlans.h - plans for who can't use all of a budget.
//
// Moves fill whatever is free, so the best plan's live bytes end close to the
// budget, and its arena may end above. The same plan with its moves placed in
// less is little slower, and costs no search:
//
//     budget 16 GiB    peak 15.99, 2.57 s    arena 16.24: doesn't fit
//                      peak 15.73, 2.58 s    arena 15.96
//                      peak 15.50, 2.59 s

#ifndef TMC_COMPILER_PLANNING_DRIVER_SMALLERPLANS_H
#define TMC_COMPILER_PLANNING_DRIVER_SMALLERPLANS_H

#include "compiler/planning/search/Moves.h"

#include <vector>

namespace tmc::planning {

/// Adds forms of a plan that leave parts of `liveBytes` free (as `placeMoves`
/// has it) and fit all budgets to `kept`: plans with the quickest first, each
/// with a smaller peak on the device than those before it. Lists that come out
/// wrong are counted in `refused`. Errors: the others of `placeMoves`.
absl::Status keepSmallerForms(const Problem &problem, const SpaceChoice &choice,
                              const Projection &projection,
                              const Solution &planned, int64_t liveBytes,
                              std::vector<MovedPlan> &kept, int64_t &refused);

/// Whether live bytes of each space, reserved added, are within its budget.
bool fitsBudgets(const Problem &problem, const std::vector<int64_t> &peakBytes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_SMALLERPLANS_H
