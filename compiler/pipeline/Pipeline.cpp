#include "compiler/pipeline/Pipeline.h"

#include "compiler/analysis/StepProblem.h"
#include "compiler/analysis/StepUpdates.h"
#include "compiler/emit/Emit.h"
#include "compiler/pipeline/Dialects.h"
#include "compiler/pipeline/ForwardFile.h"
#include "compiler/pipeline/PlantDefect.h"
#include "compiler/pipeline/Reproducer.h"
#include "compiler/pipeline/StateStep.h"
#include "compiler/planning/model/ProblemFile.h"
#include "compiler/support/Escape.h"
#include "dialects/interfaces/Fault.h"
#include "dialects/interfaces/Interfaces.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"
#include "frontends/common/Doubles.h"
#include "frontends/onnx/Import.h"
#include "frontends/torch/Import.h"
#include "passes/OnTarget.h"
#include "passes/Precision.h"
#include "runtime/kernels/CrossEntropy.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <set>
#include <unistd.h>

using namespace mlir;
using namespace tmc;

Planned Compilation::planned() const {
  return {modelName(),
          device.name,
          device.compiledFor(),
          form.figures,
          form.trace,
          modelValues,
          sources ? sources->totalBytes : -1,
          /*library=*/"",
          /*identity=*/""};
}

Compilation::Compilation(CompileOptions options) : asked(std::move(options)) {
  DialectRegistry registry;
  registerAllDialects(registry);
  context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false);
}

std::string Compilation::modelName() const {
  return llvm::sys::path::stem(asked.model).str();
}

std::vector<std::string> Compilation::filesRead() const {
  std::vector<std::string> files = {asked.model};
  std::set<std::string> beside;
  if (imported && sources)
    for (const std::string &name : imported->weights->names())
      beside.insert(imported->weights->fileOf(name));
  for (const std::string &name : beside) {
    llvm::SmallString<128> file = llvm::sys::path::parent_path(asked.model);
    llvm::sys::path::append(file, name);
    if (!name.empty() && llvm::sys::fs::exists(file))
      files.push_back(file.str().str());
  }
  if (!asked.weights.empty())
    files.push_back(asked.weights);
  if (isTargetFile(asked.target))
    files.push_back(asked.target);
  return files;
}

void Compilation::say(const std::string &what) {
  if (asked.progress)
    fprintf(stderr, "\r\033[K%s", visible(what).c_str());
}

Expected<void> Compilation::runTo(Phase last) {
  Expected<Target> found = targetNamed(asked.target);
  if (!found)
    return std::move(found.failure());
  device = *found;
  TMC_TRY(runFrom(Phase::Import, Phase::Import));
  keepForward();
  noteBudget();
  const CompileOptions given = asked;
  if (last == Phase::Import)
    return {};
  Expected<void> done =
      hasFreeLevers(asked) ? runWithLevers(last) : runFrom(Phase::Raise, last);
  if (!done && done.failure().kind == FailureKind::OverBudget &&
      asked.planner.empty())
    suggest(done.failure(), given);
  return done;
}

Expected<void> Compilation::runFrom(Phase first, Phase last) {
  Expected<void> done;
  for (Phase phase = first; done && phase <= last;
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

/// Number of tiles for rows between wide products.
static int64_t tilesIn(ModuleOp module) {
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  auto count = forward->getAttrOfType<IntegerAttr>(train::TrainDialect::kTiles);
  return count ? count.getInt() : 1;
}

/// Number of micro-batches of the batch.
static int64_t piecesIn(ModuleOp module) {
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  auto count = forward ? forward->getAttrOfType<IntegerAttr>(
                             train::TrainDialect::kMicroBatches)
                       : IntegerAttr();
  return (count ? count.getInt() : 1) + bool(module.lookupSymbol("rest"));
}

/// Without --loss-chunk, a loss is computed in chunks if that saves memory and
/// gives the same bits in the same time. Kept logits would be computed twice.
static RaiseOptions raiseOptions(const CompileOptions &asked,
                                 const Target &device) {
  if (asked.lossChunk)
    return {*asked.lossChunk, /*lossChunkIfFree=*/false, asked.microBatches};
  bool isExact = device.backend == Backend::Cpu;
  if (isExact && asked.outputs.empty())
    return {kExactChunkRows, /*lossChunkIfFree=*/true, asked.microBatches};
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

/// Lowers tensors to kernels, in one of the step's forms.
Expected<void> Compilation::shape(bool keepsCopies) {
  Expected<void> done =
      runPasses(*form.module, Phase::Shape, [&](OpPassManager &pm) {
        // No CSE from here on: it would merge statistics recomputed in a norm's
        // gradient with those of its forward pass, and keep them alive.
        pm.addPass(createExpandComposites());
        pm.addPass(createCanonicalizerPass());
        pm.addPass(createFoldIntoKernels());
        pm.addPass(createRoundAsRead({asked.target}, device));
        if (keepsCopies)
          pm.addNestedPass<train::StepOp>(createKeepCopies());
        pm.addPass(createCanonicalizerPass());
        pm.addPass(createFuse());
        pm.addPass(createCopyViews());
        pm.addPass(createVerifyKernels({asked.target}, device));
      });
  if (!done)
    return done;
  form.figures.keptCopyBytes = copyBytesIn(*form.module);
  form.shaped.clear();
  llvm::raw_string_ostream os(form.shaped);
  form.module->print(os);
  return {};
}

std::vector<planning::PlanCache *> Compilation::caches() {
  std::vector<planning::PlanCache *> all;
  for (planning::PlanCache *each : {form.plans.get(), other.plans.get()})
    if (each)
      all.push_back(each);
  return all;
}

Expected<void> Compilation::runPhase(Phase phase) {
  auto canonicalize = [](OpPassManager &pm) {
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createCSEPass());
  };
  switch (phase) {
  case Phase::Import:
    return import();
  case Phase::Raise: {
    Expected<void> done =
        runPasses(*form.module, phase, [&](OpPassManager &pm) {
          pm.addNestedPass<func::FuncOp>(
              createRaise(raiseOptions(asked, device)));
          pm.addNestedPass<func::FuncOp>(createWidenComposites());
          canonicalize(pm);
        });
    if (!done)
      return done;
    form.figures.lossChunk = lossChunkIn(*form.module);
    if (asked.lossChunk.value_or(0) > 0 && !form.figures.lossChunk)
      said.push_back("--loss-chunk has no effect: the loss isn't a "
                     "cross-entropy of rows times a table, or something else "
                     "reads the logits");
    return done;
  }
  case Phase::Split: {
    noteBatchNorms();
    Expected<void> done =
        runPasses(*form.module, phase, [&](OpPassManager &pm) {
          pm.addPass(createSplit({asked.microBatches, asked.batchNorm}));
        });
    if (!done)
      return done;
    markInputRanges(*form.module);
    asked.microBatches = piecesIn(*form.module);
    return done;
  }
  case Phase::Layout: {
    Expected<void> done =
        runPasses(*form.module, phase, [&](OpPassManager &pm) {
          pm.addNestedPass<func::FuncOp>(createLayout());
          canonicalize(pm);
          pm.addNestedPass<func::FuncOp>(createTile({asked.tiles}));
          canonicalize(pm);
        });
    if (!done)
      return done;
    form.figures.tiles = tilesIn(*form.module);
    if (asked.tiles > 1 && form.figures.tiles == 1)
      said.push_back("--tiles has no effect: no product that makes rows longer "
                     "is followed, row by row, by one that ends them");
    return done;
  }
  case Phase::Autodiff:
    return runPasses(*form.module, phase, [&](OpPassManager &pm) {
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
    return runPasses(*form.module, phase, [&](OpPassManager &pm) {
      pm.addNestedPass<train::StepOp>(
          createPrecision({asked.precision, asked.target}, device));
      if (device.backend == Backend::Cuda)
        pm.addNestedPass<train::StepOp>(createLayOutCodes());
      canonicalize(pm);
    });
  case Phase::Shape: {
    bool mayKeep = device.backend == Backend::Cuda &&
                   asked.narrowCopies != NarrowCopies::Cast;
    if (mayKeep && asked.narrowCopies == NarrowCopies::Auto) {
      other.module = form.module->clone();
      other.figures.batchNorm = form.figures.batchNorm;
    }
    Expected<void> done = shape(mayKeep);
    if (done && !copyBytesIn(*form.module))
      other.module = nullptr;
    if (!done || !other.module)
      return done;
    std::swap(form, other);
    done = shape(/*keepsCopies=*/false);
    std::swap(form, other);
    return done;
  }
  default:
    llvm_unreachable("phases from plan on are run together");
  }
}

bool Compilation::hasFP16() {
  if (mayBeFP16(asked.precision))
    return true;
  auto isFP16 = [](Type type) { return getElementTypeOrSelf(type).isF16(); };
  return form.module
      ->walk([&](Operation *op) {
        return llvm::any_of(op->getResultTypes(), isFP16)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

Expected<void> Compilation::import() {
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
    form.module = std::move(*module);
    listValues();
    if (wantsWeights(asked))
      sources = std::make_unique<WeightSources>(); // It has none.
    return {};
  }
  bool isTorch = llvm::StringRef(asked.model).ends_with(".pt2");
  Expected<ImportedModel> model =
      (isTorch ? importTorch : importOnnx)(asked.model, options, *context);
  if (!model)
    return std::move(model.failure());
  imported = std::make_unique<ImportedModel>(std::move(*model));
  said = imported->warnings;
  form.module = std::move(imported->module);
  if (int64_t doubles = frontend::narrowDoubles(
          form.module->lookupSymbol<func::FuncOp>("forward")))
    said.push_back("doubles are computed in f32: " + std::to_string(doubles) +
                   (doubles == 1 ? " value" : " values") +
                   " of the model; data and weights in f64 are read as f32");
  TMC_TRY(checkOutputs());
  listValues();
  if (!wantsWeights(asked))
    return {};
  Expected<WeightSources> gathered =
      gatherWeights(modelValues, *imported->weights, asked.weights,
                    {asked.weightsPrefix.first, asked.weightsPrefix.second});
  if (!gathered)
    return std::move(gathered.failure());
  sources = std::make_unique<WeightSources>(std::move(*gathered));
  said.insert(said.end(), sources->warnings.begin(), sources->warnings.end());
  return {};
}

/// Every kept output must be one of the model's.
Expected<void> Compilation::checkOutputs() {
  auto forward = form.module->lookupSymbol<func::FuncOp>("forward");
  std::vector<std::string> names;
  for (unsigned i = 0; i < forward.getNumResults(); ++i)
    if (!train::updatedArg(forward, i))
      names.push_back(train::resultName(forward, i).str());
  for (const std::string &name : asked.outputs)
    if (!llvm::is_contained(names, name))
      return Failure::usage("--keep-output=" + name +
                            " names no output of the model")
          .note("its outputs are " + llvm::join(names, " "));
  return {};
}

/// Warns if the budget is larger than the memory of the card.
void Compilation::noteBudget() {
  if (device.backend == Backend::Cuda && device.memoryBytes.device() >= 0 &&
      asked.budgetBytes.device().value_or(0) > device.memoryBytes.device())
    said.push_back("--budget is more than a process sees of " + asked.target +
                   ", " + readableBytes(device.memoryBytes.device()));
}

/// Records the effect of --batchnorm, or warns of none.
void Compilation::noteBatchNorms() {
  if (asked.batchNorm.empty())
    return;
  auto forward = form.module->lookupSymbol<func::FuncOp>("forward");
  if (!forward || forward.getOps<nn::BatchNormOp>().empty())
    said.push_back("--batchnorm has no effect: there is no batch norm that "
                   "takes statistics of the batch");
  else if (asked.microBatches > 1 || asked.batchNorm == "frozen")
    form.figures.batchNorm = asked.batchNorm;
}

void Compilation::listValues() {
  auto forward = form.module->lookupSymbol<func::FuncOp>("forward");
  for (BlockArgument argument : forward.getArguments()) {
    unsigned index = argument.getArgNumber();
    std::optional<train::Role> role = train::roleOf(forward, index);
    if (role != train::Role::Param && role != train::Role::State)
      continue;
    auto type = cast<RankedTensorType>(argument.getType());
    ModelValue value;
    value.name = train::argName(forward, index).str();
    if (auto aliases = forward.getArgAttrOfType<ArrayAttr>(
            index, train::TrainDialect::kAliases))
      for (StringAttr alias : aliases.getAsRange<StringAttr>())
        value.aliases.push_back(alias.str());
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

/// The location of a diagnostic, in the model's own names.
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
/// The diagnostics of a run: the first error, its notes, and the warnings.
struct DiagnosticCollector {
  std::string error;
  std::vector<std::string> notes, warnings;
  std::optional<FailureKind> fault; // Cause of the first error; none: a defect.
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

  /// `reproducer`: the last note of a defect.
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

Expected<void>
Compilation::runPasses(ModuleOp module, Phase phase,
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
  bool done = succeeded(pm.run(module));
  said.insert(said.end(), collector.warnings.begin(), collector.warnings.end());
  if (done)
    return {};
  return collector.failure(phase, [&] { return reproducer.write(); });
}

Expected<StepText> Compilation::print(const EmitOptions &options) {
  DiagnosticCollector collector(context.get());
  FailureOr<StepText> text = emitStep(*form.module, options);
  if (succeeded(text))
    return *text;
  return collector.failure(Phase::Emit, [&] {
    std::string module;
    llvm::raw_string_ostream os(module);
    form.module->print(os);
    return writeReproducer(module);
  });
}

/// Writes the step's planning problem, for `tmc-solve` and other planners.
Expected<void> Compilation::writeProblem() {
  OwningOpRef<ModuleOp> copy = form.module->clone();
  const PlanRequest asking = request(Phase::Plan);
  Expected<StepProblem> stated =
      asked.offload.isNone() ? stateStep(*copy, asking)
                             : stateWithMoves(*copy, asking, asking.budgets);
  if (!stated)
    return std::move(stated.failure());
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
  return {};
}

PerSpace<int64_t> tmc::budgetsOf(const CompileOptions &asked,
                                 const Target &device) {
  PerSpace<int64_t> budgets;
  for (auto [space, bytes] : budgets) {
    const bool isThere = space.hasAddresses || !asked.fileDirectory.empty();
    bytes = isThere ? asked.budgetBytes[space.kind].value_or(-1) : 0;
  }
  budgets.device() =
      asked.budgetBytes.device().value_or(device.memoryBytes.device());
  return budgets;
}

Expected<void> Compilation::planToPlace(Phase last) {
  if (!asked.problemFile.empty())
    TMC_TRY(writeProblem());
  Expected<void> done = planForms(form, other, request(last));
  if (done && !isCandidate)
    measureUnsplit(form, request(last));
  return done;
}

PlanRequest Compilation::request(Phase last) {
  return {asked,
          device,
          budgetsOf(asked, device),
          last,
          [this](ModuleOp module, Phase phase, const auto &build) {
            return runPasses(module, phase, build);
          },
          [this](const std::string &what) { say(what); },
          /*isFittedOtherwise=*/false,
          isCandidate};
}
