// Distance.cpp - norms, and how far or how alike vectors are.
//
// A root of squares has no gradient at 0, as in PyTorch, where its formula has
// none at all.

#include "frontends/torch/ops/Distance.h"
#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// The root of `x`, at least 0, to the power of 1 / order; at 0 a constant.
static Expression rootOf(const Expression &x, double order) {
  Expression isZero = x == 0, inside = x.number(1).when(isZero, x);
  Expression root = order == 2 ? inside.of(squareRoot)
                               : inside.with(power, x.number(1 / order));
  return x.number(0).when(isZero, root);
}

FailureOr<Val> tmc::torch_import::normAlong(Call &c, const Val &x, double order,
                                            ArrayRef<int64_t> dims, bool keep) {
  Expression size = Expression(c, x).of(absolute);
  auto reduce =
      [&](FailureOr<Val> (*how)(Site &, const Val &, ArrayRef<int64_t>, bool),
          const Expression &of) -> Expression {
    return of.of([&](Site &s, const Val &v) { return how(s, v, dims, keep); });
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
    return rootOf(reduce(reduceSum, all * all), 2).value();
  }
  Expression powers = size.with(power, size.number(order));
  return rootOf(reduce(reduceSum, powers), order).value();
}

/// `self` as the type that the call asks for.
static FailureOr<Val> floatsOf(Call &c) {
  ASSIGN_OR_FAIL(ElementType type, c.type("dtype", c.tensor("self").type));
  return castTo(c, c.tensor("self"), type);
}

static LogicalResult importVectorNorm(Call &c) {
  ASSIGN_OR_FAIL(Val x, floatsOf(c));
  ASSIGN_OR_FAIL(double order, c.number(c.has("p") ? "p" : "ord", 2));
  ASSIGN_OR_FAIL(Dims dims, c.dims("dim", x.rank()));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  return c.set(normAlong(c, x, order, dims, keep));
}
static Register vectorNorm("linalg_vector_norm", importVectorNorm);
static Register norm("norm", importVectorNorm);
static Register frobenius("frobenius_norm", importVectorNorm);

/// Of matrices the root of all squares; others need their singular values.
static LogicalResult importMatrixNorm(Call &c) {
  ASSIGN_OR_FAIL(Val x, floatsOf(c));
  bool isNamed = c.has("ord") && c.data.argument("ord")->kind == Arg::String;
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
// Of two vectors
//===----------------------------------------------------------------------===//

FailureOr<Val> tmc::torch_import::cosineAlong(Call &c, const Val &x,
                                              const Val &y, int64_t dim,
                                              double epsilon) {
  ASSIGN_OR_FAIL(Dims dims, commonShape(c, {x, y}));
  ASSIGN_OR_FAIL(dim, c.axis(dim, dims.size()));
  Expression units[2] = {Expression(c, x), Expression(c, y)};
  for (Expression &unit : units) {
    Expression size = unit.of([&](Site &s, const Val &v) -> FailureOr<Val> {
      ASSIGN_OR_FAIL(Val wide, expand(s, v, dims));
      return normAlong(c, wide, 2, {dim}, true);
    });
    unit = unit / size.of([&](Site &s, const Val &v) {
      return clamp(s, v, epsilon, std::nullopt);
    });
  }
  ASSIGN_OR_FAIL(Val products, (units[0] * units[1]).value());
  return reduceSum(c, products, {dim}, false);
}

static LogicalResult importCosine(Call &c) {
  ASSIGN_OR_FAIL(Promoted both, promote(c, {"x1", "x2"}));
  ASSIGN_OR_FAIL(int64_t dim, c.integer("dim", 1));
  ASSIGN_OR_FAIL(double epsilon, c.number("eps", 1e-8));
  return c.set(cosineAlong(c, both.values[0], both.values[1], dim, epsilon));
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

/// Of each row of x1 [..., P, M] to each of x2 [..., R, M]: [..., P, R].
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
