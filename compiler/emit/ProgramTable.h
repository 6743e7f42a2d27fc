// ProgramTable.h - the table that an emitted step hands to the runtime.

#ifndef TMC_COMPILER_EMIT_PROGRAMTABLE_H
#define TMC_COMPILER_EMIT_PROGRAMTABLE_H

#include "compiler/analysis/MemLiveness.h"
#include "compiler/emit/Emit.h"
#include "compiler/emit/Evaluation.h"

#include "llvm/Support/raw_ostream.h"

namespace tmc {

/// How a step names an engine or a space: `engine("d2h")`, `space("host")`.
std::string literal(EngineKind engine);
std::string literal(SpaceKind space);
/// A number for each space, as a step lists them: `{{4096, 512, 0}}`.
std::string literal(const PerSpace<int64_t> &numbers);

/// A kernel object's name in the step, and its object in prices
/// (compiler/target/Prices.h).
struct EmittedObject {
  std::string name, object;
};

/// Prints the constants `tensors`, `constants`, `regions`, `launches`,
/// `objects` and `program` (see runtime/step/Program.h). `kernels` names the
/// object of each launch.
void printProgramTable(llvm::raw_ostream &os, mem::ProgramOp program,
                       const Evaluation &evaluation,
                       const MemLiveness &liveness,
                       llvm::ArrayRef<std::string> kernels,
                       llvm::ArrayRef<EmittedObject> objects,
                       const EmitOptions &options);

} // namespace tmc

#endif // TMC_COMPILER_EMIT_PROGRAMTABLE_H
