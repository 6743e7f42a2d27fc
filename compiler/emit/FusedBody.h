// FusedBody.h - the C++ text of a generated kernel.

#ifndef TMC_COMPILER_EMIT_FUSEDBODY_H
#define TMC_COMPILER_EMIT_FUSEDBODY_H

#include "dialects/mem/Mem.h"

#include "llvm/Support/raw_ostream.h"

namespace tmc {

/// Prints the struct that `tmc::Fused<...>` runs, named as the kernel is. Fails
/// with a diagnostic if the body isn't one that a kernel can compute; the fuse
/// pass makes no such group.
mlir::LogicalResult printFusedBody(mem::KernelOp kernel, llvm::raw_ostream &os);

} // namespace tmc

#endif // TMC_COMPILER_EMIT_FUSEDBODY_H
