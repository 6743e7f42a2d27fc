// WholeStep.h - a step of ranks, seen from outside.
//
// A rank keeps shards of parameters and moments, and pieces of those that ranks
// of tp cut. Files and programs know whole tensors alone, and so does a
// comparison. `makeWhole` gives a step whole arguments and results:
//
//     %s                 %w, %s = nn.shard_of %w
//     return %s1         return nn.gather %s1
//
// A piece of columns is a shard of the transposed chunks of columns.

#ifndef TMC_DRIVER_VERIFY_WHOLESTEP_H
#define TMC_DRIVER_VERIFY_WHOLESTEP_H

#include "dialects/train/Train.h"
#include "runtime/kernels/Mesh.h"

namespace tmc {

/// No argument or new value of `step`, which the ranks of `mesh` run, is a
/// shard or a piece any more.
void makeWhole(train::StepOp step, const Mesh &mesh);

} // namespace tmc

#endif // TMC_DRIVER_VERIFY_WHOLESTEP_H
