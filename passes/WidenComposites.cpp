// WidenComposites.cpp - -tmc-widen-composites: norms, softmax and GELU of 16-
// and 8-bit tensors are f32 inside.
//
// It runs before autodiff, so that gradients are f32 inside as well, and the
// casts are ops: they define the rounding once, for the interpreter, for
// kernels and for every plan.

#include "passes/Passes.h"

#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_WIDENCOMPOSITES
#include "passes/Passes.h.inc"

namespace {
using namespace nn;

bool isNarrow(Type type) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  return element && isa<RankedTensorType>(type) && element.getWidth() < 32;
}

template <typename OpTy> struct Widen : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &b) const override {
    if (llvm::none_of(op->getOperandTypes(), isNarrow))
      return failure();
    Location loc = op.getLoc();
    auto wide = [&](Type type) {
      return cast<RankedTensorType>(type).clone(b.getF32Type());
    };
    Operation *inner = b.clone(*op);
    b.setInsertionPoint(inner);
    for (OpOperand &operand : inner->getOpOperands())
      if (Value value = operand.get(); isNarrow(value.getType()))
        operand.set(
            arith::ExtFOp::create(b, loc, wide(value.getType()), value));
    b.setInsertionPointAfter(inner);
    SmallVector<Value> results;
    for (OpResult result : inner->getResults()) {
      Type type = result.getType();
      if (isNarrow(type)) {
        result.setType(wide(type));
        results.push_back(arith::TruncFOp::create(b, loc, type, result));
      } else {
        results.push_back(result);
      }
    }
    b.replaceOp(op, results);
    return success();
  }
};

struct WidenComposites : impl::WidenCompositesBase<WidenComposites> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<Widen<LayerNormOp>, Widen<RMSNormOp>, Widen<SoftmaxOp>,
                 Widen<GeluOp>, Widen<BatchNormOp>>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
} // namespace tmc
