// Pointwise.h - elementwise operators, with broadcasting.
//
// All of them share one path: a function on numbers computes constants at
// import, and other operands become an arith or math op on tensors of equal
// shape, with explicit broadcasts.

#ifndef TMC_FRONTENDS_COMMON_OPS_POINTWISE_H
#define TMC_FRONTENDS_COMMON_OPS_POINTWISE_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

using Doubles = llvm::ArrayRef<double>;
using Ints = llvm::ArrayRef<int64_t>;
using FloatFn = double (*)(Doubles);
using IntFn = int64_t (*)(Ints);
/// Builds the op on operands of one shape.
using BuildFn = llvm::function_ref<mlir::Value(
    mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

struct Pointwise {
  FloatFn floats = nullptr; ///< On float operands; null if there are none.
  IntFn ints = nullptr;     ///< On integers and booleans.
  BuildFn build;
  bool compares = false; ///< The result is boolean.
  size_t arity = 2;      ///< The number of operands; 0 for any.
};

/// `p` applied to `operands`, which must have one element type.
mlir::FailureOr<Val> pointwise(Site &s, llvm::ArrayRef<Val> operands,
                               const Pointwise &p);

/// The common shape of `operands`, or an error.
mlir::FailureOr<Dims> commonShape(Site &s, llvm::ArrayRef<Val> operands);

/// A tensor like `x` filled with `value`.
mlir::Value like(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                 double value);

// Arithmetic, on floats and on integers, which wrap around.
using Operands = llvm::ArrayRef<Val>;
mlir::FailureOr<Val> add(Site &s, Operands two);
mlir::FailureOr<Val> subtract(Site &s, Operands two);
mlir::FailureOr<Val> multiply(Site &s, Operands two);
/// Integer quotients are truncated towards zero.
mlir::FailureOr<Val> divide(Site &s, Operands two);
/// The remainder with the divisor's sign, for integers.
mlir::FailureOr<Val> wholeModulo(Site &s, Operands two);
/// The remainder with the dividend's sign, for integers.
mlir::FailureOr<Val> wholeRemainder(Site &s, Operands two);
/// x ^ y. Powers that equal a product or a root exactly become that.
mlir::FailureOr<Val> power(Site &s, Operands two);

// Any number of operands, combined from the left.
mlir::FailureOr<Val> maximum(Site &s, Operands any);
mlir::FailureOr<Val> minimum(Site &s, Operands any);
mlir::FailureOr<Val> sum(Site &s, Operands any);
mlir::FailureOr<Val> mean(Site &s, Operands any);

// One operand.
mlir::FailureOr<Val> exponential(Site &s, const Val &x);
mlir::FailureOr<Val> logarithm(Site &s, const Val &x);
mlir::FailureOr<Val> log1p(Site &s, const Val &x);
mlir::FailureOr<Val> squareRoot(Site &s, const Val &x);
mlir::FailureOr<Val> reciprocalRoot(Site &s, const Val &x);
mlir::FailureOr<Val> hyperbolicTangent(Site &s, const Val &x);
mlir::FailureOr<Val> errorFunction(Site &s, const Val &x);
mlir::FailureOr<Val> sine(Site &s, const Val &x);
mlir::FailureOr<Val> cosine(Site &s, const Val &x);
mlir::FailureOr<Val> negate(Site &s, const Val &x);
mlir::FailureOr<Val> absolute(Site &s, const Val &x);
mlir::FailureOr<Val> reciprocal(Site &s, const Val &x);
mlir::FailureOr<Val> arcTangent(Site &s, const Val &x);
/// A step function: it passes no gradient.
mlir::FailureOr<Val> floorOf(Site &s, const Val &x);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_POINTWISE_H
