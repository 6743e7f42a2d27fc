// ProgramTable.h - the table that an emitted step hands to the runtime.

#ifndef TMC_COMPILER_EMIT_PROGRAMTABLE_H
#define TMC_COMPILER_EMIT_PROGRAMTABLE_H

#include "compiler/analysis/MemLiveness.h"
#include "compiler/emit/Emit.h"

#include "llvm/Support/raw_ostream.h"

namespace tmc {

/// `tmc::Engine`'s name of an engine.
const char *runtimeName(mem::Engine engine);

/// Prints the constants `tensors`, `constants`, `regions`, `launches` and
/// `program` (see runtime/step/Program.h). `kernels` names the object of each
/// launch.
void printProgramTable(llvm::raw_ostream &os, mem::ProgramOp program,
                       const MemLiveness &liveness,
                       llvm::ArrayRef<std::string> kernels,
                       const EmitOptions &options);

} // namespace tmc

#endif // TMC_COMPILER_EMIT_PROGRAMTABLE_H
