#include "frontends/common/ops/CrossEntropy.h"
#include "frontends/common/ops/Gather.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

namespace {
/// Logits [R, V] and labels [R], from [N, V, ...] and [N, ...].
struct Rows {
  Value logits, labels;
  Value weights; ///< One number per class, or null.
  Dims labelDims;
  int64_t ignored;
  Reduction reduction;
};
} // namespace

static FailureOr<Rows> rowsOf(Site &s, const LabelLoss &loss) {
  const Val &x = loss.scores, &y = loss.labels, &weights = loss.weights;
  if (!isFloat(x.type) || isFloat(y.type))
    return s.error("scores of type " + nameOf(x.type) + " and labels of type " +
                   nameOf(y.type));
  Dims wanted(x.dims);
  if (x.rank() < 2)
    return s.error("scores of shape " + str(x.dims));
  wanted.erase(wanted.begin() + 1);
  if (y.dims != wanted)
    return s.error("scores of shape " + str(x.dims) + " and labels of shape " +
                   str(y.dims));
  Rows rows;
  rows.labelDims = wanted;
  rows.ignored = loss.ignored;
  rows.reduction = loss.reduction;
  ASSIGN_OR_FAIL(rows.logits, s.materialise(x));
  ASSIGN_OR_FAIL(rows.labels, materialiseIndices(s, y));
  int64_t classes = x.dims[1], count = 1;
  for (int64_t dim : wanted)
    count *= dim;
  if (x.rank() > 2) {
    Dims perm{0};
    for (int64_t i = 2; i < x.rank(); ++i)
      perm.push_back(i);
    perm.push_back(1);
    rows.logits = nn::TransposeOp::create(s.b, s.loc, rows.logits, perm);
  }
  rows.logits = s.reshape(rows.logits, {count, classes});
  if (!weights.isAbsent()) {
    if (weights.dims != Dims{classes} || weights.type != x.type)
      return s.error("weights of shape " + str(weights.dims) + " for " +
                     Twine(classes) + " classes");
    ASSIGN_OR_FAIL(rows.weights, s.materialise(weights));
  }
  rows.labels = s.reshape(rows.labels, {count});
  return rows;
}

/// For each row the element at its label, 0 if the label doesn't count: a sum
/// over the row in which one element is kept.
static Value pick(Site &s, Value x, Value labels, int64_t ignored) {
  auto type = nn::tensorType(x);
  auto idType =
      s.tensorType(type.getShape(), nn::tensorType(labels).getElementType());
  Value column = nn::IotaOp::create(s.b, s.loc, idType, 1);
  // An ignored label inside [0, V) must match no column.
  Value counts = arith::CmpIOp::create(s.b, s.loc, arith::CmpIPredicate::ne,
                                       labels, s.like(labels, ignored));
  Value valid =
      arith::SelectOp::create(s.b, s.loc, counts, labels, s.like(labels, -1));
  Value wide = nn::broadcastTo(s.b, s.loc, valid, idType, {0});
  Value hit =
      arith::CmpIOp::create(s.b, s.loc, arith::CmpIPredicate::eq, column, wide);
  Value kept = arith::SelectOp::create(s.b, s.loc, hit, x, s.like(x, 0));
  return nn::reduceSum(s.b, s.loc, kept, {1});
}

namespace {
/// Losses [R], and the weight of each in a mean; null: each weighs 1.
struct RowLosses {
  Value losses, counted;
};
} // namespace

/// Minus the log-probabilities of the labels, times the weights of their
/// classes.
static RowLosses lossesOf(Site &s, const Rows &rows, Value logs) {
  RowLosses result;
  Value picked = pick(s, logs, rows.labels, rows.ignored);
  result.losses = arith::NegFOp::create(s.b, s.loc, picked);
  if (rows.weights) {
    Value table =
        nn::broadcastTo(s.b, s.loc, rows.weights, logs.getType(), {1});
    result.counted = pick(s, table, rows.labels, rows.ignored);
    result.losses = nn::mul(s.b, s.loc, result.losses, result.counted);
  }
  return result;
}

/// Losses with the node's reduction.
static Val reducedRows(Site &s, const Rows &rows, const RowLosses &of) {
  if (rows.reduction == Reduction::None)
    return Val(s.reshape(of.losses, rows.labelDims));
  Value sum = nn::reduceSum(s.b, s.loc, of.losses, {0});
  if (rows.reduction == Reduction::Sum)
    return Val(sum);
  Type element = nn::tensorType(of.losses).getElementType();
  Value count =
      of.counted ? nn::reduceSum(s.b, s.loc, of.counted, {0})
                 : countLabels(s.b, s.loc, rows.labels, rows.ignored, element);
  return Val(nn::div(s.b, s.loc, sum, count));
}

/// Cross-entropy of `logits` as one op, for a mean or a sum.
static FailureOr<Val> crossEntropyOf(Site &s, const Rows &rows, Value logits) {
  if (rows.reduction == Reduction::Mean)
    return Val(meanCrossEntropy(s.b, s.loc, logits, rows.labels, rows.ignored));
  Type element = nn::accumulationType(nn::tensorType(logits).getElementType());
  Value one = nn::splat(s.b, s.loc, RankedTensorType::get({}, element), 1);
  return Val(nn::CrossEntropyOp::create(s.b, s.loc, logits, rows.labels, one,
                                        s.b.getI64IntegerAttr(rows.ignored),
                                        /*vocabulary=*/nullptr)
                 .getLoss());
}

/// Minus the sums of rows' log-probabilities, times weights of classes; 0 if
/// the label doesn't count.
static Value spreadOf(Site &s, const Rows &rows, Value logs) {
  if (rows.weights) {
    Value table =
        nn::broadcastTo(s.b, s.loc, rows.weights, logs.getType(), {1});
    logs = nn::mul(s.b, s.loc, logs, table);
  }
  Value spread =
      arith::NegFOp::create(s.b, s.loc, nn::reduceSum(s.b, s.loc, logs, {1}));
  Value counts =
      arith::CmpIOp::create(s.b, s.loc, arith::CmpIPredicate::ne, rows.labels,
                            s.like(rows.labels, rows.ignored));
  return arith::SelectOp::create(s.b, s.loc, counts, spread, s.like(spread, 0));
}

/// (1 - share) times the cross-entropy, plus share times the mean over all
/// classes of minus the log-probability, each times its class's weight. A mean
/// is taken over the labels that count, by their classes' weights.
static FailureOr<Val> smoothedCrossEntropy(Site &s, Rows rows, double share) {
  auto type = nn::tensorType(rows.logits);
  Type wide = nn::accumulationType(type.getElementType());
  double each = share / static_cast<double>(type.getDimSize(1));
  if (!rows.weights && rows.reduction == Reduction::Mean &&
      wide == type.getElementType()) {
    // The first part has an op of its own.
    Value hard =
        meanCrossEntropy(s.b, s.loc, rows.logits, rows.labels, rows.ignored);
    Value logs = nn::SoftmaxOp::create(s.b, s.loc, rows.logits, /*log=*/true);
    Value sum = nn::reduceSum(s.b, s.loc, spreadOf(s, rows, logs), {0});
    Value count = countLabels(s.b, s.loc, rows.labels, rows.ignored, wide);
    Value soft = nn::scale(s.b, s.loc, nn::div(s.b, s.loc, sum, count), each);
    return Val(
        nn::add(s.b, s.loc, nn::scale(s.b, s.loc, hard, 1 - share), soft));
  }
  for (Value *v : {&rows.logits, &rows.weights})
    if (*v && nn::tensorType(*v).getElementType() != wide)
      *v =
          arith::ExtFOp::create(s.b, s.loc, nn::tensorType(*v).clone(wide), *v);
  Value logs = nn::SoftmaxOp::create(s.b, s.loc, rows.logits, /*log=*/true);
  RowLosses of = lossesOf(s, rows, logs);
  Value spread = nn::scale(s.b, s.loc, spreadOf(s, rows, logs), each);
  of.losses =
      nn::add(s.b, s.loc, nn::scale(s.b, s.loc, of.losses, 1 - share), spread);
  return reducedRows(s, rows, of);
}

FailureOr<Val> tmc::frontend::logSoftmaxOf(Site &s, const LabelLoss &loss) {
  ASSIGN_OR_FAIL(Rows rows, rowsOf(s, loss));
  Value logs = nn::SoftmaxOp::create(s.b, s.loc, rows.logits, /*log=*/true);
  // Back from [R, V] to [N, V, ...].
  int64_t rank = loss.scores.rank();
  if (rank > 2) {
    Dims last(rows.labelDims), perm{0, rank - 1};
    last.push_back(loss.scores.dims[1]);
    for (int64_t i = 1; i < rank - 1; ++i)
      perm.push_back(i);
    logs = s.reshape(logs, last);
    logs = nn::TransposeOp::create(s.b, s.loc, logs, perm);
  }
  return Val(logs);
}

FailureOr<Val> tmc::frontend::crossEntropy(Site &s, const LabelLoss &loss) {
  ASSIGN_OR_FAIL(Rows rows, rowsOf(s, loss));
  if (loss.smoothing)
    return smoothedCrossEntropy(s, rows, loss.smoothing);
  if (rows.reduction != Reduction::None && !rows.weights)
    return crossEntropyOf(s, rows, rows.logits);
  Value logs = nn::SoftmaxOp::create(s.b, s.loc, rows.logits, /*log=*/true);
  return reducedRows(s, rows, lossesOf(s, rows, logs));
}

FailureOr<Val> tmc::frontend::negativeLogLikelihood(Site &s,
                                                    const LabelLoss &loss) {
  ASSIGN_OR_FAIL(Rows rows, rowsOf(s, loss));
  Value source = rows.logits;
  while (auto view = source.getDefiningOp<nn::ReshapeOp>())
    source = view.getInput();
  auto softmax = source.getDefiningOp<nn::SoftmaxOp>();
  auto type = nn::tensorType(rows.logits);
  if (softmax && softmax.getLog() && rows.reduction != Reduction::None &&
      !rows.weights &&
      nn::tensorType(source).getShape().back() == type.getShape().back()) {
    Value logits = s.reshape(softmax.getInput(), type.getShape());
    return crossEntropyOf(s, rows, logits);
  }
  return reducedRows(s, rows, lossesOf(s, rows, rows.logits));
}
