#include "compiler/pipeline/Pipeline.h"

#include "compiler/analysis/MemLiveness.h"
#include "compiler/analysis/PlanRecord.h"
#include "compiler/analysis/StepProblem.h"
#include "compiler/pipeline/Dialects.h"
#include "compiler/pipeline/ForwardFile.h"
#include "compiler/pipeline/PlantDefect.h"
#include "compiler/pipeline/Reproducer.h"
#include "compiler/planning/model/ProblemFile.h"
#include "dialects/interfaces/Fault.h"
#include "dialects/interfaces/Interfaces.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"
#include "frontends/onnx/Import.h"
#include "frontends/torch/Import.h"
#include "passes/Passes.h"
#include "passes/Plan.h"
#include "passes/Precision.h"
#include "runtime/kernels/CrossEntropy.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <unistd.h>

using namespace mlir;
using namespace tmc;

Planned Compilation::planned() const {
  return {modelName(),
          device.name,
          device.compiledFor(),
          plan,
          planTrace,
          modelValues,
          sources ? sources->totalBytes : -1};
}

Compilation::Compilation(CompileOptions options) : asked(std::move(options)) {
  DialectRegistry registry;
  registerAllDialects(registry);
  context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false);
}

Compilation::~Compilation() = default;

std::string Compilation::modelName() const {
  return llvm::sys::path::stem(asked.model).str();
}

void Compilation::say(const std::string &what) {
  if (asked.progress)
    fprintf(stderr, "\r\033[K%s", what.c_str());
}

Expected<bool> Compilation::runTo(Phase last) {
  Expected<Target> found = targetNamed(asked.target);
  if (!found)
    return std::move(found.failure());
  device = *found;
  Expected<bool> done = true;
  for (Phase phase = Phase::Import; done && phase <= last;
       phase = Phase(int(phase) + 1)) {
    if (phase == Phase::Plan) {
      done = planToPlace(last);
      break;
    }
    say(std::string(nameOf(phase)) + " ...");
    done = runPhase(phase);
  }
  say("");
  return done;
}

/// Rows of logits that a loss holds; 0: all.
static int64_t lossChunkIn(ModuleOp module) {
  int64_t rows = 0;
  module->walk([&](nn::LinearCrossEntropyOp op) { rows = op.getChunk(); });
  return rows;
}

/// Where nothing is asked, a loss goes in chunks where that saves memory and
/// nothing else tells it from the whole. In micro-batches a table's gradient
/// would be added in a second buffer, and logits that are kept are made twice.
static RaiseOptions raiseOptions(const CompileOptions &asked,
                                 const Target &device) {
  if (asked.lossChunk)
    return {*asked.lossChunk, /*lossChunkIfFree=*/false};
  bool isExact = device.backend == Backend::Cpu;
  if (isExact && asked.microBatches == 1 && asked.outputs.empty())
    return {kExactChunkRows, /*lossChunkIfFree=*/true};
  return {};
}

/// Bytes of the copies that updates keep.
static int64_t copyBytesIn(ModuleOp module) {
  int64_t bytes = 0;
  for (auto step : module.getOps<train::StepOp>())
    for (unsigned i = 0; i < step.getNumArguments(); ++i)
      if (train::copiedArg(step, i))
        bytes += sizeInBytes(step.getArgumentTypes()[i]);
  return bytes;
}

/// From tensors to kernels, in one of the step's forms.
Expected<bool> Compilation::shape(bool keepsCopies) {
  Expected<bool> done = runPasses(Phase::Shape, [&](OpPassManager &pm) {
    // No CSE from here on: the statistics that a norm's gradient makes again
    // must not become values kept from its forward pass.
    pm.addPass(createExpandComposites());
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createFoldIntoKernels());
    pm.addPass(createRoundAsRead({asked.target}));
    if (keepsCopies)
      pm.addNestedPass<train::StepOp>(createKeepCopies());
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createFuse());
    pm.addPass(createCopyViews());
    pm.addPass(createVerifyKernels({asked.target}));
  });
  if (!done)
    return done;
  plan.keptCopyBytes = copyBytesIn(*current);
  shaped.clear();
  llvm::raw_string_ostream os(shaped);
  current->print(os);
  return true;
}

void Compilation::swapForms() {
  std::swap(current, other.current);
  std::swap(shaped, other.shaped);
  std::swap(plans, other.plans);
  std::swap(plannerFile, other.plannerFile);
  std::swap(removePlannerFile, other.removePlannerFile);
  std::swap(chosen, other.chosen);
  std::swap(planTrace, other.planTrace);
  std::swap(plan, other.plan);
}

std::vector<planning::PlanCache *> Compilation::caches() {
  std::vector<planning::PlanCache *> all;
  for (planning::PlanCache *each : {plans.get(), other.plans.get()})
    if (each)
      all.push_back(each);
  return all;
}

Expected<bool> Compilation::runPhase(Phase phase) {
  auto canonicalize = [](OpPassManager &pm) {
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createCSEPass());
  };
  switch (phase) {
  case Phase::Import:
    return import();
  case Phase::Raise: {
    Expected<bool> done = runPasses(phase, [&](OpPassManager &pm) {
      pm.addNestedPass<func::FuncOp>(createRaise(raiseOptions(asked, device)));
      pm.addNestedPass<func::FuncOp>(createWidenComposites());
      canonicalize(pm);
    });
    if (!done)
      return done;
    plan.lossChunk = lossChunkIn(*current);
    if (asked.lossChunk.value_or(0) > 0 && !plan.lossChunk)
      said.push_back("--loss-chunk has no effect: the loss isn't a "
                     "cross-entropy of rows times a table, or something else "
                     "reads the logits");
    return done;
  }
  case Phase::Split: {
    Expected<bool> done = runPasses(phase, [&](OpPassManager &pm) {
      pm.addPass(createSplit({asked.microBatches}));
    });
    if (done)
      markInputRanges(*current);
    return done;
  }
  case Phase::Layout:
    return runPasses(phase, [&](OpPassManager &pm) {
      pm.addNestedPass<func::FuncOp>(createLayout());
      canonicalize(pm);
    });
  case Phase::Autodiff:
    return runPasses(phase, [&](OpPassManager &pm) {
      AutodiffOptions options;
      options.optimizer = asked.optimizer;
      options.lossScaleSpec = asked.lossScale;
      if (asked.lossScale == "auto")
        options.lossScaleSpec = hasFP16() ? "dynamic" : "none";
      options.outputs.assign(asked.outputs.begin(), asked.outputs.end());
      pm.addPass(createAutodiff(options));
      canonicalize(pm);
    });
  case Phase::Precision:
    return runPasses(phase, [&](OpPassManager &pm) {
      pm.addNestedPass<train::StepOp>(
          createPrecision({asked.precision, asked.target}));
      if (device.backend == Backend::Cuda)
        pm.addNestedPass<train::StepOp>(createLayOutCodes());
      canonicalize(pm);
    });
  case Phase::Shape: {
    bool mayKeep = device.backend == Backend::Cuda &&
                   asked.narrowCopies != NarrowCopies::Cast;
    if (mayKeep && asked.narrowCopies == NarrowCopies::Auto)
      other.current = current->clone();
    Expected<bool> done = shape(mayKeep);
    if (done && !copyBytesIn(*current))
      other.current = nullptr;
    if (!done || !other.current)
      return done;
    swapForms();
    done = shape(/*keepsCopies=*/false);
    swapForms();
    return done;
  }
  default:
    llvm_unreachable("phases from plan on are run together");
  }
}

bool Compilation::hasFP16() {
  // A wrong spec is the precision pass's to say.
  llvm::Expected<PrecisionSpec> spec = PrecisionSpec::parse(asked.precision);
  if (!spec)
    llvm::consumeError(spec.takeError());
  else if (spec->mayBeFP16())
    return true;
  auto isFP16 = [](Type type) { return getElementTypeOrSelf(type).isF16(); };
  return current
      ->walk([&](Operation *op) {
        return llvm::any_of(op->getResultTypes(), isFP16)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

Expected<bool> Compilation::import() {
  ImportOptions options;
  options.batch = asked.batch;
  options.dims = asked.dims;
  options.loss = asked.loss;
  options.freeze = asked.freeze;
  if (isForwardFile(asked.model)) {
    if (!asked.weights.empty())
      return Failure::unsupported(
          "--weights goes with a model; give it to the trainer");
    Expected<OwningOpRef<ModuleOp>> module = readForward(asked.model, *context);
    if (!module)
      return std::move(module.failure());
    current = std::move(*module);
    listValues();
    if (wantsWeights(asked))
      sources = std::make_unique<WeightSources>(); // It has none.
    return true;
  }
  bool isTorch = llvm::StringRef(asked.model).ends_with(".pt2");
  Expected<ImportedModel> model =
      (isTorch ? importTorch : importOnnx)(asked.model, options, *context);
  if (!model)
    return std::move(model.failure());
  imported = std::make_unique<ImportedModel>(std::move(*model));
  said = imported->warnings;
  current = std::move(imported->module);
  if (Expected<bool> known = checkOutputs(); !known)
    return known;
  listValues();
  if (!wantsWeights(asked))
    return true;
  Expected<WeightSources> gathered =
      gatherWeights(modelValues, *imported->weights, asked.weights,
                    {asked.weightsPrefix.first, asked.weightsPrefix.second});
  if (!gathered)
    return std::move(gathered.failure());
  sources = std::make_unique<WeightSources>(std::move(*gathered));
  said.insert(said.end(), sources->warnings.begin(), sources->warnings.end());
  return true;
}

/// Every output that is to be kept must be one of the model's.
Expected<bool> Compilation::checkOutputs() {
  auto forward = current->lookupSymbol<func::FuncOp>("forward");
  std::vector<std::string> names;
  for (unsigned i = 0; i < forward.getNumResults(); ++i)
    if (!train::updatedArg(forward, i))
      names.push_back(train::resultName(forward, i).str());
  for (const std::string &name : asked.outputs)
    if (!llvm::is_contained(names, name))
      return Failure::usage("--keep-output=" + name +
                            " names no output of the model")
          .note("its outputs are " + llvm::join(names, " "));
  return true;
}

void Compilation::listValues() {
  auto forward = current->lookupSymbol<func::FuncOp>("forward");
  for (BlockArgument argument : forward.getArguments()) {
    unsigned index = argument.getArgNumber();
    std::optional<train::Role> role = train::roleOf(forward, index);
    if (role != train::Role::Param && role != train::Role::State)
      continue;
    auto type = cast<RankedTensorType>(argument.getType());
    ModelValue value;
    value.name = train::argName(forward, index).str();
    value.kind = role == train::Role::State ? ModelValue::State
                 : forward.getArgAttr(index, train::TrainDialect::kFrozen)
                     ? ModelValue::Frozen
                     : ModelValue::Trained;
    value.type = runtimeType(type);
    value.shape = type.getShape().vec();
    value.bytes = sizeInBytes(type);
    modelValues.push_back(std::move(value));
  }
}

/// Where a diagnostic is, in the model's own names.
static std::string describe(Location loc) {
  std::string name, line;
  loc->walk([&](Location part) {
    if (auto named = dyn_cast<NameLoc>(part); named && name.empty())
      name = named.getName().str();
    if (auto file = dyn_cast<FileLineColLoc>(part); file && line.empty())
      line = llvm::sys::path::filename(file.getFilename()).str() + ":" +
             std::to_string(file.getLine());
    return WalkResult::advance();
  });
  if (!name.empty() && !line.empty())
    return name + " (" + line + ")";
  return name + line;
}

namespace {
/// What was said while something ran: the first error, and all that goes with
/// it.
struct DiagnosticCollector {
  std::string error;
  std::vector<std::string> notes, warnings;
  std::optional<Fault> fault; // Of the first error; none: ours.
  std::function<bool()> isOver = [] { return false; };
  ScopedDiagnosticHandler handler;

  explicit DiagnosticCollector(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (!isOver())
            hear(diagnostic);
          return success();
        }) {}

  void hear(Diagnostic &diagnostic) {
    auto textOf = [](Diagnostic &d) {
      std::string where = describe(d.getLocation());
      return d.str() + (where.empty() ? "" : " [" + where + "]");
    };
    if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
      return warnings.push_back(textOf(diagnostic));
    if (error.empty())
      fault = faultOf(diagnostic);
    (error.empty() ? error : notes.emplace_back()) = textOf(diagnostic);
    for (Diagnostic &note : diagnostic.getNotes())
      notes.push_back(textOf(note));
  }

  /// `reproducer`: the note that a defect ends with.
  Failure failure(Phase phase, llvm::function_ref<std::string()> reproducer) {
    if (fault)
      return Failure{FailureKind(*fault), error, notes};
    Failure ours = Failure::defect(std::string("a defect of tmc in its ") +
                                   nameOf(phase) + " phase");
    if (!error.empty())
      ours.message += ": " + error;
    ours.notes = notes;
    ours.notes.push_back(reproducer());
    return ours;
  }
};
} // namespace

Expected<bool>
Compilation::runPasses(Phase phase,
                       const std::function<void(OpPassManager &)> &build) {
  PassManager pm(context.get());
  build(pm);
  pm.addPass(createVerifyPhase({nameOf(phase), device.arenaAlignment}));
  StringRef planted(asked.plantDefect);
  if (planted.consume_front(nameOf(phase)) && planted.consume_front(":"))
    pm.addPass(createPlantDefect(planted.str()));
  DiagnosticCollector collector(context.get());
  Reproducer reproducer(pm, [&] { return !collector.fault; });
  collector.isOver = [&] { return reproducer.hasFailed(); };
  bool done = succeeded(pm.run(*current));
  said.insert(said.end(), collector.warnings.begin(), collector.warnings.end());
  if (done)
    return true;
  return collector.failure(phase, [&] { return reproducer.write(); });
}

Expected<StepText> Compilation::print(const EmitOptions &options) {
  DiagnosticCollector collector(context.get());
  FailureOr<StepText> text = emitStep(*current, options);
  if (succeeded(text))
    return *text;
  return collector.failure(Phase::Emit, [&] {
    std::string module;
    llvm::raw_string_ostream os(module);
    current->print(os);
    return writeReproducer(module);
  });
}

/// Writes the problem where a planner that is a program can read it.
absl::Status Compilation::stateForPlanner(const planning::Problem &problem) {
  if (!StringRef(asked.planner).starts_with("exec:"))
    return absl::OkStatus();
  int fd;
  SmallString<128> path;
  if (!llvm::sys::fs::createTemporaryFile("tmc-problem", "txt", fd, path)) {
    plannerFile = path.str().str();
    removePlannerFile = std::make_unique<llvm::FileRemover>(path);
    llvm::raw_fd_ostream os(fd, /*shouldClose=*/true);
    os << planning::printProblem(problem);
    os.flush();
    if (!os.error())
      return absl::OkStatus();
    os.clear_error();
  }
  return absl::UnavailableError("the planner's problem file can't be written");
}

/// The plan for `budget`, from the cache; of infeasible ones the smallest.
absl::StatusOr<planning::Plan>
Compilation::choosePlan(const planning::Problem &problem, int64_t budget) {
  if (!plans) {
    planning::SolveOptions options;
    options.order = planning::OrderMode::Free;
    if (absl::Status status = stateForPlanner(problem); !status.ok())
      return status;
    plans = std::make_unique<planning::PlanCache>(
        problem, device.arenaAlignment, options, asked.planner, plannerFile);
    absl::StatusOr<const planning::FittedPlan *> found = plans->fit(budget);
    if (!found.ok())
      return found.status();
  } else if (!plans->cheapestWithin(budget)) {
    // The arena was larger than the cache had it.
    absl::StatusOr<const planning::FittedPlan *> found = plans->fit(
        budget - (chosen->arenaBytes + problem.reservedBytes - budget));
    if (!found.ok())
      return found.status();
  }
  chosen = plans->cheapestWithin(budget);
  absl::StatusOr<const planning::FittedPlan *> smallest = plans->smallest();
  if (!smallest.ok())
    return smallest.status();
  int64_t least = (*smallest)->arenaBytes + problem.reservedBytes;
  planning::Plan answer = (chosen ? *chosen : **smallest).plan;
  answer.feasible = chosen;
  // A budget that works and is smaller works again; its plan's arena need not.
  answer.smallestFoundBytes =
      chosen && budget >= 0 ? std::min(least, budget) : least;
  answer.impossibleBelowBytes = plans->impossibleBelowBytes();
  planning::recertify(problem, answer, budget);
  if (chosen)
    planning::proveByCases(problem, answer, budget);
  return answer;
}

Expected<int64_t> Compilation::tryPlan(ModuleOp module, int64_t budget,
                                       Phase last) {
  OwningOpRef<ModuleOp> saved = std::move(current);
  current = module;
  Expected<bool> done = runPasses(Phase::Plan, [&](OpPassManager &pm) {
    PlanOptions options;
    options.budget = budget;
    options.target = asked.target;
    PlanHooks hooks;
    hooks.solve = [&](const planning::Problem &problem) {
      return choosePlan(problem, budget);
    };
    hooks.observe = [&](const StepProblem &stated,
                        const planning::Problem &problem,
                        const planning::Plan &plan) {
      planTrace = planTraceOf(stated, problem, plan);
    };
    pm.addNestedPass<train::StepOp>(createPlan(options, hooks));
  });
  if (done && last >= Phase::Lower)
    done = runPasses(Phase::Lower, [&](OpPassManager &pm) {
      pm.addPass(createLower({asked.target}));
    });
  if (done && last >= Phase::Place)
    done = runPasses(Phase::Place, [&](OpPassManager &pm) {
      pm.addNestedPass<mem::ProgramOp>(
          createPlace({device.arenaAlignment, chosen->packing.effort,
                       int64_t(chosen->packing.seed)}));
    });
  current.release();
  current = std::move(saved);
  if (!done)
    return std::move(done.failure());
  for (auto program : module.getOps<mem::ProgramOp>())
    return int64_t(program.getArenaBytes());
  return int64_t(-1);
}

static double secondsOf(int64_t picoseconds) {
  return double(picoseconds) * 1e-12;
}

/// The planning problem of the step, for `tmc-solve` and for other planners.
Expected<bool> Compilation::writeProblem() {
  OwningOpRef<ModuleOp> copy = current->clone();
  for (auto step : copy->getOps<train::StepOp>()) {
    sinkUpdates(step);
    FailureOr<StepProblem> stated = buildProblem(step, device, Recipes::Parts);
    if (failed(stated))
      return Failure::defect("the planning problem can't be stated");
    std::error_code error;
    llvm::raw_fd_ostream os(asked.problemFile, error);
    if (!error) {
      os << planning::printProblem(stated->problem);
      os.flush();
      error = os.error();
      os.clear_error();
    }
    if (error)
      return Failure::world("can't write '" + asked.problemFile +
                            "': " + error.message());
  }
  return true;
}

Expected<bool> Compilation::planToPlace(Phase last) {
  if (!asked.problemFile.empty())
    if (Expected<bool> done = writeProblem(); !done)
      return done;
  int64_t budget = asked.budgetBytes.value_or(device.memoryBytes);
  auto isOver = [](Expected<bool> &done) {
    return !done && done.failure().kind == FailureKind::OverBudget;
  };
  Expected<bool> kept = planForm(last, budget);
  if (!other.current || (!kept && !isOver(kept)))
    return kept;
  // What was said of the step before it had two forms holds for both.
  other.plan.lossChunk = plan.lossChunk;
  swapForms();
  Expected<bool> cast = planForm(last, budget);
  if (!cast && !isOver(cast))
    return cast;
  bool keeps = !cast;
  if (kept && cast)
    keeps = other.plan.stepSeconds < plan.stepSeconds;
  else if (!kept && !cast)
    keeps = other.plan.smallestFoundBytes < plan.smallestFoundBytes;
  if (keeps)
    swapForms();
  if (other.plan.smallestFoundBytes < plan.smallestFoundBytes) {
    plan.smallestFoundBytes = other.plan.smallestFoundBytes;
    plan.smallestStoppedEarly = other.plan.smallestStoppedEarly;
  }
  plan.impossibleBelowBytes =
      std::min(plan.impossibleBelowBytes, other.plan.impossibleBelowBytes);
  plan.planSeconds += other.plan.planSeconds;
  if (!kept && !cast)
    return overBudget(budget);
  return true;
}

/// Plans one form of the step.
Expected<bool> Compilation::planForm(Phase last, int64_t budget) {
  auto start = std::chrono::steady_clock::now();
  plan.budgetBytes = budget;
  plan.reservedBytes = device.reservedBytes;
  // The cache packs as the place phase does; where the two differ all the same,
  // the phase is right, and another plan of the cache is tried.
  constexpr int kAttempts = 6;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    say("plan ...");
    OwningOpRef<ModuleOp> trial = current->clone();
    Expected<int64_t> arena = tryPlan(*trial, budget, last);
    PlanRecord record = PlanRecord::in(*trial).value_or(PlanRecord());
    plan.smallestFoundBytes = record.smallestFoundBytes;
    plan.impossibleBelowBytes = record.impossibleBelowBytes;
    plan.smallestStoppedEarly = plans && plans->isSmallestStoppedEarly();
    plan.boundSeconds = record.boundPs < 0 ? -1 : secondsOf(record.boundPs);
    if (!arena) {
      // A plan that was found and failed later isn't a matter of the budget.
      if (record.smallestFoundBytes >= 0 && !record.isPlanned())
        return overBudget(budget);
      return std::move(arena.failure());
    }
    if (*arena >= 0)
      plans->correct(chosen, *arena);
    if (budget < 0 || *arena < 0 || *arena + device.reservedBytes <= budget) {
      current = std::move(trial);
      plan.planSeconds = std::chrono::duration<double>(
                             std::chrono::steady_clock::now() - start)
                             .count();
      readFigures();
      if (asked.microBatches > 1)
        measureUnsplit();
      return true;
    }
  }
  return overBudget(budget);
}

/// Says what would fit, and where the smallest plan has its peak.
Failure Compilation::overBudget(int64_t budget) {
  auto text = [](int64_t bytes) {
    char buffer[64];
    snprintf(buffer, sizeof buffer, "%.2f MiB (%lld bytes)",
             double(bytes) / (1 << 20), (long long)bytes);
    return std::string(buffer);
  };
  Failure failure{FailureKind::OverBudget,
                  "the step doesn't fit the budget of " + text(budget),
                  {}};
  failure.notes.push_back(
      "the smallest budget for which a plan is known is " +
      text(plan.smallestFoundBytes) +
      (plan.smallestStoppedEarly ? ", not searched to the end" : ""));
  failure.notes.push_back("no plan can exist below " +
                          text(plan.impossibleBelowBytes));
  if (size_t(planTrace.peakLaunch) < planTrace.launches.size()) {
    const PlanTrace::Launch &peak = planTrace.launches[planTrace.peakLaunch];
    int64_t alive =
        llvm::count_if(planTrace.tensors, [&](const PlanTrace::Tensor &t) {
          return t.begin <= planTrace.peakLaunch &&
                 planTrace.peakLaunch < t.end;
        });
    failure.notes.push_back(
        "the peak of that plan is at " + peak.name +
        (peak.where.empty() ? "" : " (" + peak.where + ")") + ", with " +
        std::to_string(alive) + " tensors alive");
  }
  failure.notes.push_back("--micro-batches=N splits the batch; "
                          "--loss-chunk=ROWS keeps fewer logits");
  return failure;
}

/// What the step would need in one piece; left open where that can't be
/// planTrace.
void Compilation::measureUnsplit() {
  CompileOptions whole = asked;
  whole.microBatches = 1;
  whole.emit = Artifact::Plan; // Weights are of no concern.
  whole.narrowCopies =
      plan.keptCopyBytes ? NarrowCopies::Kept : NarrowCopies::Cast;
  whole.progress = false;
  Compilation unsplit(whole);
  if (!unsplit.runTo(Phase::Shape))
    return;
  for (train::StepOp step : unsplit.module().getOps<train::StepOp>()) {
    sinkUpdates(step);
    FailureOr<StepProblem> stated = buildProblem(step, device);
    if (failed(stated))
      return;
    planning::Problem &problem = stated->problem;
    plan.unsplitSeconds = secondsOf(planning::baseCost(problem));
    for (planning::Recipe &recipe : problem.recipes)
      llvm::erase_if(recipe.overwrites, [](const auto &o) { return !o.must; });
    absl::StatusOr<planning::Profile> profile =
        planning::simulate(problem, planning::baseSolution(problem));
    if (profile.ok())
      plan.unsplitBytes = profile->peakBytes;
  }
}

void Compilation::readFigures() {
  ModuleOp module = *current;
  planTrace.model = modelName();
  planTrace.target = device.name;
  planTrace.precision = asked.precision;
  planTrace.budgetBytes = plan.budgetBytes;
  placePlanTrace(planTrace, module);
  PlanRecord record = PlanRecord::in(module).value_or(PlanRecord());
  plan.livePeakBytes = record.livePeakBytes;
  plan.unconstrainedBytes = record.unconstrainedBytes;
  plan.stepSeconds = secondsOf(record.costPs);
  plan.unconstrainedSeconds = secondsOf(record.unconstrainedCostPs);
  plan.recomputedOps = record.recomputedOps;
  planTrace.stepSeconds = plan.stepSeconds;
  planTrace.unconstrainedSeconds = plan.unconstrainedSeconds;
  plan.microBatches = asked.microBatches;
  for (size_t i = 0; i < planning::kNumClasses; ++i)
    if (record.peakByClass[i] >= 0)
      plan.peakByClass[planning::nameOf(planning::ValueClass(i))] =
          record.peakByClass[i];
  for (auto program : module.getOps<mem::ProgramOp>()) {
    plan.arenaBytes = program.getArenaBytes();
    plan.launches = memLiveness(program).moments.size();
    plan.copies = 0;
    program.walk([&](mem::LaunchOp launch) {
      plan.copies += launch.getCallee() == "Copy";
    });
  }
}
