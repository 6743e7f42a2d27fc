// ExpandComposites.cpp - -tmc-expand-composites: norms, softmax and GELU as
// simpler ops.
//
// A batch norm becomes its statistics and pointwise work, its gradient sums
// over rows and pointwise work: each of them fuses with the activation and the
// sum of two branches beside it.

#include "passes/Passes.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"
#include "dialects/nn/Ranks.h"
#include "dialects/nn/Statistics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

#include <cmath>

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_EXPANDCOMPOSITES
#include "passes/Passes.h.inc"

namespace {
using namespace nn;

/// Statistics of rows: over the innermost dimension, and back to the rows.
struct Rows {
  OpBuilder &b;
  Location loc;
  RankedTensorType type;

  Value reduce(ReduceKind kind, Value x) const {
    return ReduceOp::create(b, loc, x, kind,
                            ArrayRef<int64_t>{type.getRank() - 1});
  }
  Value mean(Value x) const {
    return scale(b, loc, reduce(ReduceKind::Sum, x),
                 1.0 / type.getShape().back());
  }
  Value spread(Value rowScalar) const {
    return broadcastLeading(b, loc, rowScalar, type);
  }
  Value along(Value vector) const {
    return broadcastTrailing(b, loc, vector, type);
  }
  Value rsqrt(Value x, const APFloat &epsilon) const {
    return math::RsqrtOp::create(
        b, loc,
        add(b, loc, x, splat(b, loc, x.getType(), epsilon.convertToDouble())));
  }
};

template <typename OpTy> struct Expand : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &b) const override {
    Rows rows{b, op.getLoc(), tensorType(op.getInput())};
    b.replaceOp(op, build(op, rows, b, op.getLoc()));
    return success();
  }

private:
  Value build(OpTy op, const Rows &rows, OpBuilder &b, Location loc) const;
};

template <>
Value Expand<LayerNormOp>::build(LayerNormOp op, const Rows &rows, OpBuilder &b,
                                 Location loc) const {
  Value x = op.getInput();
  Value centred = sub(b, loc, x, rows.spread(rows.mean(x)));
  Value rstd =
      rows.rsqrt(rows.mean(mul(b, loc, centred, centred)), op.getEpsilon());
  Value y = mul(b, loc, centred, rows.spread(rstd));
  if (op.getScale())
    y = mul(b, loc, y, rows.along(op.getScale()));
  if (op.getShift())
    y = add(b, loc, y, rows.along(op.getShift()));
  return y;
}

template <>
Value Expand<RMSNormOp>::build(RMSNormOp op, const Rows &rows, OpBuilder &b,
                               Location loc) const {
  Value x = op.getInput();
  Value rstd = rows.rsqrt(rows.mean(mul(b, loc, x, x)), op.getEpsilon());
  Value y = mul(b, loc, x, rows.spread(rstd));
  if (op.getScale())
    y = mul(b, loc, y, rows.along(op.getScale()));
  return y;
}

template <>
Value Expand<SoftmaxOp>::build(SoftmaxOp op, const Rows &rows, OpBuilder &b,
                               Location loc) const {
  Value x = op.getInput();
  Value shifted = sub(b, loc, x, rows.spread(rows.reduce(ReduceKind::Max, x)));
  Value e = math::ExpOp::create(b, loc, shifted);
  Value sum = rows.reduce(ReduceKind::Sum, e);
  if (op.getLog())
    return sub(b, loc, shifted, rows.spread(math::LogOp::create(b, loc, sum)));
  // One division per row.
  Value inverse = div(b, loc, splat(b, loc, sum.getType(), 1), sum);
  return mul(b, loc, e, rows.spread(inverse));
}

template <>
Value Expand<GeluOp>::build(GeluOp op, const Rows &, OpBuilder &b,
                            Location loc) const {
  Value x = op.getInput(), one = splat(b, loc, x.getType(), 1), gate;
  if (op.getTanh()) {
    // c (x + a x^3) = c x (1 + a x^2), as the derivative spells it.
    const double c = std::sqrt(2 / M_PI), a = 0.044715;
    Value bend = add(b, loc, one, scale(b, loc, mul(b, loc, x, x), a));
    Value u = mul(b, loc, scale(b, loc, x, c), bend);
    gate = math::TanhOp::create(b, loc, u);
  } else {
    gate = math::ErfOp::create(b, loc, scale(b, loc, x, M_SQRT1_2));
  }
  gate = add(b, loc, one, gate);
  return mul(b, loc, scale(b, loc, x, 0.5), gate);
}

struct ExpandBatchNorm : OpRewritePattern<BatchNormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BatchNormOp op,
                                PatternRewriter &b) const override {
    auto made = BatchStatisticsOp::create(
        b, op.getLoc(), op.getInput(), op.getRunningMean(), op.getRunningVar(),
        op.getEpsilon(), op.getMomentum(), op.getChannelsLast());
    Value y = Channels(b, op).result(made.getMean(), made.getRstd(),
                                     op.getScale(), op.getShift());
    b.replaceOp(op, {y, made.getNewMean(), made.getNewVar(), made.getMean(),
                     made.getRstd()});
    return success();
  }
};

/// With x' = (x - mean) * rstd: dshift = sum g, dscale = sum g x', and
/// dx = scale * rstd * (g - (dshift + x' dscale) / count).
struct ExpandBatchNormGrad : OpRewritePattern<BatchNormGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BatchNormGradOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    Channels channels(b, op);
    // The sums and dx are two kernels: each of them widens what it reads.
    auto grad = [&] { return channels.widened(op.getGrad()); };
    auto input = [&] {
      return channels.normalized(op.getMean(), op.getRstd());
    };
    Value summed = grad(), normal = input();
    Value dshift = channels.sum(summed);
    Value dscale = channels.sum(mul(b, loc, summed, normal));
    Value g = grad(), x = input();
    Value level = channels.along(dshift), slope = channels.along(dscale);
    Value total = add(b, loc, level, mul(b, loc, x, slope));
    Value average =
        scale(b, loc, total, 1.0 / double(channels.valuesPerChannel()));
    Value scales = channels.along(op.getScale());
    Value rstds = channels.along(op.getRstd());
    Value steep = mul(b, loc, scales, rstds);
    Value dx = mul(b, loc, steep, sub(b, loc, g, average));
    b.replaceOp(op, {channels.rounded(dx), dscale, dshift});
    return success();
  }
};

/// True if every element of `value`, an integer tensor, is 0 or 1.
static bool isZeroOrOne(Value value) {
  if (std::optional<double> splat = splatValue(value))
    return *splat == 0 || *splat == 1;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<arith::ExtUIOp>(op))
    return tensorType(op->getOperand(0)).getElementType().isInteger(1) ||
           isZeroOrOne(op->getOperand(0));
  if (isa<BroadcastOp, ReshapeOp, TransposeOp, SliceOp>(op))
    return isZeroOrOne(op->getOperand(0));
  if (isa<arith::MulIOp, arith::SelectOp>(op))
    return llvm::all_of(op->getOperands().take_back(2), isZeroOrOne);
  return false;
}

/// Counts, as sums of truth values: kernels add them in f32, which is exact as
/// long as the count can't exceed f32's exact integers. (Positions of tokens
/// that aren't padding are such sums.)
struct CountInFloats : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &b) const override {
    constexpr int64_t kMostExact = int64_t(1) << 24;
    RankedTensorType type = tensorType(op.getInput());
    auto result = cast<RankedTensorType>(op.getType());
    if (!type.getElementType().isInteger() || op.getKind() != ReduceKind::Sum ||
        !isZeroOrOne(op.getInput()) ||
        type.getNumElements() / result.getNumElements() > kMostExact)
      return failure();
    Value x = arith::SIToFPOp::create(
        b, op.getLoc(), type.clone(b.getF32Type()), op.getInput());
    Value sum = ReduceOp::create(b, op.getLoc(), x, op.getKind(), op.getDims());
    b.replaceOpWithNewOp<arith::FPToSIOp>(op, result, sum);
    return success();
  }
};

/// A sum over ranks as moves of bytes and sums of rows. Of a large value each
/// rank adds one piece and gathers the others: half of the traffic, and less
/// work. A small one takes one message instead of two.
struct ExpandSumOver : OpRewritePattern<SumOverOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SumOverOp op,
                                PatternRewriter &b) const override {
    RankedTensorType type = tensorType(op.getInput());
    const int64_t ranks = op.getRanks();
    Location loc = op.getLoc();
    if (!hasShards(type, ranks)) {
      SmallVector<int64_t> shape(type.getShape());
      shape.insert(shape.begin(), ranks);
      Value all = GatherOp::create(b, loc, type.clone(shape), op.getInput(),
                                   op.getAxis(), ranks);
      b.replaceOpWithNewOp<SumPiecesOp>(op, all);
      return success();
    }
    Value pieces =
        ExchangeOp::create(b, loc, op.getInput(), op.getAxis(), ranks);
    Value sum = SumPiecesOp::create(b, loc, pieces);
    b.replaceOpWithNewOp<GatherOp>(op, type, sum, op.getAxis(), ranks);
    return success();
  }
};

struct ExpandComposites : impl::ExpandCompositesBase<ExpandComposites> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<Expand<LayerNormOp>, Expand<RMSNormOp>, Expand<SoftmaxOp>,
                 Expand<GeluOp>, ExpandBatchNorm, ExpandBatchNormGrad,
                 CountInFloats, ExpandSumOver>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
} // namespace tmc
