// Distance.cpp - norms, distances and similarities of vectors.

#include "frontends/torch/ops/Distance.h"
#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Elementary.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/ops/Pointwise.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// The norm of `order` over `dims`: the largest or smallest absolute value for
/// an infinite order, the number of nonzero elements for order 0.
static FailureOr<Val> normAlong(Call &c, const Val &x, double order,
                                ArrayRef<int64_t> dims, bool keep) {
  Expression size = Expression(c, x).of(absolute);
  auto reduce =
      [&](FailureOr<Val> (*how)(Site &, const Val &, ArrayRef<int64_t>, bool),
          const Expression &of) -> Expression {
    return of.of([=](Site &s, const Val &v) { return how(s, v, dims, keep); });
  };
  if (std::isinf(order))
    return reduce(order > 0 ? reduceMax : reduceMin, size).value();
  if (order == 1)
    return reduce(reduceSum, size).value();
  if (order == 0) {
    Expression counts = (!(size == 0)).cast(x.type);
    return reduce(reduceSum, counts).value();
  }
  if (order == 2) {
    Expression all(c, x);
    return rootOf(reduce(reduceSum, all * all)).value();
  }
  Expression powers = size.with(power, size.number(order));
  return rootOf(reduce(reduceSum, powers), order).value();
}

static LogicalResult importVectorNorm(Call &c) {
  ASSIGN_OR_FAIL(Val x, selfAs(c, c.tensor("self").type));
  ASSIGN_OR_FAIL(double order, c.number(c.has("p") ? "p" : "ord", 2));
  ASSIGN_OR_FAIL(Dims dims, c.dims("dim", x.rank()));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  return c.set(normAlong(c, x, order, dims, keep));
}
static Register vectorNorm("linalg_vector_norm", importVectorNorm);
static Register norm("norm", importVectorNorm);
static Register frobenius("frobenius_norm", importVectorNorm);

/// For matrices only the root of the sum of squares; other norms need singular
/// values.
static LogicalResult importMatrixNorm(Call &c) {
  ASSIGN_OR_FAIL(Val x, selfAs(c, c.tensor("self").type));
  bool isNamed = c.has("ord") && c.argument("ord")->kind == Arg::String;
  std::string name = "fro";
  if (isNamed) {
    ASSIGN_OR_FAIL(name, c.text("ord", "fro"));
  }
  bool isMatrix = StringRef(c.data.op()).contains("matrix");
  ASSIGN_OR_FAIL(Dims dims, isMatrix && !c.has("dim")
                                ? c.axes({-2, -1}, x.rank())
                                : c.dims("dim", x.rank()));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  double order = 2;
  if (c.has("ord") && !isNamed) {
    ASSIGN_OR_FAIL(order, c.number("ord", 2));
    if (isMatrix || dims.size() != 1)
      return c.unsupported("a norm of matrices of order " +
                           std::to_string(order));
  }
  if (name != "fro")
    return c.unsupported("a norm of matrices named '" + name + "'");
  return c.set(normAlong(c, x, order, dims, keep));
}
static Register linalgNorm("linalg_norm", importMatrixNorm);
static Register matrixNorm("linalg_matrix_norm", importMatrixNorm);

//===----------------------------------------------------------------------===//
// Two vectors
//===----------------------------------------------------------------------===//

/// The products of vectors over a dimension, divided by their lengths, which
/// count as at least `eps`.
static LogicalResult importCosine(Call &c) {
  ASSIGN_OR_FAIL(Promoted both, promote(c, {"x1", "x2"}));
  ASSIGN_OR_FAIL(Dims dims, commonShape(c, both.values));
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", 1, dims.size()));
  ASSIGN_OR_FAIL(double epsilon, c.number("eps", 1e-8));
  if (dims.empty())
    return c.error("an angle of numbers");
  SmallVector<Expression> units;
  for (const Val &v : both.values) {
    ASSIGN_OR_FAIL(Val wide, expand(c, v, dims));
    ASSIGN_OR_FAIL(Val size, normAlong(c, wide, 2, {dim}, true));
    ASSIGN_OR_FAIL(size, clamp(c, size, epsilon, std::nullopt));
    units.push_back(Expression(c, wide) / Expression(c, size));
  }
  ASSIGN_OR_FAIL(Val products, (units[0] * units[1]).value());
  return c.set(reduceSum(c, products, {dim}, false));
}
static Register cosine("cosine_similarity", importCosine);

FailureOr<Val> tmc::torch_import::distanceOf(Call &c, const Val &x,
                                             const Val &y, double order,
                                             double epsilon, bool keep) {
  ASSIGN_OR_FAIL(Val apart,
                 (Expression(c, x) - Expression(c, y) + epsilon).value());
  if (apart.dims.empty())
    return c.error("a distance of numbers");
  return normAlong(c, apart, order, {apart.rank() - 1}, keep);
}

static LogicalResult importPairwise(Call &c) {
  ASSIGN_OR_FAIL(Promoted both, promote(c, {"x1", "x2"}));
  ASSIGN_OR_FAIL(double order, c.number("p", 2));
  ASSIGN_OR_FAIL(double epsilon, c.number("eps", 1e-6));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  return c.set(
      distanceOf(c, both.values[0], both.values[1], order, epsilon, keep));
}
static Register pairwise("pairwise_distance", importPairwise);

static LogicalResult importDist(Call &c) {
  ASSIGN_OR_FAIL(Promoted both, promote(c, {"self", "other"}));
  ASSIGN_OR_FAIL(double order, c.number("p", 2));
  ASSIGN_OR_FAIL(Val apart, subtract(c, both.values));
  Dims all(nn::firstDims(apart.rank()));
  return c.set(normAlong(c, apart, order, all, false));
}
static Register dist("dist", importDist);

/// The distances of each row of x1 [..., P, M] to each row of x2 [..., R, M]:
/// [..., P, R].
static LogicalResult importCdist(Call &c) {
  ASSIGN_OR_FAIL(Promoted both, promote(c, {"x1", "x2"}));
  ASSIGN_OR_FAIL(double order, c.number("p", 2));
  Val x = both.values[0], y = both.values[1];
  if (x.rank() < 2 || y.rank() < 2)
    return c.error("distances of shapes " + str(x.dims) + " and " +
                   str(y.dims));
  ASSIGN_OR_FAIL(x, unsqueeze(c, x, {x.rank() - 1}));
  ASSIGN_OR_FAIL(y, unsqueeze(c, y, {y.rank() - 2}));
  return c.set(distanceOf(c, x, y, order, 0, false));
}
static Register cdist("cdist", importCdist);
static Register cdistForward("_cdist_forward", importCdist);
