// FusionGroups.h - which ops become one kernel.
//
// Groups start as single ops and merge along the edges from producer to
// consumer, in program order, wherever one kernel can do both (FusedPlan.h) and
// no other op must run in between. Reductions also join a group that reads what
// they read. Then, for each group, values that other groups make are recomputed
// inside it where that lets fewer bytes live: the derivative of an activation
// starts from what is saved anyway.

#ifndef TMC_PASSES_FUSE_FUSIONGROUPS_H
#define TMC_PASSES_FUSE_FUSIONGROUPS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace tmc {

/// A group of ops, in the order of the block. Splat constants and reshapes
/// belong to no group: each kernel has its own, and reshapes of its inputs and
/// outputs are views outside of it.
using FusionGroup = llvm::SmallVector<mlir::Operation *>;

/// What a group takes and gives, in the order of first use and of making.
struct GroupInterface {
  llvm::SetVector<mlir::Value> inputs, outputs;
};
GroupInterface interfaceOf(llvm::ArrayRef<mlir::Operation *> group);

/// Clones cheap producers that need next to nothing for each op that reads
/// them: random numbers, their comparisons, broadcasts of vectors.
void cloneForEachUser(mlir::Block &block);

/// Groups the fusible ops of `block`. Clones what groups recompute.
llvm::SmallVector<FusionGroup> findFusionGroups(mlir::Block &block);

/// An nn.fused with the group's ops cloned into it. Its results are the outputs
/// of interfaceOf(group). Returns null if no kernel can do the group.
mlir::Operation *buildFused(mlir::OpBuilder &b,
                            llvm::ArrayRef<mlir::Operation *> group);

} // namespace tmc

#endif // TMC_PASSES_FUSE_FUSIONGROUPS_H
