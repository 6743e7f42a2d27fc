// Distance.h - distances of vectors, also for losses.

#ifndef TMC_FRONTENDS_TORCH_OPS_DISTANCE_H
#define TMC_FRONTENDS_TORCH_OPS_DISTANCE_H

#include "frontends/torch/Call.h"

namespace tmc::torch_import {

/// The norm of `order` of x - y + epsilon over the last dimension; `order` may
/// be infinite.
mlir::FailureOr<Val> distanceOf(Call &c, const Val &x, const Val &y,
                                double order, double epsilon, bool keep);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_OPS_DISTANCE_H
