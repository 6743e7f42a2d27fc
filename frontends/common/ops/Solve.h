// Solve.h - systems of equations, inverses, factors and determinants.
//
// A matrix [..., n, n] is eliminated column by column, each step a few kernels
// over the whole batch, so n is at most kMaxSolveSize. The largest remaining
// element of a column is its pivot, as in LAPACK.
//
// Gradients don't flow through the elimination. It gives the inverse X of the
// matrix A without its gradient; one step of Newton's method,
//
//   Y = X + X (1 - A X),
//
// has the value of X with smaller rounding errors, and the derivative -X dA X
// of the inverse. Solutions and factors are computed in the same way, so a
// backward pass is a few matrix products.
//
// Operands of 16 bits are computed in f32. For a singular matrix, where PyTorch
// raises an error, the result is NaN.

#ifndef TMC_FRONTENDS_COMMON_OPS_SOLVE_H
#define TMC_FRONTENDS_COMMON_OPS_SOLVE_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// The most rows of a matrix for elimination: its graph has about eight ops per
/// row.
constexpr int64_t kMaxSolveSize = 64;

/// The inverses of matrices [..., n, n].
mlir::FailureOr<Val> inverse(Site &s, const Val &a);

/// X in A X = B, for A [..., n, n] and B [..., n, k]; batches broadcast.
mlir::FailureOr<Val> solve(Site &s, const Val &a, const Val &b);

/// The lower triangles L of L L^T = A. Only A's lower triangle is read; its
/// gradient is symmetric, as in PyTorch.
mlir::FailureOr<Val> cholesky(Site &s, const Val &a);

/// The determinants' signs, without a gradient, and the logarithms of their
/// absolute values: [...] each. For a singular matrix, 0 and minus infinity.
struct LogDeterminant {
  Val sign, logSize;
};
mlir::FailureOr<LogDeterminant> logDeterminant(Site &s, const Val &a);

/// The determinants of matrices [..., n, n]: sums over minors for few rows,
/// else products of pivots, whose gradient needs an inverse.
mlir::FailureOr<Val> determinant(Site &s, const Val &a);

/// The sum over minors takes n 2^(n - 1) products for n rows.
constexpr int64_t kMaxMinorSize = 8;
/// The determinants of square matrices of at most kMaxMinorSize rows; also
/// singular ones have gradients (Determinant.cpp).
mlir::FailureOr<Val> determinantByMinors(Site &s, const Val &a);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_SOLVE_H
