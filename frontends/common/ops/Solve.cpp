#include "frontends/common/ops/Solve.h"
#include "frontends/common/Importer.h"
#include "frontends/common/ops/Elementary.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/Linear.h"
#include "frontends/common/ops/Order.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

/// The number of rows of square matrices; fails if elimination can't take them.
static FailureOr<int64_t> rowsOf(Site &s, const Val &a, const char *what) {
  if (failed(checkFloats(s, a)))
    return failure();
  int64_t rank = a.rank(), n = rank ? a.dims.back() : 0;
  if (rank < 2 || a.dims[rank - 2] != n || n < 1)
    return s.error("matrices of shape " + str(a.dims));
  if (n > kMaxSolveSize)
    return s.unsupported(Twine(what) + " of matrices with " + Twine(n) +
                         " rows, more than " + Twine(kMaxSolveSize));
  return n;
}

/// The type in which a matrix of `type` is eliminated.
static ElementType wideType(ElementType type) {
  return sizeInFile(type) < 4 ? ElementType::F32 : type;
}

static FailureOr<Val> swapped(Site &s, const Val &a) {
  Dims perm(nn::firstDims(a.rank()));
  std::swap(perm[a.rank() - 2], perm[a.rank() - 1]);
  return transpose(s, a, perm);
}

/// The identity in the shape of `a`.
static FailureOr<Val> identityLike(Site &s, const Val &a) {
  int64_t n = a.dims.back();
  ASSIGN_OR_FAIL(Val one, diagonal(s, n, n, 0, a.type));
  return expand(s, one, a.dims);
}

/// Sums over both dimensions of matrices.
static FailureOr<Val> sumOfAll(Site &s, const Val &a) {
  return reduceSum(s, a, Dims{a.rank() - 2, a.rank() - 1}, false);
}

//===----------------------------------------------------------------------===//
// Elimination
//===----------------------------------------------------------------------===//

namespace {
/// The results of eliminating A [..., n, n].
struct Eliminated {
  Val inverse;    ///< [..., n, n]; NaN if A is singular.
  Val pivots;     ///< [..., 1, n], in the order of columns.
  Val places;     ///< [..., n, 1]: the row of each column's pivot.
  Val isSingular; ///< [..., 1, 1]: a pivot is 0.
};
} // namespace

/// The method of Gauss and Jordan, on values without gradients. Rows keep their
/// places; each step drops the column that it has turned into a column of the
/// identity:
///
///   [ A | 1 ]   n steps   [ the inverse, with rows in the pivots' order ]
static FailureOr<Eliminated> eliminate(Site &s, const Val &a) {
  const int64_t rank = a.rank(), n = a.dims.back();
  const int64_t rows = rank - 2, columns = rank - 1;
  ASSIGN_OR_FAIL(Val one, identityLike(s, a));
  ASSIGN_OR_FAIL(Val both, concat(s, {a, one}, columns));
  Dims line(a.dims);
  line[columns] = 1;
  Val numbers(iota(line, rows));
  SmallVector<Val> pivots, places;
  std::optional<Expression> isUsed;
  for (int64_t k = 0; k < n; ++k) {
    int64_t width = both.dims[columns];
    ASSIGN_OR_FAIL(Val column, strided(s, both, columns, 0, 1, 1));
    Expression first(s, column), size = first.of(absolute);
    if (isUsed)
      size = size.number(-1).when(*isUsed, size);
    ASSIGN_OR_FAIL(Val sizes, size.value());
    ASSIGN_OR_FAIL(Val place, placeOfExtreme(s, sizes, rows, true));
    Expression isHere = Expression(s, numbers) == Expression(s, place);
    isUsed = isUsed ? *isUsed | isHere : isHere;
    // The pivot's row, without the column of the pivot.
    Expression all(s, both);
    ASSIGN_OR_FAIL(Val chosen, all.when(isHere, all.number(0)).value());
    ASSIGN_OR_FAIL(Val row, reduceSum(s, chosen, Dims{rows}, true));
    ASSIGN_OR_FAIL(Val pivot, strided(s, row, columns, 0, 1, 1));
    ASSIGN_OR_FAIL(Val rest, strided(s, row, columns, 1, 1, width - 1));
    ASSIGN_OR_FAIL(Val others, strided(s, both, columns, 1, 1, width - 1));
    // Without a pivot, the column is 0 in all remaining rows.
    Expression divisor(s, pivot);
    divisor = divisor.number(1).when(divisor == 0, divisor);
    Expression scaled = Expression(s, rest) / divisor;
    Expression left = Expression(s, others) - first * scaled;
    ASSIGN_OR_FAIL(both, scaled.when(isHere, left).value());
    pivots.push_back(pivot);
    places.push_back(place);
  }
  Eliminated result;
  ASSIGN_OR_FAIL(result.pivots, concat(s, pivots, columns));
  ASSIGN_OR_FAIL(result.places, concat(s, places, rows));
  // Row k of the inverse is in the row of pivot k.
  Val across(iota(a.dims, columns));
  Expression choice = Expression(s, across) == Expression(s, result.places);
  ASSIGN_OR_FAIL(Val order, choice.cast(a.type).value());
  ASSIGN_OR_FAIL(Val ordered, matmul(s, order, both));
  Expression isZero = Expression(s, result.pivots) == 0;
  ASSIGN_OR_FAIL(Val zeros, isZero.cast(a.type).value());
  ASSIGN_OR_FAIL(Val most, reduceMax(s, zeros, Dims{columns}, true));
  Expression isSingular = Expression(s, most) > 0;
  ASSIGN_OR_FAIL(result.isSingular, isSingular.value());
  Expression found(s, ordered);
  ASSIGN_OR_FAIL(result.inverse,
                 found.number(NAN).when(isSingular, found).value());
  return result;
}

//===----------------------------------------------------------------------===//
// Inverses and solutions
//===----------------------------------------------------------------------===//

/// The inverse of `a` without a gradient.
static FailureOr<Val> detachedInverse(Site &s, const Val &a) {
  ASSIGN_OR_FAIL(Eliminated done,
                 eliminate(s, s.importer.forward.detached(a, s.loc)));
  return done.inverse;
}

FailureOr<Val> tmc::frontend::inverse(Site &s, const Val &given) {
  if (failed(rowsOf(s, given, "inverses")))
    return failure();
  ASSIGN_OR_FAIL(Val a, castTo(s, given, wideType(given.type)));
  ASSIGN_OR_FAIL(Val x, detachedInverse(s, a));
  ASSIGN_OR_FAIL(Val one, identityLike(s, a));
  ASSIGN_OR_FAIL(Val product, matmul(s, a, x));
  ASSIGN_OR_FAIL(Val rest, subtract(s, {one, product}));
  ASSIGN_OR_FAIL(Val step, matmul(s, x, rest));
  ASSIGN_OR_FAIL(Val y, add(s, {x, step}));
  return castTo(s, y, given.type);
}

/// Z, without a gradient, solves A Z = B; Z + X (B - A Z) adds the gradient.
FailureOr<Val> tmc::frontend::solve(Site &s, const Val &given,
                                    const Val &right) {
  if (failed(rowsOf(s, given, "solutions")))
    return failure();
  if (right.rank() < 2 || right.type != given.type ||
      right.dims[right.rank() - 2] != given.dims.back())
    return s.error("matrices of shape " + str(given.dims) +
                   " and right sides of shape " + str(right.dims));
  ASSIGN_OR_FAIL(Val a, castTo(s, given, wideType(given.type)));
  ASSIGN_OR_FAIL(Val b, castTo(s, right, a.type));
  ASSIGN_OR_FAIL(Val x, detachedInverse(s, a));
  ASSIGN_OR_FAIL(Val z, matmul(s, x, s.importer.forward.detached(b, s.loc)));
  ASSIGN_OR_FAIL(Val product, matmul(s, a, z));
  ASSIGN_OR_FAIL(Val rest, subtract(s, {b, product}));
  ASSIGN_OR_FAIL(Val step, matmul(s, x, rest));
  ASSIGN_OR_FAIL(Val y, add(s, {z, step}));
  return castTo(s, y, given.type);
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// The Cholesky factor of `a`, on values without gradients: in each step one
/// column, and the update of the remaining rows and columns.
static FailureOr<Val> factor(Site &s, const Val &a) {
  const int64_t rank = a.rank(), n = a.dims.back();
  const int64_t rows = rank - 2, columns = rank - 1;
  SmallVector<Val> parts;
  Val left = a;
  for (int64_t k = 0; k < n; ++k) {
    int64_t size = n - k;
    ASSIGN_OR_FAIL(Val first, strided(s, left, columns, 0, 1, 1));
    ASSIGN_OR_FAIL(Val pivot, strided(s, first, rows, 0, 1, 1));
    Expression column =
        Expression(s, first) / Expression(s, pivot).of(squareRoot);
    ASSIGN_OR_FAIL(Val part, column.value());
    Dims low(rank, 0), high(rank, 0);
    low[rows] = k;
    ASSIGN_OR_FAIL(Val padded, pad(s, part, low, high, 0));
    parts.push_back(padded);
    if (size == 1)
      break;
    ASSIGN_OR_FAIL(Val below, strided(s, part, rows, 1, 1, size - 1));
    ASSIGN_OR_FAIL(Val beside, swapped(s, below));
    ASSIGN_OR_FAIL(left, strided(s, left, rows, 1, 1, size - 1));
    ASSIGN_OR_FAIL(left, strided(s, left, columns, 1, 1, size - 1));
    Expression after =
        Expression(s, left) - Expression(s, below) * Expression(s, beside);
    ASSIGN_OR_FAIL(left, after.value());
  }
  return concat(s, parts, columns);
}

/// With L the factor without a gradient and X its inverse, L + L half(X (A - L
/// L^T) X^T), where half() takes the lower triangle and half of the diagonal.
FailureOr<Val> tmc::frontend::cholesky(Site &s, const Val &given) {
  ASSIGN_OR_FAIL(int64_t n, rowsOf(s, given, "Cholesky factors"));
  ASSIGN_OR_FAIL(Val a, castTo(s, given, wideType(given.type)));
  // The lower triangle determines a symmetric matrix; of each pair of elements,
  // both get half of the gradient.
  ASSIGN_OR_FAIL(Val known, triangle(s, s.importer.forward.detached(a, s.loc),
                                     /*upper=*/false, 0));
  ASSIGN_OR_FAIL(Val l, factor(s, known));
  ASSIGN_OR_FAIL(Val x, detachedInverse(s, l));
  ASSIGN_OR_FAIL(Val xt, swapped(s, x));
  ASSIGN_OR_FAIL(Val lt, swapped(s, l));
  ASSIGN_OR_FAIL(Val at, swapped(s, a));
  ASSIGN_OR_FAIL(Val strict, triangle(s, known, /*upper=*/false, -1));
  ASSIGN_OR_FAIL(Val strictT, swapped(s, strict));
  ASSIGN_OR_FAIL(Val whole, add(s, {known, strictT}));
  ASSIGN_OR_FAIL(Val product, matmul(s, l, lt));
  Expression live = (Expression(s, a) + Expression(s, at)) * 0.5;
  ASSIGN_OR_FAIL(Val still, live.value());
  // A's value is that of its lower triangle, but both triangles get its
  // gradient.
  still = s.importer.forward.detached(still, s.loc);
  Expression rest = Expression(s, whole) - Expression(s, product) + live -
                    Expression(s, still);
  ASSIGN_OR_FAIL(Val change, rest.value());
  ASSIGN_OR_FAIL(change, matmul(s, x, change));
  ASSIGN_OR_FAIL(change, matmul(s, change, xt));
  std::vector<double> halves;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < n; ++k)
      halves.push_back(i > k ? 1 : i == k ? 0.5 : 0);
  Val half(Array::ofFloats(a.type, {n, n}, std::move(halves)));
  ASSIGN_OR_FAIL(change, multiply(s, {change, half}));
  ASSIGN_OR_FAIL(change, matmul(s, l, change));
  ASSIGN_OR_FAIL(Val y, add(s, {l, change}));
  return castTo(s, y, given.type);
}

//===----------------------------------------------------------------------===//
// Determinants
//===----------------------------------------------------------------------===//

/// 1 if the pivots' rows are an even permutation, else -1: [...], by the number
/// of inversions.
static FailureOr<Expression> parityOf(Site &s, const Eliminated &done,
                                      ElementType type) {
  ASSIGN_OR_FAIL(Val across, swapped(s, done.places));
  ASSIGN_OR_FAIL(Val isAfter, greater(s, {done.places, across}));
  int64_t n = across.dims.back();
  ASSIGN_OR_FAIL(Val isBefore, band(s, n, n, 1, std::nullopt));
  ASSIGN_OR_FAIL(Val isTurned, conjunction(s, {isAfter, isBefore}));
  ASSIGN_OR_FAIL(Val ones, castTo(s, isTurned, type));
  ASSIGN_OR_FAIL(Val count, sumOfAll(s, ones));
  Expression pairs(s, count);
  return 1 - (pairs - (pairs * 0.5).of(floorOf) * 2) * 2;
}

/// The product of [..., 1, n] over its last two dimensions.
static FailureOr<Val> productOf(Site &s, const Val &row) {
  ASSIGN_OR_FAIL(Val y, productAlong(s, row, row.rank() - 1));
  return squeeze(s, y, Dims{row.rank() - 2, row.rank() - 1});
}

/// 0, with the derivative of the determinant's logarithm: the sum of the
/// elements of X^T dA.
static FailureOr<Val> logSlope(Site &s, const Val &a, const Val &x) {
  ASSIGN_OR_FAIL(Val xt, swapped(s, x));
  Expression change =
      Expression(s, a) - Expression(s, s.importer.forward.detached(a, s.loc));
  ASSIGN_OR_FAIL(Val slopes, (Expression(s, xt) * change).value());
  return sumOfAll(s, slopes);
}

FailureOr<LogDeterminant> tmc::frontend::logDeterminant(Site &s,
                                                        const Val &given) {
  if (failed(rowsOf(s, given, "determinants")))
    return failure();
  ASSIGN_OR_FAIL(Val a, castTo(s, given, wideType(given.type)));
  ASSIGN_OR_FAIL(Eliminated done,
                 eliminate(s, s.importer.forward.detached(a, s.loc)));
  ASSIGN_OR_FAIL(Expression parity, parityOf(s, done, a.type));
  ASSIGN_OR_FAIL(Val signs, signOf(s, done.pivots));
  ASSIGN_OR_FAIL(Val sign, productOf(s, signs));
  Expression logs = Expression(s, done.pivots).of(absolute).of(logarithm);
  ASSIGN_OR_FAIL(Val sizes, logs.value());
  ASSIGN_OR_FAIL(Val size, sumOfAll(s, sizes));
  ASSIGN_OR_FAIL(Val slope, logSlope(s, a, done.inverse));
  ASSIGN_OR_FAIL(Val isSingular,
                 squeeze(s, done.isSingular, Dims{a.rank() - 2, a.rank() - 1}));
  Expression log(s, size), moved = log + Expression(s, slope);
  LogDeterminant result;
  ASSIGN_OR_FAIL(result.sign, (Expression(s, sign) * parity).value());
  ASSIGN_OR_FAIL(result.logSize,
                 log.when(Expression(s, isSingular), moved).value());
  ASSIGN_OR_FAIL(result.sign, castTo(s, result.sign, given.type));
  ASSIGN_OR_FAIL(result.logSize, castTo(s, result.logSize, given.type));
  return result;
}

FailureOr<Val> tmc::frontend::determinant(Site &s, const Val &given) {
  ASSIGN_OR_FAIL(int64_t n, rowsOf(s, given, "determinants"));
  if (n <= kMaxMinorSize)
    return determinantByMinors(s, given);
  ASSIGN_OR_FAIL(Val a, castTo(s, given, wideType(given.type)));
  ASSIGN_OR_FAIL(Eliminated done,
                 eliminate(s, s.importer.forward.detached(a, s.loc)));
  ASSIGN_OR_FAIL(Expression parity, parityOf(s, done, a.type));
  ASSIGN_OR_FAIL(Val product, productOf(s, done.pivots));
  ASSIGN_OR_FAIL(Val slope, logSlope(s, a, done.inverse));
  Expression size = Expression(s, product) * parity;
  ASSIGN_OR_FAIL(Val y, (size + size * Expression(s, slope)).value());
  return castTo(s, y, given.type);
}
