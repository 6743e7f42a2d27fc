// Gather.h - helpers of operators that look rows up.

#ifndef TMC_FRONTENDS_TORCH_OPS_GATHER_H
#define TMC_FRONTENDS_TORCH_OPS_GATHER_H

#include "frontends/torch/Call.h"

namespace tmc::torch_import {

/// Refuses gradients of a table's rows that are divided by the count of their
/// index: the count is that of the whole batch, and a step may see only pieces
/// of it. A sparse gradient has the same numbers.
mlir::LogicalResult checkTableGradients(Call &c);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_OPS_GATHER_H
