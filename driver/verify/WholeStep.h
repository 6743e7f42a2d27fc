// WholeStep.h - a step of ranks, seen from outside.
//
// A rank keeps shards of parameters and moments. Files and programs know whole
// tensors alone, and so does a comparison. `makeWhole` gives a step whole
// arguments and results:
//
//     %s                 %w, %s = nn.shard_of %w
//     return %s1         return nn.gather %s1

#ifndef TMC_DRIVER_VERIFY_WHOLESTEP_H
#define TMC_DRIVER_VERIFY_WHOLESTEP_H

#include "dialects/train/Train.h"

namespace tmc {

/// No argument or result of `step`, of `ranks` ranks, is a shard any more.
void makeWhole(train::StepOp step, int64_t ranks);

} // namespace tmc

#endif // TMC_DRIVER_VERIFY_WHOLESTEP_H
