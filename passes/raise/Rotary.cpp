// Rotary.cpp - rotary_embedding from slices, a negation and a concatenation.
//
// Exporters write x * cos + turned(x) * sin, where turned(x) is one of
//
//   concat(-x[half:], x[:half])                halves
//   stack(-x[1::2], x[0::2]), flattened        interleaved
//
// If only the first columns are rotated, a concatenation adds the others again.
// Any two factors may be cos and sin: nothing here depends on their values, and
// they get their gradients.

#include "passes/raise/Matchers.h"
#include "passes/raise/ViewMap.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

namespace {
/// Columns `first`, `first + step`, ... of all rows of a value.
struct Columns {
  Value of;
  int64_t first = 0, step = 1, count = 0;

  /// `value` as columns of the operand of a slice; `of` is null if it is none.
  static Columns in(Value value) {
    auto slice = value.getDefiningOp<SliceOp>();
    if (!slice)
      return {};
    RankedTensorType from = tensorType(slice.getInput()),
                     to = tensorType(value);
    if (from.getRank() == 0 ||
        from.getShape().drop_back() != to.getShape().drop_back())
      return {};
    // A slice of all indices begins at 0, with steps of 1 unless it is short.
    return {slice.getInput(), slice.getOffsets().back(),
            slice.getSteps().back(), to.getShape().back()};
  }
};

/// A value with its pairs turned by a quarter.
struct Turned {
  Value x;
  bool interleaved = false;
};
} // namespace

/// The value whose negative is `value`, or null.
static Value negatedIn(Value value) {
  if (auto negation = value.getDefiningOp<arith::NegFOp>())
    return negation.getOperand();
  double factor = 1;
  Value x = skipFactor(value, factor);
  return factor == -1 ? x : Value();
}

/// `value` without an innermost dimension of one element; null if it has none.
static Value unstacked(Value value) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return {};
  auto shape = tensorType(value).getShape();
  Value inner = reshape.getInput();
  return shape.back() == 1 && tensorType(inner).getShape() == shape.drop_back()
             ? inner
             : Value();
}

/// The value of which `value` is turned; null if it isn't one.
static Turned turnedIn(Value value) {
  RankedTensorType type = tensorType(value);
  int64_t last = type.getRank() - 1;
  auto reshape = value.getDefiningOp<ReshapeOp>();
  auto concat =
      (reshape ? reshape.getInput() : value).getDefiningOp<ConcatOp>();
  if (!concat || concat.getInputs().size() != 2 ||
      int64_t(concat.getDim()) != last + bool(reshape))
    return {};
  Value first = concat.getInputs()[0], second = concat.getInputs()[1];
  if (reshape) {
    first = unstacked(first);
    second = unstacked(second);
  }
  first = first ? negatedIn(first) : Value();
  if (!first || !second)
    return {};
  Columns high = Columns::in(first), low = Columns::in(second);
  if (!high.of || !low.of || low.of.getType() != type ||
      !isSame(high.of, low.of))
    return {};
  int64_t half = type.getShape().back() / 2;
  auto isFrom = [&](const Columns &columns, int64_t begin, int64_t step) {
    return columns.first == begin && columns.count == half &&
           (columns.step == step || half == 1);
  };
  bool isRotation = reshape ? isFrom(low, 0, 2) && isFrom(high, 1, 2)
                            : isFrom(low, 0, 1) && isFrom(high, half, 1);
  return isRotation ? Turned{low.of, bool(reshape)} : Turned{};
}

/// Two factors as tables of one type: with one row where all indices along a
/// dimension share it in both.
static std::pair<Value, Value> tablesOf(OpBuilder &b, Value cos, Value sin) {
  ViewMap cosines = ViewMap::of(cos), sines = ViewMap::of(sin);
  for (unsigned dim = 0; dim + 1 < cosines.getRank(); ++dim)
    if (cosines.isConstantAlong(dim) && sines.isConstantAlong(dim)) {
      cosines.dropDim(dim);
      sines.dropDim(dim);
    }
  auto table = [&](Value factor, const ViewMap &view) {
    return convertTo(b, factor.getLoc(), view.build(b, factor.getLoc()),
                     accumulationType(tensorType(factor).getElementType()));
  };
  return {table(cos, cosines), table(sin, sines)};
}

namespace {

struct RaiseRotary : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &b) const override {
    constexpr int64_t kMostDims = 4; // Of a rotary_embedding.
    RankedTensorType type = tensorType(op.getResult());
    if (type.getRank() < 1 || type.getRank() > kMostDims ||
        type.getElementTypeBitWidth() < 16)
      return failure();
    for (auto [straight, turned] : bothWays<arith::AddFOp>(op.getResult()))
      for (auto [parts, sin] : bothWays<arith::MulFOp>(turned)) {
        Turned found = turnedIn(parts);
        if (!found.x)
          continue;
        for (auto [x, cos] : bothWays<arith::MulFOp>(straight)) {
          if (!isSame(x, found.x))
            continue;
          auto [cosines, sines] = tablesOf(b, cos, sin);
          b.replaceOpWithNewOp<RotaryEmbeddingOp>(op, x, cosines, sines,
                                                  found.interleaved,
                                                  /*transposed=*/false);
          return success();
        }
      }
    return failure();
  }
};

/// The first columns rotated, beside the others.
struct RotatePart : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op,
                                PatternRewriter &b) const override {
    RankedTensorType type = tensorType(op.getResult());
    if (op.getInputs().size() != 2 ||
        int64_t(op.getDim()) != type.getRank() - 1)
      return failure();
    auto rotary = op.getInputs()[0].getDefiningOp<RotaryEmbeddingOp>();
    if (!rotary || !rotary->hasOneUse())
      return failure();
    Columns rotated = Columns::in(rotary.getInput()),
            others = Columns::in(op.getInputs()[1]);
    if (!rotated.of || !others.of || rotated.of.getType() != type ||
        !isSame(rotated.of, others.of) || rotated.first != 0 ||
        rotated.step != 1 || others.first != rotated.count ||
        (others.step != 1 && others.count > 1) ||
        tensorType(rotary.getCos()).getShape().back() != rotated.count)
      return failure();
    b.replaceOpWithNewOp<RotaryEmbeddingOp>(
        op, rotated.of, rotary.getCos(), rotary.getSin(),
        rotary.getInterleaved(), rotary.getTransposed(), rotary.getHeads());
    return success();
  }
};

} // namespace

void tmc::populateRaiseRotary(RewritePatternSet &patterns) {
  patterns.add<RaiseRotary, RotatePart>(patterns.getContext());
}
