// Layout.cpp - -tmc-layout: convolutions and the ops around them, channels
// last.
//
// Each op that supports both layouts takes channels last between two
// transposes. Then transposes move down, through pointwise work,
// concatenations, pads, slices and reductions, until two meet and cancel; the
// others stay at the borders.

#include "passes/Passes.h"
#include "passes/raise/Matchers.h"
#include "passes/raise/ViewMap.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_LAYOUT
#include "passes/Passes.h.inc"

using namespace nn;

namespace {

/// [N, ..., C] of [N, C, ...].
SmallVector<int64_t> toLast(int64_t rank) {
  SmallVector<int64_t> perm = firstDims(rank);
  perm.erase(perm.begin() + 1);
  perm.push_back(1);
  return perm;
}

/// [N, C, ...] of [N, ..., C].
SmallVector<int64_t> toFirst(int64_t rank) {
  SmallVector<int64_t> perm = firstDims(rank);
  perm.insert(perm.begin() + 1, rank - 1);
  perm.pop_back();
  return perm;
}

SmallVector<int64_t> inverse(ArrayRef<int64_t> perm) {
  SmallVector<int64_t> result(perm.size());
  for (auto [i, dim] : llvm::enumerate(perm))
    result[dim] = i;
  return result;
}

template <typename T>
SmallVector<T> permuted(ArrayRef<T> list, ArrayRef<int64_t> perm) {
  SmallVector<T> result;
  for (int64_t from : perm)
    result.push_back(list[from]);
  return result;
}

Type permutedType(Type type, ArrayRef<int64_t> perm) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(permuted(tensor.getShape(), perm),
                               tensor.getElementType());
}

//===----------------------------------------------------------------------===//
// Ops that support both layouts

/// `OpTy` with channels last; the first `activations` operands and, if
/// `isImage`, result 0 are activations, the others have no channels dimension.
template <typename OpTy, unsigned activations = 1, bool isImage = true>
struct TakeChannelsLast : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &b) const override {
    int64_t rank = tensorType(op->getOperand(0)).getRank();
    if (op.getChannelsLast() || rank < 3)
      return failure();
    SmallVector<Value> operands(op->getOperands());
    for (Value &operand :
         MutableArrayRef<Value>(operands).take_front(activations))
      operand = TransposeOp::create(b, op.getLoc(), operand, toLast(rank));
    SmallVector<Type> types(op->getResultTypes());
    if (isImage)
      types[0] = permutedType(types[0], toLast(rank));
    OperationState state(op.getLoc(), op->getName(), operands, types,
                         op->getDiscardableAttrDictionary().getValue());
    state.propertiesAttr = op->getPropertiesAsAttribute();
    auto made = cast<OpTy>(b.create(state));
    made.setChannelsLast(true);
    SmallVector<Value> results(made->getResults());
    if (isImage)
      results[0] =
          TransposeOp::create(b, op.getLoc(), results[0], toFirst(rank));
    b.replaceOp(op, results);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Transposes on their way down
//===----------------------------------------------------------------------===//

/// The permutation of a transpose that changes the order of elements, which
/// defines one of `values`; empty if there is none.
ArrayRef<int64_t> firstPermutation(ValueRange values) {
  for (Value value : values)
    if (auto transpose = value.getDefiningOp<TransposeOp>();
        transpose && !llvm::is_sorted(transpose.getPerm()))
      return transpose.getPerm();
  return {};
}

/// All of `values` with `perm` undone, or none if one of them would need a
/// transpose.
SmallVector<Value> undone(OpBuilder &b, ValueRange values,
                          ArrayRef<int64_t> perm) {
  SmallVector<int64_t> back = inverse(perm);
  if (!llvm::all_of(values,
                    [&](Value v) { return canTransposeFreely(v, back); }))
    return {};
  SmallVector<Value> result;
  for (Value value : values)
    result.push_back(transposeFreely(b, value, back));
  return result;
}

struct SinkThroughPointwise : RewritePattern {
  SinkThroughPointwise(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &b) const override {
    if (!isPointwise(op))
      return failure();
    ArrayRef<int64_t> perm = firstPermutation(op->getOperands());
    if (perm.empty())
      return failure();
    SmallVector<Value> operands = undone(b, op->getOperands(), perm);
    if (operands.empty())
      return failure();
    b.replaceOpWithNewOp<TransposeOp>(op, clonePointwise(b, op, operands),
                                      perm);
    return success();
  }
};

/// GELU is pointwise, and is taken apart only later.
struct SinkThroughGelu : OpRewritePattern<GeluOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GeluOp op, PatternRewriter &b) const override {
    ArrayRef<int64_t> perm = firstPermutation(op->getOperands());
    if (perm.empty())
      return failure();
    auto transpose = op->getOperand(0).getDefiningOp<TransposeOp>();
    IRMapping map;
    map.map(op->getOperand(0), transpose.getInput());
    Operation *made = b.clone(*op, map);
    made->getResult(0).setType(transpose.getInput().getType());
    b.replaceOpWithNewOp<TransposeOp>(op, made->getResult(0), perm);
    return success();
  }
};

struct SinkThroughConcat : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op,
                                PatternRewriter &b) const override {
    ArrayRef<int64_t> perm = firstPermutation(op.getInputs());
    if (perm.empty())
      return failure();
    SmallVector<Value> inputs = undone(b, op.getInputs(), perm);
    if (inputs.empty())
      return failure();
    Value concat = ConcatOp::create(b, op.getLoc(), inputs, perm[op.getDim()]);
    b.replaceOpWithNewOp<TransposeOp>(op, concat, perm);
    return success();
  }
};

struct SinkThroughPad : OpRewritePattern<PadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PadOp op, PatternRewriter &b) const override {
    auto transpose = op.getInput().getDefiningOp<TransposeOp>();
    if (!transpose)
      return failure();
    SmallVector<int64_t> back = inverse(transpose.getPerm());
    Value pad = PadOp::create(b, op.getLoc(), permutedType(op.getType(), back),
                              transpose.getInput(), permuted(op.getLow(), back),
                              permuted(op.getSteps(), back));
    b.replaceOpWithNewOp<TransposeOp>(op, pad, transpose.getPerm());
    return success();
  }
};

struct SinkThroughReduce : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &b) const override {
    auto transpose = op.getInput().getDefiningOp<TransposeOp>();
    if (!transpose)
      return failure();
    ArrayRef<int64_t> perm = transpose.getPerm();
    SmallVector<int64_t> dims, kept;
    for (auto [dim, from] : llvm::enumerate(perm))
      (llvm::is_contained(op.getDims(), int64_t(dim)) ? dims : kept)
          .push_back(from);
    llvm::sort(dims);
    Value reduce = ReduceOp::create(b, op.getLoc(), transpose.getInput(),
                                    op.getKind(), dims);
    // The permutation of the kept dimensions, in their new numbers.
    SmallVector<int64_t> rest;
    for (int64_t from : kept)
      rest.push_back(
          llvm::count_if(kept, [&](int64_t other) { return other < from; }));
    if (!llvm::is_sorted(rest))
      reduce = TransposeOp::create(b, op.getLoc(), reduce, rest);
    b.replaceOp(op, reduce);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct Layout : impl::LayoutBase<Layout> {
  using LayoutBase::LayoutBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<TakeChannelsLast<ConvOp>, TakeChannelsLast<ConvGradInputOp>,
                 TakeChannelsLast<MaxPoolOp>, TakeChannelsLast<AvgPoolOp>,
                 TakeChannelsLast<BatchNormOp>,
                 TakeChannelsLast<ConvGradFilterOp, 2, false>,
                 TakeChannelsLast<MaxPoolGradOp, 2>,
                 TakeChannelsLast<AvgPoolGradOp>, SinkThroughPointwise,
                 SinkThroughGelu, SinkThroughConcat, SinkThroughPad,
                 SinkThroughReduce>(&getContext());
    populateViewPatterns(patterns);
    populateRaiseMatmul(patterns);
    GreedyRewriteConfig config;
    config.enableFolding(false);
    config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
} // namespace tmc
