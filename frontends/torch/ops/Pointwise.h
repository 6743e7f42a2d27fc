// Pointwise.h - what operators of other families need of operands.

#ifndef TMC_FRONTENDS_TORCH_OPS_POINTWISE_H
#define TMC_FRONTENDS_TORCH_OPS_POINTWISE_H

#include "frontends/common/ops/Expression.h"
#include "frontends/torch/Call.h"

namespace tmc::torch_import {

/// `self` as the elements of the result: `dtype`, else `otherwise`.
mlir::FailureOr<Val> selfAs(Call &c, ElementType otherwise);

/// The larger or smaller of two operands of one type. Where they are equal each
/// gets half of the gradient, as in PyTorch.
mlir::FailureOr<Val> extremeOf(Call &c, tmc::frontend::Operands two,
                               bool isLargest);

/// The square root of `x`, at least 0, or another one: x^(1 / order). It has no
/// gradient at 0, as in PyTorch's norms, where the formula has none at all.
Expression rootOf(const Expression &x, double order = 2);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_OPS_POINTWISE_H
