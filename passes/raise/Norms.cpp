// Norms.cpp - layer_norm and rms_norm from means, squares and roots.
//
// First the normalization alone is matched, then scale and shift are folded
// into it, so that a norm without them is raised too. Statistics may be
// computed on [..., 1] or already repeated along the row; the row may be
// divided by the root, or multiplied by its reciprocal.

#include "passes/raise/Matchers.h"
#include "passes/raise/ViewMap.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// The value whose square is `value`, or null.
static Value squaredIn(Value value) {
  if (auto mul = value.getDefiningOp<arith::MulFOp>())
    return isSame(mul.getLhs(), mul.getRhs()) ? mul.getLhs() : Value();
  if (auto pow = value.getDefiningOp<math::PowFOp>())
    return constantNumber(pow.getRhs()) == 2 ? pow.getLhs() : Value();
  return {};
}

/// The number of which `value` is the reciprocal, or null.
static Value reciprocalIn(Value value) {
  auto div = value.getDefiningOp<arith::DivFOp>();
  return div && constantNumber(div.getLhs()) == 1 ? div.getRhs() : Value();
}

namespace {
/// x / sqrt(mean(x^2) + epsilon), in one of its forms.
struct Normalized {
  Value x;
  double epsilon;
};
} // namespace

/// The value of `value` per row, without its repetition along the row; `value`
/// itself if it isn't repeated.
static Value perRow(Value value) {
  double factor = 1;
  Value rows = rowNumbers(value, factor);
  if (rows && factor == 1)
    return rows;
  ViewMap view = ViewMap::of(value);
  return isReshape(view) ? view.getSource() : value;
}

/// If `value` is sqrt(mean(x^2) + epsilon), or its reciprocal: x and epsilon.
static std::optional<Normalized> rootMeanSquare(Value value, bool reciprocal) {
  value = perRow(value);
  Value inner;
  if (auto rsqrt = value.getDefiningOp<math::RsqrtOp>(); rsqrt && reciprocal)
    inner = rsqrt.getOperand();
  else if (auto sqrt = value.getDefiningOp<math::SqrtOp>(); sqrt && !reciprocal)
    inner = sqrt.getOperand();
  else if (auto pow = value.getDefiningOp<math::PowFOp>();
           pow && constantNumber(pow.getRhs()) == (reciprocal ? -0.5 : 0.5))
    inner = pow.getLhs();
  else if (Value root = reciprocalIn(value); root && reciprocal)
    return rootMeanSquare(root, false);
  else
    return std::nullopt;

  inner = perRow(inner);
  double epsilon = 0;
  for (auto [mean, number] : bothWays<arith::AddFOp>(inner))
    if (auto found = constantNumber(number); found && epsilon == 0) {
      epsilon = *found;
      inner = mean;
    }
  Value squares = meanIn(inner);
  Value x = squares ? squaredIn(squares) : Value();
  if (!x || epsilon < 0)
    return std::nullopt;
  return Normalized{x, epsilon};
}

/// The value and epsilon that `op` normalizes, or none.
static std::optional<Normalized> normalized(Operation *op) {
  std::optional<Normalized> found;
  Value x;
  if (auto div = dyn_cast<arith::DivFOp>(op)) {
    x = div.getLhs();
    found = rootMeanSquare(div.getRhs(), false);
  } else if (isa<arith::MulFOp>(op)) {
    for (int i : {0, 1})
      if (!found) {
        x = op->getOperand(i);
        found = rootMeanSquare(op->getOperand(1 - i), true);
      }
  }
  if (!found || !isSame(found->x, x))
    return std::nullopt;
  return found;
}

namespace {

template <typename OpTy> struct RaiseNorm : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &b) const override {
    std::optional<Normalized> found = normalized(op);
    if (!found)
      return failure();
    auto epsilon = b.getF64FloatAttr(found->epsilon);
    // x minus its mean: a layer norm. The difference has mean zero, so its mean
    // square is the variance.
    if (auto difference = found->x.template getDefiningOp<arith::SubFOp>()) {
      if (Value of = meanIn(difference.getRhs());
          of && isSame(of, difference.getLhs())) {
        b.replaceOpWithNewOp<LayerNormOp>(op, difference.getLhs(), Value(),
                                          Value(), epsilon);
        return success();
      }
    }
    b.replaceOpWithNewOp<RMSNormOp>(op, found->x, Value(), epsilon);
    return success();
  }
};

/// For a product or sum `op`: the norm's result, and the other operand, if that
/// repeats one vector for every row.
template <typename NormOp>
std::pair<NormOp, Value> normAndVector(Operation *op) {
  for (int i : {0, 1}) {
    auto norm = op->getOperand(i).getDefiningOp<NormOp>();
    Value vector = op->getOperand(1 - i);
    if (norm && norm->hasOneUse() && isRowVector(vector))
      return {norm, vector};
  }
  return {};
}

template <typename NormOp> struct TakeScale : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulFOp op,
                                PatternRewriter &b) const override {
    auto [norm, vector] = normAndVector<NormOp>(op);
    if (!norm || norm.getScale())
      return failure();
    if constexpr (std::is_same_v<NormOp, LayerNormOp>) {
      if (norm.getShift())
        return failure();
      b.replaceOpWithNewOp<LayerNormOp>(op, norm.getInput(),
                                        rowVector(b, vector), Value(),
                                        norm.getEpsilonAttr());
    } else {
      b.replaceOpWithNewOp<RMSNormOp>(op, norm.getInput(), rowVector(b, vector),
                                      norm.getEpsilonAttr());
    }
    return success();
  }
};

struct TakeShift : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &b) const override {
    auto [norm, vector] = normAndVector<LayerNormOp>(op);
    if (!norm || norm.getShift())
      return failure();
    b.replaceOpWithNewOp<LayerNormOp>(op, norm.getInput(), norm.getScale(),
                                      rowVector(b, vector),
                                      norm.getEpsilonAttr());
    return success();
  }
};

/// A norm of widened elements that is narrowed again is a norm: its sums are in
/// f32 in any case.
template <typename NormOp>
struct DropCasts : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &b) const override {
    auto norm = op.getIn().getDefiningOp<NormOp>();
    auto wide = norm ? norm.getInput().template getDefiningOp<arith::ExtFOp>()
                     : nullptr;
    if (!wide || norm->getNumOperands() != 1 || !norm->hasOneUse() ||
        wide.getIn().getType() != op.getType())
      return failure();
    if constexpr (std::is_same_v<NormOp, LayerNormOp>)
      b.replaceOpWithNewOp<LayerNormOp>(op, wide.getIn(), Value(), Value(),
                                        norm.getEpsilonAttr());
    else
      b.replaceOpWithNewOp<RMSNormOp>(op, wide.getIn(), Value(),
                                      norm.getEpsilonAttr());
    return success();
  }
};

} // namespace

void tmc::populateRaiseNorms(RewritePatternSet &patterns) {
  patterns.add<RaiseNorm<arith::DivFOp>, RaiseNorm<arith::MulFOp>,
               TakeScale<LayerNormOp>, TakeScale<RMSNormOp>, TakeShift,
               DropCasts<LayerNormOp>, DropCasts<RMSNormOp>>(
      patterns.getContext());
}
