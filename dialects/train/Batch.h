// Batch.h - the arguments of a forward function that are cut into samples.

#ifndef TMC_DIALECTS_TRAIN_BATCH_H
#define TMC_DIALECTS_TRAIN_BATCH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tmc::train {

/// Marks a batch argument that all parts of the batch share: it isn't cut.
constexpr llvm::StringLiteral kUncut = "train.uncut";

/// True if argument `index` is a batch argument that is cut into samples.
bool isCut(mlir::func::FuncOp forward, unsigned index);

/// Marks the uncut batch arguments of a whole forward function, in addition to
/// those already marked: numbers, vectors of one, and others whose first
/// dimension isn't related to the samples. Returns the largest possible number
/// of samples: the smallest first dimension of the cut arguments, which divides
/// the others; 0 if no argument is cut.
int64_t markUncut(mlir::func::FuncOp forward);

} // namespace tmc::train

#endif // TMC_DIALECTS_TRAIN_BATCH_H
