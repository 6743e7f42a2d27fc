// Softmax.cpp - softmax and its logarithm from exponentials and sums.

#include "passes/raise/Matchers.h"
#include "passes/raise/ViewMap.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// If `value`, per row or repeated along it, is a reduction of rows: the
/// reduced value.
static Value reducedRows(Value value, ReduceKind kind) {
  double factor = 1;
  if (Value rows = rowNumbers(value, factor))
    value = rows;
  ViewMap view = ViewMap::of(value);
  auto reduce = view.getSource().getDefiningOp<ReduceOp>();
  if (factor != 1 || !isReshape(view) || !reduce || reduce.getKind() != kind ||
      reduce.getDims() !=
          ArrayRef<int64_t>{tensorType(reduce.getInput()).getRank() - 1})
    return {};
  return reduce.getInput();
}

/// x if `value` is x minus the maximum of its row, to which a softmax is
/// invariant; else `value`.
static Value skipMaximum(Value value) {
  auto difference = value.getDefiningOp<arith::SubFOp>();
  if (!difference)
    return value;
  Value of = reducedRows(difference.getRhs(), ReduceKind::Max);
  return of && isSame(of, difference.getLhs()) ? difference.getLhs() : value;
}

/// x, if `numerator` is exp(x) and `sums` the sum of its rows.
static Value exponentIn(Value numerator, Value sums) {
  auto exp = numerator.getDefiningOp<math::ExpOp>();
  Value of = reducedRows(sums, ReduceKind::Sum);
  return exp && of && isSame(of, numerator) ? skipMaximum(exp.getOperand())
                                            : Value();
}

namespace {

/// exp(x - max) / sum(exp(x - max)).
struct RaiseQuotient : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &b) const override {
    Value x = exponentIn(op.getLhs(), op.getRhs());
    if (!x)
      return failure();
    b.replaceOpWithNewOp<SoftmaxOp>(op, x, false);
    return success();
  }
};

/// exp(x - max) * (1 / sum(exp(x - max))).
struct RaiseProduct : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulFOp op,
                                PatternRewriter &b) const override {
    for (auto [numerator, rest] : bothWays<arith::MulFOp>(op.getResult())) {
      double factor = 1;
      Value rows = rowNumbers(rest, factor);
      auto div = (rows ? rows : rest).getDefiningOp<arith::DivFOp>();
      if (!div || factor != 1 || constantNumber(div.getLhs()) != 1)
        continue;
      if (Value x = exponentIn(numerator, div.getRhs())) {
        b.replaceOpWithNewOp<SoftmaxOp>(op, x, false);
        return success();
      }
    }
    return failure();
  }
};

/// y - log(sum(exp(y))), with y = x - max or x.
struct RaiseDifference : OpRewritePattern<arith::SubFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SubFOp op,
                                PatternRewriter &b) const override {
    double factor = 1;
    Value rows = rowNumbers(op.getRhs(), factor);
    auto log = (rows ? rows : op.getRhs()).getDefiningOp<math::LogOp>();
    if (!log || factor != 1)
      return failure();
    Value exps = reducedRows(log.getOperand(), ReduceKind::Sum);
    auto exp = exps ? exps.getDefiningOp<math::ExpOp>() : nullptr;
    if (!exp || !isSame(exp.getOperand(), op.getLhs()))
      return failure();
    b.replaceOpWithNewOp<SoftmaxOp>(op, skipMaximum(op.getLhs()), true);
    return success();
  }
};

/// log(softmax(x)), which underflows for small probabilities.
struct RaiseLog : OpRewritePattern<math::LogOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::LogOp op,
                                PatternRewriter &b) const override {
    auto softmax = op.getOperand().getDefiningOp<SoftmaxOp>();
    if (!softmax || softmax.getLog())
      return failure();
    b.replaceOpWithNewOp<SoftmaxOp>(op, softmax.getInput(), true);
    return success();
  }
};

} // namespace

void tmc::populateRaiseSoftmax(RewritePatternSet &patterns) {
  patterns.add<RaiseQuotient, RaiseProduct, RaiseDifference, RaiseLog>(
      patterns.getContext());
}
