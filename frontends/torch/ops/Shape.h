// Shape.h - helpers for the shapes of operators.

#ifndef TMC_FRONTENDS_TORCH_OPS_SHAPE_H
#define TMC_FRONTENDS_TORCH_OPS_SHAPE_H

#include "frontends/torch/Call.h"

namespace tmc::torch_import {

/// `parts` stacked along a new dimension `axis` of the result.
mlir::FailureOr<Val> stacked(Call &c, llvm::ArrayRef<Val> parts, int64_t axis);

/// `x` repeated to `dims`, where -1 keeps a size.
mlir::FailureOr<Val> expandedTo(Call &c, const Val &x, Dims dims);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_OPS_SHAPE_H
