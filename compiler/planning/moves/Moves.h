// Moves.h - places transfers: from a plan of the projected problem to a plan
// with starts and dones.
//
// The device's plan says before which kernel a value comes back, and after
// which one a value has left. A transfer that starts and ends right there is
// correct, takes no byte more than that plan, and stalls the compute engine for
// all of its time:
//
//     list       f1 stash( )stash f2 f3 g3 fetch( )fetch g1       stalls 2 x 15
//
// Bytes that are free between the two ends reduce the stall. A stash may end
// later while there is room for its input; a fetch may start earlier once there
// is room for its output:
//
//     list       f1 stash( f2 f3 )stash g3 fetch( ... )fetch g1
//
// The place at which no engine stalls follows from the links alone: each link
// runs one transfer after another, stashes as soon as they can begin, fetches
// as late as they may. So the algorithm computes
//
//   1. the times at which kernels run, at first without any stall;
//   2. for each transfer, by these times, the kernel before which it should
//      start or end, and the furthest place that free bytes allow;
//   3. the list and its makespan, which give new times. It repeats this while
//      the makespan falls.
//
// Stashes end and fetches start in the order of their links' queues, so no
// transfer waits for a later one. Segments stand end to end; a transfer begins
// and ends in one trip.

#ifndef TMC_COMPILER_PLANNING_MOVES_MOVES_H
#define TMC_COMPILER_PLANNING_MOVES_MOVES_H

#include "compiler/planning/moves/Projection.h"

namespace tmc::planning {

struct MovedPlan {
  Solution solution;
  int64_t makespan = 0;
  std::vector<int64_t> peakBytes; // Per space, reserved left out.
  int64_t refused = 0; // Lists with a file that `simulate` refused on the way.
};

/// `planned` is a solution of `projection.problem`. `liveBytes` is the limit of
/// the device's live bytes, reserved left out (-1: none); transfers take the
/// bytes that they need at least even above it. A FailedPrecondition error if
/// the resulting list is wrong; the caller then skips this choice.
absl::StatusOr<MovedPlan> placeMoves(const Problem &problem,
                                     const SpaceChoice &choice,
                                     const Projection &projection,
                                     const Solution &planned,
                                     int64_t liveBytes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_MOVES_H
