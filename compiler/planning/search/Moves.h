// Moves.h - transfers put in their places: from a plan of the projected problem
// to one with starts and dones.
//
// The device's plan says what comes back before which kernel, and what has left
// behind which. A transfer that starts and ends right there is correct, takes
// no byte more than that plan, and stalls the compute engine for all of its
// time:
//
//     list       f1 stash( )stash f2 f3 g3 fetch( )fetch g1       stalls 2 x 15
//
// Bytes that are free between the two ends buy that time back. A stash may end
// later, for as long as there is room for what it reads; a fetch may start
// earlier, as soon as there is room for what it writes:
//
//     list       f1 stash( f2 f3 )stash g3 fetch( ... )fetch g1
//
// When it would have to, to stall no engine, follows from the links alone: each
// works on one transfer after the other, stashes as soon as they can begin,
// fetches as late as they may. So:
//
//   1. The times at which kernels run, at first without any stall.
//   2. Of each transfer, by these times, the kernel before which it should
//   start
//      (or end), and the furthest that free bytes allow.
//   3. The list; its makespan, and with it new times. Again, while that helps.
//
// Stashes end and fetches start in the order of their links' queues, so that
// no transfer waits for one behind it. Segments stand end to end; a transfer
// begins and ends in the trip of one.

#ifndef TMC_COMPILER_PLANNING_SEARCH_MOVES_H
#define TMC_COMPILER_PLANNING_SEARCH_MOVES_H

#include "compiler/planning/search/Projection.h"

namespace tmc::planning {

struct MovedPlan {
  Solution solution;
  int64_t makespan = 0;
  std::vector<int64_t> peakBytes; // Of each space, reserved left out.
  int64_t refused = 0; // Lists with a file that were wrong on the way here.
};

/// `planned` is a solution of `projection.problem`; `liveBytes` is what live
/// bytes of the device may reach, reserved left out (-1: anything). What a
/// transfer needs at the least is taken even where that is more. A
/// FailedPrecondition error where the list comes out wrong, which is for the
/// caller to leave out.
absl::StatusOr<MovedPlan> placeMoves(const Problem &problem,
                                     const SpaceChoice &choice,
                                     const Projection &projection,
                                     const Solution &planned,
                                     int64_t liveBytes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_MOVES_H
