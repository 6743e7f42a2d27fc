// Random.cpp - dropout, and random numbers: drawn by the step, keyed by sample.

#include "frontends/common/ops/Random.h"
#include "frontends/Checked.h"
#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/torch/Call.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

/// `train` is true if the program was exported in training mode.
static LogicalResult importDropout(Call &c) {
  ASSIGN_OR_FAIL(double p, c.number("p", std::nullopt));
  ASSIGN_OR_FAIL(bool train, c.flag("train", true));
  const Val x = c.tensor(c.has("input") ? "input" : "self");
  ASSIGN_OR_FAIL(Dropout result, dropout(c, x, train ? p : 0));
  if (failed(c.set(result.y)))
    return failure();
  return c.isUsed(1) ? c.set(1, result.kept) : success();
}
static Register dropoutOp("dropout", importDropout);
static Register nativeDropout("native_dropout", importDropout);

/// One element for each channel of each sample.
static Dims channelsOf(const Val &x) {
  Dims channels(x.rank(), 1);
  channels[0] = x.dims[0];
  channels[1] = x.dims[1];
  return channels;
}

/// Drops whole channels.
static LogicalResult importFeatureDropout(Call &c) {
  ASSIGN_OR_FAIL(double p, c.number("p", std::nullopt));
  ASSIGN_OR_FAIL(bool train, c.flag("train", true));
  const Val x = c.tensor(c.has("input") ? "input" : "self");
  if (x.rank() < 2)
    return c.error("drops channels of shape " + str(x.dims));
  ASSIGN_OR_FAIL(
      Dropout factors,
      dropout(c, Val(Array::splat(x.type, channelsOf(x), 1)), train ? p : 0));
  return c.set(multiply(c, {x, factors.y}));
}
static Register featureDropout("feature_dropout", importFeatureDropout);

/// Dropped elements become SELU's lowest value, -alpha, in place of 0; then all
/// are scaled and shifted to keep mean and variance.
static LogicalResult alphaDropout(Call &c, bool byChannel) {
  constexpr double kAlpha = 1.7580993408473766;
  ASSIGN_OR_FAIL(double p, c.number("p", std::nullopt));
  ASSIGN_OR_FAIL(bool train, c.flag("train", true));
  const Val x = c.tensor(c.has("input") ? "input" : "self");
  if (p == 0 || !train)
    return c.set(x);
  if (!(p > 0 && p < 1) || (byChannel && x.rank() < 2))
    return c.error("drops a share of " + std::to_string(p) + " of shape " +
                   str(x.dims));
  ASSIGN_OR_FAIL(Value u, uniform(c, byChannel ? channelsOf(x) : x.dims));
  Expression drawn(c, Val(u)), self(c, x);
  Expression kept = drawn.with(greaterOrEqual, drawn.number(p)).cast(x.type);
  double scale = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  Expression shift = (kept - 1) * (kAlpha * scale) + kAlpha * scale * p;
  return c.set((self * (kept * scale) + shift).value());
}
static LogicalResult importAlphaDropout(Call &c) {
  return alphaDropout(c, false);
}
static Register alphaDropoutOp("alpha_dropout", importAlphaDropout);
static LogicalResult importFeatureAlphaDropout(Call &c) {
  return alphaDropout(c, true);
}
static Register featureAlphaDropout("feature_alpha_dropout",
                                    importFeatureAlphaDropout);

//===----------------------------------------------------------------------===//
// Draws
//===----------------------------------------------------------------------===//

namespace {
/// The shape and type of a draw: `size`, or those of `self`.
struct Drawn {
  Dims dims;
  ElementType type = ElementType::F32;
};
} // namespace

static FailureOr<Drawn> drawnBy(Call &c) {
  Drawn drawn;
  if (c.has("self")) {
    drawn = {c.tensor("self").dims, c.tensor("self").type};
  } else {
    ASSIGN_OR_FAIL(drawn.dims, c.integers("size", std::nullopt));
  }
  ASSIGN_OR_FAIL(drawn.type, c.type("dtype", drawn.type));
  if (!isFloat(drawn.type))
    return c.unsupported("random numbers of type " + nameOf(drawn.type));
  if (!checkedNumElements(drawn.dims) ||
      llvm::any_of(drawn.dims, [](int64_t dim) { return dim < 1; }))
    return c.error("random numbers of shape " + str(drawn.dims));
  return drawn;
}

/// Uniform random numbers from `low` to `high`.
static FailureOr<Val> between(Call &c, ArrayRef<int64_t> dims, double low,
                              double high) {
  ASSIGN_OR_FAIL(Value u, uniform(c, dims));
  return (Expression(c, Val(u)) * (high - low) + low).value();
}

static LogicalResult importUniform(Call &c) {
  ASSIGN_OR_FAIL(Drawn drawn, drawnBy(c));
  ASSIGN_OR_FAIL(double low, c.number("from", 0));
  ASSIGN_OR_FAIL(double high, c.number("to", 1));
  ASSIGN_OR_FAIL(Val y, between(c, drawn.dims, low, high));
  return c.set(castTo(c, y, drawn.type));
}
static Register randOp("rand", importUniform);
static Register randLike("rand_like", importUniform);
static Register uniformOp("uniform", importUniform); // uniform_()

static LogicalResult importNormal(Call &c) {
  ASSIGN_OR_FAIL(Drawn drawn, drawnBy(c));
  ASSIGN_OR_FAIL(double mean, c.number("mean", 0));
  ASSIGN_OR_FAIL(double deviation, c.number("std", 1));
  ASSIGN_OR_FAIL(Value x, normal(c, drawn.dims));
  Expression y = Expression(c, Val(x)) * deviation + mean;
  return c.set(y.cast(drawn.type).value());
}
static Register randn("randn", importNormal);
static Register randnLike("randn_like", importNormal);
static Register normalOp("normal", importNormal); // normal_()

/// -log(1 - u) / lambda, where u is never 1.
static LogicalResult importExponential(Call &c) {
  ASSIGN_OR_FAIL(Drawn drawn, drawnBy(c));
  ASSIGN_OR_FAIL(double lambda, c.number("lambd", 1));
  ASSIGN_OR_FAIL(Value u, uniform(c, drawn.dims));
  Expression y = (1 - Expression(c, Val(u))).of(logarithm) / -lambda;
  return c.set(y.cast(drawn.type).value());
}
static Register exponentialOp("exponential", importExponential);

/// One with the probability `p`, or with the probability in self; else zero.
static LogicalResult importBernoulli(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(Value u, uniform(c, self.dims));
  ASSIGN_OR_FAIL(Val share, castTo(c, c.tensor(c.has("p") ? "p" : "self"),
                                   ElementType::F32));
  ASSIGN_OR_FAIL(Val y, less(c, {Val(u), share}));
  return c.set(castTo(c, y, self.type));
}
static Register bernoulli("bernoulli", importBernoulli);

/// Multiplies elements below 0 by a slope between `lower` and `upper`: a random
/// one for each element in training, else the mean.
static LogicalResult importRrelu(Call &c) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(double low, c.number("lower", 0.125));
  ASSIGN_OR_FAIL(double high, c.number("upper", 1.0 / 3));
  ASSIGN_OR_FAIL(bool train, c.flag("training", false));
  if (!train)
    return c.set(leakyRelu(c, x, (low + high) / 2));
  ASSIGN_OR_FAIL(Val slope, between(c, x.dims, low, high));
  ASSIGN_OR_FAIL(slope, castTo(c, slope, x.type));
  return c.set(prelu(c, x, slope));
}
static Register rrelu("rrelu", importRrelu);
