// KeepCopies.cpp - -tmc-keep-copies: updates write the copies that products
// read.

#include "passes/Passes.h"

#include "compiler/analysis/Storage.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"
#include "passes/Codes.h"
#include "passes/Copies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_KEEPCOPIES
#include "passes/Passes.h.inc"

namespace {
using train::TrainDialect;

/// True if a product reads `value`, as a factor or a bias, possibly after moves
/// of its elements or beside zeros.
bool isReadByProduct(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return movesOrPads(user) ? isReadByProduct(user->getResult(0))
                             : isa<PrecisionOpInterface>(user);
  });
}

struct KeepCopies : impl::KeepCopiesBase<KeepCopies> {
  void runOnOperation() override {
    train::StepOp step = getOperation();
    // The casts to 16 bits of each f32 parameter, in the step's order.
    llvm::MapVector<BlockArgument, SmallVector<arith::TruncFOp>> casts;
    step.walk([&](arith::TruncFOp cast) {
      auto argument = dyn_cast<BlockArgument>(cast.getIn());
      if (argument && argument.getOwner()->getParentOp() == step &&
          train::roleOf(step, argument.getArgNumber()) == train::Role::Param &&
          getElementTypeOrSelf(argument).isF32() &&
          getElementTypeOrSelf(cast.getType()).getIntOrFloatBitWidth() == 16)
        casts[argument].push_back(cast);
    });
    for (auto &[param, list] : casts)
      keep(step, param, list);
  }

private:
  /// The op that computes the new value of `argument`; null if no op updates
  /// it.
  static Operation *updateOf(train::StepOp step, BlockArgument argument) {
    Operation *end = step.getBody().front().getTerminator();
    for (unsigned i = 0; i < step.getNumResults(); ++i)
      if (train::updatedArg(step, i) == argument.getArgNumber())
        return end->getOperand(i).getDefiningOp();
    return nullptr;
  }

  void keep(train::StepOp step, BlockArgument param,
            ArrayRef<arith::TruncFOp> casts) {
    const auto *read = llvm::find_if(
        casts, [](arith::TruncFOp cast) { return isReadByProduct(cast); });
    Operation *update = updateOf(step, param);
    if (read == casts.end() || !update ||
        !update->hasTrait<train::UpdateRule>())
      return;
    // An update writes one copy: casts to another type stay.
    Type type = arith::TruncFOp(*read).getType();
    BlockArgument copy = addCopy(step, param.getArgNumber(), type);
    for (arith::TruncFOp cast : casts)
      if (cast.getType() == type) {
        cast.replaceAllUsesWith(Value(copy));
        cast.erase();
      }
    train::addNewValue(step, copy, train::keepCopy(update, copy));
  }
};

} // namespace
} // namespace tmc
