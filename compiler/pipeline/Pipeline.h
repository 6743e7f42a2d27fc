// Pipeline.h - from a model file to a compiled step, phase by phase.
//
//     import  raise  split  layout  autodiff  shape | plan  lower  place | emit
//                                                   |<-- while the arena -|
//                                                   |    exceeds the budget
//
// A `Compilation` runs phases on one module. What is before `plan` is kept, so
// that another plan can be written into it where the arena of the first turned
// out too large. Plans are found in a book (compiler/planning/Fit.h), which a
// sweep over budgets goes on using.

#ifndef TMC_COMPILER_PIPELINE_PIPELINE_H
#define TMC_COMPILER_PIPELINE_PIPELINE_H

#include "compiler/emit/Emit.h"
#include "compiler/pipeline/Options.h"
#include "compiler/pipeline/Story.h"
#include "compiler/pipeline/WeightsFile.h"
#include "compiler/planning/Fit.h"
#include "compiler/target/Target.h"
#include "frontends/onnx/Import.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/Support/FileUtilities.h"

#include <functional>
#include <memory>
#include <string>

namespace tmc {

/// The figures of a finished plan: what plan.json and the reports hold. -1 or a
/// negative number: unknown.
struct PlanFigures {
  int64_t budgetBytes = -1, arenaBytes = -1, livePeakBytes = -1;
  int64_t reservedBytes = 0, unconstrainedBytes = -1;
  std::map<std::string, int64_t> peakByClass;
  double stepSeconds = -1, unconstrainedSeconds = -1, boundSeconds = -1;
  int64_t smallestFoundBytes = -1, impossibleBelowBytes = -1;
  int64_t recomputedOps = -1, launches = -1, copies = -1;
  int64_t microBatches = 1;
  int64_t lossChunk = 0; // Rows of logits held at once; 0: all.
  /// Of the step with one micro-batch and nothing in place, where there are
  /// several; predicted time without a budget.
  int64_t unsplitBytes = -1;
  double unsplitSeconds = -1;
  double planSeconds = 0;

  double overheadPct() const;
  double lowerBoundPct() const;
};

class Compilation {
public:
  explicit Compilation(CompileOptions options);
  ~Compilation();

  /// Runs all phases up to and including `last` (at most Place).
  Expected<bool> runTo(Phase last);

  /// The text of the placed step, step.cpp or step.cu.
  Expected<std::string> print(const EmitOptions &options);

  mlir::ModuleOp module() { return *current; }
  const Target &target() const { return device; }
  const PlanFigures &figures() const { return plan; }
  const CompileOptions &options() const { return asked; }
  /// The plan in detail; of one that doesn't fit, the smallest that is known.
  const Story &story() const { return told; }
  /// Every plan found so far; null before the plan phase.
  planning::PlanBook *book() { return plans.get(); }
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
  std::unique_ptr<planning::PlanBook> plans;
  std::string plannerFile; // What a planner that is a program reads.
  llvm::FileRemover removePlannerFile;
  const planning::FittedPlan *chosen = nullptr;
  Story told;
  PlanFigures plan;
  std::vector<std::string> said;

  Expected<bool> runPhase(Phase phase);
  Expected<bool> import();
  Expected<bool> checkOutputs();
  void listValues();
  Expected<bool> runPasses(Phase phase,
                           const std::function<void(mlir::OpPassManager &)> &);
  Expected<bool> planToPlace(Phase last);
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
