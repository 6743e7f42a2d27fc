// Elementary.h - functions of one operand, composed of those in Pointwise.h.
//
// Constants are folded, as in Pointwise.h. Step functions (floor, sign) pass no
// gradient.

#ifndef TMC_FRONTENDS_COMMON_OPS_ELEMENTARY_H
#define TMC_FRONTENDS_COMMON_OPS_ELEMENTARY_H

#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Logic.h"

namespace tmc::frontend {

// Step functions; only the sign changes an integer.
mlir::FailureOr<Val> ceilOf(Site &s, const Val &x);
mlir::FailureOr<Val> truncated(Site &s, const Val &x);
/// Rounds to the nearest whole number, halves to even.
mlir::FailureOr<Val> rounded(Site &s, const Val &x);
/// The remainder with the dividend's sign, or with the divisor's.
mlir::FailureOr<Val> remainder(Site &s, Operands two);
mlir::FailureOr<Val> floorModulo(Site &s, Operands two);
mlir::FailureOr<Val> signOf(Site &s, const Val &x);
/// True for infinities of the requested signs.
mlir::FailureOr<Val> isInfinite(Site &s, const Val &x, bool positive,
                                bool negative);

mlir::FailureOr<Val> exponentialMinusOne(Site &s, const Val &x);
/// base^x and the logarithm of that base.
mlir::FailureOr<Val> exponentialOf(Site &s, double base, const Val &x);
mlir::FailureOr<Val> logarithmOf(Site &s, double base, const Val &x);

/// The square root of `x`, which is at least 0, or another root: x^(1 / order).
/// The gradient at 0 is 0, as in PyTorch's norms and standard deviations,
/// because the formula's gradient is 0 times infinity.
Expression rootOf(const Expression &x, double order = 2);
/// log(exp(x) + exp(y)), without overflow in its parts.
mlir::FailureOr<Val> logAddExp(Site &s, const Val &x, const Val &y);
/// log(sigmoid(x)), without overflow in its parts.
mlir::FailureOr<Val> logSigmoid(Site &s, const Val &x);

mlir::FailureOr<Val> tangent(Site &s, const Val &x);
mlir::FailureOr<Val> arcSine(Site &s, const Val &x);
mlir::FailureOr<Val> arcCosine(Site &s, const Val &x);
mlir::FailureOr<Val> hyperbolicSine(Site &s, const Val &x);
mlir::FailureOr<Val> hyperbolicCosine(Site &s, const Val &x);
mlir::FailureOr<Val> inverseHyperbolicSine(Site &s, const Val &x);
mlir::FailureOr<Val> inverseHyperbolicCosine(Site &s, const Val &x);
mlir::FailureOr<Val> inverseHyperbolicTangent(Site &s, const Val &x);

// Activations.
/// max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).
mlir::FailureOr<Val> celu(Site &s, const Val &x, double alpha);
/// x above the threshold, else `otherwise`.
mlir::FailureOr<Val> thresholded(Site &s, const Val &x, double threshold,
                                 double otherwise);
/// x moved by `bias` towards zero if its distance from zero exceeds `limit`,
/// else 0.
mlir::FailureOr<Val> shrunk(Site &s, const Val &x, double limit, double bias);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_ELEMENTARY_H
