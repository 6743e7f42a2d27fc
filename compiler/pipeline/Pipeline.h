// Pipeline.h - from a model file to a compiled step, phase by phase.
//
//     import  raise  split  layout  autodiff  precision  shape
//     | plan  lower  place | emit
//     |<-- while the arena |
//     | exceeds the budget |
//
// A `Compilation` runs phases on one module. The module before `plan` is kept,
// so that another plan can be written into it if the arena of the first plan
// turned out too large. Plans are found in a cache
// (compiler/planning/driver/ArenaFit.h), which a sweep over budgets uses again.
// A step may have two forms (StepForms.h); both are planned.
//
// If a lever is free (LeverSpace.h), a search follows `import`: each visited
// setting is a compilation of its own, of the same forward function, up to a
// coarse plan. The best few are compiled further; this compilation becomes the
// best of them.

#ifndef TMC_COMPILER_PIPELINE_PIPELINE_H
#define TMC_COMPILER_PIPELINE_PIPELINE_H

#include "compiler/emit/Emit.h"
#include "compiler/pipeline/LeverSearch.h"
#include "compiler/pipeline/Options.h"
#include "compiler/pipeline/StepForms.h"
#include "compiler/pipeline/WeightsFile.h"
#include "compiler/report/Planned.h"
#include "compiler/target/Target.h"
#include "frontends/common/Import.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <memory>
#include <string>

namespace tmc {

class Compilation {
public:
  explicit Compilation(CompileOptions options);
  ~Compilation();

  /// Runs all phases up to and including `last` (at most Place).
  Expected<void> runTo(Phase last);

  /// The text of the placed step.
  Expected<StepText> print(const EmitOptions &options);

  mlir::ModuleOp module() { return *form.module; }
  const Target &target() const { return device; }
  const PlanFigures &figures() const { return form.figures; }
  const CompileOptions &options() const { return asked; }
  /// The plan in detail; if no plan fits, the smallest known plan.
  const PlanTrace &trace() const { return form.trace; }
  /// The data that reports show; refers to this compilation.
  Planned planned() const;
  /// Every plan found so far: one cache for each form of the step, the cache of
  /// this form first; empty before the plan phase.
  std::vector<planning::PlanCache *> caches();
  /// The step as it was before planning, for `tmc verify`.
  std::string shapedText() const { return form.shaped; }
  /// The model's name: its file's, without directory and extension.
  std::string modelName() const;
  const std::vector<std::string> &warnings() const { return said; }
  /// The model's parameters and states, in the order of the step's arguments.
  const std::vector<ModelValue> &values() const { return modelValues; }
  /// The sources of their values; null if none are wanted (see `wantsWeights`).
  const WeightSources *weights() const { return sources.get(); }
  /// The files that were read: the model, its external data, --weights, and the
  /// target's file.
  std::vector<std::string> filesRead() const;
  /// The results of the search for levers; null if all were pinned.
  const LeverChoice *levers() const { return choice.get(); }
  /// Coarse plans of the levers' settings within another budget of the device
  /// (-1: no budget). The compilation must have run up to import. Programs are
  /// kept for the next budget.
  Expected<LeverChoice> leversWithin(int64_t budgetBytes);
  /// The budget below which no setting has a plan, whether a search visited it
  /// (`known`) or not.
  Expected<int64_t> impossibleBelow(const LeverChoice &known);

private:
  /// From a forward function as bytecode, which another compilation imported.
  Compilation(CompileOptions options, const std::string &bytecode);

  CompileOptions asked;
  Target device;
  std::unique_ptr<mlir::MLIRContext> context;
  std::unique_ptr<ImportedModel> imported;
  std::vector<ModelValue> modelValues;
  std::unique_ptr<WeightSources> sources;
  StepForm form;  // The form to run; before the plan phase the only one, or the
                  // first to be planned.
  StepForm other; // The step's other form, if it has two.
  std::vector<std::string> said;
  std::unique_ptr<LeverChoice> choice;
  std::string forward; // The imported function, as bytecode.
  int64_t samples = 0; // In the batch; 0: there is no batch.
  size_t ops = 0;      // In the forward function.
  /// Programs of settings, with the mutex of the list; null: none is kept.
  struct Programs;
  std::shared_ptr<Programs> programs;
  bool isCandidate = false; // One of several compilations that are compared.

  /// Phases from `first` on; all before it have run.
  Expected<void> runFrom(Phase first, Phase last);
  Expected<void> runPhase(Phase phase);
  Expected<void> import();
  /// Whether any value of the step may become fp16.
  bool hasFP16();
  Expected<void> checkOutputs();
  void noteBudget();
  void noteBatchNorms();
  void listValues();
  Expected<void> runPasses(mlir::ModuleOp module, Phase phase,
                           const std::function<void(mlir::OpPassManager &)> &);
  Expected<void> shape(bool keepsCopies);
  Expected<void> planToPlace(Phase last);
  PlanRequest request(Phase last);
  /// Chooses the levers that are free and runs the rest of the phases.
  Expected<void> runWithLevers(Phase last);
  /// Plans settings in full until one fits, and then those that may still be
  /// faster.
  Expected<void> planBest(Phase last);
  /// The most settings that are planned in full. While none fits, settings with
  /// coarse plans don't count.
  size_t mostFullPlans() const;
  /// Settings in the order in which they are planned in full until one fits.
  std::vector<LeverSetting> worthFullPlans(const LeverChoice &choice) const;
  /// The programs of a search that are kept.
  enum class Keep { None, Fitting, All };
  /// Coarse plans of the settings that the flags allow.
  Expected<LeverChoice> search(Keep keep);
  /// The compilation of one setting up to `last`, which is Shape at most.
  Expected<std::unique_ptr<Compilation>> builtFor(const LeverSetting &setting,
                                                  Phase last);
  /// Adds to `failure` the settings that would fit: for each pinned lever the
  /// nearest value, or a change of all levers. `given`: the flags before free
  /// levers were chosen.
  void suggest(Failure &failure, const CompileOptions &given);
  /// Seconds of a setting's coarse plan; nothing: no plan fits.
  std::optional<double> coarseSeconds(const LeverSetting &setting);
  /// The nearest setting with a coarse plan that `asked` allows, and its
  /// seconds, without the settings that `tried` allows.
  std::optional<std::pair<LeverSetting, double>>
  nearestFitting(const CompileOptions &tried);
  /// Keeps the imported function, for the compilations of other settings.
  void keepForward();
  /// Becomes `other`, a compilation of the function that this one imported.
  void adopt(Compilation &&other);
  Expected<void> writeProblem();
  void say(const std::string &what);
};

/// Marks the step's integer inputs with the range that their uses allow: rows
/// of a table, classes of a loss.
void markInputRanges(mlir::ModuleOp module);

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_PIPELINE_H
