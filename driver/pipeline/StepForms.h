// StepForms.h - plans of a step that has one form, or two.
//
// A form is the program of one setting of what has no effect on its bits. On
// GPUs a step in 16 bits has two: its updates keep narrow copies of the
// parameters, which take two more bytes for each parameter, or the step begins
// with casts, which take time. A step of several ranks has two: a rank keeps
// its shards of the moments, or those of the parameters as well, which are
// gathered where they are read. Both are planned:
//
//     kept  | plan, lower, place |
//     cast  | search ............| plan, lower, place |   the faster one
//             in a thread of its own
//
// The faster form within the budget is the step, and claims about the smallest
// budget hold for both. If values may move, planning takes longest when nothing
// fits: coarse plans choose the first form, and decide whether the second form
// is worth a full plan after the first.

#ifndef TMC_DRIVER_PIPELINE_STEPFORMS_H
#define TMC_DRIVER_PIPELINE_STEPFORMS_H

#include "compiler/planning/driver/PlanAhead.h"
#include "compiler/report/Planned.h"
#include "compiler/target/Target.h"
#include "driver/pipeline/CoarsePlan.h"
#include "driver/pipeline/Options.h"
#include "driver/pipeline/RunPasses.h"
#include "passes/Offload.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tmc {

/// One form of the step, and its plans.
struct StepForm {
  mlir::OwningOpRef<mlir::ModuleOp> module; // Null: there is no such form.
  std::string shaped;                       // Its text before it is planned.
  NarrowCopies copies = NarrowCopies::Cast; // Its setting: Kept or Cast.
  int64_t shardLevel = 2;                   // For several ranks: Shard.cpp.
  int64_t wholeParams = 0;                  // Its `whole`.
  bool addsShards = false;                  // Its `shards`.
  /// Every plan found so far; null before the plan phase.
  std::unique_ptr<planning::PlanCache> plans;
  /// Fills `plans` in its own thread, if begun.
  planning::PlanAhead ahead;
  const planning::Plan *chosen = nullptr; // One of `plans`.
  PlanTrace trace;
  PlanFigures figures;
  std::optional<CoarsePlan> coarse; // Its coarse plan, if made.
};

/// Another form of the step, from the same program and in the same setting.
StepForm anotherForm(const StepForm &form);

/// The budgets of a step: memory of `device`, of the host, and files.
PerSpace<int64_t> budgetsOf(const CompileOptions &asked, const Target &device);

/// The input of planning: options, target, budgets.
struct PlanRequest {
  const CompileOptions &asked;
  const Target &device;
  PerSpace<int64_t> budgets;
  std::vector<std::string> *warnings; // Those of passes are appended.
  Phase last = Phase::Place;          // Plan, Lower or Place.
  /// Another form has a plan within the budget: claims about smaller budgets of
  /// this form aren't needed.
  bool isFittedOtherwise = false;
  /// One of several settings of levers. Moving values counts as a setting, too.
  bool isCandidate = false;

  Expected<void> runPasses(mlir::ModuleOp module, Phase phase,
                           const BuildPasses &build) const {
    return tmc::runPasses(module, phase, build, asked, device, *warnings);
  }
  void say(const std::string &what) const { showProgress(asked, what); }
  planning::Effort effort() const {
    return planning::Effort::interactive().scaled(asked.effort);
  }
};

/// Plans one form: `form.module` becomes the planned, lowered and placed step,
/// and the other fields describe the plan. If no plan fits the budget, the
/// failure is of the kind OverBudget, and `form.figures` has the bounds for
/// smaller and larger budgets.
Expected<void> planForm(StepForm &form, const PlanRequest &request);

/// Plans `form` and, if it has a module, `other`. Afterwards `form` is the form
/// to run, with the figures of both, fitting or not.
Expected<void> planForms(StepForm &form, StepForm &other,
                         const PlanRequest &request);

/// Plans `form`, another form of a step whose plan `best` fits. If it is faster
/// it becomes `best`, with the claims of both.
Expected<void> planInstead(StepForm &best, StepForm form,
                           const PlanRequest &request);

/// Begins to search plans of a form that is planned later. Nothing is begun if
/// the problem can't be stated: planning the form reports the reason.
void searchAhead(StepForm &form, const PlanRequest &request);

/// The failure of a form that doesn't fit the budget. Its notes name changes
/// that would fit, and the peak of the smallest plan.
Failure overBudget(const StepForm &form, int64_t budgetBytes);

/// Writes the bytes and seconds of `unsplit`, the shaped step without
/// micro-batches, into the figures of a planned form; leaves them open if its
/// problem can't be stated.
void measureUnsplit(StepForm &form, mlir::ModuleOp unsplit,
                    const Target &device);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_STEPFORMS_H
