// Pointwise.h - helpers for the operands of operators.

#ifndef TMC_FRONTENDS_TORCH_OPS_POINTWISE_H
#define TMC_FRONTENDS_TORCH_OPS_POINTWISE_H

#include "frontends/common/ops/Expression.h"
#include "frontends/torch/Call.h"

namespace tmc::torch_import {

/// `self` cast to the result's type: `dtype`, else `otherwise`.
mlir::FailureOr<Val> selfAs(Call &c, ElementType otherwise);

/// The larger or smaller of two operands of one type. Equal operands each get
/// half of the gradient, as in PyTorch.
mlir::FailureOr<Val> extremeOf(Call &c, tmc::frontend::Operands two,
                               bool isLargest);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_OPS_POINTWISE_H
