// Mem.h - the mem dialect: the execution of a step.
//
// A `mem.program` is flat: buffers first, then launches in execution order,
// with a loop's body written once. Events order work beside the kernels
// (copies, launches on the host). The live bytes of a program follow from the
// program alone (`compiler/analysis/MemLiveness.h`), and must equal the plan's.

#ifndef TMC_DIALECTS_MEM_MEM_H
#define TMC_DIALECTS_MEM_MEM_H

#include "dialects/interfaces/Machine.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/mem/MemDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/mem/MemAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/mem/Mem.h.inc"

namespace tmc::mem {
/// The space of a buffer of type `memref`.
SpaceKind spaceOf(mlir::Type memref);
/// The engine of a launch.
EngineKind engineOf(LaunchOp launch);
} // namespace tmc::mem

#endif // TMC_DIALECTS_MEM_MEM_H
