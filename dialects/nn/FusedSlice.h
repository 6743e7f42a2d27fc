// FusedSlice.h - a part of a fused kernel, as its own kernel.
//
// From a group with several results, a kernel for only some of them can be
// built. It may start from other results that are in memory:
//
//     residual, normed = fused(projected, previous)     the whole group
//     normed           = fused(residual)                wanted 1, given 0
//     residual         = fused(projected, previous)     wanted 0
//
// So the norm is cheap to recompute if the residual stream is kept. A part
// computes each element by the same operations as the whole, and sums in the
// same tree; if that isn't possible, there is no such part.

#ifndef TMC_DIALECTS_NN_FUSEDSLICE_H
#define TMC_DIALECTS_NN_FUSEDSLICE_H

#include "dialects/nn/NN.h"

namespace tmc::nn {

/// Results of `op`, other than `wanted`, from which `wanted` is computed
/// directly: a walk back from `wanted` ends there.
llvm::SmallVector<unsigned> resultsBehind(FusedOp op, unsigned wanted);

/// Builds, at `b`, the part of `op` that computes `wanted` from `op`'s operands
/// and its results `given`. Null if no kernel gives the same bits.
FusedOp sliceFused(mlir::OpBuilder &b, FusedOp op,
                   llvm::ArrayRef<unsigned> wanted,
                   llvm::ArrayRef<unsigned> given);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_FUSEDSLICE_H
