// OfferPlan.h - accepts or refuses each list of a search with moves.
//
// A list is accepted if it fits all budgets and is the fastest so far. A list
// that breaks the rules is left out and counted. This happens if a problem has
// some moves and lacks others: the search doesn't consider all limits on the
// start and end of a transfer. One wrong list doesn't affect the others.
//
// Moves fill all free bytes, so the best plan's live bytes end close to the
// budget, and its arena may exceed it. Smaller forms of the plan are kept for
// that case: with its moves placed in fewer bytes it is a little slower, and
// needs no search:
//
//     budget 16 GiB    peak 15.99, 2.57 s    arena 16.24: doesn't fit
//                      peak 15.73, 2.58 s    arena 15.96
//                      peak 15.50, 2.59 s

#ifndef TMC_COMPILER_PLANNING_DRIVER_OFFERPLAN_H
#define TMC_COMPILER_PLANNING_DRIVER_OFFERPLAN_H

#include "compiler/planning/driver/Plan.h"
#include "compiler/planning/moves/Moves.h"

#include <functional>

namespace tmc::planning {

/// Adds to `refused` the lists that were refused on the way to `moved`, itself
/// included. Returns whether `moved` was refused.
bool isRefused(const absl::StatusOr<MovedPlan> &moved, int64_t &refused);

/// Makes `plan` the best one if it fits and is the fastest so far. Returns
/// whether it fits.
bool offerPlan(const Problem &problem, MovedPlan plan, Plan &best);
/// The same of a solution that the caller knows. An error: it is invalid.
absl::Status offerKnown(const Problem &problem, const Solution &known,
                        Plan &best);

/// Adds forms of a plan that leave parts of `liveBytes` free (as in
/// `placeMoves`) and fit all budgets to `kept`: the fastest first, each with a
/// smaller peak on the device than those before it. `refused` counts invalid
/// lists. Errors: the other errors of `placeMoves`.
absl::Status keepSmallerForms(const Problem &problem, const SpaceChoice &choice,
                              const Projection &projection,
                              const Solution &planned, int64_t liveBytes,
                              std::vector<MovedPlan> &kept, int64_t &refused);

/// Offers the plans of published rules that start a search, the coarse ones
/// alone if `isCoarse`. `mayGain`: whether plans that take that long or longer
/// may be faster than the best. A rule that leaves all updates on the device is
/// never faster than the step that moves nothing.
absl::Status offerRules(const Problem &problem, bool isCoarse,
                        const std::function<bool(int64_t)> &mayGain,
                        Plan &best);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_OFFERPLAN_H
