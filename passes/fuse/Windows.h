// Windows.h - kernels that read and write parts of wider tensors where they
// lie.
//
//     gate = slice(y)[:, 0:I]      a = fused(gate, up)      y is [R, 2 I]
//     up   = slice(y)[:, I:2I]
//
// A kernel takes operands without strides, so each slice would be copied first.
// Instead the slices become ops of the kernel's region, and the kernel reads y.
// Parts of a concatenation that one kernel makes are written into the whole in
// the same way.

#ifndef TMC_PASSES_FUSE_WINDOWS_H
#define TMC_PASSES_FUSE_WINDOWS_H

#include "dialects/nn/NN.h"

namespace tmc {

/// Moves the slices that `fused` reads, and the concatenation that reads its
/// results, into its region, where its kernel can do with them. Replaces the op
/// then.
void moveWindowsInto(nn::FusedOp fused);

} // namespace tmc

#endif // TMC_PASSES_FUSE_WINDOWS_H
