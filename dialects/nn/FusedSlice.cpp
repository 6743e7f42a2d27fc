// FusedSlice.cpp - the part of a fused kernel that computes some of its
// results.

#include "dialects/nn/FusedSlice.h"

#include "dialects/nn/FusedPlan.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// Walks back from the values `wanted` to the values `stops` and to arguments:
/// collects the ops on the way, and the values where the walk ends.
static void walkBack(ArrayRef<Value> wanted, const DenseSet<Value> &stops,
                     DenseSet<Operation *> &ops, SetVector<Value> &ends) {
  SmallVector<Value> open(wanted);
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (!op || !ops.insert(op).second)
      continue;
    for (Value operand : op->getOperands())
      if (stops.contains(operand) || !operand.getDefiningOp())
        ends.insert(operand);
      else
        open.push_back(operand);
  }
}

SmallVector<unsigned> tmc::nn::resultsBehind(FusedOp op, unsigned wanted) {
  ValueRange yielded = op.getYield().getValues();
  DenseSet<Value> stops(yielded.begin(), yielded.end());
  stops.erase(yielded[wanted]);
  DenseSet<Operation *> ops;
  SetVector<Value> ends;
  walkBack(yielded[wanted], stops, ops, ends);
  SmallVector<unsigned> behind;
  for (auto [i, value] : llvm::enumerate(yielded))
    if (i != wanted && value != yielded[wanted] && ends.contains(value))
      behind.push_back(i);
  return behind;
}

/// True if the part's sums run over the same rows and columns, in the same
/// tiles, as those of the whole; `map` maps ops of the whole to ops of the
/// part.
static bool sumsAlike(FusedOp whole, FusedOp part,
                      const DenseMap<Operation *, Operation *> &map) {
  std::optional<FusedPlan> before = planFused(whole.getBlock());
  std::optional<FusedPlan> after = planFused(part.getBlock());
  if (!before || !after)
    return false;
  bool any = false;
  for (auto [op, kind] : before->reductions) {
    Operation *copy = map.lookup(op);
    if (!copy)
      continue;
    any = true;
    auto found = after->reductions.find(copy);
    if (found == after->reductions.end() || found->second != kind)
      return false;
  }
  const FusedShape &a = before->shape, &b = after->shape;
  return !any ||
         (a.rows == b.rows && a.cols == b.cols && a.wholeRows == b.wholeRows);
}

FusedOp tmc::nn::sliceFused(OpBuilder &b, FusedOp op, ArrayRef<unsigned> wanted,
                            ArrayRef<unsigned> given) {
  ValueRange yielded = op.getYield().getValues();
  DenseSet<Value> stops;
  for (unsigned result : given)
    stops.insert(yielded[result]);
  SmallVector<Value> targets;
  SmallVector<Type> types;
  for (unsigned result : wanted) {
    if (stops.contains(yielded[result]))
      return nullptr;
    targets.push_back(yielded[result]);
    types.push_back(yielded[result].getType());
  }
  DenseSet<Operation *> ops;
  SetVector<Value> ends;
  walkBack(targets, stops, ops, ends);

  // Operands in the order of the whole, then the given results.
  SmallVector<Value> inputs, inside;
  for (auto [argument, input] :
       llvm::zip(op.getBlock().getArguments(), op.getInputs()))
    if (ends.contains(argument) || llvm::is_contained(targets, argument)) {
      inputs.push_back(input);
      inside.push_back(argument);
    }
  for (unsigned result : given)
    if (ends.contains(yielded[result])) {
      inputs.push_back(op->getResult(result));
      inside.push_back(yielded[result]);
    }

  FusedOp part = FusedOp::create(b, op.getLoc(), types, inputs);
  Block &block = part.getBody().emplaceBlock();
  IRMapping map;
  for (Value value : inside)
    map.map(value, block.addArgument(value.getType(), value.getLoc()));
  OpBuilder inner = OpBuilder::atBlockEnd(&block);
  DenseMap<Operation *, Operation *> copies;
  for (Operation &each : op.getBlock().without_terminator())
    if (ops.contains(&each))
      copies[&each] = inner.clone(each, map);
  SmallVector<Value> results;
  for (Value target : targets)
    results.push_back(map.lookup(target));
  YieldOp::create(inner, op.getLoc(), results);
  if (sumsAlike(op, part, copies))
    return part;
  part.erase();
  return nullptr;
}
