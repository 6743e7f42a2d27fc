// RunPasses.h - the passes of a phase, and the printing of a placed step, with
// diagnostics as failures.

#ifndef TMC_DRIVER_PIPELINE_RUNPASSES_H
#define TMC_DRIVER_PIPELINE_RUNPASSES_H

#include "compiler/emit/Emit.h"
#include "compiler/target/Target.h"
#include "driver/pipeline/Options.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <functional>
#include <string>
#include <vector>

namespace tmc {

/// Adds the passes of a phase.
using BuildPasses = std::function<void(mlir::OpPassManager &)>;

/// Runs the passes of `phase` on `module`, then checks what must hold at the
/// end of the phase. Appends the warnings. A failure has the diagnostics; that
/// of a defect names a reproducer.
Expected<void> runPasses(mlir::ModuleOp module, Phase phase,
                         const BuildPasses &build,
                         const CompileOptions &options, const Target &device,
                         std::vector<std::string> &warnings);

/// The text of a placed step.
Expected<StepText> printStep(mlir::ModuleOp module, const EmitOptions &options);

/// `showProgress(what)` of Messages.h, where the options want progress.
void showProgress(const CompileOptions &options, const std::string &what);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_RUNPASSES_H
