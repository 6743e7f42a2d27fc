// DelayReaders.h - an order in which kernels hide the work of networks.
//
// A kernel that reads what an exchange makes often stands right behind it. Then
// compute waits for the whole exchange, however many bytes are free. In this
// order compute runs the first kernel of the program's order that waits for
// nothing, within a window of instructions, and stands still if there is none.
// A network takes what kernels made at once:
//
//     program  b2 exch2 sum2 adam2 b1 exch1 sum1 adam1 b0 exch0 sum0 adam0
//     delayed  b2 exch2 b1 exch1 sum2 adam2 b0 exch0 sum1 adam1 .. sum0 adam0
//
// Too little is left to hide the last exchange, exch0. So kernels that little
// else depends on are held back for it, the last ones before it in this order,
// as long as compute would stand still:
//
//     held     b2 exch2 b1 exch1 b0 exch0 sum1 adam1 sum2 adam2 sum0 adam0
//
// Gradients stay alive longer. A plan within a small budget may need the
// program's order, so NetworkSearch.h tries both.

#ifndef TMC_COMPILER_PLANNING_MOVES_DELAYREADERS_H
#define TMC_COMPILER_PLANNING_MOVES_DELAYREADERS_H

#include "compiler/planning/model/Problem.h"

namespace tmc::planning {

/// The order above of each segment. Each instruction stands behind those of the
/// program's order whose results it reads or whose values it changes.
Orders delayReaders(const Problem &problem);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_DELAYREADERS_H
