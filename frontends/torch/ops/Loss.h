// Loss.h - helpers of losses.

#ifndef TMC_FRONTENDS_TORCH_OPS_LOSS_H
#define TMC_FRONTENDS_TORCH_OPS_LOSS_H

#include "frontends/torch/Call.h"

namespace tmc::torch_import {

/// Sets the result to `losses`, reduced by the call's argument `reduction`.
mlir::LogicalResult reduced(Call &c, mlir::FailureOr<Val> losses);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_OPS_LOSS_H
