// LossOps.cpp - the losses that ONNX has operators for.

#include "frontends/onnx/Losses.h"
#include "frontends/onnx/TorchCall.h"
#include "frontends/onnx/ops/Pointwise.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

namespace {
/// Logits [R, V] and labels [R], from [N, V, ...] and [N, ...].
struct Rows {
  Value logits, labels;
  Value weights; ///< One number per class, or null.
  Dims labelDims;
  int64_t ignored;
  std::string reduction;
};
} // namespace

static FailureOr<Rows> rowsOf(Node &n) {
  const Val x = n.input(0), y = n.input(1);
  if (!isFloat(x.type) || isFloat(y.type))
    return n.error("scores of type " + nameOf(x.type) + " and labels of type " +
                   nameOf(y.type));
  Dims wanted(x.dims);
  if (x.rank() < 2)
    return n.error("scores of shape " + str(x.dims));
  wanted.erase(wanted.begin() + 1);
  if (y.dims != wanted)
    return n.error("scores of shape " + str(x.dims) + " and labels of shape " +
                   str(y.dims));
  Rows rows;
  rows.labelDims = wanted;
  rows.ignored = n.intAttr("ignore_index", kIgnoredLabel);
  rows.reduction = n.stringAttr("reduction", "mean");
  ASSIGN_OR_FAIL(rows.logits, n.value(0));
  ASSIGN_OR_FAIL(rows.labels, n.value(1));
  int64_t classes = x.dims[1], count = 1;
  for (int64_t dim : wanted)
    count *= dim;
  if (x.rank() > 2) {
    Dims perm{0};
    for (int64_t i = 2; i < x.rank(); ++i)
      perm.push_back(i);
    perm.push_back(1);
    rows.logits = nn::TransposeOp::create(n.b, n.loc, rows.logits, perm);
  }
  rows.logits = n.reshape(rows.logits, {count, classes});
  if (n.has(2)) {
    if (n.input(2).dims != Dims{classes} || n.input(2).type != x.type)
      return n.error("weights of shape " + str(n.input(2).dims) + " for " +
                     Twine(classes) + " classes");
    ASSIGN_OR_FAIL(rows.weights, n.value(2));
  }
  rows.labels = n.reshape(rows.labels, {count});
  return rows;
}

/// The element of each row that its label names, 0 where the label doesn't
/// count: a sum over a row of which one element is kept.
static Value pick(Node &n, Value x, Value labels, int64_t ignored) {
  auto type = nn::tensorType(x);
  auto idType =
      n.tensorType(type.getShape(), nn::tensorType(labels).getElementType());
  Value column = nn::IotaOp::create(n.b, n.loc, idType, 1);
  // An ignored label inside [0, V) must match no column.
  Value counts =
      arith::CmpIOp::create(n.b, n.loc, arith::CmpIPredicate::ne, labels,
                            like(n.b, n.loc, labels, ignored));
  Value valid = arith::SelectOp::create(n.b, n.loc, counts, labels,
                                        like(n.b, n.loc, labels, -1));
  Value wide = nn::broadcastTo(n.b, n.loc, valid, idType, {0});
  Value hit =
      arith::CmpIOp::create(n.b, n.loc, arith::CmpIPredicate::eq, column, wide);
  Value kept =
      arith::SelectOp::create(n.b, n.loc, hit, x, like(n.b, n.loc, x, 0));
  return nn::reduceSum(n.b, n.loc, kept, {1});
}

/// Minus the log-probabilities of the labels, reduced as the node says.
static LogicalResult negativeLog(Node &n, const Rows &rows, Value logs) {
  Value picked = pick(n, logs, rows.labels, rows.ignored);
  Value losses = arith::NegFOp::create(n.b, n.loc, picked);
  Value counted;
  if (rows.weights) {
    Value table =
        nn::broadcastTo(n.b, n.loc, rows.weights, logs.getType(), {1});
    counted = pick(n, table, rows.labels, rows.ignored);
    losses = nn::mul(n.b, n.loc, losses, counted);
  }
  if (rows.reduction == "none")
    return n.set(n.reshape(losses, rows.labelDims));
  Value sum = nn::reduceSum(n.b, n.loc, losses, {0});
  if (rows.reduction == "sum")
    return n.set(sum);
  Value count = counted ? nn::reduceSum(n.b, n.loc, counted, {0})
                        : countLabels(n.b, n.loc, rows.labels, rows.ignored,
                                      nn::tensorType(logs).getElementType());
  return n.set(nn::div(n.b, n.loc, sum, count));
}

/// Cross-entropy of `logits` as one op, for a mean or a sum.
static LogicalResult crossEntropy(Node &n, const Rows &rows, Value logits) {
  if (rows.reduction == "mean")
    return n.set(
        meanCrossEntropy(n.b, n.loc, logits, rows.labels, rows.ignored));
  Type element = nn::accumulationType(nn::tensorType(logits).getElementType());
  Value one = nn::splat(n.b, n.loc, RankedTensorType::get({}, element), 1);
  return n.set(nn::CrossEntropyOp::create(n.b, n.loc, logits, rows.labels, one,
                                          rows.ignored)
                   .getLoss());
}

/// PyTorch's label_smoothing, which the exporter leaves out of the node: 0
/// where its note doesn't say otherwise.
static double smoothingOf(Node &n) {
  std::optional<TorchCall> call = torchCallOf(n.proto);
  if (!call || !call->calls("aten.cross_entropy_loss"))
    return 0;
  return call->number(5, "label_smoothing").value_or(0);
}

/// (1 - s) times the cross-entropy, plus s times the mean over all classes of
/// minus the log-probability; both are averaged over the labels that count.
static LogicalResult smoothedCrossEntropy(Node &n, const Rows &rows, double s) {
  auto type = nn::tensorType(rows.logits);
  if (rows.weights || rows.reduction != "mean" ||
      nn::accumulationType(type.getElementType()) != type.getElementType())
    return n.unsupported("label smoothing with " +
                         Twine(rows.weights ? "weights of classes"
                               : rows.reduction != "mean"
                                   ? "reduction '" + rows.reduction + "'"
                                   : "logits of low precision"));
  Value hard =
      meanCrossEntropy(n.b, n.loc, rows.logits, rows.labels, rows.ignored);
  Value logs = nn::SoftmaxOp::create(n.b, n.loc, rows.logits, /*log=*/true);
  Value spread = nn::reduceSum(n.b, n.loc, logs, {1});
  Value counts =
      arith::CmpIOp::create(n.b, n.loc, arith::CmpIPredicate::ne, rows.labels,
                            like(n.b, n.loc, rows.labels, rows.ignored));
  spread = arith::SelectOp::create(n.b, n.loc, counts, spread,
                                   like(n.b, n.loc, spread, 0));
  Value sum = nn::reduceSum(n.b, n.loc, spread, {0});
  Value count =
      countLabels(n.b, n.loc, rows.labels, rows.ignored, type.getElementType());
  Value soft = nn::scale(n.b, n.loc, nn::div(n.b, n.loc, sum, count),
                         -s / double(type.getDimSize(1)));
  return n.set(nn::add(n.b, n.loc, nn::scale(n.b, n.loc, hard, 1 - s), soft));
}

static LogicalResult importSoftmaxCrossEntropyLoss(Node &n) {
  ASSIGN_OR_FAIL(Rows rows, rowsOf(n));
  if (n.isUsed(1)) {
    // Back from [R, V] to [N, V, ...].
    Value logs = nn::SoftmaxOp::create(n.b, n.loc, rows.logits, /*log=*/true);
    int64_t rank = n.input(0).rank();
    if (rank > 2) {
      Dims last(rows.labelDims), perm{0, rank - 1};
      last.push_back(n.input(0).dims[1]);
      for (int64_t i = 1; i < rank - 1; ++i)
        perm.push_back(i);
      logs = n.reshape(logs, last);
      logs = nn::TransposeOp::create(n.b, n.loc, logs, perm);
    }
    if (failed(n.set(1, Val(logs))))
      return failure();
  }
  if (double smoothing = smoothingOf(n))
    return smoothedCrossEntropy(n, rows, smoothing);
  if (rows.reduction != "none" && !rows.weights)
    return crossEntropy(n, rows, rows.logits);
  Value logs = nn::SoftmaxOp::create(n.b, n.loc, rows.logits, /*log=*/true);
  return negativeLog(n, rows, logs);
}
static Register crossEntropyOp("SoftmaxCrossEntropyLoss",
                               importSoftmaxCrossEntropyLoss);

/// Of a log-softmax, this is cross-entropy; of anything else, a choice.
static LogicalResult importNegativeLogLikelihoodLoss(Node &n) {
  ASSIGN_OR_FAIL(Rows rows, rowsOf(n));
  Value source = rows.logits;
  while (auto view = source.getDefiningOp<nn::ReshapeOp>())
    source = view.getInput();
  auto softmax = source.getDefiningOp<nn::SoftmaxOp>();
  auto type = nn::tensorType(rows.logits);
  if (softmax && softmax.getLog() && rows.reduction != "none" &&
      !rows.weights &&
      nn::tensorType(source).getShape().back() == type.getShape().back()) {
    Value logits = n.reshape(softmax.getInput(), type.getShape());
    return crossEntropy(n, rows, logits);
  }
  return negativeLog(n, rows, rows.logits);
}
static Register nll("NegativeLogLikelihoodLoss",
                    importNegativeLogLikelihoodLoss);
