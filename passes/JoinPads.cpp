// JoinPads.cpp - -tmc-join-pads: a sum of pads that tile a tensor is a
// concatenation.
//
// The gradients of slices are pads, and those of all slices of one value are
// added: q, k and v of one projection, the halves of rotary positions. Where
// the pads fill the tensor without overlap, it is written once instead of once
// for each.

#include "passes/Passes.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_JOINPADS
#include "passes/Passes.h.inc"

using namespace nn;

namespace {

/// A pad along one dimension, in steps of one.
struct Strip {
  PadOp pad;
  int64_t dim, begin, end;
};

std::optional<Strip> asStrip(Value value) {
  auto pad = value.getDefiningOp<PadOp>();
  if (!pad || !value.hasOneUse() ||
      llvm::any_of(pad.getSteps(), [](int64_t step) { return step != 1; }))
    return std::nullopt;
  std::optional<Strip> strip;
  RankedTensorType from = tensorType(pad.getInput());
  for (auto [dim, size] : llvm::enumerate(tensorType(value).getShape())) {
    if (from.getDimSize(dim) == size)
      continue;
    if (strip)
      return std::nullopt;
    int64_t begin = pad.getLow()[dim];
    strip = Strip{pad, int64_t(dim), begin, begin + from.getDimSize(dim)};
  }
  return strip;
}

/// What `sum` adds, through sums that nothing else reads.
void collectTerms(arith::AddFOp sum, SmallVectorImpl<Value> &terms) {
  for (Value operand : sum->getOperands()) {
    auto inner = operand.getDefiningOp<arith::AddFOp>();
    if (inner && operand.hasOneUse())
      collectTerms(inner, terms);
    else
      terms.push_back(operand);
  }
}

struct JoinSum : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &b) const override {
    // The outermost sum knows all terms.
    if (op->hasOneUse() && isa<arith::AddFOp>(*op->user_begin()))
      return failure();
    SmallVector<Value> terms;
    collectTerms(op, terms);
    for (int64_t dim = 0; dim < tensorType(op.getResult()).getRank(); ++dim) {
      SmallVector<Strip> strips;
      for (Value term : terms)
        if (std::optional<Strip> strip = asStrip(term);
            strip && strip->dim == dim)
          strips.push_back(*strip);
      llvm::stable_sort(strips, [](const Strip &x, const Strip &y) {
        return x.begin < y.begin;
      });
      int64_t filled = 0;
      for (const Strip &strip : strips)
        filled = strip.begin == filled ? strip.end : -1;
      if (strips.size() < 2 ||
          filled != tensorType(op.getResult()).getDimSize(dim))
        continue;
      SmallVector<Value> parts;
      for (Strip &strip : strips)
        parts.push_back(strip.pad.getInput());
      Value result = ConcatOp::create(b, op.getLoc(), parts, dim);
      for (Value term : terms)
        if (!llvm::any_of(strips, [&](Strip &strip) {
              return strip.pad.getResult() == term;
            }))
          result = nn::add(b, op.getLoc(), result, term);
      b.replaceOp(op, result);
      return success();
    }
    return failure();
  }
};

struct JoinPads : impl::JoinPadsBase<JoinPads> {
  using JoinPadsBase::JoinPadsBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<JoinSum>(&getContext());
    GreedyRewriteConfig config;
    config.enableFolding(false);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
} // namespace tmc
