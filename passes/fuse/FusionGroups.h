// FusionGroups.h - groups of ops that become one kernel.
//
// Groups start as single ops and merge along the edges from producer to
// consumer, in program order, if one kernel can do both (FusedPlan.h) and no
// other op must run between them. Reductions also join a group that reads the
// same values, and groups that make the parts of a concatenation from one
// operand merge. Then each group recomputes values of other groups if fewer
// bytes stay alive: for example, the derivative of an activation starts from a
// value that is saved anyway.

#ifndef TMC_PASSES_FUSE_FUSIONGROUPS_H
#define TMC_PASSES_FUSE_FUSIONGROUPS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace tmc {

/// A group of ops, in the order of the block. Splat constants and reshapes
/// belong to no group: each kernel has its own, and reshapes of its inputs and
/// outputs are views outside of it.
using FusionGroup = llvm::SmallVector<mlir::Operation *>;

/// The value behind the reshapes that give `value`, or `value` itself.
mlir::Value throughViews(mlir::Value value);
/// Calls f for each op that reads `value`, also through reshapes.
void forEachUser(mlir::Value value,
                 llvm::function_ref<void(mlir::Operation *)> f);
bool anyUser(mlir::Value value,
             llvm::function_ref<bool(mlir::Operation *)> holds);

/// Clones the constant or the reshapes that compute `value` from values in
/// `map`.
void cloneOperand(mlir::OpBuilder &b, mlir::Value value, mlir::IRMapping &map);

/// The inputs of a group in the order of first use, and its outputs in the
/// order of ops.
struct GroupInterface {
  llvm::SetVector<mlir::Value> inputs, outputs;
};
GroupInterface interfaceOf(llvm::ArrayRef<mlir::Operation *> group);

/// Clones cheap producers with small operands for each op that reads them:
/// random numbers, their comparisons, broadcasts of vectors.
void cloneForEachUser(mlir::Block &block);

/// Groups the fusible ops of `block`. Clones the ops that groups recompute.
llvm::SmallVector<FusionGroup> findFusionGroups(mlir::Block &block);

/// Builds an nn.fused with the group's ops cloned into it. Its results are the
/// outputs of interfaceOf(group). Returns null if no kernel can do the group.
mlir::Operation *buildFused(mlir::OpBuilder &b,
                            llvm::ArrayRef<mlir::Operation *> group);

} // namespace tmc

#endif // TMC_PASSES_FUSE_FUSIONGROUPS_H
