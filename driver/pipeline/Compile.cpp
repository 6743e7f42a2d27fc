#include "driver/pipeline/Compile.h"

#include "compiler/emit/Emit.h"
#include "compiler/emit/StepInterface.h"
#include "compiler/report/PlanReport.h"
#include "compiler/report/Snapshot.h"
#include "compiler/support/Escape.h"
#include "driver/pipeline/Config.h"
#include "driver/pipeline/Depfile.h"
#include "driver/pipeline/HostCompiler.h"
#include "driver/pipeline/Messages.h"
#include "driver/pipeline/NetworkCompiler.h"
#include "driver/pipeline/OutputDirectory.h"
#include "driver/pipeline/RunPasses.h"
#include "driver/pipeline/Sweep.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tmc;

/// Facts of a compiled step that the emitted sources contain.
static EmitOptions emitOptions(const Compiled &compiled) {
  const CompileOptions &options = compiled.candidate->options;
  const PlanFigures &figures = compiled.step().figures;
  EmitOptions emit;
  emit.model = compiled.forward->model;
  emit.backend = compiled.forward->device.backend;
  emit.target = compiled.forward->device.compiledFor();
  emit.mesh = options.mesh;
  emit.budgetBytes = figures.budgetBytes.device();
  emit.reservedBytes = figures.record.reservedBytes;
  emit.predictedSeconds = figures.stepSeconds();
  emit.unconstrainedSeconds = figures.unconstrainedSeconds;
  emit.fileDirectory = options.fileDirectory;
  emit.algorithms = compiled.forward->table();
  emit.adapter = compiled.forward->adapter;
  emit.version = TMC_VERSION;
  emit.modelFingerprint = compiled.forward->fingerprint;
  emit.planFingerprint = planFingerprint(compiled);
  mem::ProgramOp program = *compiled.module().getOps<mem::ProgramOp>().begin();
  emit.entrySeconds = predictedSeconds(compiled.step().trace, program);
  return emit;
}

/// A step as text, and its interface for programs.
struct NamedStep {
  StepText text;
  StepInterface interface;
};

static Expected<void> writePlan(const Compiled &compiled,
                                OutputDirectory &directory,
                                const std::string &identity) {
  Planned planned = plannedOf(compiled);
  planned.identity = identity;
  const Artifact emit = compiled.candidate->options.emit;
  if (emit == Artifact::Exe || emit == Artifact::Lib)
    planned.library = libraryOf(compiled.candidate->options.name);
  return directory.write("plan.json", planJson(planned));
}

/// Writes the files of the output directory `output`, except linked ones.
static Expected<void> writeFiles(const Compiled &compiled,
                                 const std::string &output,
                                 OutputDirectory &directory, NamedStep &step) {
  const CompileOptions &options = compiled.candidate->options;
  if (options.emit == Artifact::Plan)
    return writePlan(compiled, directory, "");
  EmitOptions emit = emitOptions(compiled);
  Expected<StepText> source = printStep(compiled.module(), emit);
  if (!source)
    return std::move(source.failure());
  const WeightSources &weights = *compiled.forward->weights;
  const bool copies = copiesWeights(weights, output, options.copyWeights);
  Expected<std::string> digest = digestOf(weights, copies);
  if (!digest)
    return std::move(digest.failure());
  step.text = std::move(*source);
  step.interface = {options.name, identityOf({TMC_VERSION, options.name,
                                              step.text.whole, *digest})};
  const std::string tail = interfaceText(step.interface);
  step.text.whole += tail;
  step.text.main += tail;
  TMC_TRY(writeWeights(weights, copies, step.interface.identity, directory));
  mem::ProgramOp program = *compiled.module().getOps<mem::ProgramOp>().begin();
  const bool cuda = emit.backend == Backend::Cuda;
  std::vector<std::pair<std::string, std::string>> files = {
      {cuda ? "step.cu" : "step.cpp", step.text.whole},
      {"step.h", emitHeader(program, emit, step.interface)},
      {"step.mlir",
       identityComment(step.interface.identity) + compiled.step().shaped},
      {"report.html", planHtml(plannedOf(compiled), knownCurve(compiled))},
      {"plan-trace.json", planTraceJson(compiled.step().trace)}};
  if (!options.config.empty())
    files.push_back({"config.toml", options.config});
  if (!options.snapshot.empty())
    files.push_back({llvm::sys::path::filename(options.snapshot).str(),
                     memorySnapshot(compiled.step().trace)});
  if (!options.trace.empty())
    files.push_back({llvm::sys::path::filename(options.trace).str(),
                     stepTrace(compiled.step().trace)});
  for (const auto &[name, content] : files)
    TMC_TRY(directory.write(name, content));
  return writePlan(compiled, directory, step.interface.identity);
}

static Expected<void> link(const Compiled &compiled,
                           const Installation &installation,
                           OutputDirectory &directory, const NamedStep &step) {
  auto header =
      llvm::MemoryBuffer::getFile(installation.includeDir + "/runtime/tmc.h");
  if (!header)
    return Failure::world("can't read '" + installation.includeDir +
                          "/runtime/tmc.h'");
  TMC_TRY(directory.write("tmc.h", (*header)->getBuffer().str()));
  const CompileOptions &options = compiled.candidate->options;
  if (options.emit != Artifact::Exe && options.emit != Artifact::Lib)
    return {};
  // The pieces repeat step.cpp, and are removed after their compilation.
  std::string suffix =
      compiled.forward->device.backend == Backend::Cuda ? ".cu" : ".cpp";
  std::vector<StepPiece> pieces;
  auto add = [&](const std::string &name, const std::string &text,
                 bool computes) {
    pieces.push_back({directory.scratch(name + suffix), computes});
    return directory.writeScratch(name + suffix, text);
  };
  TMC_TRY(add("main", step.text.main, /*computes=*/false));
  for (const auto &[i, text] : llvm::enumerate(step.text.kernels))
    TMC_TRY(add("kernels_" + std::to_string(i), text, true));
  const std::string exports = "exports.map";
  TMC_TRY(directory.writeScratch(exports, exportedNames(step.interface)));
  if (options.mesh.ranks() > 1 && options.emit == Artifact::Exe) {
    showProgress(options, "network ...");
    Expected<std::vector<std::string>> networks = compileNetworks(
        installation, compiled.forward->device.backend, "",
        directory.scratch("network"),
        [&](const std::string &file) { return directory.staged(file); });
    if (!networks)
      return std::move(networks.failure());
  }
  ObjectCache cache =
      ObjectCache::open(options.useCache ? ObjectCache::userDirectory() : "");
  if (!cache.warning().empty())
    note(cache.warning());
  showProgress(options, "link ...");
  Expected<void> done = compileStep(
      installation, compiled.forward->device, pieces,
      {directory.staged(libraryOf(options.name)), directory.scratch(exports),
       options.emit == Artifact::Exe ? directory.staged("train") : "",
       options.mesh.ranks() > 1},
      cache);
  showProgress(options, "");
  return done;
}

/// The depfile's rule: all written files, and the files that they depend on.
static DependRule dependRule(const Compiled &compiled,
                             const Installation &installation,
                             const std::string &output,
                             const std::vector<std::string> &written) {
  const CompileOptions &options = compiled.candidate->options;
  DependRule rule{options.depfileTargets,
                  filesOf(installation, compiled.forward->device,
                          options.mesh.ranks() > 1)};
  if (rule.targets.empty()) {
    // First the file that is always there and moved into place last.
    rule.targets = {output + "/plan.json"};
    for (const std::string &name : written)
      if (name != "plan.json")
        rule.targets.push_back(output + "/" + name);
  }
  for (const std::string &file : compiled.forward->files)
    rule.prerequisites.push_back(file);
  return rule;
}

/// The output directory by the flags. Only the file name of the model's path is
/// used.
static Expected<std::string> outputOf(const CompileOptions &options) {
  if (!options.output.empty())
    return options.output;
  std::string name = llvm::sys::path::stem(options.model).str();
  if (name.empty() || name == "." || name == "..")
    return Failure::usage("'" + options.model +
                          "' gives no name for the output directory")
        .note("give -o DIR");
  return name;
}

/// Checks before minutes of planning.
static Expected<void> checkOutput(const CompileOptions &options,
                                  const std::string &output) {
  if (!options.force)
    TMC_TRY(OutputDirectory::check(output));
  if (options.depfile.empty())
    return {};
  std::vector<std::string> targets = options.depfileTargets;
  if (targets.empty())
    targets = {output + "/plan.json"};
  for (auto done : {checkMakeNames(targets, RulePart::Target),
                    checkMakeNames({options.model}, RulePart::Prerequisite)})
    if (!done)
      return done;
  return {};
}

namespace {

/// A step whose files are written, and not in their places yet.
struct WrittenStep {
  Compiled compiled;
  OutputDirectory directory;
  std::vector<std::string> replaced;
  DependRule rule;
};

} // namespace

/// Writes the files of a compiled step for the directory `output`.
static Expected<WrittenStep> writeStep(Compiled compiled,
                                       const std::string &output) {
  const CompileOptions &options = compiled.candidate->options;
  Expected<Installation> installation = Installation::find();
  if (!installation)
    return std::move(installation.failure());
  Expected<OutputDirectory> directory =
      OutputDirectory::create(output, options.force);
  if (!directory)
    return std::move(directory.failure());
  NamedStep step;
  TMC_TRY(writeFiles(compiled, output, *directory, step));
  if (options.emit != Artifact::Plan)
    TMC_TRY(link(compiled, *installation, *directory, step));
  std::vector<std::string> replaced;
  if (compiled.forward->weights)
    replaced = oldWeights(output);
  DependRule rule;
  if (!options.depfile.empty()) {
    rule = dependRule(compiled, *installation, output, directory->names());
    TMC_TRY(checkRule(rule));
  }
  return WrittenStep{std::move(compiled), std::move(*directory),
                     std::move(replaced), std::move(rule)};
}

/// Moves the files into place, and says what they are.
static Expected<void> publish(WrittenStep &written, const std::string &output) {
  const Compiled &compiled = written.compiled;
  const CompileOptions &options = compiled.candidate->options;
  TMC_TRY(written.directory.commit(written.replaced));
  if (!options.depfile.empty())
    TMC_TRY(writeDepfile(options.depfile, written.rule));
  if (options.quiet)
    return {};
  summarize(planTable(plannedOf(compiled)) + "  wrote " + output + "/\n");
  if (const WeightSources *weights = compiled.forward->weights.get();
      weights && !weights->missing.empty())
    note("the values of " + std::to_string(weights->missing.size()) + " of " +
         std::to_string(compiled.forward->values.size()) +
         " tensors aren't here: " + weights->why +
         "; train with --weights FILE or --init random:SEED");
  return {};
}

/// Removes the steps in `folders`, of an earlier compilation for several
/// numbers of ranks, that aren't among `kept`.
static Expected<void> removeMeshes(const std::string &output,
                                   const std::vector<std::string> &folders,
                                   const std::vector<Mesh> &kept) {
  for (const std::string &name : folders) {
    if (llvm::any_of(kept, [&](const Mesh &mesh) {
          return name == meshFolderOf(mesh.ranks());
        }))
      continue;
    const std::string folder = output + "/" + name;
    Expected<OutputDirectory> old = OutputDirectory::create(folder);
    if (!old)
      return std::move(old.failure());
    TMC_TRY(old->commit(oldWeights(folder), /*makesNoStep=*/true));
    llvm::sys::fs::remove(folder); // If nothing of others is in it.
  }
  return {};
}

/// A step for each of `options.meshes` in a folder of its own, and a trainer
/// beside them that becomes the one of its world. Nothing is moved into place
/// before all are written.
static Expected<void> compileMeshes(const CompileOptions &options,
                                    const std::string &output) {
  if (options.to || options.emit != Artifact::Exe || !options.depfile.empty())
    return Failure::usage("several numbers of --devices make trainers: without "
                          "--to, --emit and -MF")
        .note("give one number, and a directory of its own");
  Expected<Installation> installation = Installation::find();
  if (!installation)
    return std::move(installation.failure());
  TMC_TRY(checkOutput(options, output));
  Expected<OutputDirectory> directory =
      OutputDirectory::create(output, options.force);
  if (!directory)
    return std::move(directory.failure());
  const auto before = OutputDirectory::meshFoldersIn(output);
  std::vector<WrittenStep> steps;
  for (const Mesh &mesh : options.meshes) {
    CompileOptions its = options;
    its.mesh = mesh;
    its.config.clear(); // Beside the launcher.
    Compiled compiled = compileTo(its, Phase::Place);
    for (const std::string &warning : compiled.warnings)
      if (steps.empty())
        warn(warning);
    if (!compiled.done)
      return std::move(compiled.done.failure())
          .note("with --devices=" + std::to_string(mesh.ranks()));
    Expected<WrittenStep> written = writeStep(
        std::move(compiled), output + "/" + meshFolderOf(mesh.ranks()));
    if (!written)
      return std::move(written.failure());
    steps.push_back(std::move(*written));
  }
  TMC_TRY(compileLauncher(*installation, directory->staged("train"),
                          directory->scratch("launch")));
  if (!options.config.empty())
    TMC_TRY(directory->write("config.toml", options.config));
  for (WrittenStep &step : steps) {
    const Mesh &mesh = step.compiled.candidate->options.mesh;
    TMC_TRY(publish(step, output + "/" + meshFolderOf(mesh.ranks())));
  }
  TMC_TRY(removeMeshes(output, before, options.meshes));
  return directory->commit(oldWeights(output), /*makesNoStep=*/true);
}

Expected<void> tmc::compileModel(const CompileOptions &options) {
  Expected<std::string> output = outputOf(options);
  if (options.meshes.size() > 1)
    return output ? compileMeshes(options, *output)
                  : Expected<void>(std::move(output.failure()));
  const bool isPrinted = options.to || options.emit == Artifact::Mlir;
  if (!isPrinted) {
    if (!output)
      return std::move(output.failure());
    TMC_TRY(checkOutput(options, *output));
  }
  Phase last = std::min(options.to.value_or(Phase::Place), Phase::Place);
  if (options.emit == Artifact::Mlir)
    last = std::min(last, Phase::Place);
  Compiled compiled = compileTo(options, last);
  Expected<void> &done = compiled.done;
  for (const std::string &warning : compiled.warnings)
    warn(warning);
  if (!done)
    return done;
  if ((options.to && *options.to <= Phase::Place) ||
      options.emit == Artifact::Mlir) {
    compiled.module().print(llvm::outs());
    return {};
  }
  if (options.to == Phase::Emit) {
    EmitOptions emit;
    emit.model = compiled.forward->model;
    emit.backend = compiled.forward->device.backend;
    emit.target = compiled.forward->device.compiledFor();
    emit.mesh = options.mesh;
    emit.fileDirectory = options.fileDirectory;
    emit.algorithms = compiled.forward->table();
    emit.adapter = compiled.forward->adapter;
    Expected<StepText> source = printStep(compiled.module(), emit);
    if (!source)
      return std::move(source.failure());
    llvm::outs() << source->whole;
    return {};
  }
  Expected<WrittenStep> written = writeStep(std::move(compiled), *output);
  if (!written)
    return std::move(written.failure());
  const auto meshes = OutputDirectory::meshFoldersIn(*output);
  TMC_TRY(publish(*written, *output));
  return removeMeshes(*output, meshes, {});
}
