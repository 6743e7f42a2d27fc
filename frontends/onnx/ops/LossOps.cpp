// LossOps.cpp - ONNX's loss operators.

#include "frontends/common/ops/CrossEntropy.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/TargetLoss.h"
#include "frontends/onnx/Node.h"
#include "frontends/onnx/TorchCall.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// PyTorch's label_smoothing, which the exporter leaves out of the node: 0 if
/// its note gives no other value.
static double smoothingOf(Node &n) {
  std::optional<TorchCall> call = torchCallOf(n.proto);
  if (!call || !call->calls("aten.cross_entropy_loss"))
    return 0;
  return call->number(5, "label_smoothing").value_or(0);
}

static LabelLoss lossOf(Node &n) {
  LabelLoss loss;
  loss.scores = n.input(0);
  loss.labels = n.input(1);
  loss.weights = n.input(2);
  loss.ignored = n.intAttr("ignore_index", kIgnoredLabel);
  std::string reduction = n.stringAttr("reduction", "mean");
  loss.reduction = reduction == "none"  ? Reduction::None
                   : reduction == "sum" ? Reduction::Sum
                                        : Reduction::Mean;
  return loss;
}

/// PyTorch's loss with shares of the classes in place of labels. ONNX doesn't
/// define such labels, but its exporters write them.
static FailureOr<Val> ofShares(Node &n, const LabelLoss &loss) {
  ASSIGN_OR_FAIL(Val shares, castTo(n, loss.labels, loss.scores.type));
  ASSIGN_OR_FAIL(Val losses, softCrossEntropy(n, loss.scores, shares,
                                              loss.weights, loss.smoothing));
  Dims all(nn::firstDims(losses.rank()));
  switch (loss.reduction) {
  case Reduction::None:
    return losses;
  case Reduction::Sum:
    return reduceSum(n, losses, all, false);
  case Reduction::Mean:
    return reduceMean(n, losses, all, false);
  }
  return losses;
}

static LogicalResult importSoftmaxCrossEntropyLoss(Node &n) {
  LabelLoss loss = lossOf(n);
  if (n.isUsed(1)) {
    ASSIGN_OR_FAIL(Val logs, logSoftmaxOf(n, loss));
    if (failed(n.set(1, logs)))
      return failure();
  }
  loss.smoothing = smoothingOf(n);
  return n.set(isFloat(loss.labels.type) ? ofShares(n, loss)
                                         : crossEntropy(n, loss));
}
static Register crossEntropyOp("SoftmaxCrossEntropyLoss",
                               importSoftmaxCrossEntropyLoss);

static LogicalResult importNegativeLogLikelihoodLoss(Node &n) {
  return n.set(negativeLogLikelihood(n, lossOf(n)));
}
static Register nll("NegativeLogLikelihoodLoss",
                    importNegativeLogLikelihoodLoss);
