// Matmul.cpp - a product that reads an operand transposed, by its flag, and one
// that adds a bias.

#include "passes/raise/Matchers.h"
#include "passes/raise/ViewMap.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

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

/// matmul + bias, through a reshape that doesn't change the rows. A 16-bit
/// product then rounds once, behind the bias, as PyTorch's autocast does.
struct FoldBias : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    for (auto [product, other] :
         {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}}) {
      Value bias = repeatedVector(other);
      auto reshape = product.getDefiningOp<ReshapeOp>();
      Value inner =
          reshape && reshape->hasOneUse() ? reshape.getInput() : product;
      auto matmul = inner.getDefiningOp<MatmulOp>();
      if (!bias || !matmul || !matmul->hasOneUse() || matmul.getBias() ||
          matmul.getAcc() ||
          tensorType(matmul.getResult()).getShape().back() !=
              tensorType(bias).getDimSize(0))
        continue;
      rewriter.setInsertionPoint(op);
      auto fused = MatmulOp::create(
          rewriter, matmul.getLoc(), matmul.getType(), matmul.getLhs(),
          matmul.getRhs(), bias, Value(), matmul.getLhsScale(),
          matmul.getRhsScale(), matmul.getTransposeLhsAttr(),
          matmul.getTransposeRhsAttr(), matmul.getTf32Attr());
      fused->setDiscardableAttrs(matmul->getDiscardableAttrDictionary());
      rewriter.replaceOp(op, reshapeTo(rewriter, op.getLoc(), fused,
                                       tensorType(op.getResult()).getShape()));
      return success();
    }
    return failure();
  }
};

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

void tmc::populateRaiseBias(RewritePatternSet &patterns) {
  patterns.add<FoldBias>(patterns.getContext());
}
