// FoldIntoKernels.cpp - -tmc-fold-into-kernels: folds work that a kernel does
// at no cost, and removes work that isn't needed.

#include "passes/Passes.h"
#include "passes/fuse/FoldLosses.h"
#include "passes/fuse/StackProducts.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_FOLDINTOKERNELS
#include "passes/Passes.h.inc"

namespace {
using namespace nn;

//===----------------------------------------------------------------------===//
// Into kernels
//===----------------------------------------------------------------------===//

/// True if only one op reads `value` and its bytes may be overwritten: an op
/// that is no view computes it here, or a loop carries or returns it.
bool mayAccumulateOnto(Value value) {
  if (!value.hasOneUse())
    return false;
  if (Operation *op = value.getDefiningOp())
    return !isa<ViewOpInterface>(op) && !op->hasTrait<OpTrait::ConstantLike>();
  // The caller keeps the bytes of a function's or a step's arguments.
  Operation *parent = cast<BlockArgument>(value).getOwner()->getParentOp();
  auto loop = dyn_cast<train::MicroBatchOp>(parent);
  return loop && llvm::is_contained(loop.getCarried(), value);
}

/// Rewrites x + product if the product can add onto x's bytes. Also if the
/// product already adds onto a value that can, directly or through further
/// additions: x + (a + b) is (x + a) + b. Pointwise work in x would do the
/// addition at no cost, so x must not be pointwise.
struct FoldAccumulator : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp sum,
                                PatternRewriter &rewriter) const override {
    for (auto [x, total] : {std::pair(sum.getLhs(), sum.getRhs()),
                            {sum.getRhs(), sum.getLhs()}}) {
      Operation *first = x == total ? nullptr : firstOf(total, sum->getBlock());
      if (!first || !mayAccumulateOnto(x) || !isKnownBefore(x, first))
        continue;
      rewriter.modifyOpInPlace(first, [&] { accumulatorOf(first)->assign(x); });
      rewriter.replaceOp(sum, total);
      return success();
    }
    return failure();
  }

private:
  /// The op that adds the first term of `total` and doesn't accumulate onto
  /// another value; null if there is none, or if another op reads a part of the
  /// sum.
  static Operation *firstOf(Value total, Block *block) {
    while (true) {
      Operation *op = total.getDefiningOp();
      std::optional<MutableOperandRange> onto;
      if (op)
        onto = accumulatorOf(op);
      if (!onto || op->getBlock() != block || !total.hasOneUse() ||
          cast<OpResult>(total).getResultNumber() !=
              cast<KernelOpInterface>(op).getAccumulated())
        return nullptr;
      if (onto->empty())
        return op;
      total = OperandRange(*onto)[0];
    }
  }

  /// True if a loop carries or returns `x`, or a kernel computes it.
  static bool isKnownBefore(Value x, Operation *op) {
    Operation *made = x.getDefiningOp();
    return !made ||
           (isa<KernelOpInterface, train::MicroBatchOp>(made) &&
            made->getBlock() == op->getBlock() && made->isBeforeInBlock(op));
  }
};

/// True if `slice` is the first rows of its operand, which lie at its begin.
bool isFirstRows(SliceOp slice) {
  auto isAll = [](ArrayRef<int64_t> list, int64_t number) {
    return llvm::all_of(list, [=](int64_t x) { return x == number; });
  };
  return isAll(slice.getOffsets(), 0) && isAll(slice.getSteps(), 1) &&
         tensorType(slice.getInput()).getShape().drop_front() ==
             tensorType(slice.getResult()).getShape().drop_front();
}

/// The gradient of a table that a padded product reads is the first rows of
/// that product's. A lookup's gradient is added to all rows instead, since only
/// a whole value can be accumulated onto: the other rows get nothing.
struct AddToPaddedRows : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp sum,
                                PatternRewriter &rewriter) const override {
    for (auto [first, second] : {std::pair(sum.getLhs(), sum.getRhs()),
                                 {sum.getRhs(), sum.getLhs()}}) {
      auto slice = first.getDefiningOp<SliceOp>();
      auto lookup = second.getDefiningOp<EmbeddingGradOp>();
      if (!slice || !isFirstRows(slice) || !slice->hasOneUse() ||
          !slice.getInput().hasOneUse() || !lookup || lookup.getAcc() ||
          !lookup->hasOneUse())
        continue;
      rewriter.setInsertionPoint(sum);
      Value whole = slice.getInput();
      Value added =
          EmbeddingGradOp::create(rewriter, lookup.getLoc(), whole.getType(),
                                  lookup.getIds(), lookup.getGrad(), Value());
      added.getDefiningOp()->setDiscardableAttrs(
          lookup->getDiscardableAttrDictionary());
      Value all = add(rewriter, sum.getLoc(), whole, added);
      rewriter.replaceOpWithNewOp<SliceOp>(
          sum, sum.getType(), all, slice.getOffsets(), slice.getSteps());
      return success();
    }
    return failure();
  }
};

/// The result of a gradient of attention, [B, T, G, D], of which `part` is the
/// heads along dimension `dim`, and which nothing else reads; or null. The part
/// is [B, T, G, D], [B, T, G * D] or [B * T, G * D].
OpResult gradientHeads(Value part, int64_t dim) {
  auto rows = part.getDefiningOp<ReshapeOp>();
  auto result = dyn_cast<OpResult>(rows ? rows.getInput() : part);
  if (!result || !isa<AttentionGradOp>(result.getOwner()) ||
      !part.hasOneUse() || !result.hasOneUse())
    return {};
  if (!rows)
    return dim == 2 ? result : OpResult();
  ArrayRef<int64_t> from = tensorType(result).getShape(),
                    to = tensorType(part).getShape();
  const int64_t columns = from[2] * from[3];
  const bool isRows = to == ArrayRef<int64_t>{from[0], from[1], columns} ||
                      to == ArrayRef<int64_t>{from[0] * from[1], columns};
  return isRows && dim == int64_t(to.size()) - 1 ? result : OpResult();
}

/// The gradients of q, k and v side by side are one result: a model that makes
/// all three by one product wants them so.
struct PackAttentionGrad : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getInputs().size() != 3)
      return failure();
    AttentionGradOp grad;
    for (auto [number, part] : llvm::enumerate(op.getInputs())) {
      OpResult result = gradientHeads(part, op.getDim());
      if (!result || result.getResultNumber() != number ||
          (grad && result.getOwner() != grad))
        return failure();
      grad = cast<AttentionGradOp>(result.getOwner());
    }
    if (grad.getBias() || grad->getBlock() != op->getBlock())
      return failure();
    rewriter.setInsertionPoint(grad);
    auto packed = PackedAttentionGradOp::create(
        rewriter, grad.getLoc(), grad.getQ(), grad.getK(), grad.getV(),
        grad.getOut(), grad.getLse(), grad.getGrad(), grad.getMask(),
        grad.getGroups(), grad.getPrefix(), grad.getSeed(), grad.getSamples(),
        /*bias=*/Value(), grad.getScaleAttr(), grad.getCausalAttr(),
        grad.getSoftcapAttr(), grad.getWindowAttr(), grad.getDropoutAttr(),
        grad.getStreamAttr(), grad.getExactAttr(), grad.getTf32Attr());
    packed->setDiscardableAttrs(grad->getDiscardableAttrDictionary());
    rewriter.setInsertionPoint(op);
    rewriter.replaceOp(op, reshapeTo(rewriter, op.getLoc(), packed.getDqkv(),
                                     tensorType(op.getResult()).getShape()));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Algebra
//===----------------------------------------------------------------------===//

/// A broadcast or reshape of a splat is a splat.
template <typename OpTy> struct FoldSplat : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    std::optional<double> value = splatValue(op.getInput());
    if (!value)
      return failure();
    rewriter.replaceOp(op, splat(rewriter, op.getLoc(), op.getType(), *value));
    return success();
  }
};

/// x + 0, x - 0, x * 1, x / 1.
template <typename OpTy, int neutral, bool commutes>
struct FoldNeutral : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    auto isNeutral = [](Value v) {
      return splatValue(v) == std::optional<double>(neutral);
    };
    if (isNeutral(op.getRhs()))
      rewriter.replaceOp(op, op.getLhs());
    else if (commutes && isNeutral(op.getLhs()))
      rewriter.replaceOp(op, op.getRhs());
    else
      return failure();
    return success();
  }
};

/// Products and sums of two splats.
template <typename OpTy, typename Fn>
struct FoldSplats : OpRewritePattern<OpTy> {
  Fn compute;
  FoldSplats(MLIRContext *context, Fn compute)
      : OpRewritePattern<OpTy>(context), compute(compute) {}
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    auto a = splatValue(op.getLhs()), b = splatValue(op.getRhs());
    if (!a || !b)
      return failure();
    rewriter.replaceOp(
        op, splat(rewriter, op.getLoc(), op.getType(), compute(*a, *b)));
    return success();
  }
};

struct FoldSameShape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getInput().getType() != op.getType())
      return failure();
    rewriter.replaceOp(op, op.getInput());
    return success();
  }
};

struct MergeTransposes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    if (llvm::equal(op.getPerm(), firstDims(op.getPerm().size()))) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = op.getInput().getDefiningOp<TransposeOp>();
    if (!inner)
      return failure();
    SmallVector<int64_t> perm;
    for (int64_t dim : op.getPerm())
      perm.push_back(inner.getPerm()[dim]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, inner.getInput(), perm);
    return success();
  }
};

struct MergeBroadcasts : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getInput().getType() == op.getType()) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = op.getInput().getDefiningOp<BroadcastOp>();
    if (!inner)
      return failure();
    SmallVector<int64_t> dims;
    for (int64_t dim : inner.getDims())
      dims.push_back(op.getDims()[dim]);
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getInput(),
                                             dims);
    return success();
  }
};

/// A sum over dimensions that a broadcast made is a product.
struct FoldSumOfBroadcast : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &rewriter) const override {
    Value input = op.getInput();
    if (!isa<FloatType>(tensorType(input).getElementType()))
      return failure();
    int64_t count = 1;
    for (int64_t dim : op.getDims())
      count *= tensorType(input).getDimSize(dim);
    double factor = op.getKind() == ReduceKind::Sum ? count : 1;
    if (auto value = splatValue(input)) {
      rewriter.replaceOp(
          op, splat(rewriter, op.getLoc(), op.getType(), *value * factor));
      return success();
    }
    auto broadcast = input.getDefiningOp<BroadcastOp>();
    if (!broadcast || llvm::any_of(broadcast.getDims(), [&](int64_t dim) {
          return llvm::is_contained(op.getDims(), dim);
        }))
      return failure();
    SmallVector<int64_t> dims;
    for (int64_t dim : broadcast.getDims())
      dims.push_back(dim - llvm::count_if(op.getDims(), [&](int64_t gone) {
                       return gone < dim;
                     }));
    Value rest = broadcastTo(rewriter, op.getLoc(), broadcast.getInput(),
                             op.getType(), dims);
    rewriter.replaceOp(
        op, factor == 1 ? rest : scale(rewriter, op.getLoc(), rest, factor));
    return success();
  }
};

/// Splits a reduction over outer and inner dimensions: the inner ones first,
/// row by row, then the rows. A kernel does each of them over contiguous
/// memory.
struct SplitReduction : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &rewriter) const override {
    ArrayRef<int64_t> dims = op.getDims();
    int64_t rank = tensorType(op.getInput()).getRank();
    if (int64_t(dims.size()) == rank || dims.empty() || dims.back() != rank - 1)
      return failure();
    size_t inner = 1; // The reduced dimensions at the end.
    while (inner < dims.size() &&
           dims[dims.size() - 1 - inner] == rank - 1 - int64_t(inner))
      ++inner;
    if (inner == dims.size())
      return failure();
    Value rows = ReduceOp::create(rewriter, op.getLoc(), op.getInput(),
                                  op.getKind(), dims.take_back(inner));
    rewriter.replaceOpWithNewOp<ReduceOp>(op, rows, op.getKind(),
                                          dims.drop_back(inner));
    return success();
  }
};

/// Powers that are products or roots.
struct ExpandPower : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::PowFOp op,
                                PatternRewriter &b) const override {
    std::optional<double> power = splatValue(op.getRhs());
    if (!power)
      return failure();
    Location loc = op.getLoc();
    Value x = op.getLhs();
    auto one = [&] { return splat(b, loc, op.getType(), 1); };
    if (*power == 0)
      b.replaceOp(op, one());
    else if (*power == 1)
      b.replaceOp(op, x);
    else if (*power == 2)
      b.replaceOp(op, mul(b, loc, x, x));
    else if (*power == 3)
      b.replaceOp(op, mul(b, loc, mul(b, loc, x, x), x));
    else if (*power == -1)
      b.replaceOp(op, div(b, loc, one(), x));
    else if (*power == 0.5)
      b.replaceOpWithNewOp<math::SqrtOp>(op, x);
    else if (*power == -0.5)
      b.replaceOpWithNewOp<math::RsqrtOp>(op, x);
    else
      return failure();
    return success();
  }
};

/// Whether `value` is a sum of widened 16-bit numbers of type `element`. Such a
/// sum is a multiple of the smallest such number, so rounding to `element`
/// gives zero only for zero.
static bool isSumOf(Value value, Type element) {
  if (auto sum = value.getDefiningOp<arith::AddFOp>())
    return isSumOf(sum.getLhs(), element) && isSumOf(sum.getRhs(), element);
  auto widened = value.getDefiningOp<arith::ExtFOp>();
  return widened && tensorType(widened.getIn()).getElementType() == element;
}

/// True if `value` is a batch norm's result: computed from its input, whose
/// statistics are at hand, by vectors of channels alone.
static bool isNormalized(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    const bool isCast = isa<arith::ExtFOp, arith::TruncFOp>(op);
    const bool isStep = isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op) &&
                        op->getOperand(1).getDefiningOp<BroadcastOp>();
    if (!isCast && !isStep)
      break;
    value = op->getOperand(0);
  }
  return llvm::any_of(value.getUsers(), llvm::IsaPred<BatchStatisticsOp>);
}

/// Replaces x > 0 by max(x, 0) > 0 if max(x, 0) exists: it is needed anyway, so
/// x doesn't have to be saved for the derivative of relu. If max(x, 0) is
/// rounded and the rounding changes no sign, the comparison reads the rounded
/// value. The gradient of a batch norm reads the norm's input, from which x
/// follows: there max(x, 0) would be read beside it.
struct CompareRectified : OpRewritePattern<arith::CmpFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::CmpFOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getPredicate() != arith::CmpFPredicate::OGT ||
        splatValue(op.getRhs()) != std::optional<double>(0) ||
        isNormalized(op.getLhs()))
      return failure();
    for (Operation *user : op.getLhs().getUsers()) {
      auto rectified = dyn_cast<arith::MaximumFOp>(user);
      if (!rectified || rectified->getBlock() != op->getBlock() ||
          !rectified->isBeforeInBlock(op))
        continue;
      Value other = rectified.getLhs() == op.getLhs() ? rectified.getRhs()
                                                      : rectified.getLhs();
      if (splatValue(other) != std::optional<double>(0))
        continue;
      Value asked = rectified.getResult();
      for (Operation *reader : asked.getUsers())
        if (auto rounded = dyn_cast<arith::TruncFOp>(reader);
            rounded && rounded->getBlock() == op->getBlock() &&
            rounded->isBeforeInBlock(op) &&
            isSumOf(op.getLhs(), tensorType(rounded).getElementType())) {
          rewriter.setInsertionPointAfter(rounded);
          asked = arith::ExtFOp::create(rewriter, op.getLoc(), asked.getType(),
                                        rounded.getResult());
          break;
        }
      rewriter.modifyOpInPlace(op, [&] { op.getLhsMutable().assign(asked); });
      return success();
    }
    return failure();
  }
};

/// Replaces a loop that runs once by its body. Its carried values start as
/// zeros.
void inlineSingleRun(train::MicroBatchOp op) {
  OpBuilder b(op);
  IRMapping map;
  map.map(op.getBlock().getArguments().take_front(op.getSlices().size()),
          op.getSlices());
  for (BlockArgument carried : op.getCarried())
    map.map(carried, splat(b, carried.getLoc(), carried.getType(), 0));
  for (Operation &inner : op.getBlock().without_terminator())
    b.clone(inner, map);
  for (auto [result, value] :
       llvm::zip(op.getResults(), op.getBlock().getTerminator()->getOperands()))
    result.replaceAllUsesWith(map.lookupOrDefault(value));
  op.erase();
}

struct FoldIntoKernels : impl::FoldIntoKernelsBase<FoldIntoKernels> {
  void runOnOperation() override {
    MLIRContext *c = &getContext();
    getOperation()->walk([](train::MicroBatchOp loop) {
      if (loop.getCount() == 1)
        inlineSingleRun(loop);
    });
    stackProducts(getOperation());
    RewritePatternSet patterns(c);
    addLossFolds(patterns);
    patterns.add<AddToPaddedRows, FoldAccumulator, PackAttentionGrad,
                 FoldSplat<BroadcastOp>, FoldSplat<ReshapeOp>,
                 FoldNeutral<arith::AddFOp, 0, true>,
                 FoldNeutral<arith::SubFOp, 0, false>,
                 FoldNeutral<arith::MulFOp, 1, true>,
                 FoldNeutral<arith::DivFOp, 1, false>, MergeTransposes,
                 MergeBroadcasts, FoldSumOfBroadcast, SplitReduction,
                 FoldSameShape, ExpandPower, CompareRectified>(c);
    auto splats = [&]<typename OpTy>(auto compute) {
      patterns.add(
          std::make_unique<FoldSplats<OpTy, decltype(compute)>>(c, compute));
    };
    splats.operator()<arith::AddFOp>([](double a, double b) { return a + b; });
    splats.operator()<arith::SubFOp>([](double a, double b) { return a - b; });
    splats.operator()<arith::MulFOp>([](double a, double b) { return a * b; });
    splats.operator()<arith::DivFOp>([](double a, double b) { return a / b; });
    ReshapeOp::getCanonicalizationPatterns(patterns, c);
    apply(std::move(patterns));
    RewritePatternSet last(c);
    addWholeLossFold(last);
    apply(std::move(last));
  }

  void apply(RewritePatternSet patterns) {
    GreedyRewriteConfig config;
    config.enableFolding(false); // Only the patterns.
    config.enableConstantCSE(false);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      getOperation()->emitWarning(
          "folding into kernels doesn't come to an end");
  }
};

} // namespace
} // namespace tmc
