// GenerateStep.h - problems with the shape of a real training step: what there
// is to move, and where to.
//
// A step of `layers` equal layers. Each has a parameter with two moments, an
// activation that its backward part needs, and a gradient; with several
// micro-batches the gradient is accumulated in a body of exact trips. Every
// parameter, moment, saved activation and gradient may also be on the host,
// and with a file on that, too; every update may run on the host. So keeping,
// recomputing, offloading activations, offloading moments and updating on the
// host (ZeRO-Offload, ZeRO-Infinity on one device, paged optimizers) are plans
// of this one problem.

#ifndef TMC_COMPILER_PLANNING_MODEL_GENERATESTEP_H
#define TMC_COMPILER_PLANNING_MODEL_GENERATESTEP_H

#include "compiler/planning/model/Problem.h"

namespace tmc::planning {

struct StepOptions {
  int64_t layers = 4;
  int64_t microBatches = 1;
  uint64_t seed = 1;                      // Sizes and costs vary by a tenth.
  int64_t parameterBytes = 64 << 20;      // Of a layer, moments the same each.
  int64_t savedBytes = 256 << 20;         // What its backward part needs.
  int64_t streamBytes = 16 << 20;         // What passes from layer to layer.
  int64_t layerTime = 10'000'000'000;     // Forward, in picoseconds.
  int64_t linkBandwidth = 25'000'000'000; // Bytes a second, each direction.
  int64_t hostBandwidth = 50'000'000'000; // Of an update on the host.
  int64_t fileBandwidth = 0;              // 0: there is no file.
};

/// A problem that passes `check`.
Problem generateStep(const StepOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_GENERATESTEP_H
