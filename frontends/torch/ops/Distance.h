// Distance.h - norms and distances, also as parts of losses.

#ifndef TMC_FRONTENDS_TORCH_OPS_DISTANCE_H
#define TMC_FRONTENDS_TORCH_OPS_DISTANCE_H

#include "frontends/torch/Call.h"

namespace tmc::torch_import {

/// The norm of `order` over `dims`: the largest or smallest size where that is
/// infinite, how many aren't 0 where it is 0.
mlir::FailureOr<Val> normAlong(Call &c, const Val &x, double order,
                               llvm::ArrayRef<int64_t> dims, bool keep);

/// The products of `x` and `y` of unit length over `dim`, where lengths are at
/// least `epsilon`.
mlir::FailureOr<Val> cosineAlong(Call &c, const Val &x, const Val &y,
                                 int64_t dim, double epsilon);

/// The norm of x - y + epsilon over the last dimension.
mlir::FailureOr<Val> distanceOf(Call &c, const Val &x, const Val &y,
                                double order, double epsilon, bool keep);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_OPS_DISTANCE_H
