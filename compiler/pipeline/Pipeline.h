// Pipeline.h - from a model file to a compiled step, phase by phase.
//
//     import  raise  split  layout  autodiff  precision  shape
//     | plan  lower  place | emit
//     |<-- while the arena |
//     | exceeds the budget |
//
// A `Compilation` runs phases on one module. What is before `plan` is kept, so
// that another plan can be written into it where the arena of the first turned
// out too large. Plans are found in a cache
// (compiler/planning/driver/ArenaFit.h), which a sweep over budgets goes on
// using.
//
// On cards a step in 16 bits has two forms with the same bits: its updates keep
// narrow copies of the parameters, two bytes more for each, or it begins with
// casts, which take time. Both are planned; the faster one within the budget is
// the step, and what is said of the smallest budget holds for either.

#ifndef TMC_COMPILER_PIPELINE_PIPELINE_H
#define TMC_COMPILER_PIPELINE_PIPELINE_H

#include "compiler/emit/Emit.h"
#include "compiler/pipeline/Options.h"
#include "compiler/pipeline/WeightsFile.h"
#include "compiler/planning/driver/ArenaFit.h"
#include "compiler/report/Planned.h"
#include "compiler/target/Target.h"
#include "frontends/common/Import.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/Support/FileUtilities.h"

#include <functional>
#include <memory>
#include <string>

namespace tmc {

class Compilation {
public:
  explicit Compilation(CompileOptions options);
  ~Compilation();

  /// Runs all phases up to and including `last` (at most Place).
  Expected<bool> runTo(Phase last);

  /// The text of the placed step.
  Expected<StepText> print(const EmitOptions &options);

  mlir::ModuleOp module() { return *current; }
  const Target &target() const { return device; }
  const PlanFigures &figures() const { return plan; }
  const CompileOptions &options() const { return asked; }
  /// The plan in detail; of one that doesn't fit, the smallest that is known.
  const PlanTrace &trace() const { return planTrace; }
  /// What reports show of it; refers to this compilation.
  Planned planned() const;
  /// Every plan found so far, one cache for each form of the step, that of this
  /// one first; empty before the plan phase.
  std::vector<planning::PlanCache *> caches();
  /// The step as it was before planning, for `tmc verify`.
  std::string shapedText() const { return shaped; }
  /// The model's name: its file's, without directory and extension.
  std::string modelName() const;
  const std::vector<std::string> &warnings() const { return said; }
  /// The model's parameters and states, in the order of the step's arguments.
  const std::vector<ModelValue> &values() const { return modelValues; }
  /// Where their values are; null where none are wanted (see `wantsWeights`).
  const WeightSources *weights() const { return sources.get(); }

private:
  CompileOptions asked;
  Target device;
  std::unique_ptr<mlir::MLIRContext> context;
  std::unique_ptr<ImportedModel> imported;
  std::vector<ModelValue> modelValues;
  std::unique_ptr<WeightSources> sources;
  mlir::OwningOpRef<mlir::ModuleOp> current;
  std::string shaped;
  std::unique_ptr<planning::PlanCache> plans;
  std::string plannerFile; // What a planner that is a program reads.
  std::unique_ptr<llvm::FileRemover> removePlannerFile;
  const planning::FittedPlan *chosen = nullptr;
  PlanTrace planTrace;
  PlanFigures plan;
  /// The step's other form, where it has two, with what planning made of it:
  /// what the members of the same names hold of this one.
  struct {
    mlir::OwningOpRef<mlir::ModuleOp> current;
    std::string shaped;
    std::unique_ptr<planning::PlanCache> plans;
    std::string plannerFile;
    std::unique_ptr<llvm::FileRemover> removePlannerFile;
    const planning::FittedPlan *chosen = nullptr;
    PlanTrace planTrace;
    PlanFigures plan;
  } other;
  std::vector<std::string> said;

  Expected<bool> runPhase(Phase phase);
  Expected<bool> import();
  /// Whether anything in the step may come to be fp16.
  bool hasFP16();
  Expected<bool> checkOutputs();
  void listValues();
  Expected<bool> runPasses(Phase phase,
                           const std::function<void(mlir::OpPassManager &)> &);
  Expected<bool> shape(bool keepsCopies);
  void swapForms();
  Expected<bool> planToPlace(Phase last);
  Expected<bool> planForm(Phase last, int64_t budget);
  Expected<bool> writeProblem();
  Expected<int64_t> tryPlan(mlir::ModuleOp module, int64_t budget, Phase last);
  absl::Status stateForPlanner(const planning::Problem &problem);
  absl::StatusOr<planning::Plan> choosePlan(const planning::Problem &problem,
                                            int64_t budget);
  Failure overBudget(int64_t budget);
  void readFigures();
  void measureUnsplit();
  void say(const std::string &what);
};

/// Marks the step's integer inputs with the range that their uses allow: rows
/// of a table, classes of a loss.
void markInputRanges(mlir::ModuleOp module);

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_PIPELINE_H
