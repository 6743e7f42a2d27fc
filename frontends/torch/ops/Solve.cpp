// Solve.cpp - inverses, systems of equations, factors and determinants.
//
// ATen's operators whose names end in _ex also return a status, and those of
// core ATen return the factors that a backward pass would read. Both are
// refused if these results are used.

#include "frontends/common/ops/Solve.h"
#include "frontends/common/ops/Elementary.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/Linear.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/Call.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// The matrices, under any of the operators' argument names.
static Val matrices(Call &c) {
  for (const char *name : {"A", "self", "input"})
    if (c.has(name))
      return c.tensor(name);
  return Val();
}

static FailureOr<Val> swapped(Call &c, const Val &x) {
  if (x.rank() < 2)
    return c.error("matrices of shape " + str(x.dims));
  Dims perm(nn::firstDims(x.rank()));
  std::swap(perm[x.rank() - 2], perm[x.rank() - 1]);
  return transpose(c, x, perm);
}

/// Results from `first` on are intermediate values of a factorization.
static LogicalResult refuseFrom(Call &c, size_t first) {
  c.ignore({"check_errors"}); // A step raises none.
  for (size_t i = first; i < c.data.results.size(); ++i)
    if (c.isUsed(i))
      return c.unsupported("result " + Twine(i) + " of a factorization");
  return success();
}

//===----------------------------------------------------------------------===//
// Inverses
//===----------------------------------------------------------------------===//

static LogicalResult importInverse(Call &c) {
  if (failed(refuseFrom(c, 1)))
    return failure();
  return c.set(inverse(c, matrices(c)));
}
static Register inverseOp("inverse", importInverse);
static Register linalgInverse("linalg_inv", importInverse);
static Register linalgInverseEx("linalg_inv_ex", importInverse);

//===----------------------------------------------------------------------===//
// Systems of equations
//===----------------------------------------------------------------------===//

/// X in A X = B, or in X A = B if `left` is false.
static FailureOr<Val> solved(Call &c, const Val &a, const Val &b, bool left) {
  if (left)
    return solve(c, a, b);
  ASSIGN_OR_FAIL(Val at, swapped(c, a));
  ASSIGN_OR_FAIL(Val bt, swapped(c, b));
  ASSIGN_OR_FAIL(Val xt, solve(c, at, bt));
  return swapped(c, xt);
}

/// B is one right side for each matrix if it has the shape of A without the
/// last dimension, or if it is a vector.
static LogicalResult importSolve(Call &c) {
  if (failed(refuseFrom(c, 1)))
    return failure();
  const Val a = matrices(c);
  Val b = c.tensor("B");
  ASSIGN_OR_FAIL(bool left, c.flag("left", true));
  bool isVector =
      b.rank() == 1 ||
      (a.rank() > 0 && b.dims == Dims(ArrayRef<int64_t>(a.dims).drop_back()));
  if (!isVector)
    return c.set(solved(c, a, b, left));
  ASSIGN_OR_FAIL(b, unsqueeze(c, b, {b.rank() - (left ? 0 : 1)}));
  ASSIGN_OR_FAIL(Val x, solved(c, a, b, left));
  return c.set(squeeze(c, x, Dims{x.rank() - (left ? 1 : 2)}));
}
static Register linalgSolve("linalg_solve", importSolve);
static Register linalgSolveEx("linalg_solve_ex", importSolve);
static Register linalgSolveCore("_linalg_solve_ex", importSolve);

/// The triangle of `a` that is read; a unit triangle has ones on the diagonal.
static FailureOr<Val> triangular(Call &c, const Val &a, bool upper,
                                 bool isUnit) {
  if (a.rank() < 2)
    return c.error("matrices of shape " + str(a.dims));
  if (!isUnit)
    return triangle(c, a, upper, 0);
  ASSIGN_OR_FAIL(Val strict, triangle(c, a, upper, upper ? 1 : -1));
  ASSIGN_OR_FAIL(Val one,
                 diagonal(c, a.dims[a.rank() - 2], a.dims.back(), 0, a.type));
  return add(c, {strict, one});
}

static LogicalResult importSolveTriangular(Call &c) {
  ASSIGN_OR_FAIL(bool upper, c.flag("upper", false));
  ASSIGN_OR_FAIL(bool left, c.flag("left", true));
  ASSIGN_OR_FAIL(bool isUnit, c.flag("unitriangular", false));
  ASSIGN_OR_FAIL(Val a, triangular(c, matrices(c), upper, isUnit));
  return c.set(solved(c, a, c.tensor("B"), left));
}
static Register solveTriangular("linalg_solve_triangular",
                                importSolveTriangular);

/// An older operator: (solution, a copy of A).
static LogicalResult importTriangularSolve(Call &c) {
  if (failed(refuseFrom(c, 1)))
    return failure();
  ASSIGN_OR_FAIL(bool upper, c.flag("upper", true));
  ASSIGN_OR_FAIL(bool isTransposed, c.flag("transpose", false));
  ASSIGN_OR_FAIL(bool isUnit, c.flag("unitriangular", false));
  ASSIGN_OR_FAIL(Val a, triangular(c, c.tensor("A"), upper, isUnit));
  if (isTransposed) {
    ASSIGN_OR_FAIL(a, swapped(c, a));
  }
  return c.set(solve(c, a, c.tensor("self")));
}
static Register triangularSolve("triangular_solve", importTriangularSolve);

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

static LogicalResult importCholesky(Call &c) {
  if (failed(refuseFrom(c, 1)))
    return failure();
  ASSIGN_OR_FAIL(bool upper, c.flag("upper", false));
  Val a = matrices(c);
  // The upper triangle is the lower one of the transpose.
  if (upper) {
    ASSIGN_OR_FAIL(a, swapped(c, a));
  }
  ASSIGN_OR_FAIL(Val l, cholesky(c, a));
  return upper ? c.set(swapped(c, l)) : c.set(l);
}
static Register choleskyOp("cholesky", importCholesky);
static Register linalgCholesky("linalg_cholesky", importCholesky);
static Register linalgCholeskyEx("linalg_cholesky_ex", importCholesky);

/// The matrix whose Cholesky factor is `factor`.
static FailureOr<Val> multiplied(Call &c, const Val &factor) {
  ASSIGN_OR_FAIL(bool upper, c.flag("upper", false));
  ASSIGN_OR_FAIL(Val l, triangular(c, factor, upper, false));
  ASSIGN_OR_FAIL(Val lt, swapped(c, l));
  return upper ? matmul(c, lt, l) : matmul(c, l, lt);
}

static LogicalResult importCholeskySolve(Call &c) {
  ASSIGN_OR_FAIL(Val a, multiplied(c, c.tensor("input2")));
  return c.set(solve(c, a, c.tensor("self")));
}
static Register choleskySolve("cholesky_solve", importCholeskySolve);

static LogicalResult importCholeskyInverse(Call &c) {
  ASSIGN_OR_FAIL(Val a, multiplied(c, c.tensor("self")));
  return c.set(inverse(c, a));
}
static Register choleskyInverse("cholesky_inverse", importCholeskyInverse);

//===----------------------------------------------------------------------===//
// Determinants
//===----------------------------------------------------------------------===//

static LogicalResult importDeterminant(Call &c) {
  if (failed(refuseFrom(c, 1)))
    return failure();
  return c.set(determinant(c, matrices(c)));
}
static Register det("det", importDeterminant);
static Register linalgDet("linalg_det", importDeterminant);
static Register linalgDetCore("_linalg_det", importDeterminant);

/// (sign, logarithm of the absolute value).
static LogicalResult importSlogdet(Call &c) {
  if (failed(refuseFrom(c, 2)))
    return failure();
  ASSIGN_OR_FAIL(LogDeterminant both, logDeterminant(c, matrices(c)));
  if (failed(c.set(1, both.logSize)))
    return failure();
  return c.set(both.sign);
}
static Register slogdet("slogdet", importSlogdet);
static Register linalgSlogdet("linalg_slogdet", importSlogdet);
static Register linalgSlogdetCore("_linalg_slogdet", importSlogdet);

/// The logarithm of the determinant; NaN if it is negative.
static LogicalResult importLogdet(Call &c) {
  ASSIGN_OR_FAIL(LogDeterminant both, logDeterminant(c, matrices(c)));
  Expression size(c, both.logSize), sign(c, both.sign);
  return c.set(size.number(NAN).when(sign < 0, size).value());
}
static Register logdet("logdet", importLogdet);
