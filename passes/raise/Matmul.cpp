// Matmul.cpp - a product that reads an operand transposed, by its flag.

#include "passes/raise/Matchers.h"
#include "passes/raise/ViewMap.h"

#include "dialects/nn/Builders.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// `value` with its two innermost dimensions exchanged, if that cancels a
/// transpose.
static std::optional<ViewMap> matrixTransposed(Value value) {
  ViewMap view = ViewMap::of(value);
  if (!view.needsTranspose())
    return std::nullopt;
  SmallVector<int64_t> perm = firstDims(view.getRank());
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  view.transpose(perm);
  if (!isReshape(view))
    return std::nullopt;
  return view;
}

namespace {

struct FoldTranspose : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &b) const override {
    std::optional<ViewMap> lhsView = matrixTransposed(op.getLhs());
    std::optional<ViewMap> rhsView = matrixTransposed(op.getRhs());
    if (!lhsView && !rhsView)
      return failure();
    Value lhs, rhs;
    if (lhsView)
      lhs = lhsView->build(b, op.getLoc());
    if (rhsView)
      rhs = rhsView->build(b, op.getLoc());
    b.modifyOpInPlace(op, [&] {
      if (lhs) {
        op.getLhsMutable().assign(lhs);
        op.setTransposeLhs(!op.getTransposeLhs());
      }
      if (rhs) {
        op.getRhsMutable().assign(rhs);
        op.setTransposeRhs(!op.getTransposeRhs());
      }
    });
    return success();
  }
};

} // namespace

void tmc::populateRaiseMatmul(RewritePatternSet &patterns) {
  patterns.add<FoldTranspose>(patterns.getContext());
}
