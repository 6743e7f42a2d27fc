// FusedPrinter.h - a fused region as the text of one kernel body.
//
// The text is a struct that `tmc::Fused` runs (runtime/cpu/Fused.h and
// runtime/cuda/Fused.h); g++ and nvcc compile the same text. Passes over a row
// follow FusedPlan: each is a lambda that computes only the values that it
// needs, loads first, stores last.

#ifndef TMC_COMPILER_EMIT_FUSEDPRINTER_H
#define TMC_COMPILER_EMIT_FUSEDPRINTER_H

#include "dialects/nn/FusedPlan.h"
#include "runtime/kernels/Kernel.h"

#include "llvm/Support/raw_ostream.h"

namespace tmc {

/// Prints `struct <name> {...};`, the body of the kernel that computes `block`
/// (of an nn.fused or a mem.kernel) by `plan`. Operands and results are in the
/// order of the block's arguments and of its terminator's operands; a result
/// whose pointer is null is not stored. `comment` names the kernel's source.
void printFused(llvm::raw_ostream &os, llvm::StringRef name, mlir::Block &block,
                const nn::FusedPlan &plan, llvm::StringRef comment);

/// The include line that a file of fused kernels needs.
constexpr const char *fusedInclude(Backend backend) {
  return backend == Backend::Cuda ? "#include \"runtime/cuda/Fused.h\"\n"
                                  : "#include \"runtime/cpu/Fused.h\"\n";
}

} // namespace tmc

#endif // TMC_COMPILER_EMIT_FUSEDPRINTER_H
