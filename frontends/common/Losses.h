// Losses.h - mean losses in the nn dialect, for operators and for --loss.
//
// A mean is a weighted sum whose weight is one over the number of rows that
// count. The graph computes this number, so passes that split the batch can
// compute it for the whole batch.

#ifndef TMC_FRONTENDS_COMMON_LOSSES_H
#define TMC_FRONTENDS_COMMON_LOSSES_H

#include "mlir/IR/Builders.h"

namespace tmc::frontend {

/// The label that doesn't count if the model names none, as in PyTorch.
constexpr int64_t kIgnoredLabel = -100;

/// The number of entries of `labels` [R] that aren't `ignored`, as a scalar of
/// float type `element`.
mlir::Value countLabels(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value labels, int64_t ignored,
                        mlir::Type element);

/// Mean cross-entropy of `logits` [R, V] and `labels` [R]; a scalar.
mlir::Value meanCrossEntropy(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value logits, mlir::Value labels,
                             int64_t ignored);

/// Mean of (x - y)^2 over all elements; a scalar.
mlir::Value meanSquaredError(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value x, mlir::Value y);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_LOSSES_H
