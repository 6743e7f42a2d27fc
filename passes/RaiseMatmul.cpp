// RaiseMatmul.cpp - a product that reads an operand transposed, by its flag.

#include "passes/RaiseUtils.h"
#include "passes/ViewMap.h"

#include "dialects/nn/Builders.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// What `value` is, with its two innermost dimensions exchanged; null if that
/// isn't one transpose away.
static Value matrixTransposed(Value value) {
  auto transpose = value.getDefiningOp<TransposeOp>();
  if (!transpose)
    return {};
  ArrayRef<int64_t> perm = transpose.getPerm();
  int64_t rank = perm.size();
  SmallVector<int64_t> wanted = firstDims(rank);
  if (rank < 2)
    return {};
  std::swap(wanted[rank - 1], wanted[rank - 2]);
  return perm == ArrayRef<int64_t>(wanted) ? transpose.getInput() : Value();
}

namespace {

struct FoldTranspose : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &b) const override {
    Value lhs = matrixTransposed(op.getLhs());
    Value rhs = matrixTransposed(op.getRhs());
    if (!lhs && !rhs)
      return failure();
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
