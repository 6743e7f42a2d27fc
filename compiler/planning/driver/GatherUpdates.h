// GatherUpdates.h - updates that wait for each other, to be one launch.
//
// A device can run several updates of one kind in one launch if they stand side
// by side. In a planned order each update follows its gradient, which is alive
// for the shortest time then:
//
//     planned    f1 f2  g2 u2  g1 u1  g0 u0
//     gathered   f1 f2  g2     g1     g0 u2 u1 u0
//
// An update that waits keeps its gradient alive for longer. So updates wait
// only while the live bytes are within the peak of the plan. The arena then has
// other gaps: it may grow by 1/128 at most, and not beyond the budget. If it
// would, fewer updates wait at a time, or only those with small gradients.
// Updates don't wait beyond
//
//   - an execution that reads their results, or that writes what they read,
//   - the Done of work for which the kernels wait.
//
// All else keeps its order, recomputations and moves as well, so the makespan
// doesn't grow. A bound on the cost of all plans of the planned order holds for
// the gathered one, too: its plans need at least as many bytes.

#ifndef TMC_COMPILER_PLANNING_DRIVER_GATHERUPDATES_H
#define TMC_COMPILER_PLANNING_DRIVER_GATHERUPDATES_H

#include "compiler/planning/driver/Plan.h"

namespace tmc::planning {

/// The bytes that an arena of `arenaBytes` may have for the sake of fewer
/// launches. `mostBytes`: of any arena; -1: no limit.
int64_t arenaRoom(int64_t arenaBytes, int64_t mostBytes);

/// Moves updates in `plan` later, next to each other; leaves the plan as it is
/// where that needs too many bytes. `kindOf`: of each recipe, the number of its
/// kind if it is an update that can share a launch, else kNone. `alignment`: of
/// the device's buffers, in bytes. `budgetBytes`: of the device, reserved ones
/// included; -1: no limit.
void gatherUpdates(const Problem &problem, Plan &plan,
                   const std::vector<int32_t> &kindOf, int64_t alignment,
                   int64_t budgetBytes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_GATHERUPDATES_H
