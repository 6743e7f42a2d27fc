// Logic.h - comparisons, logic, choice and casts.

#ifndef TMC_FRONTENDS_COMMON_OPS_LOGIC_H
#define TMC_FRONTENDS_COMMON_OPS_LOGIC_H

#include "frontends/common/ops/Pointwise.h"

namespace tmc::frontend {

// Comparisons. Booleans compare as 0 and 1; NaN equals nothing and has no
// order.
mlir::FailureOr<Val> equals(Site &s, Operands two);
mlir::FailureOr<Val> notEqual(Site &s, Operands two);
mlir::FailureOr<Val> less(Site &s, Operands two);
mlir::FailureOr<Val> lessOrEqual(Site &s, Operands two);
mlir::FailureOr<Val> greater(Site &s, Operands two);
mlir::FailureOr<Val> greaterOrEqual(Site &s, Operands two);

// Bitwise; logical for booleans. A boolean operand whose elements are all
// neutral leaves the other unchanged.
mlir::FailureOr<Val> conjunction(Site &s, Operands two);
mlir::FailureOr<Val> disjunction(Site &s, Operands two);
mlir::FailureOr<Val> exclusiveOr(Site &s, Operands two);
mlir::FailureOr<Val> negation(Site &s, const Val &x);
/// Integers shifted by `places` bits, a constant, to the left, or to the right
/// with copies of the sign. If `places` is negative or at least the width, the
/// result is 0, or only the sign of a signed integer shifted to the right.
mlir::FailureOr<Val> shiftedBits(Site &s, const Val &x, const Val &places,
                                 bool isLeft);
mlir::FailureOr<Val> isNaN(Site &s, const Val &x);

/// The one value of all elements of a constant, if they are equal.
mlir::FailureOr<std::optional<int64_t>> uniformValue(Site &s, const Val &v);

/// condition ? x : y. A condition that is the same everywhere is folded.
mlir::FailureOr<Val> where(Site &s, const Val &condition, const Val &x,
                           const Val &y);

/// `x` with elements of type `to`. Booleans are 0 and 1; floats are truncated
/// towards zero.
mlir::FailureOr<Val> castTo(Site &s, const Val &x, ElementType to);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_LOGIC_H
