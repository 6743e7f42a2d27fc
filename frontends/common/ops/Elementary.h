// Elementary.h - functions of one operand that are said with those of
// Pointwise.h.
//
// Constants are folded, since those are. Steps (floor, sign) pass no gradient.

#ifndef TMC_FRONTENDS_COMMON_OPS_ELEMENTARY_H
#define TMC_FRONTENDS_COMMON_OPS_ELEMENTARY_H

#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Logic.h"

namespace tmc::frontend {

// Steps; whole numbers stay as they are, but for the sign.
mlir::FailureOr<Val> ceilOf(Site &s, const Val &x);
mlir::FailureOr<Val> truncated(Site &s, const Val &x);
/// To the nearest whole number, halves to the even one.
mlir::FailureOr<Val> rounded(Site &s, const Val &x);
/// The remainder with the dividend's sign, or with the divisor's.
mlir::FailureOr<Val> remainder(Site &s, Operands two);
mlir::FailureOr<Val> floorModulo(Site &s, Operands two);
mlir::FailureOr<Val> signOf(Site &s, const Val &x);
/// Infinities of the signs that are asked for.
mlir::FailureOr<Val> isInfinite(Site &s, const Val &x, bool positive,
                                bool negative);

mlir::FailureOr<Val> exponentialMinusOne(Site &s, const Val &x);
/// base^x and the logarithm of that base.
mlir::FailureOr<Val> exponentialOf(Site &s, double base, const Val &x);
mlir::FailureOr<Val> logarithmOf(Site &s, double base, const Val &x);

/// The square root of `x`, at least 0, or another one: x^(1 / order). It has no
/// gradient at 0, as in PyTorch's norms and standard deviations, where the
/// formula's is 0 times infinity.
Expression rootOf(const Expression &x, double order = 2);
/// log(exp(x) + exp(y)), which doesn't overflow where its parts do.
mlir::FailureOr<Val> logAddExp(Site &s, const Val &x, const Val &y);
/// log(sigmoid(x)), the same.
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
/// x moved by `bias` towards zero where it is farther than `limit` from it,
/// else 0.
mlir::FailureOr<Val> shrunk(Site &s, const Val &x, double limit, double bias);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_ELEMENTARY_H
