// MoveLevers.h - bytes saved and time added by moving each kind of content.
//
// A plan is compared with itself: its list stays, and the moves of one kind of
// content are undone. A content whose moves are undone stays on the device from
// its production to the last read of any of its forms:
//
//     list        f1   stash(  f2  )stash  f3   fetch(  )fetch   g1
//     device      a    a       a   a       .    a       a        a
//     taken back  a    a       a   a       a    a       a        a
//
// Its moves take no time then, and updates on the host take the time of the
// device's variant. All kinds are undone together, for the plan with its
// recomputations alone, and each kind alone: parameters; states, with the
// updates on the host and the gradients that these read; the other results of
// kernels.

#ifndef TMC_COMPILER_PLANNING_DRIVER_MOVELEVERS_H
#define TMC_COMPILER_PLANNING_DRIVER_MOVELEVERS_H

#include "compiler/planning/driver/Account.h"

namespace tmc::planning {

/// Sets `recomputedPeak`, and the times and classes of `levers`. `planPeak` is
/// read; it and `recomputedPeak` are equal if nothing moves.
absl::Status addMoveLevers(const Problem &problem, const Plan &plan,
                           const Timeline &timeline, Levers &levers);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_MOVELEVERS_H
