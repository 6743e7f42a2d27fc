// Losses.cpp - cross_entropy from log_softmax and a choice by label, and
// linear_cross_entropy from a product and a cross_entropy.

#include "passes/raise/Matchers.h"
#include "passes/raise/ViewMap.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// The default ignored index of CrossEntropyOp.
constexpr int64_t defaultIgnored = -100;

/// If `condition` compares a value with a constant and is `holds` if they
/// differ: the value and the constant.
static std::pair<Value, int64_t> differsFrom(Value condition, bool holds) {
  ViewMap view = ViewMap::of(condition);
  auto cmp = view.getSource().getDefiningOp<arith::CmpIOp>();
  if (!cmp || !isReshape(view) ||
      cmp.getPredicate() !=
          (holds ? arith::CmpIPredicate::ne : arith::CmpIPredicate::eq))
    return {};
  for (int i : {0, 1})
    if (auto number = constantNumber(cmp->getOperand(i)))
      return {cmp->getOperand(1 - i), int64_t(*number)};
  return {};
}

/// `value` before changes of shape.
static Value flat(Value value) {
  ViewMap view = ViewMap::of(value);
  return isReshape(view) ? view.getSource() : value;
}

namespace {
/// The logarithms of the probabilities of the labels, one per row.
struct Picked {
  Value logits; // [..., V]
  Value labels; // As many as rows.
};
} // namespace

/// `value` as a choice by label: a sum over classes of the elements whose class
/// equals the label.
static std::optional<Picked> picked(Value value) {
  auto sum = flat(value).getDefiningOp<ReduceOp>();
  if (!sum || sum.getKind() != ReduceKind::Sum || sum.getDims().size() != 1)
    return std::nullopt;
  int64_t dim = sum.getDims()[0];
  auto choice = sum.getInput().getDefiningOp<arith::SelectOp>();
  if (!choice || constantNumber(choice.getFalseValue()) != 0)
    return std::nullopt;
  ViewMap chosen = ViewMap::of(choice.getTrueValue());
  auto softmax = chosen.getSource().getDefiningOp<SoftmaxOp>();
  if (!softmax || !softmax.getLog() || !isReshape(chosen) ||
      !chosen.isDimOfSource(dim, tensorType(softmax.getResult()).getRank() - 1))
    return std::nullopt;
  ViewMap condition = ViewMap::of(choice.getCondition());
  auto cmp = condition.getSource().getDefiningOp<arith::CmpIOp>();
  if (!cmp || !isIdentity(condition) ||
      cmp.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  for (auto [count, label] : bothWays<arith::CmpIOp>(cmp.getResult())) {
    ViewMap classes = ViewMap::of(count), labels = ViewMap::of(label);
    auto iota = classes.getSource().getDefiningOp<IotaOp>();
    if (!iota || !classes.isDimOfSource(dim, iota.getDim()) ||
        !labels.isConstantAlong(dim))
      continue;
    labels.dropDim(dim);
    if (isReshape(labels))
      return Picked{softmax.getInput(), labels.getSource()};
  }
  return std::nullopt;
}

namespace {

/// The sum over all rows of the negative logarithm of the label's probability.
struct RaiseSum : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &b) const override {
    if (op.getKind() != ReduceKind::Sum ||
        tensorType(op.getResult()).getRank() != 0)
      return failure();
    double factor = 1;
    Value value = op.getInput(), counted;
    int64_t ignored = defaultIgnored;
    std::optional<Picked> found;
    while (!(found = picked(value))) {
      Value next = flat(skipFactor(value, factor));
      if (auto negation = next.getDefiningOp<arith::NegFOp>()) {
        factor = -factor;
        next = negation.getOperand();
      }
      Value condition;
      bool holds = true;
      if (auto choice = next.getDefiningOp<arith::SelectOp>()) {
        holds = constantNumber(choice.getFalseValue()) == 0;
        if (!holds && constantNumber(choice.getTrueValue()) != 0)
          return failure();
        condition = choice.getCondition();
        next = holds ? choice.getTrueValue() : choice.getFalseValue();
      }
      for (auto [x, gate] : bothWays<arith::MulFOp>(next))
        if (auto cast = flat(gate).getDefiningOp<arith::UIToFPOp>();
            cast && !condition) {
          condition = cast.getIn();
          next = x;
        }
      if (condition) {
        auto [labels, number] = differsFrom(condition, holds);
        if (!labels || counted)
          return failure();
        counted = flat(labels);
        ignored = number;
      }
      if (next == value)
        return failure();
      value = next;
    }
    Value labels = found->labels;
    // Ignored labels are made valid before the choice.
    if (auto safe = labels.getDefiningOp<arith::SelectOp>())
      for (bool holds : {true, false}) {
        Value kept = holds ? safe.getTrueValue() : safe.getFalseValue();
        auto [of, number] = differsFrom(safe.getCondition(), holds);
        if (of && counted && isSame(flat(of), flat(kept)) && number == ignored)
          labels = flat(kept);
      }
    if (counted && !isSame(counted, flat(labels)))
      return failure();

    RankedTensorType type = tensorType(found->logits);
    int64_t classes = type.getShape().back();
    int64_t rows = type.getNumElements() / classes;
    Type sums = accumulationType(type.getElementType());
    if (op.getType() != RankedTensorType::get({}, sums) ||
        tensorType(labels).getNumElements() != rows)
      return failure();
    Value logits =
        nn::reshapeTo(b, op.getLoc(), found->logits, {rows, classes});
    labels = nn::reshapeTo(b, op.getLoc(), labels, {rows});
    Value weight =
        splat(b, op.getLoc(), RankedTensorType::get({}, sums), -factor);
    auto loss = CrossEntropyOp::create(b, op.getLoc(), logits, labels, weight,
                                       b.getI64IntegerAttr(ignored),
                                       /*vocabulary=*/nullptr);
    b.replaceOp(op, loss.getLoss());
    return success();
  }
};

/// A scalar factor of a loss moves to its weight.
template <typename OpTy> struct TakeFactor : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &b) const override {
    for (Value operand : op->getOperands()) {
      auto loss = operand.getDefiningOp<CrossEntropyOp>();
      if (!loss || operand != loss.getLoss() || !operand.hasOneUse())
        continue;
      if (isa<arith::DivFOp>(op) && operand != op->getOperand(0))
        continue;
      Value weight = loss.getWeight();
      bool isOne = constantNumber(weight) == 1;
      SmallVector<Value> operands(op->getOperands());
      *llvm::find(operands, operand) = weight;
      if (isOne && isa<arith::MulFOp>(op))
        weight = operands[0] == weight ? operands[1] : operands[0];
      else
        weight = clonePointwise(b, op, operands);
      auto fresh = CrossEntropyOp::create(
          b, loss.getLoc(), loss.getLogits(), loss.getLabels(), weight,
          loss.getIgnoreIndexAttr(), loss.getVocabularyAttr());
      b.replaceAllUsesWith(loss.getLse(), fresh.getLse());
      b.replaceOp(op, fresh.getLoss());
      return success();
    }
    return failure();
  }
};

/// True if only `reader` and the function's return read `value`, or a reshape
/// of it.
static bool isOnlyReturned(Value value, Operation *reader) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return user == reader || user->hasTrait<OpTrait::IsTerminator>() ||
           (isa<ReshapeOp>(user) && isOnlyReturned(user->getResult(0), reader));
  });
}

/// Logits as a product with a table, plus an optional number per class.
struct Linear {
  MatmulOp product;
  Value bias;
  /// The values that select the logits' rows from the product's rows, the last
  /// first: a reshape, or a slice.
  SmallVector<Value> picks;
  /// The bytes of the product, its wider copies and slices, all of which are
  /// alive before the loss.
  int64_t heldBytes = 0;
};

/// `logits` as such a product, if only `reader` and the function's return read
/// the intermediate values. Allowed ops between: a reshape, a slice of rows
/// (shifted labels need no logits in the last row), a cast to f32.
static std::optional<Linear> linearOf(Value logits, Operation *reader) {
  Linear found;
  const int64_t classes = tensorType(logits).getShape().back();
  auto hasRows = [&](Value value) {
    RankedTensorType type = tensorType(value);
    return type.getRank() > 0 && type.getShape().back() == classes;
  };
  Value value = logits;
  while (true) {
    Value before = flat(value);
    if (!hasRows(before) || !isOnlyReturned(before, reader) ||
        !isOnlyReturned(value, reader))
      return std::nullopt;
    if (before != value)
      found.picks.push_back(value);
    value = before;
    Operation *op = value.getDefiningOp();
    if (auto product = dyn_cast_or_null<MatmulOp>(op)) {
      if (product.getAcc() || product.getTransposeLhs() ||
          !product.getTransposeRhs() || (found.bias && product.getBias()) ||
          tensorType(value).getRank() != 2)
        return std::nullopt;
      found.product = product;
      if (!found.bias)
        found.bias = product.getBias();
      found.heldBytes += sizeInBytes(value.getType());
      return found;
    }
    Value next;
    if (auto cast = dyn_cast_or_null<arith::ExtFOp>(op)) {
      if (tensorType(value).getElementType().isF32())
        next = cast.getIn();
    } else if (auto slice = dyn_cast_or_null<SliceOp>(op)) {
      if (hasRows(slice.getInput())) {
        next = slice.getInput();
        found.picks.push_back(value);
      }
    }
    if (next) {
      found.heldBytes += sizeInBytes(value.getType());
    } else {
      for (auto [sum, term] : bothWays<arith::AddFOp>(value)) {
        ViewMap row = ViewMap::of(term);
        int64_t last = tensorType(value).getRank() - 1;
        if (found.bias || !flat(sum).getDefiningOp<MatmulOp>() ||
            tensorType(row.getSource()).getRank() != 1 ||
            !row.isDimOfSource(last, 0))
          continue;
        next = sum;
        found.bias = row.getSource();
        break;
      }
    }
    if (!next)
      return std::nullopt;
    reader = op;
    value = next;
  }
}

/// The rows of the product's left factor that give the logits' rows.
static Value rowsOf(OpBuilder &b, Location loc, Linear linear) {
  Value x = linear.product.getLhs();
  const int64_t width = tensorType(x).getShape().back();
  for (Value pick : llvm::reverse(linear.picks)) {
    SmallVector<int64_t> shape(tensorType(pick).getShape());
    shape.back() = width;
    if (auto slice = pick.getDefiningOp<SliceOp>())
      x = SliceOp::create(b, loc, tensorType(x).clone(shape), x,
                          slice.getOffsets(), slice.getSteps());
    else
      x = nn::reshapeTo(b, loc, x, shape);
  }
  return x;
}

/// cross_entropy(x * table^T + bias) in chunks of rows, each in f32. The logits
/// may still be returned, but no other op may read them.
struct RaiseLinear : OpRewritePattern<CrossEntropyOp> {
  RaiseLinear(MLIRContext *context, LossChunks chunks)
      : OpRewritePattern(context), chunks(chunks) {}
  LogicalResult matchAndRewrite(CrossEntropyOp op,
                                PatternRewriter &b) const override {
    std::optional<Linear> found = linearOf(op.getLogits(), op);
    if (!found || (chunks.ifFree && !isFree(op, *found)))
      return failure();
    MatmulOp product = found->product;
    Value bias = found->bias;
    if (bias)
      bias = convertTo(b, op.getLoc(), bias,
                       accumulationType(tensorType(bias).getElementType()));
    auto linear = LinearCrossEntropyOp::create(
        b, op.getLoc(), rowsOf(b, op.getLoc(), *found), product.getRhs(),
        op.getLabels(), op.getWeight(), bias, b.getI64IntegerAttr(chunks.rows),
        op.getIgnoreIndexAttr(), op.getVocabularyAttr());
    b.replaceOp(op, linear.getResults());
    return success();
  }
  /// True if one kernel can compute the loss and its gradient, because no op is
  /// between them, and memory is saved. The table has no gradient; or its
  /// gradient isn't larger than the logits, so that it can be computed later,
  /// or than the bytes held for them at the loss; or the gradient is a sum over
  /// micro-batches, which is in memory anyway.
  bool isFree(CrossEntropyOp op, Linear linear) const {
    const int64_t rows =
        tensorType(op.getLogits()).getDimSize(0) / chunks.microBatches;
    Value table = linear.product.getRhs();
    RankedTensorType type = tensorType(table);
    const int64_t gradientBytes =
        sizeInBytes(type.clone(accumulationType(type.getElementType())));
    const bool isSmall =
        rows >= type.getDimSize(1) || linear.heldBytes >= gradientBytes;
    const bool addsUp = chunks.microBatches > 1 && !linear.bias &&
                        type.getElementType().isF32();
    return rows > chunks.rows &&
           (!dependsOnParameter(table) || addsUp ||
            (chunks.microBatches == 1 && isSmall)) &&
           op.getLse().use_empty() && isOnlyReturned(op.getLoss(), nullptr);
  }
  LossChunks chunks;
};

} // namespace

void tmc::populateRaiseLosses(RewritePatternSet &patterns, LossChunks chunks) {
  patterns.add<RaiseSum, TakeFactor<arith::MulFOp>, TakeFactor<arith::DivFOp>,
               TakeFactor<arith::NegFOp>>(patterns.getContext());
  if (chunks.rows > 0)
    patterns.add<RaiseLinear>(patterns.getContext(), chunks);
}
