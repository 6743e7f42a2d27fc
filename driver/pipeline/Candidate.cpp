#include "driver/pipeline/Candidate.h"

#include "compiler/analysis/StepProblem.h"
#include "compiler/analysis/StepUpdates.h"
#include "compiler/planning/model/ProblemFile.h"
#include "dialects/interfaces/Interfaces.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"
#include "driver/pipeline/RunPasses.h"
#include "driver/pipeline/ShardHomes.h"
#include "driver/pipeline/StateStep.h"
#include "passes/OnTarget.h"
#include "passes/Precision.h"
#include "runtime/kernels/CrossEntropy.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tmc;

Candidate::Candidate(const Forward &forward, CompileOptions options)
    : forward(forward), options(std::move(options)),
      context(makeProgramContext()) {
  form.module = parseForward(forward, *context);
}

std::vector<planning::PlanCache *> Candidate::caches() const {
  std::vector<planning::PlanCache *> all;
  for (planning::PlanCache *each : {form.plans.get(), other.plans.get()})
    if (each)
      all.push_back(each);
  return all;
}

std::unique_ptr<Candidate> CandidateCache::take(const LeverSetting &setting) {
  std::lock_guard lock(mutex);
  auto found = kept.find(setting);
  return found == kept.end() ? nullptr : std::move(found->second);
}

void CandidateCache::keep(const LeverSetting &setting,
                          std::unique_ptr<Candidate> candidate) {
  std::lock_guard lock(mutex);
  kept[setting] = std::move(candidate);
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
static RaiseOptions raiseOptions(const CompileOptions &options,
                                 const Target &device) {
  const int64_t pieces = options.levers.count(kMicroBatches);
  if (const std::optional<int64_t> rows = options.levers[kLossChunk].count)
    return {*rows, /*lossChunkIfFree=*/false, pieces};
  bool isExact = device.backend == Backend::Cpu;
  if (isExact && options.outputs.empty())
    return {kExactChunkRows, /*lossChunkIfFree=*/true, pieces};
  return {};
}

/// Pieces of a file, and the maxima of the largest parameter that is encoded on
/// its way (runtime/step/FrozenValues.h).
static int64_t loadStagingIn(ModuleOp module) {
  constexpr int64_t kPieces = 8 << 20, kNumbersOfByte = 16;
  int64_t most = 0;
  for (auto step : module.getOps<train::StepOp>())
    for (unsigned i = 0; i < step.getNumArguments(); ++i)
      if (auto stored = step.getArgAttrOfType<train::StoredAttr>(
              i, train::TrainDialect::kStored))
        most = std::max(most, stored.getType().getNumElements());
  return kPieces + most / kNumbersOfByte;
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

/// Whether any value of the step may become fp16.
static bool hasFP16(ModuleOp module, const CompileOptions &options) {
  if (mayBeFP16(options.levers.name(kPrecision)))
    return true;
  auto isFP16 = [](Type type) { return getElementTypeOrSelf(type).isF16(); };
  return module
      .walk([&](Operation *op) {
        return llvm::any_of(op->getResultTypes(), isFP16)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

static Expected<void> run(Candidate &candidate, Phase phase,
                          const BuildPasses &build) {
  return runPasses(*candidate.form.module, phase, build, candidate.options,
                   candidate.forward.device, candidate.warnings);
}

static void canonicalize(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

static Expected<void> raise(Candidate &candidate) {
  const CompileOptions &options = candidate.options;
  TMC_TRY(run(candidate, Phase::Raise, [&](OpPassManager &pm) {
    pm.addNestedPass<func::FuncOp>(
        createRaise(raiseOptions(options, candidate.forward.device)));
    pm.addNestedPass<func::FuncOp>(createWidenComposites());
    canonicalize(pm);
    if (candidate.forward.device.backend == Backend::Cuda)
      pm.addNestedPass<func::FuncOp>(
          createPadRows({mayUseTensorCores(options.levers.name(kPrecision))}));
  }));
  PlanFigures &figures = candidate.form.figures;
  figures.lossChunk = lossChunkIn(*candidate.form.module);
  if (options.levers.count(kLossChunk) > 0 && !figures.lossChunk)
    candidate.warnings.push_back(
        "--loss-chunk has no effect: the loss isn't a cross-entropy of rows "
        "times a table, or something else reads the logits");
  return {};
}

/// Records the effect of --batchnorm, or warns of none.
static void noteBatchNorms(Candidate &candidate) {
  const CompileOptions &options = candidate.options;
  if (options.batchNorm.empty())
    return;
  auto forward = candidate.form.module->lookupSymbol<func::FuncOp>("forward");
  if (!forward || forward.getOps<nn::BatchNormOp>().empty())
    candidate.warnings.push_back("--batchnorm has no effect: there is no batch "
                                 "norm that takes statistics of the batch");
  else if (options.levers.count(kMicroBatches) > 1 ||
           options.batchNorm == "frozen")
    candidate.form.figures.batchNorm = options.batchNorm;
}

static Expected<void> split(Candidate &candidate) {
  CompileOptions &options = candidate.options;
  noteBatchNorms(candidate);
  TMC_TRY(run(candidate, Phase::Split, [&](OpPassManager &pm) {
    // Ranks can share the channels of a batch norm that updates no statistics.
    if (options.mesh.tensor > 1 && options.batchNorm == "frozen")
      pm.addPass(createSplit({1, 1, options.batchNorm}));
    pm.addPass(createCut({options.mesh.tensor}));
    pm.addPass(createSplit({options.levers.count(kMicroBatches),
                            options.mesh.data, options.batchNorm}));
  }));
  candidate.form.figures.mesh = options.mesh;
  markInputRanges(*candidate.form.module);
  options.levers[kMicroBatches].count = piecesIn(*candidate.form.module);
  return {};
}

static Expected<void> layOut(Candidate &candidate) {
  const int64_t tiles = candidate.options.levers.count(kTiles);
  TMC_TRY(run(candidate, Phase::Layout, [&](OpPassManager &pm) {
    pm.addNestedPass<func::FuncOp>(createLayout());
    canonicalize(pm);
    pm.addNestedPass<func::FuncOp>(createTile({tiles}));
    canonicalize(pm);
  }));
  int64_t &made = candidate.form.figures.tiles;
  made = tilesIn(*candidate.form.module);
  if (tiles > 1 && made == 1)
    candidate.warnings.push_back(
        "--tiles has no effect: no product that makes rows longer is followed, "
        "row by row, by one that ends them");
  return {};
}

static Expected<void> differentiate(Candidate &candidate) {
  const CompileOptions &options = candidate.options;
  return run(candidate, Phase::Autodiff, [&](OpPassManager &pm) {
    AutodiffOptions how;
    how.optimizer = options.levers.name(kOptimizer);
    how.lossScaleSpec = options.lossScale;
    if (options.lossScale == "auto")
      how.lossScaleSpec =
          hasFP16(*candidate.form.module, options) ? "dynamic" : "none";
    how.outputs.assign(options.outputs.begin(), options.outputs.end());
    pm.addPass(
        createJoinProducts({how.optimizer, options.levers.name(kPrecision),
                            options.levers.name(kBase)}));
    pm.addPass(createAutodiff(how));
    canonicalize(pm);
  });
}

static Expected<void> narrow(Candidate &candidate) {
  const CompileOptions &options = candidate.options;
  const Target &device = candidate.forward.device;
  PrecisionOptions how;
  how.spec = options.levers.name(kPrecision);
  how.target = options.target;
  return run(candidate, Phase::Precision, [&](OpPassManager &pm) {
    pm.addNestedPass<train::StepOp>(createPrecision(how, device));
    pm.addNestedPass<train::StepOp>(
        createStoreFrozen({options.levers.name(kBase)}));
    if (device.backend == Backend::Cuda)
      pm.addNestedPass<train::StepOp>(createLayOutCodes());
    canonicalize(pm);
  });
}

Expected<void> tmc::shapeForm(Candidate &candidate, StepForm &form) {
  const CompileOptions &options = candidate.options;
  const Target &device = candidate.forward.device;
  auto build = [&](OpPassManager &pm) {
    pm.addNestedPass<train::StepOp>(
        createShard({form.shardLevel, form.wholeParams, form.addsShards,
                     form.copies == NarrowCopies::Kept}));
    // No CSE from here on: it would merge statistics recomputed in a norm's
    // gradient with those of its forward pass, and keep them alive.
    pm.addPass(createExpandComposites());
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createFoldIntoKernels());
    pm.addPass(createRoundAsRead({options.target}, device));
    if (device.backend == Backend::Cpu)
      pm.addPass(createDequantizeAsRead());
    if (form.copies == NarrowCopies::Kept)
      pm.addNestedPass<train::StepOp>(createKeepCopies());
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createFuse());
    pm.addPass(createCopyViews());
    if (device.backend == Backend::Cuda)
      pm.addPass(createChooseAttention(
          {options.target, candidate.forward.attention}, device));
    pm.addPass(createVerifyKernels({options.target}, device));
  };
  TMC_TRY(runPasses(*form.module, Phase::Shape, build, options, device,
                    candidate.warnings));
  form.figures.shardLevel = form.shardLevel;
  form.figures.wholeParams = form.wholeParams;
  form.figures.addsShards = form.addsShards;
  form.figures.keptCopyBytes = copyBytesIn(*form.module);
  form.figures.loadStagingBytes = loadStagingIn(*form.module);
  form.shaped.clear();
  llvm::raw_string_ostream os(form.shaped);
  form.module->print(os);
  return {};
}

/// Shapes the programs of a rank: one that keeps shards of the moments, and one
/// that keeps the fewest bytes.
static Expected<void> shapeShards(Candidate &candidate) {
  StepForm &form = candidate.form, &other = candidate.other;
  const std::optional<int64_t> asked = candidate.options.shardLevel;
  if (candidate.forward.device.backend == Backend::Cuda &&
      candidate.options.narrowCopies != NarrowCopies::Cast)
    form.copies = NarrowCopies::Kept;
  form.shardLevel = asked.value_or(2);
  form.wholeParams = candidate.options.wholeParams;
  form.addsShards = candidate.options.sums == RankSums::Shards;
  if (!asked || mayAddShards(candidate)) {
    candidate.unsharded = anotherForm(form);
    other = anotherForm(form);
    other.shardLevel = asked.value_or(3);
    other.wholeParams = form.wholeParams;
    other.addsShards |= mayAddShards(candidate);
  }
  TMC_TRY(shapeForm(candidate, form));
  if (other.module)
    TMC_TRY(shapeForm(candidate, other));
  if (other.shaped == form.shaped) { // All parameters are small.
    other = {};
    candidate.unsharded = {};
  }
  return {};
}

/// Shapes the programs of all settings of narrow copies that the flag allows.
static Expected<void> shape(Candidate &candidate) {
  if (candidate.options.mesh.data > 1)
    return shapeShards(candidate);
  StepForm &form = candidate.form, &other = candidate.other;
  const NarrowCopies asked = candidate.options.narrowCopies;
  const bool mayKeep = candidate.forward.device.backend == Backend::Cuda &&
                       asked != NarrowCopies::Cast;
  form.copies = mayKeep ? NarrowCopies::Kept : NarrowCopies::Cast;
  if (mayKeep && asked == NarrowCopies::Auto) {
    other = anotherForm(form);
    other.copies = NarrowCopies::Cast;
  }
  TMC_TRY(shapeForm(candidate, form));
  if (!form.figures.keptCopyBytes) // The two would be the same.
    other = {};
  return other.module ? shapeForm(candidate, other) : Expected<void>();
}

Expected<void> tmc::buildPrograms(Candidate &candidate, Phase first,
                                  Phase last) {
  static constexpr std::pair<Phase, Expected<void> (*)(Candidate &)> kPhases[] =
      {{Phase::Raise, raise},      {Phase::Split, split},
       {Phase::Layout, layOut},    {Phase::Autodiff, differentiate},
       {Phase::Precision, narrow}, {Phase::Shape, shape}};
  Expected<void> done;
  for (auto [phase, build] : kPhases)
    if (done && first <= phase && phase <= last) {
      showProgress(candidate.options, std::string(nameOf(phase)) + " ...");
      done = build(candidate);
    }
  showProgress(candidate.options, "");
  return done;
}

PerSpace<int64_t> tmc::budgetsOf(const CompileOptions &asked,
                                 const Target &device) {
  PerSpace<int64_t> budgets = device.memoryBytes;
  for (auto [space, bytes] : budgets) {
    const bool isThere = space.hasAddresses || !asked.fileDirectory.empty();
    bytes = isThere ? asked.budgetBytes[space.kind].value_or(bytes) : 0;
  }
  return budgets;
}

PlanRequest tmc::planRequest(Candidate &candidate, Phase last) {
  PlanRequest request{candidate.options, candidate.forward.device,
                      budgetsOf(candidate.options, candidate.forward.device),
                      &candidate.warnings, last};
  request.isCandidate = candidate.isOneOfSeveral;
  return request;
}

/// Writes the step's planning problem, for `tmc-solve` and other planners.
static Expected<void> writeProblem(Candidate &candidate) {
  const CompileOptions &options = candidate.options;
  OwningOpRef<ModuleOp> copy = candidate.form.module->clone();
  const PlanRequest asking = planRequest(candidate, Phase::Plan);
  Expected<StepProblem> stated =
      options.offload.isNone() ? stateStep(*copy, asking)
                               : stateWithMoves(*copy, asking, asking.budgets);
  if (!stated)
    return std::move(stated.failure());
  std::error_code error;
  llvm::raw_fd_ostream os(options.problemFile, error);
  if (!error) {
    os << planning::printProblem(stated->problem);
    os.flush();
    error = os.error();
    os.clear_error();
  }
  if (error)
    return Failure::world("can't write '" + options.problemFile +
                          "': " + error.message());
  return {};
}

Expected<void> tmc::planCandidate(Candidate &candidate, Phase last) {
  if (!candidate.options.problemFile.empty())
    TMC_TRY(writeProblem(candidate));
  const PlanRequest request = planRequest(candidate, last);
  Expected<void> done = planForms(candidate.form, candidate.other, request);
  if (done && candidate.unsharded.module && mayAddShards(candidate))
    done = tryOtherSums(candidate, request);
  if (done && candidate.unsharded.module && !candidate.options.shardLevel)
    done = keepSomeWhole(candidate, request);
  showProgress(candidate.options, "");
  return done;
}

void tmc::measureUnsplit(Candidate &candidate) {
  if (candidate.options.levers.count(kMicroBatches) <= 1)
    return;
  CompileOptions whole = candidate.options;
  whole.levers[kMicroBatches].count = 1;
  whole.narrowCopies = candidate.form.figures.keptCopyBytes
                           ? NarrowCopies::Kept
                           : NarrowCopies::Cast;
  whole.progress = false;
  Candidate unsplit(candidate.forward, whole);
  if (buildPrograms(unsplit, Phase::Raise, Phase::Shape))
    measureUnsplit(candidate.form, *unsplit.form.module,
                   candidate.forward.device);
}
