// FusedKept.cpp - values of a row that a fused kernel keeps between its passes.

#include "dialects/nn/FusedPlan.h"

#include "dialects/interfaces/Expressions.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// The cost of a random number per element, in simple vector operations.
static constexpr unsigned kDrawCost = 20;
/// The cost of keeping a value: a store and a load.
static constexpr unsigned kKeepCost = 4;

/// Rough cost of an op per element, in simple vector operations.
static unsigned costOf(Operation *op) {
  if (auto pointwise = dyn_cast<PointwiseOpInterface>(op))
    return pointwise.getElementCost();
  if (isa<RandomOp>(op))
    return kDrawCost;
  return op->hasTrait<OpTrait::ConstantLike>() ||
                 isa<BroadcastOp, ReshapeOp>(op)
             ? 0
             : 1;
}

/// The cost of the result of `op` from values in memory, where those of its
/// operands are in `known`.
static unsigned costFrom(Operation *op, const FusedPlan &plan,
                         const DenseMap<Value, unsigned> &known) {
  unsigned sum = costOf(op);
  for (Value operand : op->getOperands())
    if (plan.variesByCol(operand))
      sum += isa<BlockArgument>(operand) ? 1 : known.lookup(operand);
  return sum;
}

/// Drops kept values that other kept values make cheap.
static void dropCheap(FusedPlan &plan, Block &block) {
  DenseMap<Value, unsigned> cost;
  for (Operation &op : block.without_terminator()) {
    Value result = op.getResult(0);
    unsigned sum = costFrom(&op, plan, cost);
    auto chosen = llvm::find(plan.kept, result);
    if (chosen != plan.kept.end() && sum <= kKeepCost)
      plan.kept.erase(chosen);
    else if (chosen != plan.kept.end())
      sum = 1;
    cost[result] = sum;
  }
}

void tmc::nn::chooseKept(FusedPlan &plan, Block &block) {
  if (plan.passes < 2)
    return;
  DenseMap<Value, uint64_t> wanted; // The passes that need a value.
  const unsigned last = plan.passes - 1;
  auto want = [&](Value value, uint64_t passes) {
    if (plan.variesByCol(value) && !plan.late.contains(value))
      wanted[value] |= passes;
  };
  for (const FusedAccess &store : plan.stores)
    want(store.value, uint64_t(1) << last);
  DenseMap<Value, unsigned> cost;
  for (Operation &op : block.without_terminator())
    cost[op.getResult(0)] = costFrom(&op, plan, cost);
  const int64_t slots = mostKept(plan.shape.cols);
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    Value result = op.getResult(0);
    auto kind = plan.reductions.find(&op);
    if (kind != plan.reductions.end()) {
      // A reduction runs in the pass of its input's level; sums over rows in
      // the last pass.
      unsigned level = plan.level.lookup(op.getOperand(0));
      want(op.getOperand(0),
           uint64_t(1) << (kind->second == Reduction::Column ? last : level));
      continue;
    }
    uint64_t passes = wanted.lookup(result);
    if (!passes)
      continue;
    if (llvm::popcount(passes) > 1 && cost[result] > kKeepCost &&
        int64_t(plan.kept.size()) < slots &&
        isa<FloatType>(tensorType(result).getElementType()) &&
        !isa<BroadcastOp, ReshapeOp>(op)) {
      plan.kept.push_back(result);
      passes = uint64_t(1) << llvm::countr_zero(passes);
    }
    for (Value operand : op.getOperands())
      want(operand, passes);
  }
  dropCheap(plan, block);
  plan.shape.kept = plan.kept.size();
}
