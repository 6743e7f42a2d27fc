// FoldLosses.h - the part of -tmc-fold-into-kernels that knows losses.
//
// A loss and its gradient look at the same logits. They become one kernel if
// nothing of the gradient depends on the loss. 16-bit logits are read, and
// their gradient is written, without a cast beside the kernel.

#ifndef TMC_PASSES_FUSE_FOLDLOSSES_H
#define TMC_PASSES_FUSE_FOLDLOSSES_H

#include "mlir/IR/PatternMatch.h"

namespace tmc {

/// Adds the patterns of losses in chunks, of casts beside losses, and of
/// gradients without readers.
void addLossFolds(mlir::RewritePatternSet &patterns);

/// Adds the pattern of losses of whole logits. It wants their final types: the
/// patterns above must have come to an end.
void addWholeLossFold(mlir::RewritePatternSet &patterns);

} // namespace tmc

#endif // TMC_PASSES_FUSE_FOLDLOSSES_H
