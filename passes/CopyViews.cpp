// CopyViews.cpp - -tmc-copy-views: copies for kernels that can't take a view,
// or can't overwrite an operand.

#include "passes/Passes.h"

#include "compiler/analysis/StepUpdates.h"
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
      if (auto yield = dyn_cast<train::YieldOp>(op))
        return copyNext(yield, b);
      // A view that can't be taken of a strided source reads a copy of it.
      if (isView(op) && !layoutOf(op->getResult(0))) {
        op->setOperand(0, copy(b, op->getLoc(), op->getOperand(0)));
        return;
      }
      auto kernel = dyn_cast<KernelOpInterface>(op);
      if (!kernel)
        return;
      if (isa<nn::CopyOp>(op)) // It takes any strides.
        return;
      for (OpOperand &operand : op->getOpOperands()) {
        MemRefType layout = layoutOf(operand.get());
        if (!layout)
          continue;
        bool isRead = kernel.acceptsStrides(operand.getOperandNumber())
                          ? hasContiguousRows(layout)
                          : isContiguous(layout);
        if (!isRead)
          operand.set(copy(b, op->getLoc(), operand.get()));
      }
    });
    getOperation()->walk([](train::StepOp step) { copyUpdates(step); });
  }

private:
  /// A carried value has one buffer for all trips. A kernel that reads it and
  /// writes the next one, but can't do that in place, writes to another buffer.
  static void copyNext(train::YieldOp yield, OpBuilder &b) {
    auto loop = cast<train::MicroBatchOp>(yield->getParentOp());
    for (auto [carried, next] :
         llvm::zip(loop.getCarried(), yield->getOpOperands())) {
      Value root = storageRoot(next.get());
      auto kernel = root.getDefiningOp<KernelOpInterface>();
      if (!kernel || mayTakePlace(kernel, carried, root))
        continue;
      next.set(nn::CopyOp::create(b, kernel->getLoc(), next.get()));
    }
  }

  /// Whether `kernel` doesn't read `carried`, or may write `next` over it.
  static bool mayTakePlace(KernelOpInterface kernel, Value carried,
                           Value next) {
    bool reads = false;
    for (OpOperand &operand : kernel->getOpOperands())
      if (storageRoot(operand.get()) == carried) {
        reads = true;
        if (kernel.getAccumulator() == int64_t(operand.getOperandNumber()))
          return true;
        for (auto [read, written] : kernel.getOverwrites())
          if (read == operand.getOperandNumber() &&
              kernel->getResult(written) == next)
            return true;
      }
    return !reads;
  }

  /// One copy of each view, placed at its first use.
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
