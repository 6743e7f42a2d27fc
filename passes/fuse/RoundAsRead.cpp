// RoundAsRead.cpp - -tmc-round-as-read: products round f32 parameters
// themselves.

#include "passes/OnTarget.h"

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

/// True for an f32 argument of a function or a step: it is in memory the whole
/// time.
bool isGiven(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && tensorType(value).getElementType().isF32() &&
         isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
}

/// The f32 argument whose cast is `value`, possibly through views; null if
/// `value` isn't the cast of an argument.
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
  using RoundAsReadBase::RoundAsReadBase;
  RoundAsRead(RoundAsReadOptions options, PassTarget target)
      : RoundAsReadBase(std::move(options)), given(std::move(target)) {}

  void runOnOperation() override {
    FailureOr<Target> device = given.of(getOperation(), target);
    if (failed(device))
      return signalPassFailure();
    const bool onCard = device->backend == Backend::Cuda;
    getOperation()->walk([&](PrecisionOpInterface product) {
      // One factor must keep the narrow type to which the other one is rounded.
      for (unsigned factor : {1, 0})
        if (product.roundsAsRead(factor, onCard) && read(product, factor))
          break;
    });
  }

private:
  PassTarget given;

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

std::unique_ptr<Pass> createRoundAsRead(RoundAsReadOptions options,
                                        PassTarget target) {
  return std::make_unique<RoundAsRead>(std::move(options), std::move(target));
}
} // namespace tmc
