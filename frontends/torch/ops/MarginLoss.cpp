// MarginLoss.cpp - losses with a margin, and others that are formulas of scores
// and targets.

#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/torch/ops/Distance.h"
#include "frontends/torch/ops/Loss.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// max(x, 0).
static Expression positive(const Expression &x) { return x.of(relu); }

/// log(1 + exp(-target * x)).
static LogicalResult importSoftMargin(Call &c) {
  ASSIGN_OR_FAIL(Promoted both, promote(c, {"self", "target"}));
  Expression x(c, both.values[0]), target(c, both.values[1]);
  return reduced(c, (-target * x).of(softplus).value());
}
static Register softMargin("soft_margin_loss", importSoftMargin);

/// x where the target is 1, max(margin - x, 0) where it is -1.
static LogicalResult importHinge(Call &c) {
  ASSIGN_OR_FAIL(double margin, c.number("margin", 1));
  ASSIGN_OR_FAIL(Promoted both, promote(c, {"self", "target"}));
  Expression x(c, both.values[0]), target(c, both.values[1]);
  Expression zero = x.number(0);
  Expression near = zero.when(target == -1, x);
  Expression far = zero.when(target == 1, positive(margin - x));
  return reduced(c, (near + far).value());
}
static Register hinge("hinge_embedding_loss", importHinge);

/// max(margin - target * (x1 - x2), 0).
static LogicalResult importRanking(Call &c) {
  ASSIGN_OR_FAIL(double margin, c.number("margin", 0));
  ASSIGN_OR_FAIL(Promoted all, promote(c, {"input1", "input2", "target"}));
  Expression x(c, all.values[0]), y(c, all.values[1]), target(c, all.values[2]);
  return reduced(c, positive(margin - target * (x - y)).value());
}
static Register ranking("margin_ranking_loss", importRanking);

/// 1 - cosine where the target is 1, max(cosine - margin, 0) where it is -1.
static LogicalResult importCosineEmbedding(Call &c) {
  ASSIGN_OR_FAIL(double margin, c.number("margin", 0));
  ASSIGN_OR_FAIL(Promoted both, promote(c, {"input1", "input2"}));
  Expression x(c, both.values[0]), y(c, both.values[1]);
  int64_t dim = both.values[0].rank() - 1;
  if (dim < 0)
    return c.error("an angle of numbers");
  // x * y / sqrt((x^2 + e) (y^2 + e)), PyTorch's formula for this loss.
  auto sum = [&](const Expression &of) {
    return of.of([dim](Site &s, const Val &v) {
      return reduceSum(s, v, Dims{dim}, false);
    });
  };
  constexpr double kEpsilon = 1e-12;
  Expression squares = (sum(x * x) + kEpsilon) * (sum(y * y) + kEpsilon);
  Expression cosine = sum(x * y) / squares.of(squareRoot);
  ASSIGN_OR_FAIL(Val labels, castTo(c, c.tensor("target"), both.type));
  Expression target(c, labels), zero = cosine.number(0);
  Expression near = (1 - cosine).when(target == 1, zero);
  Expression far = positive(cosine - margin).when(target == -1, zero);
  return reduced(c, (near + far).value());
}
static Register cosineEmbedding("cosine_embedding_loss", importCosineEmbedding);

/// max(|anchor - positive| - |anchor - negative| + margin, 0); with `swap`, the
/// distance to the negative is at most that between positive and negative.
static LogicalResult importTriplet(Call &c) {
  ASSIGN_OR_FAIL(double margin, c.number("margin", 1));
  ASSIGN_OR_FAIL(double order, c.number("p", 2));
  ASSIGN_OR_FAIL(double epsilon, c.number("eps", 1e-6));
  ASSIGN_OR_FAIL(bool swap, c.flag("swap", false));
  ASSIGN_OR_FAIL(Promoted all, promote(c, {"anchor", "positive", "negative"}));
  auto distance = [&](int i, int j) {
    return Expression(
        c, distanceOf(c, all.values[i], all.values[j], order, epsilon, false));
  };
  Expression near = distance(0, 1), far = distance(0, 2);
  if (swap)
    far = far.with(minimum, distance(1, 2));
  return reduced(c, positive(near - far + margin).value());
}
static Register triplet("triplet_margin_loss", importTriplet);

/// exp(x) - target * x, or x - target * log(x + eps) if the input is no
/// logarithm; `full` adds Stirling's approximation of log(target!) where
/// targets are larger than 1.
static LogicalResult importPoisson(Call &c) {
  ASSIGN_OR_FAIL(bool ofLogarithms, c.flag("log_input", true));
  ASSIGN_OR_FAIL(bool full, c.flag("full", false));
  ASSIGN_OR_FAIL(double epsilon, c.number("eps", 1e-8));
  ASSIGN_OR_FAIL(Promoted both, promote(c, {"input", "target"}));
  Expression x(c, both.values[0]), target(c, both.values[1]);
  Expression loss = ofLogarithms ? x.of(exponential) - target * x
                                 : x - target * (x + epsilon).of(logarithm);
  if (full) {
    Expression isLarge = target > 1,
               safe = target.when(isLarge, target.number(1));
    Expression more = safe * safe.of(logarithm) - safe +
                      0.5 * (safe * (2 * M_PI)).of(logarithm);
    loss = loss + more.when(isLarge, target.number(0));
  }
  return reduced(c, loss.value());
}
static Register poisson("poisson_nll_loss", importPoisson);
