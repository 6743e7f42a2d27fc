// Batch.h - which arguments of a forward function are cut into samples.

#ifndef TMC_DIALECTS_TRAIN_BATCH_H
#define TMC_DIALECTS_TRAIN_BATCH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tmc::train {

/// On a batch argument that belongs to every piece of the batch: it isn't cut.
constexpr llvm::StringLiteral kUncut = "train.uncut";

/// True if argument `index` is a batch argument that is cut into samples.
bool isCut(mlir::func::FuncOp forward, unsigned index);

/// Marks what isn't cut of a whole forward function's batch arguments, beside
/// those that are marked: numbers, vectors of one, and others of which the
/// first dimension has nothing to do with the samples. Returns how many samples
/// the batch has, at most: what the first dimensions of the others have in
/// common; 0 where none is cut.
int64_t markUncut(mlir::func::FuncOp forward);

} // namespace tmc::train

#endif // TMC_DIALECTS_TRAIN_BATCH_H
