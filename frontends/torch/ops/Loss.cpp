// Loss.cpp - the losses that ATen has operators for, and dropout.

#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/CrossEntropy.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Random.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/Call.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// 0, 1 and 2 are ATen's numbers: none, the mean, the sum.
static FailureOr<Reduction> reductionOf(Call &c) {
  ASSIGN_OR_FAIL(int64_t number, c.integer("reduction", 1));
  if (number < 0 || number > 2)
    return c.error("reduction " + Twine(number));
  return number == 0   ? Reduction::None
         : number == 1 ? Reduction::Mean
                       : Reduction::Sum;
}

/// `losses`, reduced as the call says.
static LogicalResult reduced(Call &c, FailureOr<Val> losses) {
  if (failed(losses))
    return failure();
  ASSIGN_OR_FAIL(Reduction reduction, reductionOf(c));
  if (reduction == Reduction::None)
    return c.set(*losses);
  Dims all(nn::firstDims(losses->rank()));
  return c.set(reduction == Reduction::Sum
                   ? reduceSum(c, *losses, all, false)
                   : reduceMean(c, *losses, all, false));
}

//===----------------------------------------------------------------------===//
// Of labels
//===----------------------------------------------------------------------===//

static FailureOr<LabelLoss> labelLossOf(Call &c) {
  LabelLoss loss;
  loss.scores = c.tensor("self");
  loss.labels = c.tensor("target");
  loss.weights = c.tensor("weight");
  ASSIGN_OR_FAIL(loss.ignored, c.integer("ignore_index", kIgnoredLabel));
  ASSIGN_OR_FAIL(loss.reduction, reductionOf(c));
  if (isFloat(loss.labels.type))
    return c.unsupported("shares of classes in place of labels");
  // Scores of one sample are a row.
  if (loss.scores.rank() == 1 && loss.labels.dims.empty() &&
      loss.reduction != Reduction::None) {
    ASSIGN_OR_FAIL(loss.scores, unsqueeze(c, loss.scores, {0}));
    ASSIGN_OR_FAIL(loss.labels, unsqueeze(c, loss.labels, {0}));
  }
  return loss;
}

static LogicalResult importCrossEntropy(Call &c) {
  ASSIGN_OR_FAIL(LabelLoss loss, labelLossOf(c));
  ASSIGN_OR_FAIL(loss.smoothing, c.number("label_smoothing", 0));
  return c.set(crossEntropy(c, loss));
}
static Register crossEntropyOp("cross_entropy_loss", importCrossEntropy);

/// The second result is the weight of all labels, for a backward pass.
static LogicalResult importNll(Call &c) {
  if (c.isUsed(1))
    return c.unsupported("result 1");
  ASSIGN_OR_FAIL(LabelLoss loss, labelLossOf(c));
  return c.set(negativeLogLikelihood(c, loss));
}
static Register nllLoss("nll_loss", importNll);
static Register nllLossNd("nll_loss_nd", importNll);
static Register nllLoss2d("nll_loss2d", importNll);
static Register nllForward("nll_loss_forward", importNll);
static Register nll2dForward("nll_loss2d_forward", importNll);

//===----------------------------------------------------------------------===//
// Of targets
//===----------------------------------------------------------------------===//

static FailureOr<Val> difference(Call &c, ElementType &type) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "target"}));
  type = operands.type;
  return subtract(c, operands.values);
}

static LogicalResult importMse(Call &c) {
  ElementType type;
  ASSIGN_OR_FAIL(Val d, difference(c, type));
  return reduced(c, multiply(c, {d, d}));
}
static Register mse("mse_loss", importMse);

static LogicalResult importL1(Call &c) {
  ElementType type;
  ASSIGN_OR_FAIL(Val d, difference(c, type));
  return reduced(c, absolute(c, d));
}
static Register l1("l1_loss", importL1);

/// |d| < beta ? d^2 / (2 beta) : |d| - beta / 2.
static FailureOr<Val> rounded(Call &c, double beta, double factor) {
  ElementType type;
  ASSIGN_OR_FAIL(Val d, difference(c, type));
  auto constant = [&](double value) {
    return Val(Array::splat(type, {}, value));
  };
  ASSIGN_OR_FAIL(Val size, absolute(c, d));
  ASSIGN_OR_FAIL(Val square, multiply(c, {d, d}));
  ASSIGN_OR_FAIL(Val near,
                 multiply(c, {square, constant(0.5 * factor / beta)}));
  ASSIGN_OR_FAIL(Val far, subtract(c, {size, constant(0.5 * beta)}));
  if (factor != 1) {
    ASSIGN_OR_FAIL(far, multiply(c, {far, constant(factor)}));
  }
  ASSIGN_OR_FAIL(Val isNear, less(c, {size, constant(beta)}));
  return where(c, isNear, near, far);
}

static LogicalResult importSmoothL1(Call &c) {
  ASSIGN_OR_FAIL(double beta, c.number("beta", 1));
  return beta > 0 ? reduced(c, rounded(c, beta, 1)) : importL1(c);
}
static Register smoothL1("smooth_l1_loss", importSmoothL1);

/// delta times the smooth L1 loss of that width.
static LogicalResult importHuber(Call &c) {
  ASSIGN_OR_FAIL(double delta, c.number("delta", 1));
  if (!(delta > 0))
    return c.error("a delta of " + std::to_string(delta));
  return reduced(c, rounded(c, delta, delta));
}
static Register huber("huber_loss", importHuber);

/// (1 - target) x + softplus(-x), which can't overflow.
static LogicalResult importBceWithLogits(Call &c) {
  if (c.has("pos_weight"))
    return c.unsupported("weights of positive targets");
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "target"}));
  const Val &x = operands.values[0], &target = operands.values[1];
  Val one(Array::splat(operands.type, {}, 1));
  ASSIGN_OR_FAIL(Val rest, subtract(c, {one, target}));
  ASSIGN_OR_FAIL(Val line, multiply(c, {rest, x}));
  ASSIGN_OR_FAIL(Val negative, negate(c, x));
  ASSIGN_OR_FAIL(Val tail, softplus(c, negative));
  ASSIGN_OR_FAIL(Val losses, add(c, {line, tail}));
  if (c.has("weight")) {
    ASSIGN_OR_FAIL(losses, multiply(c, {losses, c.tensor("weight")}));
  }
  return reduced(c, losses);
}
static Register bce("binary_cross_entropy_with_logits", importBceWithLogits);

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

/// The program was exported in training mode where `train` is true.
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

/// Whole channels are dropped.
static LogicalResult importFeatureDropout(Call &c) {
  ASSIGN_OR_FAIL(double p, c.number("p", std::nullopt));
  ASSIGN_OR_FAIL(bool train, c.flag("train", true));
  const Val x = c.tensor(c.has("input") ? "input" : "self");
  if (x.rank() < 2)
    return c.error("drops channels of shape " + str(x.dims));
  Dims channels(x.rank(), 1);
  channels[0] = x.dims[0];
  channels[1] = x.dims[1];
  ASSIGN_OR_FAIL(
      Dropout factors,
      dropout(c, Val(Array::splat(x.type, channels, 1)), train ? p : 0));
  return c.set(multiply(c, {x, factors.y}));
}
static Register featureDropout("feature_dropout", importFeatureDropout);
