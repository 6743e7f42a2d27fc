// Gradient.h - reverse-mode differentiation of a straight line of ops.

#ifndef TMC_PASSES_GRADIENT_H
#define TMC_PASSES_GRADIENT_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace tmc {

/// Gradients of a loss by some of the values that it depends on, its roots.
/// They are built in the reverse order of the ops.
class Gradient {
public:
  /// `ops` are all ops that depend on `roots`, in order. Gradients are built at
  /// `b`.
  Gradient(mlir::OpBuilder &b, llvm::ArrayRef<mlir::Operation *> ops,
           llvm::ArrayRef<mlir::Value> roots);

  /// Walks from `loss`, whose gradient is `seed` (null: 1), to the roots.
  /// `onFinal(root, gradient)` is called as soon as nothing more can be added
  /// to a root's gradient and no later op of the backward pass reads the root;
  /// never for a root that no op reads. Fails, with an error for each op
  /// without a derivative, and, unless `allowsFP16`, for each with a gradient
  /// in fp16.
  llvm::LogicalResult
  run(mlir::Value loss, mlir::Value seed, bool allowsFP16,
      llvm::function_ref<void(mlir::Value, mlir::Value)> onFinal);

private:
  void differentiate(mlir::Operation *op);
  llvm::LogicalResult refuse();

  mlir::OpBuilder &b;
  llvm::ArrayRef<mlir::Operation *> ops;
  llvm::DenseSet<mlir::Value> active, isRoot;
  llvm::DenseMap<mlir::Value, size_t> firstUse;
  llvm::DenseMap<mlir::Value, mlir::Value> gradOf;
  llvm::SmallVector<mlir::Operation *> refused;
  llvm::SmallVector<mlir::Operation *> inFP16; // With a gradient in fp16.
};

} // namespace tmc

#endif // TMC_PASSES_GRADIENT_H
