// FoldLosses.cpp - losses and their gradients as one kernel, in their types.

#include "passes/fuse/FoldLosses.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tmc {
namespace {
using namespace nn;

/// Collects the ops after `op` that `value` depends on, in order; false if `op`
/// or an op with effects is among them.
bool dependsBehind(Value value, Operation *op, SetVector<Operation *> &found) {
  Operation *made = value.getDefiningOp();
  if (!made || made->getBlock() != op->getBlock() ||
      made->isBeforeInBlock(op) || found.contains(made))
    return true;
  if (made == op || !isPure(made))
    return false;
  for (Value operand : made->getOperands())
    if (!dependsBehind(operand, op, found))
      return false;
  found.insert(made);
  return true;
}

/// Moves the makers of `values` before `loss`, if none of them depends on the
/// loss. A gradient whose scale depends on the loss must run after it.
bool bringBefore(Operation *loss, ArrayRef<Value> values,
                 PatternRewriter &rewriter) {
  SetVector<Operation *> needed;
  for (Value value : values)
    if (value && !dependsBehind(value, loss, needed))
      return false;
  for (Operation *before : needed)
    rewriter.moveOpBefore(before, loss);
  return true;
}

/// A loss in chunks and its gradient become one kernel, which computes the
/// logits once. Only the gradient may read the log-sum-exps, because the kernel
/// doesn't store them.
struct FoldLossIntoGrad : OpRewritePattern<LinearCrossEntropyGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LinearCrossEntropyGradOp op,
                                PatternRewriter &rewriter) const override {
    auto loss = op.getLse().getDefiningOp<LinearCrossEntropyOp>();
    if (!loss || loss->getBlock() != op->getBlock() ||
        !loss.getLse().hasOneUse() || loss.getX() != op.getX() ||
        loss.getTable() != op.getTable() ||
        loss.getLabels() != op.getLabels() || loss.getBias() != op.getBias() ||
        loss.getChunk() != op.getChunk() ||
        loss.getIgnoreIndex() != op.getIgnoreIndex() ||
        loss.getVocabulary() != op.getVocabulary() ||
        loss.getTf32() != op.getTf32())
      return failure();
    if (!bringBefore(loss, {op.getScale(), op.getAcc()}, rewriter))
      return failure();
    rewriter.setInsertionPoint(loss);
    auto both = LinearCrossEntropyWithGradOp::create(
        rewriter, loss.getLoc(), loss.getX(), loss.getTable(), loss.getLabels(),
        loss.getWeight(), op.getScale(), loss.getBias(), op.getAcc(),
        loss.getChunkAttr(), loss.getIgnoreIndexAttr(),
        loss.getVocabularyAttr(), /*unread=*/nullptr, op.getTf32Attr());
    both->setDiscardableAttrs(loss->getDiscardableAttrDictionary());
    rewriter.replaceOp(op, both->getResults().drop_front());
    rewriter.replaceAllUsesWith(loss.getLoss(), both.getLoss());
    rewriter.eraseOp(loss);
    return success();
  }
};

/// The same of whole logits: the kernel reads each row from memory once. Both
/// must have their final types.
struct FoldWholeLossIntoGrad : OpRewritePattern<CrossEntropyGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CrossEntropyGradOp op,
                                PatternRewriter &rewriter) const override {
    auto loss = op.getLse().getDefiningOp<CrossEntropyOp>();
    if (!loss || loss->getBlock() != op->getBlock() ||
        !loss.getLse().hasOneUse() || loss.getLogits() != op.getLogits() ||
        loss.getLabels() != op.getLabels() ||
        loss.getIgnoreIndex() != op.getIgnoreIndex() ||
        loss.getVocabulary() != op.getVocabulary() ||
        !bringBefore(loss, op.getScale(), rewriter))
      return failure();
    rewriter.setInsertionPoint(loss);
    auto both = CrossEntropyWithGradOp::create(
        rewriter, loss.getLoc(), loss.getLogits(), loss.getLabels(),
        loss.getWeight(), op.getScale(), loss.getIgnoreIndexAttr(),
        loss.getVocabularyAttr());
    both->setDiscardableAttrs(loss->getDiscardableAttrDictionary());
    rewriter.replaceOp(op, both.getDlogits());
    rewriter.replaceAllUsesWith(loss.getLoss(), both.getLoss());
    rewriter.eraseOp(loss);
    return success();
  }
};

/// The 16-bit logits of which `logits` is a widened copy, or null.
Value narrowLogits(Value logits) {
  auto widened = logits.getDefiningOp<arith::ExtFOp>();
  if (!widened ||
      tensorType(widened.getIn()).getElementType().getIntOrFloatBitWidth() !=
          16 ||
      !tensorType(logits).getElementType().isF32())
    return {};
  return widened.getIn();
}

/// A loss reads 16-bit logits directly.
struct FoldWidening : OpRewritePattern<CrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CrossEntropyOp op,
                                PatternRewriter &rewriter) const override {
    Value narrow = narrowLogits(op.getLogits());
    if (!narrow)
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getLogitsMutable().assign(narrow); });
    return success();
  }
};

bool isSumOfRows(Operation *op) {
  auto sum = dyn_cast<ReduceOp>(op);
  return sum && sum.getKind() == ReduceKind::Sum &&
         sum.getDims() == ArrayRef<int64_t>{0};
}

/// Its gradient rounds its result, if all readers round it, but for sums of
/// rows, the gradient of a bias: these read what the products read.
struct FoldRounding : OpRewritePattern<CrossEntropyGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CrossEntropyGradOp op,
                                PatternRewriter &rewriter) const override {
    Value narrow = narrowLogits(op.getLogits());
    if (!narrow)
      return failure();
    auto rounds = [&](Operation *user) {
      return isa<arith::TruncFOp>(user) &&
             user->getResult(0).getType() == narrow.getType();
    };
    if (!llvm::any_of(op->getUsers(), rounds) ||
        !llvm::all_of(op->getUsers(), [&](Operation *user) {
          return rounds(user) || isSumOfRows(user);
        }))
      return failure();
    auto rounded = CrossEntropyGradOp::create(
        rewriter, op.getLoc(), narrow, op.getLabels(), op.getLse(),
        op.getScale(), op.getIgnoreIndexAttr(), op.getVocabularyAttr());
    rounded->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (rounds(user))
        rewriter.replaceOp(user, rounded);
    if (!op->use_empty())
      rewriter.replaceOp(
          op, convertTo(rewriter, op.getLoc(), rounded, rewriter.getF32Type()));
    else
      rewriter.eraseOp(op);
    return success();
  }
};

/// Marks gradients without readers, so that they aren't computed. This runs
/// once, before planning: later, a plan may drop a recomputed op's results that
/// it counts as computed.
template <typename OpTy> struct MarkUnread : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    SmallVector<int64_t> unread;
    for (Value gradient : {op.getDx(), op.getDtable(), op.getDbias()})
      if (gradient && gradient.use_empty())
        unread.push_back(cast<OpResult>(gradient).getResultNumber());
    if (ArrayRef(unread) == op.getUnread().value_or(ArrayRef<int64_t>()))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.setUnread(unread); });
    return success();
  }
};

} // namespace

void addLossFolds(RewritePatternSet &patterns) {
  patterns.add<FoldLossIntoGrad, FoldWidening, FoldRounding,
               MarkUnread<LinearCrossEntropyGradOp>,
               MarkUnread<LinearCrossEntropyWithGradOp>>(patterns.getContext());
}

void addWholeLossFold(RewritePatternSet &patterns) {
  patterns.add<FoldWholeLossIntoGrad>(patterns.getContext());
}

} // namespace tmc
