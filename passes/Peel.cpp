// Peel.cpp - -tmc-peel: the last trip of a micro-batch loop in a list of its
// own.
//
// A loop runs one list in every trip, and its carried values stay in place. In
// a list of its own the last trip may have its own order, recomputations and
// moves: updates begin while it still runs. With two trips no loop is left, and
// the first part of a gradient is an ordinary value, which may leave the device
// until the second part is added.
//
// If the last piece is smaller, it follows the loop already.
//
// No bit changes: the kernels are the loop's own. A first trip writes its sums
// without adding, in a loop and alone.

#include "passes/Passes.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/FusedPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_PEEL
#include "passes/Passes.h.inc"

namespace {

/// Rows [`from`, `from` + `type`'s) of a slice.
Value rowsOf(OpBuilder &b, Location loc, Value slice, int64_t from,
             RankedTensorType type) {
  SmallVector<int64_t> offsets(type.getRank(), 0), steps(type.getRank(), 1);
  offsets[0] = from;
  return nn::SliceOp::create(b, loc, type, slice, offsets, steps);
}

/// Adds ".last" to the model's names in the last trip.
void nameLast(Operation *op) {
  op->walk([](Operation *inner) {
    if (auto name = dyn_cast<NameLoc>(inner->getLoc()))
      inner->setLoc(
          NameLoc::get(StringAttr::get(inner->getContext(),
                                       name.getName().getValue() + ".last"),
                       name.getChildLoc()));
  });
}

/// Clones the loop's body at `b`, on these pieces and carried values. Returns
/// the yielded values.
SmallVector<Value> runOnce(OpBuilder &b, train::MicroBatchOp loop,
                           ValueRange arguments, bool isLast) {
  IRMapping map;
  map.map(loop.getBlock().getArguments(), arguments);
  for (Operation &op : loop.getBlock().without_terminator())
    if (Operation *made = b.clone(op, map); isLast)
      nameLast(made);
  SmallVector<Value> yielded;
  for (Value value : loop.getBlock().getTerminator()->getOperands())
    yielded.push_back(map.lookupOrDefault(value));
  return yielded;
}

/// Lets a kernel that adds to zeros write instead: it needs no buffer of zeros.
void dropAccumulator(OpOperand &use) {
  nn::accumulatorOf(use.getOwner())->clear();
}

/// Moves zeros that a generated kernel reads into its body, if its loops stay
/// the same.
bool moveInto(nn::FusedOp fused, unsigned index) {
  std::optional<nn::FusedPlan> before = nn::planFused(fused.getBlock());
  auto copy = cast<nn::FusedOp>(fused->clone());
  Block &block = copy.getBlock();
  OpBuilder b = OpBuilder::atBlockBegin(&block);
  BlockArgument argument = block.getArgument(index);
  argument.replaceAllUsesWith(
      nn::splat(b, fused.getLoc(), argument.getType(), 0));
  block.eraseArgument(index);
  copy->eraseOperand(index);
  std::optional<nn::FusedPlan> after = nn::planFused(block);
  if (!before || !after || before->shape.rows != after->shape.rows ||
      before->shape.cols != after->shape.cols ||
      before->shape.wholeRows != after->shape.wholeRows) {
    copy->erase();
    return false;
  }
  OpBuilder(fused).insert(copy);
  fused->replaceAllUsesWith(copy->getResults());
  fused->erase();
  return true;
}

/// Removes the zeros that stand for the first trip's carried values. A kernel
/// that needs them reads a constant.
void beginWithNothing(Value zeros) {
  for (OpOperand &use : llvm::make_early_inc_range(zeros.getUses())) {
    auto kernel = dyn_cast<KernelOpInterface>(use.getOwner());
    if (kernel && kernel.getAccumulator() == int64_t(use.getOperandNumber()))
      dropAccumulator(use);
  }
  bool moved = true;
  while (moved) {
    moved = false;
    for (OpOperand &use : zeros.getUses())
      if (auto fused = dyn_cast<nn::FusedOp>(use.getOwner());
          fused && moveInto(fused, use.getOperandNumber())) {
        moved = true;
        break;
      }
  }
  if (zeros.use_empty())
    zeros.getDefiningOp()->erase();
}

/// True if the loop runs on a part of the batch: another list has the rest.
bool isPeeled(train::MicroBatchOp loop) {
  return llvm::any_of(loop.getSlices(), [](Value slice) {
    return isa_and_nonnull<nn::SliceOp>(slice.getDefiningOp());
  });
}

void peel(train::MicroBatchOp loop) {
  OpBuilder b(loop);
  const int64_t before = int64_t(loop.getCount()) - 1;
  auto pieces =
      loop.getBlock().getArguments().take_front(loop.getSlices().size());
  SmallVector<Value> head, last; // Inputs of the earlier trips, of the last.
  SmallVector<Value> zeros;      // The carried values of a single first trip.
  for (auto [slice, piece] : llvm::zip(loop.getSlices(), pieces)) {
    auto type = cast<RankedTensorType>(piece.getType());
    const int64_t rows = type.getDimSize(0);
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = before * rows;
    head.push_back(rowsOf(b, loop.getLoc(), slice, 0, type.clone(shape)));
    last.push_back(rowsOf(b, loop.getLoc(), slice, before * rows, type));
  }
  if (before > 1) {
    auto shorter =
        train::MicroBatchOp::create(b, loop.getLoc(), loop.getResultTypes(),
                                    b.getI64IntegerAttr(before), head);
    IRMapping map;
    loop.getBody().cloneInto(&shorter.getBody(), map);
    llvm::append_range(last, shorter.getResults());
  } else {
    for (BlockArgument carried : loop.getCarried())
      zeros.push_back(nn::splat(b, carried.getLoc(), carried.getType(), 0));
    SmallVector<Value> arguments = head;
    llvm::append_range(arguments, zeros);
    llvm::append_range(last, runOnce(b, loop, arguments, /*isLast=*/false));
  }
  loop->replaceAllUsesWith(runOnce(b, loop, last, /*isLast=*/true));
  loop->erase();
  for (Value value : zeros)
    beginWithNothing(value);
}

struct Peel : impl::PeelBase<Peel> {
  void runOnOperation() override {
    for (auto loop : llvm::make_early_inc_range(
             getOperation().getBody().front().getOps<train::MicroBatchOp>()))
      if (int64_t(loop.getCount()) > 1 && !isPeeled(loop))
        peel(loop);
  }
};

} // namespace
} // namespace tmc
