// Fuse.cpp - -tmc-fuse: each group of pointwise ops becomes one op.

#include "passes/Passes.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/FusedPlan.h"
#include "passes/fuse/FusionGroups.h"
#include "passes/fuse/Windows.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

#include <queue>

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_FUSE
#include "passes/Passes.h.inc"

namespace {
using namespace nn;

/// An optimizer's update overwrites its parameter, so it must come after every
/// op that reads the parameter. SSA values don't express that order, and a
/// fused kernel is placed at its last op. Other ops keep their order as far as
/// possible.
void sortUpdatesAfterReads(Block &block) {
  SmallVector<Operation *> ops;
  DenseMap<Operation *, unsigned> indexOf;
  for (Operation &op : block.without_terminator()) {
    indexOf[&op] = ops.size();
    ops.push_back(&op);
  }
  SmallVector<SmallVector<unsigned>> after(ops.size());
  SmallVector<unsigned> waitsFor(ops.size(), 0);
  auto require = [&](Operation *first, Operation *second) {
    auto from = indexOf.find(first), to = indexOf.find(second);
    if (first == second || from == indexOf.end() || to == indexOf.end())
      return;
    after[from->second].push_back(to->second);
    ++waitsFor[to->second];
  };
  for (Operation *op : ops) {
    for (Value result : op->getResults())
      for (Operation *user : result.getUsers())
        require(op, block.findAncestorOpInBlock(*user));
    auto kernel = dyn_cast<KernelOpInterface>(op);
    if (!kernel || !isa<train::TrainDialect>(op->getDialect()))
      continue;
    for (auto [operand, result] : kernel.getOverwrites())
      if (isa<BlockArgument>(op->getOperand(operand)))
        for (Operation *reader : op->getOperand(operand).getUsers())
          require(block.findAncestorOpInBlock(*reader), op);
  }
  // Among the ready ops, always takes the first in the current order.
  std::priority_queue<unsigned, std::vector<unsigned>, std::greater<>> ready;
  for (unsigned i = 0; i < ops.size(); ++i)
    if (waitsFor[i] == 0)
      ready.push(i);
  while (!ready.empty()) {
    unsigned next = ready.top();
    ready.pop();
    ops[next]->moveBefore(block.getTerminator());
    for (unsigned i : after[next])
      if (--waitsFor[i] == 0)
        ready.push(i);
  }
}

/// The sum of `count` elements equal to `number`, rounded to `element`.
Attribute sumOfEqual(Attribute number, int64_t count, Type element) {
  if (auto whole = dyn_cast<IntegerAttr>(number))
    return IntegerAttr::get(
        element,
        whole.getValue() * APInt(64, uint64_t(count))
                               .zextOrTrunc(whole.getValue().getBitWidth()));
  return FloatAttr::get(element, cast<FloatAttr>(number).getValueAsDouble() *
                                     double(count));
}

/// The result of `op` if each of its operands has equal elements: a splat, or
/// null if the result isn't known.
DenseElementsAttr foldSplats(Operation *op) {
  if (op->getNumOperands() == 0 || op->getNumResults() != 1)
    return {};
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    DenseElementsAttr attr;
    if (!matchPattern(operand, m_Constant(&attr)) || !attr.isSplat())
      return {};
    operands.push_back(attr);
  }
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  auto first = cast<DenseElementsAttr>(operands[0]);
  if (!type || type.getNumElements() == 0 || first.getNumElements() == 0)
    return {};
  Attribute number = first.getSplatValue<Attribute>();
  if (isa<BroadcastOp, ReshapeOp>(op))
    return DenseElementsAttr::get(type, number);
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    if (reduce.getKind() == ReduceKind::Sum &&
        !type.getElementType().isInteger(1))
      number =
          sumOfEqual(number, first.getNumElements() / type.getNumElements(),
                     type.getElementType());
    return DenseElementsAttr::get(type, number);
  }
  SmallVector<OpFoldResult> results;
  if (!isa<PointwiseOpInterface>(op) || failed(op->fold(operands, results)) ||
      results.size() != 1)
    return {};
  return dyn_cast_if_present<DenseElementsAttr>(
      dyn_cast_if_present<Attribute>(results[0]));
}

/// A kernel can't sum up a constant or return one: a constant has no place
/// among rows and columns. So results of splats alone are folded to constants.
void foldConstants(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (DenseElementsAttr folded = foldSplats(&op);
        folded && folded.getType() == op.getResult(0).getType()) {
      OpBuilder b(&op);
      op.getResult(0).replaceAllUsesWith(
          arith::ConstantOp::create(b, op.getLoc(), folded));
      op.erase();
    }
}

struct Fuse : impl::FuseBase<Fuse> {
  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation()->walk([&](Block *block) {
      Operation *parent = block->getParentOp();
      if (!isa<FusedOp, ModuleOp>(parent))
        blocks.push_back(block);
    });
    for (Block *block : blocks)
      fuse(*block);
  }

private:
  void fuse(Block &block) {
    foldConstants(block);
    eraseDead(block);
    mergeViews(block);
    cloneForEachUser(block);
    IRRewriter rewriter(&getContext());
    for (const FusionGroup &group : findFusionGroups(block))
      replace(group, rewriter);
    SmallVector<FusedOp> kernels(block.getOps<FusedOp>());
    for (FusedOp kernel : kernels)
      moveWindowsInto(kernel);
    eraseDead(block);
    sortTopologically(&block);
    sortUpdatesAfterReads(block);
  }

  /// Merges equal reshapes outside of kernels, so that a kernel doesn't read
  /// one value twice.
  static void mergeViews(Block &block) {
    DenseMap<std::pair<Value, Type>, Value> known;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      auto reshape = dyn_cast<ReshapeOp>(op);
      if (!reshape)
        continue;
      auto [found, isNew] = known.try_emplace(
          {reshape.getInput(), reshape.getType()}, reshape.getResult());
      if (isNew)
        continue;
      reshape.getResult().replaceAllUsesWith(found->second);
      reshape.erase();
    }
  }

  void replace(ArrayRef<Operation *> group, IRRewriter &rewriter) {
    rewriter.setInsertionPointAfter(group.back());
    GroupInterface interface = interfaceOf(group);
    if (interface.outputs.empty())
      return; // Its readers compute it again; it is erased.
    auto fused = cast_or_null<FusedOp>(buildFused(rewriter, group));
    if (!fused) {
      // Falls back to single ops. A lone op without a kernel stays, and
      // lowering reports it.
      if (group.size() > 1)
        for (Operation *op : group)
          replace(op, rewriter);
      return;
    }
    for (auto [output, result] :
         llvm::zip(interface.outputs, fused.getResults()))
      rewriter.replaceUsesWithIf(output, result, [&](OpOperand &use) {
        return !llvm::is_contained(group, use.getOwner());
      });
    for (Operation *op : llvm::reverse(group))
      eraseWithViews(op);
    DominanceInfo dominance(fused);
    eliminateCommonSubExpressions(rewriter, dominance, fused);
  }

  /// Erases an op whose only remaining users are reshapes of the group.
  static void eraseWithViews(Operation *op) {
    for (Operation *view : llvm::make_early_inc_range(op->getUsers()))
      eraseWithViews(view);
    op->erase();
  }

  static void eraseDead(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};

} // namespace
} // namespace tmc
