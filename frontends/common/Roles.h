// Roles.h - the parameters that the loss depends on, and initial values.
//
// Names don't matter here: a vector that is added is a bias, a vector that
// multiplies a quotient by a standard deviation is a norm's scale.

#ifndef TMC_FRONTENDS_COMMON_ROLES_H
#define TMC_FRONTENDS_COMMON_ROLES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace tmc::frontend {

/// Sets train.init on the arguments that are parameters, from their uses.
void inferInitialization(mlir::func::FuncOp function, mlir::Value loss,
                         llvm::ArrayRef<bool> isParameter);

/// A mean and a variance, arguments of the function that a decomposed
/// normalization reads.
struct Statistics {
  mlir::BlockArgument mean, variance;
};
/// The statistics of all normalizations that the graph doesn't compute.
llvm::SmallVector<Statistics> givenStatistics(mlir::func::FuncOp function);

/// Values whose gradient by `loss` isn't necessarily zero.
llvm::SmallPtrSet<mlir::Value, 32> gradientReaches(mlir::Value loss);

/// The parameters from which floats flow to `loss` (to any result if null).
llvm::SmallVector<bool> reachesLoss(mlir::func::FuncOp function,
                                    mlir::Value loss);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_ROLES_H
