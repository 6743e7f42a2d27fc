// StepForms.h - plans of a step that has one form, or two.
//
// On cards a step in 16 bits has two forms with the same bits: its updates keep
// narrow copies of the parameters, two bytes more for each, or it begins with
// casts, which take time. Both are planned:
//
//     kept  | plan, lower, place |
//     cast  | search ............| plan, lower, place |   the faster one
//             in a thread of its own
//
// The faster one within the budget is the step, and what is said of the
// smallest budget holds for either. Where values may move, planning what fits
// nowhere takes longest: coarse plans say which form comes first, and whether
// the second one is worth a full plan beside what came of it.

#ifndef TMC_COMPILER_PIPELINE_STEPFORMS_H
#define TMC_COMPILER_PIPELINE_STEPFORMS_H

#include "compiler/pipeline/CoarsePlan.h"
#include "compiler/pipeline/Options.h"
#include "compiler/planning/driver/PlanAhead.h"
#include "compiler/report/Planned.h"
#include "compiler/target/Target.h"
#include "passes/Offload.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileUtilities.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tmc {

/// One form of the step, and what planning makes of it.
struct StepForm {
  mlir::OwningOpRef<mlir::ModuleOp> module; // Null: there is no such form.
  std::string shaped;                       // Its text before it is planned.
  /// Every plan found so far; null before the plan phase.
  std::unique_ptr<planning::PlanCache> plans;
  /// Fills `plans`, where that has been begun.
  std::unique_ptr<planning::PlanAhead> ahead;
  const planning::FittedPlan *chosen = nullptr; // One of `plans`.
  std::string plannerFile; // What a planner that is a program reads.
  std::unique_ptr<llvm::FileRemover> removePlannerFile;
  PlanTrace trace;
  PlanFigures figures;
  std::optional<CoarsePlan> coarse; // Where it has been planned coarsely.
};

/// What a step may take of `device` and what is beside it.
SpaceBudgets budgetsOf(const CompileOptions &asked, const Target &device);

/// What a step is planned for, and by what.
struct PlanRequest {
  const CompileOptions &asked;
  const Target &device;
  SpaceBudgets budgets;
  Phase last = Phase::Place; // Plan, Lower or Place.
  /// Runs a phase's passes on a module and says what went wrong.
  std::function<Expected<void>(
      mlir::ModuleOp, Phase,
      const std::function<void(mlir::OpPassManager &)> &)>
      runPasses;
  std::function<void(const std::string &)> say; // Shows progress.
  /// Another form has a plan within the budget: what smaller budgets this one
  /// would take is no matter.
  bool isFittedOtherwise = false;
  /// One of several settings of levers: whether it moves is a setting, too.
  bool isCandidate = false;

  planning::Effort effort() const {
    return planning::Effort::interactive().scaled(asked.effort);
  }
};

/// Plans one form: `form.module` becomes the planned, lowered and placed step,
/// and the rest says how. Where no plan fits the budget, a failure of the kind
/// OverBudget, with what is known of smaller and larger ones in `form.figures`.
Expected<void> planForm(StepForm &form, const PlanRequest &request);

/// Plans `form` and, where it has a module, `other`; the one to run is in
/// `form` afterwards, with the figures of both, fitting or not.
Expected<void> planForms(StepForm &form, StepForm &other,
                         const PlanRequest &request);

/// Begins to search plans of a form whose turn comes later. Nothing is begun
/// where a problem can't be stated: planning the form says why.
void searchAhead(StepForm &form, const PlanRequest &request);

/// The failure of a form that fits no budget up to the asked one: says what
/// would fit, and where the smallest plan has its peak.
Failure overBudget(const StepForm &form, int64_t budgetBytes);

/// What a planned form would need in one piece, into its figures; left open
/// where that can't be planned.
void measureUnsplit(StepForm &form, const PlanRequest &request);

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_STEPFORMS_H
