// FusedSlice.h - a part of a fused kernel, as a kernel of its own.
//
// A group that makes several results can be asked for some of them alone, and
// may start from others that are in memory:
//
//     residual, normed = fused(projected, previous)     the whole group
//     normed           = fused(residual)                wanted 1, given 0
//     residual         = fused(projected, previous)     wanted 0
//
// That is what makes the norm cheap to recompute where the residual stream is
// kept. A part computes each element by the same operations as the whole, and
// sums in the same tree; where it couldn't, there is no such part.

#ifndef TMC_DIALECTS_NN_FUSEDSLICE_H
#define TMC_DIALECTS_NN_FUSEDSLICE_H

#include "dialects/nn/NN.h"

namespace tmc::nn {

/// Results of `op`, other than `wanted`, that `wanted` is computed from
/// directly: where the walk back from it first meets them.
llvm::SmallVector<unsigned> resultsBehind(FusedOp op, unsigned wanted);

/// Builds, at `b`, the part of `op` that makes `wanted` from `op`'s operands
/// and its results `given`. Null where no kernel of the same bits does that.
FusedOp sliceFused(mlir::OpBuilder &b, FusedOp op,
                   llvm::ArrayRef<unsigned> wanted,
                   llvm::ArrayRef<unsigned> given);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_FUSEDSLICE_H
