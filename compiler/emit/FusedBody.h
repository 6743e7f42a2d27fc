// FusedBody.h - the C++ text of a generated kernel.

#ifndef TMC_COMPILER_EMIT_FUSEDBODY_H
#define TMC_COMPILER_EMIT_FUSEDBODY_H

#include "dialects/mem/Mem.h"

#include "llvm/Support/raw_ostream.h"

namespace tmc {

/// Prints the struct that `tmc::Fused<...>` runs, under the kernel's name.
/// Fails with a diagnostic if a kernel can't compute the body; the fuse pass
/// makes no such group.
mlir::LogicalResult printFusedBody(mem::KernelOp kernel, llvm::raw_ostream &os);

} // namespace tmc

#endif // TMC_COMPILER_EMIT_FUSEDBODY_H
