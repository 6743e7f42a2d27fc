// Pipeline.h - from a model file to a planned step.
//
//     model --> Forward --> candidates --> the choice --> Compiled
//               Forward.h   Candidate.h    PlanLevers.h
//
// If all levers are pinned there is one candidate. `tmc compile` writes a
// compiled step into a directory (Compile.h).

#ifndef TMC_DRIVER_PIPELINE_PIPELINE_H
#define TMC_DRIVER_PIPELINE_PIPELINE_H

#include "compiler/report/Planned.h"
#include "driver/pipeline/PlanLevers.h"

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <string>
#include <vector>

namespace tmc {

/// A model after the phases up to some phase.
struct Compiled {
  Expected<void> done;
  std::unique_ptr<const Forward> forward; // Null: the model wasn't read.
  /// The chosen candidate; null if its programs couldn't be built. If no plan
  /// fits, `done` is a failure of the kind OverBudget, and the candidate has
  /// the figures and the trace of the smallest known plan.
  std::unique_ptr<Candidate> candidate;
  std::vector<std::string> warnings; // Of the model and of the candidate.
  std::string date;                  // In UTC; empty: unknown.

  /// The program to run. There is a candidate.
  const StepForm &step() const { return candidate->form; }
  mlir::ModuleOp module() const { return *candidate->form.module; }
};

/// Plans a model that was read: the candidate of pinned levers, or the choice
/// among free ones.
PlannedCandidate planForward(const Forward &forward,
                             const CompileOptions &options, Phase last);

/// Runs all phases up to and including `last` (at most Place).
Compiled compileTo(const CompileOptions &options, Phase last);

/// The data that reports show; refers to `compiled`, which has a candidate.
Planned plannedOf(const Compiled &compiled);

/// A hash of the plan's trace (Provenance::plan); empty: there is no plan.
std::string planFingerprint(const Compiled &compiled);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_PIPELINE_H
