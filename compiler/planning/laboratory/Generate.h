// Generate.h - training graphs of any size, for tests and measurements.
//
// Each family is a forward part, a loss and the backward part that reverse-mode
// differentiation gives, in the order of a framework. Sizes and costs vary from
// layer to layer by a seed, so no two layers are equal unless `repeats` is set.

#ifndef TMC_COMPILER_PLANNING_LABORATORY_GENERATE_H
#define TMC_COMPILER_PLANNING_LABORATORY_GENERATE_H

#include "compiler/planning/laboratory/Graph.h"

namespace tmc::planning {

enum class Family : uint8_t {
  Transformer,   // Blocks of attention and MLP with residual additions.
  UNet,          // Down and up, skip connections across.
  RandomLayered, // Layers of nodes that read a few of the layers before.
};

struct GenerateOptions {
  Family family = Family::Transformer;
  int64_t nodes = 1000; // Approximate number of nodes.
  uint64_t seed = 1;
  bool repeats = true; // All layers are equal.
};

Graph generateGraph(const GenerateOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_LABORATORY_GENERATE_H
