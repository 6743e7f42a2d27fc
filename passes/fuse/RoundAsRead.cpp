// RoundAsRead.cpp - -tmc-round-as-read: parameters without narrow copies.

#include "passes/Passes.h"

#include "compiler/analysis/Storage.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_ROUNDASREAD
#include "passes/Passes.h.inc"

namespace {
using namespace nn;

/// What a function or a step is given, in f32: it lies there for all of it.
bool isGiven(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && tensorType(value).getElementType().isF32() &&
         isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
}

/// The f32 value whose cast `value` is, perhaps viewed otherwise; null if it is
/// no cast of what is given.
Value wideOf(Value value, SmallVectorImpl<Operation *> &views) {
  Operation *op = value.getDefiningOp();
  while (op && isView(op) && op->getNumOperands() == 1) {
    views.push_back(op);
    op = op->getOperand(0).getDefiningOp();
  }
  auto cast = dyn_cast_or_null<arith::TruncFOp>(op);
  return cast && isGiven(cast.getIn()) ? cast.getIn() : Value();
}

struct RoundAsRead : impl::RoundAsReadBase<RoundAsRead> {
  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      if (auto product = dyn_cast<MatmulOp>(op)) {
        // One factor has to say what the other is rounded to.
        if (!read(product, 1))
          read(product, 0);
      } else if (isa<LinearCrossEntropyOp, LinearCrossEntropyGradOp,
                     LinearCrossEntropyWithGradOp>(op)) {
        read(op, 1); // The table.
      }
    });
  }

private:
  bool read(Operation *op, unsigned factor) {
    SmallVector<Operation *> views;
    Value wide = wideOf(op->getOperand(factor), views);
    Value other = op->getOperand(1 - factor);
    if (!wide || tensorType(other).getElementTypeBitWidth() != 16)
      return false;
    OpBuilder b(op);
    for (Operation *view : llvm::reverse(views)) {
      Operation *clone = b.clone(*view);
      clone->setOperand(0, wide);
      Value moved = clone->getResult(0);
      moved.setType(tensorType(moved).clone(b.getF32Type()));
      wide = moved;
    }
    op->setOperand(factor, wide);
    return true;
  }
};

} // namespace
} // namespace tmc
