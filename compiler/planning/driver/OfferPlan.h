// OfferPlan.h - accepts or refuses each list of a search with moves.
//
// A list is accepted if it fits all budgets and is the fastest so far. A list
// that breaks the rules is left out and counted. This happens if a problem has
// some moves and lacks others: the search doesn't consider all limits on the
// start and end of a transfer. One wrong list doesn't affect the others.

#ifndef TMC_COMPILER_PLANNING_DRIVER_OFFERPLAN_H
#define TMC_COMPILER_PLANNING_DRIVER_OFFERPLAN_H

#include "compiler/planning/driver/Plan.h"
#include "compiler/planning/moves/Moves.h"

namespace tmc::planning {

/// Adds to `refused` the lists that were refused on the way to `moved`, itself
/// included. Returns whether `moved` was refused.
bool isRefused(const absl::StatusOr<MovedPlan> &moved, int64_t &refused);

/// Makes `plan` the best one if it fits and is the fastest so far. Returns
/// whether it fits.
bool offerPlan(const Problem &problem, MovedPlan plan, Plan &best);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_OFFERPLAN_H
