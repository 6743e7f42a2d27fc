// Gather.h - what operators that look rows up share.

#ifndef TMC_FRONTENDS_TORCH_OPS_GATHER_H
#define TMC_FRONTENDS_TORCH_OPS_GATHER_H

#include "frontends/torch/Call.h"

namespace tmc::torch_import {

/// Refuses gradients of a table's rows that are divided by how often an index
/// occurs: that is known of the whole batch only, and a step may see it in
/// pieces. A sparse gradient has the same numbers.
mlir::LogicalResult checkTableGradients(Call &c);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_OPS_GATHER_H
