// StepUpdates.h - the op that writes each new value of a step, and its place.
//
// The new value of a state or a parameter takes the bytes of the old one. So
// every read of the old value comes before the op that writes the new one:
//
//     buf' = fused(buf, x)        reads buf elementwise: writes over it
//   y    = matmul(buf', w)      reads the new value, any number of times
//   g    = matmul(dy, buf)      reads the old value: must come before `buf'`
//
// If an op can't write over its operand, or a read of the old value depends on
// the new one, then a copy at the end of the step brings the new value home:
//
//     buf'  = fused(buf, x)       bytes of its own
//     y     = matmul(buf', w)
//     g     = matmul(dy, buf)
//     home  = copy(buf')          over buf
//
// Two states that take each other's old values need an extra copy:
//
//     aside = copy(a)   a' = copy(b)   b' = copy(aside)

#ifndef TMC_COMPILER_ANALYSIS_STEPUPDATES_H
#define TMC_COMPILER_ANALYSIS_STEPUPDATES_H

#include "dialects/interfaces/Interfaces.h"
#include "dialects/train/Train.h"

namespace tmc {

/// True if `made`, the result of a kernel, may be written over the whole bytes
/// of `argument`, which the kernel reads.
bool mayTakePlace(mlir::OpResult made, mlir::BlockArgument argument);

/// Adds the copies that bring new values home.
void copyUpdates(train::StepOp step);

/// Moves each in-place update behind the last read of the bytes that it
/// overwrites: fusion may have moved a read past the update, because SSA values
/// alone permit that.
void sinkUpdates(train::StepOp step);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_STEPUPDATES_H
