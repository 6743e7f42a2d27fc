// CopyViews.cpp - -tmc-copy-views: a copy where a kernel can't take a view.

#include "passes/Passes.h"

#include "compiler/analysis/Storage.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_COPYVIEWS
#include "passes/Passes.h.inc"

namespace {
struct CopyViews : impl::CopyViewsBase<CopyViews> {
  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      if (op->getParentOfType<nn::FusedOp>())
        return;
      OpBuilder b(op);
      // A view that can't be one of a strided source reads a copy of it.
      if (isView(op) && !layoutOf(op->getResult(0))) {
        op->setOperand(0, copy(b, op->getLoc(), op->getOperand(0)));
        return;
      }
      auto kernel = dyn_cast<KernelOpInterface>(op);
      if (!kernel)
        return;
      for (OpOperand &operand : op->getOpOperands()) {
        if (kernel.acceptsStrides(operand.getOperandNumber()))
          continue;
        MemRefType layout = layoutOf(operand.get());
        if (layout && !isContiguous(layout))
          operand.set(copy(b, op->getLoc(), operand.get()));
      }
    });
  }

private:
  /// One copy of each view, made where it is first wanted.
  Value copy(OpBuilder &b, Location loc, Value view) {
    Value &made = copies[view];
    if (!made) {
      b.setInsertionPointAfterValue(view);
      made = nn::CopyOp::create(b, loc, view);
    }
    return made;
  }
  DenseMap<Value, Value> copies;
};
} // namespace
} // namespace tmc
