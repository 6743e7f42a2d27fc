// Overlap.h - lets the work of networks run beside the kernels of a plan.
//
// A plan of the projection (NetworkProjection.h) has the work of a network in
// one place: its Done stands right after its Start, and compute waits for all
// of it. Bytes that are free between the two ends hide the wait:
//
//     plan       b2 exch( )exch b1 b0 sum    gath( )gath f1
//     overlap    b2 exch( b1 b0 )exch sum    gath( ... )gath f1
//
//   - A Done moves back to the place at which the work ends, or to the first
//     entry that needs the work done: a kernel that reads a result, an entry
//     that writes an operand or takes its storage. The operands stay alive.
//   - If that isn't enough, the Start moves forward to the place from which the
//     work ends in time, or to the last entry that the work needs: the maker of
//     an operand, a use of an older instance of a result. The results are alive
//     from there.
//
// Each network runs first what is needed first, so a gather overtakes an
// exchange; or, if that has no room, what the plan has first. Times are those
// of the list in which networks take none.
//
// A kernel that reads what an exchange makes often stands right behind it, so
// nothing hides the wait. `delayReaders` (DelayReaders.h) puts such kernels
// later in the order, before the plan is made.

#ifndef TMC_COMPILER_PLANNING_MOVES_OVERLAP_H
#define TMC_COMPILER_PLANNING_MOVES_OVERLAP_H

#include "compiler/planning/moves/Moves.h"

namespace tmc::planning {

/// `solution` with each Done of a network right after its Start; the device's
/// live bytes stay within `liveBytes` (-1: no limit) where they are. The faster
/// one of it and its overlapped form. FailedPrecondition: `solution` is wrong.
absl::StatusOr<MovedPlan> overlapNetwork(const Problem &problem,
                                         const Solution &solution,
                                         int64_t liveBytes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_OVERLAP_H
