#include "frontends/common/ops/TargetLoss.h"

#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Norm.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Reduce.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

static Val constantLike(const Val &x, double value) {
  return Val(Array::splat(x.type, {}, value));
}

FailureOr<Val> tmc::frontend::binaryCrossEntropyOfLogits(Site &s, const Val &x,
                                                         const Val &target,
                                                         const Val &positive) {
  // (1 - target) x + (1 + (positive - 1) target) softplus(-x)
  Val one = constantLike(x, 1);
  ASSIGN_OR_FAIL(Val rest, subtract(s, {one, target}));
  ASSIGN_OR_FAIL(Val line, multiply(s, {rest, x}));
  ASSIGN_OR_FAIL(Val negative, negate(s, x));
  ASSIGN_OR_FAIL(Val tail, softplus(s, negative));
  if (!positive.isAbsent()) {
    ASSIGN_OR_FAIL(Val more, subtract(s, {positive, one}));
    ASSIGN_OR_FAIL(Val share, multiply(s, {more, target}));
    ASSIGN_OR_FAIL(Val factor, add(s, {share, one}));
    ASSIGN_OR_FAIL(tail, multiply(s, {factor, tail}));
  }
  return add(s, {line, tail});
}

FailureOr<Val> tmc::frontend::binaryCrossEntropy(Site &s,
                                                 const Val &probability,
                                                 const Val &target) {
  constexpr double kLowest = -100;
  Val one = constantLike(probability, 1);
  auto clampedLog = [&](const Val &x) -> FailureOr<Val> {
    ASSIGN_OR_FAIL(Val log, logarithm(s, x));
    return maximum(s, {log, constantLike(x, kLowest)});
  };
  ASSIGN_OR_FAIL(Val yes, clampedLog(probability));
  ASSIGN_OR_FAIL(Val other, subtract(s, {one, probability}));
  ASSIGN_OR_FAIL(Val no, clampedLog(other));
  ASSIGN_OR_FAIL(Val rest, subtract(s, {one, target}));
  ASSIGN_OR_FAIL(Val first, multiply(s, {target, yes}));
  ASSIGN_OR_FAIL(Val second, multiply(s, {rest, no}));
  ASSIGN_OR_FAIL(Val both, add(s, {first, second}));
  return negate(s, both);
}

FailureOr<Val> tmc::frontend::divergence(Site &s, const Val &logs,
                                         const Val &target, bool ofLogarithms) {
  if (ofLogarithms) {
    ASSIGN_OR_FAIL(Val share, exponential(s, target));
    ASSIGN_OR_FAIL(Val distance, subtract(s, {target, logs}));
    return multiply(s, {share, distance});
  }
  // Where the target is 0, its logarithm must not reach the gradient.
  Val zero = constantLike(target, 0), one = constantLike(target, 1);
  ASSIGN_OR_FAIL(Val isPositive, less(s, {zero, target}));
  ASSIGN_OR_FAIL(Val safe, where(s, isPositive, target, one));
  ASSIGN_OR_FAIL(Val log, logarithm(s, safe));
  ASSIGN_OR_FAIL(Val distance, subtract(s, {log, logs}));
  ASSIGN_OR_FAIL(Val all, multiply(s, {target, distance}));
  return where(s, isPositive, all, zero);
}

FailureOr<Val> tmc::frontend::softCrossEntropy(Site &s, const Val &x,
                                               const Val &shares,
                                               const Val &weights,
                                               double smoothing) {
  int64_t classAxis = x.rank() == 1 ? 0 : 1;
  if (x.rank() == 0 || shares.dims != x.dims)
    return s.error("scores of shape " + str(x.dims) + " and shares of shape " +
                   str(shares.dims));
  int64_t classes = x.dims[classAxis];
  ASSIGN_OR_FAIL(Val logs, softmax(s, x, classAxis, /*log=*/true));
  Val factors = shares;
  if (smoothing != 0) {
    ASSIGN_OR_FAIL(factors,
                   multiply(s, {factors, constantLike(x, 1 - smoothing)}));
    ASSIGN_OR_FAIL(
        factors,
        add(s, {factors, constantLike(x, smoothing / double(classes))}));
  }
  if (!weights.isAbsent()) {
    if (weights.dims != Dims{classes})
      return s.error("weights of shape " + str(weights.dims) + " for " +
                     Twine(classes) + " classes");
    Dims column(x.rank() - classAxis, 1);
    column[0] = classes;
    ASSIGN_OR_FAIL(Value table, s.materialise(weights));
    ASSIGN_OR_FAIL(factors,
                   multiply(s, {factors, Val(s.reshape(table, column))}));
  }
  ASSIGN_OR_FAIL(Val parts, multiply(s, {factors, logs}));
  ASSIGN_OR_FAIL(Val total, reduceSum(s, parts, {classAxis}, false));
  return negate(s, total);
}
