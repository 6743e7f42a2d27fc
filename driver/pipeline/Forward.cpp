#include "driver/pipeline/Forward.h"

#include "compiler/emit/Emit.h"
#include "compiler/emit/StepInterface.h"
#include "dialects/interfaces/Interfaces.h"
#include "dialects/train/Batch.h"
#include "dialects/train/Train.h"
#include "driver/pipeline/AdapterText.h"
#include "driver/pipeline/Dialects.h"
#include "driver/pipeline/ForwardFile.h"
#include "driver/pipeline/RunPasses.h"
#include "frontends/common/Doubles.h"
#include "frontends/onnx/Import.h"
#include "frontends/torch/Import.h"
#include "passes/Passes.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

using namespace mlir;
using namespace tmc;

std::unique_ptr<MLIRContext> tmc::makeProgramContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false);
  return context;
}

OwningOpRef<ModuleOp> tmc::parseForward(const Forward &forward,
                                        MLIRContext &context) {
  return parseSourceString<ModuleOp>(forward.bytecode, &context);
}

/// Every kept output must be one of the model's.
static Expected<void> checkOutputs(func::FuncOp forward,
                                   const std::vector<std::string> &kept) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < forward.getNumResults(); ++i)
    if (!train::updatedArg(forward, i))
      names.push_back(train::resultName(forward, i).str());
  for (const std::string &name : kept)
    if (!llvm::is_contained(names, name))
      return Failure::usage("--keep-output=" + name +
                            " names no output of the model")
          .note("its outputs are " + llvm::join(names, " "));
  return {};
}

/// The parameters and states of @forward.
static std::vector<ModelValue> valuesOf(func::FuncOp forward) {
  std::vector<ModelValue> values;
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
    values.push_back(std::move(value));
  }
  return values;
}

/// Reads IR, whose values have no sources.
static Expected<OwningOpRef<ModuleOp>>
readIR(const CompileOptions &options, MLIRContext &context, Forward &forward) {
  if (!options.weights.empty())
    return Failure::unsupported(
        "--weights goes with a model; give it to the trainer");
  if (wantsWeights(options))
    forward.weights = std::make_unique<WeightSources>();
  return readForward(options.model, context);
}

/// Reads a model of another format, and its values' sources if they are wanted.
static Expected<OwningOpRef<ModuleOp>>
readFormat(const CompileOptions &options, MLIRContext &context,
           Forward &forward, std::vector<std::string> &warnings) {
  ImportOptions how;
  how.batch = options.batch;
  how.dims = options.dims;
  how.loss = options.loss;
  how.freeze = options.freeze;
  bool isTorch = llvm::StringRef(options.model).ends_with(".pt2");
  Expected<ImportedModel> model =
      (isTorch ? importTorch : importOnnx)(options.model, how, context);
  if (!model)
    return std::move(model.failure());
  llvm::append_range(warnings, model->warnings);
  auto function = model->module->lookupSymbol<func::FuncOp>("forward");
  if (int64_t doubles = frontend::narrowDoubles(function))
    warnings.push_back(
        "doubles are computed in f32: " + std::to_string(doubles) +
        (doubles == 1 ? " value" : " values") +
        " of the model; data and weights in f64 are read as "
        "f32");
  TMC_TRY(checkOutputs(function, options.outputs));
  forward.modelWeights = std::move(model->weights);
  if (!wantsWeights(options))
    return std::move(model->module);
  Expected<WeightSources> gathered = gatherWeights(
      valuesOf(function), *forward.modelWeights, options.weights,
      {options.weightsPrefix.first, options.weightsPrefix.second},
      /*takesCodes=*/options.levers[kBase] != LeverSetting()[kBase]);
  if (!gathered)
    return std::move(gathered.failure());
  forward.weights = std::make_unique<WeightSources>(std::move(*gathered));
  llvm::append_range(warnings, forward.weights->warnings);
  return std::move(model->module);
}

/// Adds the adapters that the options ask for. They go to products as these are
/// after raising, and each program raises the result again: only its loss may
/// change then.
static Expected<void> adapt(ModuleOp module, const CompileOptions &options,
                            Forward &forward) {
  if (!options.lora)
    return {};
  std::vector<std::string> repeated; // Each program's phase warns as well.
  TMC_TRY(runPasses(
      module, Phase::Raise,
      [&](OpPassManager &pm) {
        pm.addNestedPass<func::FuncOp>(createRaise());
        pm.addPass(createCanonicalizerPass());
        pm.addPass(createCSEPass());
        pm.addPass(createAdapt(*options.lora, options.train));
      },
      options, forward.device, repeated));
  forward.adapter = adapterFilesOf(module.lookupSymbol<func::FuncOp>("forward"),
                                   *options.lora, options);
  return {};
}

static std::vector<std::string> filesRead(const Forward &forward,
                                          const CompileOptions &options) {
  std::vector<std::string> files = {options.model};
  std::set<std::string> beside;
  if (forward.modelWeights && forward.weights)
    for (const std::string &name : forward.modelWeights->names())
      beside.insert(forward.modelWeights->fileOf(name));
  for (const std::string &name : beside) {
    llvm::SmallString<128> file = llvm::sys::path::parent_path(options.model);
    llvm::sys::path::append(file, name);
    if (!name.empty() && llvm::sys::fs::exists(file))
      files.push_back(file.str().str());
  }
  if (forward.weights) {
    const SafetensorsSet &given = forward.weights->given;
    if (!given.index().empty())
      files.push_back(given.index());
    for (const SafetensorsFile &file : given.files())
      files.push_back(file.path());
  }
  if (isTargetFile(options.target))
    files.push_back(options.target);
  files.insert(files.end(), options.prices.begin(), options.prices.end());
  if (!options.algorithms.empty())
    files.push_back(options.algorithms);
  return files;
}

/// Warns if the budget is larger than the memory of the card.
static void noteBudget(const CompileOptions &options, const Target &device,
                       std::vector<std::string> &warnings) {
  if (device.backend == Backend::Cuda && device.memoryBytes.device() >= 0 &&
      options.budgetBytes.device().value_or(0) > device.memoryBytes.device())
    warnings.push_back("--budget is more than a process sees of " +
                       options.target + ", " +
                       readableBytes(device.memoryBytes.device()));
}

/// Warns if --base leaves a choice and the model doesn't.
static void noteBase(const CompileOptions &options, const ModelFacts &model,
                     std::vector<std::string> &warnings) {
  if (!model.hasFrozen && leverTable()[kBase].isFree(options.levers[kBase]))
    warnings.push_back("--base=auto has no effect: every parameter is trained; "
                       "--freeze GLOB or --lora says which ones aren't");
}

ModelFacts Forward::facts() const {
  return {samples,
          llvm::any_of(values,
                       [](const ModelValue &value) {
                         return value.kind == ModelValue::Frozen;
                       }),
          weights ? weights->codes : std::string()};
}

/// A hash of the text of `module`, without the lines of the user's files.
static std::string hashOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().enableDebugInfo(false).useLocalScope());
  return identityOf({text});
}

/// Refuses what a mesh of ranks can't do yet.
static Expected<void> checkMesh(const CompileOptions &options) {
  if (options.mesh.ranks() > 1 && !options.outputs.empty())
    return Failure::unsupported("--keep-output keeps the whole batch's rows, "
                                "of which a rank has a part")
        .note("without --devices one device has them all");
  return {};
}

Expected<Forward> tmc::readModel(const CompileOptions &options,
                                 std::vector<std::string> &warnings) {
  Expected<Target> device = targetOf(options);
  if (!device)
    return std::move(device.failure());
  TMC_TRY(checkMesh(options));
  if (device->backend == Backend::Cuda)
    device->reservedBytes += networkReservedBytes(options.mesh.ranks());
  Expected<std::optional<AlgorithmFile>> algorithms =
      algorithmsOf(options, *device);
  if (!algorithms)
    return std::move(algorithms.failure());
  Expected<std::string> attention = attentionOf(options, *device);
  if (!attention)
    return std::move(attention.failure());
  Forward forward;
  forward.attention = std::move(*attention);
  forward.model = llvm::sys::path::stem(options.model).str();
  forward.device = *device;
  forward.algorithms = std::move(*algorithms);
  showProgress(options, std::string(nameOf(Phase::Import)) + " ...");
  std::unique_ptr<MLIRContext> context = makeProgramContext();
  Expected<OwningOpRef<ModuleOp>> read =
      isForwardFile(options.model)
          ? readIR(options, *context, forward)
          : readFormat(options, *context, forward, warnings);
  showProgress(options, "");
  if (!read)
    return std::move(read.failure());
  OwningOpRef<ModuleOp> module = std::move(*read);
  TMC_TRY(adapt(*module, options, forward));
  auto function = module->lookupSymbol<func::FuncOp>("forward");
  forward.values = valuesOf(function);
  forward.samples = train::markUncut(function);
  if (forward.samples % options.mesh.data == 0)
    forward.samples /= options.mesh.data; // Else the batch can't be dealt.
  module->walk([&](Operation *) { ++forward.ops; });
  forward.fingerprint = hashOf(*module);
  llvm::raw_string_ostream os(forward.bytecode);
  // Fails only for a requested format version; none is requested.
  (void)writeBytecodeToFile(*module, os);
  forward.files = filesRead(forward, options);
  noteBudget(options, forward.device, warnings);
  noteBase(options, forward.facts(), warnings);
  return forward;
}
