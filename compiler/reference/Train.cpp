// Train.cpp - micro-batches and moves.

#include "dialects/train/Train.h"
#include "compiler/reference/Interpreter.h"

using namespace mlir;
using namespace tmc::reference;
using namespace tmc::train;

/// Piece `k` of `count` along dimension 0, which is contiguous.
static Tensor pieceOf(const Tensor &whole, int64_t count, int64_t k) {
  SmallVector<int64_t> shape = whole.shape;
  shape[0] /= count;
  Tensor piece(whole.element, shape);
  for (int64_t i = 0; i < piece.size(); ++i)
    piece.set(i, whole, k * piece.size() + i);
  return piece;
}

static LogicalResult microBatch(MicroBatchOp op, OpCall &call) {
  SmallVector<Tensor> carried;
  for (Value result : op.getResults())
    carried.emplace_back(cast<ShapedType>(result.getType()));
  for (int64_t k = 0; k < int64_t(op.getCount()); ++k) {
    SmallVector<Tensor> arguments;
    for (Value slice : op.getSlices())
      arguments.push_back(pieceOf(call.in(slice), op.getCount(), k));
    llvm::append_range(arguments, carried);
    FailureOr<SmallVector<Tensor>> next =
        call.run(op.getBody().front(), std::move(arguments));
    if (failed(next))
      return failure();
    carried = std::move(*next);
  }
  for (auto [i, value] : llvm::enumerate(carried))
    call.out(i) = std::move(value);
  return success();
}

void tmc::reference::addTrain(OpTable &table) {
  table.add<MicroBatchOp>(microBatch);
  addUpdates(table);
  // A copy has its source's value; the interpreter ignores memory spaces.
  table.add<StashStartOp>([](StashStartOp, OpCall &call) {
    call.out(0) = call.in(0);
    return success();
  });
  table.add<FetchStartOp>([](FetchStartOp, OpCall &call) {
    call.out(0) = call.in(0);
    return success();
  });
  table.add<StashDoneOp>([](StashDoneOp, OpCall &) { return success(); });
  table.add<FetchDoneOp>([](FetchDoneOp, OpCall &) { return success(); });
  table.add<WorkDoneOp>([](WorkDoneOp, OpCall &) { return success(); });
}
