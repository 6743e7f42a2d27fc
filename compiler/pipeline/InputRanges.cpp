// InputRanges.cpp - what the runtime must know of the step's inputs, read off
// how the graph uses them.

#include "compiler/pipeline/Pipeline.h"

#include "compiler/analysis/Storage.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tmc;
using train::TrainDialect;

namespace {

struct Range {
  int64_t limit = 0;
  std::optional<int64_t> ignore;
};

/// Narrows `range` to what one use allows.
void meet(Range &range, int64_t limit, std::optional<int64_t> ignore) {
  if (range.limit == 0 || limit < range.limit)
    range.limit = limit;
  range.ignore = ignore;
}

/// Follows an integer input through ops that only move elements.
void follow(Value value, Range &range, int depth = 0) {
  constexpr int kDepth = 64;
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    unsigned index = use.getOperandNumber();
    if (auto lookup = dyn_cast<nn::EmbeddingOp>(op); lookup && index == 1)
      meet(range,
           cast<RankedTensorType>(lookup.getTable().getType()).getDimSize(0),
           range.ignore);
    else if (auto loss = dyn_cast<nn::CrossEntropyOp>(op); loss && index == 1)
      meet(range,
           cast<RankedTensorType>(loss.getLogits().getType()).getDimSize(1),
           loss.getIgnoreIndex());
    else if (auto loss = dyn_cast<nn::LinearCrossEntropyOp>(op);
             loss && index == 2)
      meet(range,
           cast<RankedTensorType>(loss.getTable().getType()).getDimSize(0),
           loss.getIgnoreIndex());
    else if (depth < kDepth &&
             isa<nn::ReshapeOp, nn::SliceOp, nn::PadOp, nn::ConcatOp,
                 nn::TransposeOp, nn::CopyOp, arith::ExtSIOp>(op))
      follow(op->getResult(0), range, depth + 1);
  }
}

} // namespace

void tmc::markInputRanges(ModuleOp module) {
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  if (!forward)
    return;
  Builder b(module.getContext());
  auto feed = [&](Value value, StringRef what) {
    if (auto argument = dyn_cast_or_null<BlockArgument>(value))
      forward.setArgAttr(argument.getArgNumber(), TrainDialect::kFeed,
                         b.getStringAttr(what));
  };
  forward.walk([&](Operation *op) {
    if (auto random = dyn_cast<nn::RandomOp>(op)) {
      feed(random.getSeed(), "seed");
      feed(random.getSamples(), "samples");
    } else if (auto attention = dyn_cast<nn::AttentionOp>(op)) {
      feed(attention.getSeed(), "seed");
      feed(attention.getSamples(), "samples");
    }
  });
  for (BlockArgument argument : forward.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (train::roleOf(forward, index) != train::Role::Batch ||
        !cast<RankedTensorType>(argument.getType())
             .getElementType()
             .isInteger())
      continue;
    Range range;
    follow(argument, range);
    if (range.limit == 0)
      continue;
    forward.setArgAttr(index, TrainDialect::kLimit,
                       b.getI64IntegerAttr(range.limit));
    if (range.ignore)
      forward.setArgAttr(index, TrainDialect::kIgnore,
                         b.getI64IntegerAttr(*range.ignore));
  }
}
