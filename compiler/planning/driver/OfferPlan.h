// OfferPlan.h - what becomes of each list that a search with moves writes.
//
// A list is taken where it fits all budgets and is the quickest so far. One
// that the rules of lists refuse is left out and counted: where a problem has
// some moves and lacks others, where a transfer may start and end is more than
// the search thinks of, and one wrong list says nothing of the others.

#ifndef TMC_COMPILER_PLANNING_DRIVER_OFFERPLAN_H
#define TMC_COMPILER_PLANNING_DRIVER_OFFERPLAN_H

#include "compiler/planning/driver/SpaceSearch.h"

namespace tmc::planning {

/// Counts the lists that were refused on the way to `moved`, itself included.
/// Whether it was.
bool isRefused(const absl::StatusOr<MovedPlan> &moved, int64_t &refused);

/// Takes what `plan` holds if it fits and is the quickest so far. Whether it
/// fits.
bool offerPlan(const Problem &problem, MovedPlan plan, SpacePlan &best);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_OFFERPLAN_H
