// Loss.cpp - ATen's loss operators, for labels and for targets.

#include "frontends/torch/ops/Loss.h"
#include "frontends/common/ops/CrossEntropy.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/common/ops/TargetLoss.h"

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

LogicalResult tmc::torch_import::reduced(Call &c, FailureOr<Val> losses) {
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
// Losses of labels
//===----------------------------------------------------------------------===//

static FailureOr<LabelLoss> labelLossOf(Call &c) {
  LabelLoss loss;
  loss.scores = c.tensor("self");
  loss.labels = c.tensor("target");
  loss.weights = c.tensor("weight");
  ASSIGN_OR_FAIL(loss.ignored, c.integer("ignore_index", kIgnoredLabel));
  ASSIGN_OR_FAIL(loss.reduction, reductionOf(c));
  // The scores of a single sample are treated as one row.
  if (loss.scores.rank() == 1 && loss.labels.dims.empty() &&
      loss.reduction != Reduction::None) {
    ASSIGN_OR_FAIL(loss.scores, unsqueeze(c, loss.scores, {0}));
    ASSIGN_OR_FAIL(loss.labels, unsqueeze(c, loss.labels, {0}));
  }
  return loss;
}

/// Shares of classes in place of labels; a mean divides by the number of rows.
static LogicalResult importSoftCrossEntropy(Call &c, double smoothing) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "target"}));
  Val weights = c.tensor("weight");
  if (!weights.isAbsent()) {
    ASSIGN_OR_FAIL(weights, castTo(c, weights, operands.type));
  }
  return reduced(c, softCrossEntropy(c, operands.values[0], operands.values[1],
                                     weights, smoothing));
}

static LogicalResult importCrossEntropy(Call &c) {
  ASSIGN_OR_FAIL(double smoothing, c.number("label_smoothing", 0));
  if (isFloat(c.tensor("target").type))
    return importSoftCrossEntropy(c, smoothing);
  ASSIGN_OR_FAIL(LabelLoss loss, labelLossOf(c));
  loss.smoothing = smoothing;
  return c.set(crossEntropy(c, loss));
}
static Register crossEntropyOp("cross_entropy_loss", importCrossEntropy);

/// The second result, the weight of all labels, is for a backward pass.
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
// Losses of targets
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

/// delta times the smooth L1 loss with beta = delta.
static LogicalResult importHuber(Call &c) {
  ASSIGN_OR_FAIL(double delta, c.number("delta", 1));
  if (!(delta > 0))
    return c.error("a delta of " + std::to_string(delta));
  return reduced(c, rounded(c, delta, delta));
}
static Register huber("huber_loss", importHuber);

/// `losses` times the argument `weight`, if there is one, and reduced.
static LogicalResult weighed(Call &c, FailureOr<Val> losses) {
  if (failed(losses))
    return failure();
  return reduced(c, c.has("weight") ? multiply(c, {*losses, c.tensor("weight")})
                                    : losses);
}

static LogicalResult importBceWithLogits(Call &c) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "target"}));
  return weighed(c, binaryCrossEntropyOfLogits(c, operands.values[0],
                                               operands.values[1],
                                               c.tensor("pos_weight")));
}
static Register bceOfLogits("binary_cross_entropy_with_logits",
                            importBceWithLogits);

static LogicalResult importBce(Call &c) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "target"}));
  return weighed(c,
                 binaryCrossEntropy(c, operands.values[0], operands.values[1]));
}
static Register bce("binary_cross_entropy", importBce);

static LogicalResult importDivergence(Call &c) {
  ASSIGN_OR_FAIL(bool ofLogarithms, c.flag("log_target", false));
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "target"}));
  return reduced(
      c, divergence(c, operands.values[0], operands.values[1], ofLogarithms));
}
static Register divergenceOp("kl_div", importDivergence);
