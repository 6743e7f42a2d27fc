// KernelObject.h - the text by which a kernel's price is known.
//
// An object names a kernel and its parameters (compiler/target/Prices.h). The
// planner asks for prices by it, and a profile of a step on a card names it, so
// that a measured time finds the kernel again in any later plan. The text
// leaves out its scratch, its random streams and its name in the step, because
// they don't change its speed. A generated kernel is known by its shape and by
// a hash of its body.

#ifndef TMC_COMPILER_ANALYSIS_KERNELOBJECT_H
#define TMC_COMPILER_ANALYSIS_KERNELOBJECT_H

#include "compiler/target/Prices.h"
#include "dialects/interfaces/Interfaces.h"

namespace tmc {

/// A parameter as C++ text, types without their scope: "BF16", "{8, 1024}".
std::string parameterText(mlir::Attribute value);

/// The object of a runtime kernel.
std::string
objectOf(llvm::StringRef symbol,
         llvm::ArrayRef<std::pair<std::string, mlir::Attribute>> params);

/// The object of a generated kernel with this body: the block of an nn.fused or
/// of the mem.kernel that it was outlined to.
std::string objectOfFused(mlir::Block &body);

/// The work of `op`, whose kernel is `call`.
KernelWork kernelWork(KernelOpInterface op, const KernelCall &call);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_KERNELOBJECT_H
