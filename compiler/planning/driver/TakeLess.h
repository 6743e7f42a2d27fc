// TakeLess.h - plans with moves that take no more beside the device than they
// need.
//
// The search seeks the fastest plan. Links that are idle cost nothing, so such
// a plan moves values that had room on the device, and it asks for memory of
// the host that a little time would save. GPT-2 124M, 8 x 1024, bf16, with 4
// GiB of an RTX 3060:
//
//     as found      650.9 ms   147 updates and 3.17 GiB on the host
//     taking less   650.7 ms   131 updates and 1.76 GiB
//
// Rates are estimates, so a gain of less than 1/kSmallGainPart on the step that
// moves nothing and recomputes nothing isn't worth memory or traffic: such a
// plan counts as long as that step. A plan that is at most 1/kLeanPart longer
// is better if it takes less: fewer small updates beside the device, each of
// which costs a launch, two latencies and events; then fewer bytes in other
// spaces; then fewer bytes moved in a step; then fewer updates there.

#ifndef TMC_COMPILER_PLANNING_DRIVER_TAKELESS_H
#define TMC_COMPILER_PLANNING_DRIVER_TAKELESS_H

#include "compiler/planning/moves/Moves.h"
#include "compiler/planning/moves/UpdateGroups.h"

#include <compare>
#include <functional>

namespace tmc::planning {

/// A gain below this part of the step that moves nothing doesn't count.
inline constexpr int64_t kSmallGainPart = 200;

/// The cost of a plan, or `baseCost` if it gains less than that.
inline int64_t withoutSmallGain(int64_t cost, int64_t baseCost) {
  return cost < baseCost && cost >= baseCost - baseCost / kSmallGainPart
             ? baseCost
             : cost;
}

/// In the order of comparison.
struct Taken {
  int64_t smallUpdates = 0; // Beside the device, of less than kSmallUpdate.
  int64_t bytes = 0;        // At most alive in the other spaces.
  int64_t movedBytes = 0;   // In a step.
  int64_t updates = 0;      // Beside the device.
  auto operator<=>(const Taken &) const = default;
};

/// Bytes that an update writes.
inline constexpr int64_t kSmallUpdate = 1 << 20;

Taken takenBy(const Problem &problem, const Solution &solution,
              const std::vector<int64_t> &peakBytes);

/// Takes moves out of a plan as long as it fits `liveBytes` of the device (-1:
/// no limit) and takes at most `mostCost`: those of contents that leave the
/// device and come back, the largest first. Lists are simulated up to
/// `mostTrials` times. Overwrites that a removal makes wrong keep its moves.
void dropMoves(const Problem &problem, int64_t liveBytes, int64_t mostCost,
               int64_t mostTrials, MovedPlan &plan);

/// Offers modes that may take less than `best`, which the callee may replace on
/// the way: all updates on the device, then small ones, then stretches of
/// groups, smaller and smaller. Leaves out modes that can't fit.
void offerLeanerModes(const Problem &problem, const UpdateGroups &groups,
                      const UpdateModes &best,
                      const std::function<void(const UpdateModes &)> &offer);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_TAKELESS_H
