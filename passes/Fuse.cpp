// Fuse.cpp - -tmc-fuse: groups of pointwise work become one op each.

#include "passes/Passes.h"

#include "dialects/nn/Builders.h"
#include "dialects/nn/FusedPlan.h"
#include "passes/FusionGroups.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_FUSE
#include "passes/Passes.h.inc"

namespace {
using namespace nn;

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
    eraseDead(block);
    cloneForEachUser(block);
    IRRewriter rewriter(&getContext());
    SmallVector<FusionGroup> kernels;
    DenseSet<Operation *> inside;
    for (const FusionGroup &group : findFusionGroups(block)) {
      kernels.push_back(withoutBorderViews(group));
      inside.insert(kernels.back().begin(), kernels.back().end());
    }
    mergeViews(block, inside);
    for (const FusionGroup &kernel : kernels)
      replace(kernel, rewriter);
    eraseDead(block);
    sortTopologically(&block);
  }

  /// Equal reshapes outside of kernels become one, so that a kernel doesn't
  /// read one value as several.
  static void mergeViews(Block &block, const DenseSet<Operation *> &inside) {
    DenseMap<std::pair<Value, Type>, Value> known;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      auto reshape = dyn_cast<ReshapeOp>(op);
      if (!reshape || inside.contains(&op))
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
    if (group.empty())
      return; // Views alone.
    rewriter.setInsertionPointAfter(group.back());
    GroupInterface interface = interfaceOf(group);
    auto fused = cast_or_null<FusedOp>(buildFused(rewriter, group));
    if (!fused)
      return; // A type without kernels; lowering names the op.
    for (auto [output, result] :
         llvm::zip(interface.outputs, fused.getResults()))
      rewriter.replaceUsesWithIf(output, result, [&](OpOperand &use) {
        return !llvm::is_contained(group, use.getOwner());
      });
    for (Operation *op : llvm::reverse(group))
      rewriter.eraseOp(op);
    DominanceInfo dominance(fused);
    eliminateCommonSubExpressions(rewriter, dominance, fused);
  }

  static void eraseDead(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};

} // namespace
} // namespace tmc
