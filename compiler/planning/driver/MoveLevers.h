// MoveLevers.h - what moving each kind of content buys, in bytes and time.
//
// A plan is compared with itself: its list stays, and what one kind of content
// does is taken back. A content that is taken back stays on the device from
// its making to the last read of any of its forms, whatever form that reads:
//
//     list        f1   stash(  f2  )stash  f3   fetch(  )fetch   g1
//     device      a    a       a   a       .    a       a        a
//     taken back  a    a       a   a       a    a       a        a
//
// Its moves take no time then, and updates on the host take the time of the
// device's variant there. The kinds come back in turn: parameters first, then
// states with the updates on the host and the gradients that these read,
// then what else kernels make. What remains is the plan with its
// recomputations alone.

#ifndef TMC_COMPILER_PLANNING_DRIVER_MOVELEVERS_H
#define TMC_COMPILER_PLANNING_DRIVER_MOVELEVERS_H

#include "compiler/planning/driver/Account.h"

namespace tmc::planning {

/// Sets the peaks and times of `levers` that say what recomputation and moves
/// bought; `planPeak` and `recomputedPeak` are equal where nothing moves.
absl::Status addMoveLevers(const Problem &problem, const Plan &plan,
                           const Timeline &timeline, Levers &levers);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_MOVELEVERS_H
