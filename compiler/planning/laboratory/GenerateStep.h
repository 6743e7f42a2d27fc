// GenerateStep.h - problems with the shape of a real training step, with
// contents that can move to a host or a file.
//
// A step of `layers` equal layers. Each has a parameter with two moments, an
// activation that its backward part needs, and a gradient. With several
// micro-batches the gradient is accumulated in a body of several trips. Every
// parameter, moment, saved activation and gradient may also be on the host, and
// in a file if there is one; every update may run on the host. So keeping,
// recomputing, offloading activations, offloading moments and updating on the
// host (ZeRO-Offload, ZeRO-Infinity on one device, paged optimizers) are plans
// of this one problem.

#ifndef TMC_COMPILER_PLANNING_LABORATORY_GENERATESTEP_H
#define TMC_COMPILER_PLANNING_LABORATORY_GENERATESTEP_H

#include "compiler/planning/model/Problem.h"

namespace tmc::planning {

struct StepOptions {
  int64_t layers = 4;
  int64_t microBatches = 1;
  uint64_t seed = 1;                  // Sizes and costs vary by a tenth.
  int64_t parameterBytes = 64 << 20;  // Per layer; each moment has the same.
  int64_t savedBytes = 256 << 20;     // Activation for the backward part.
  int64_t streamBytes = 16 << 20;     // Value between two layers.
  int64_t layerTime = 10'000'000'000; // Forward, in picoseconds.
  int64_t linkBandwidth = 25'000'000'000; // Bytes per second, each direction.
  int64_t hostBandwidth = 50'000'000'000; // Bytes per second of an update.
  int64_t fileBandwidth = 0;              // Bytes per second; 0: no file.
};

/// A problem that passes `check`.
Problem generateStep(const StepOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_LABORATORY_GENERATESTEP_H
