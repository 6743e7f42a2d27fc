#include "compiler/pipeline/Compile.h"

#include "compiler/emit/Emit.h"
#include "compiler/pipeline/HostCompiler.h"
#include "compiler/pipeline/OutputDirectory.h"
#include "compiler/pipeline/Sweep.h"
#include "compiler/report/PlanReport.h"
#include "compiler/report/Snapshot.h"
#include "compiler/support/Escape.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

using namespace mlir;
using namespace tmc;

static bool isColoured() { return isatty(2) && !getenv("NO_COLOR"); }

void tmc::report(const Failure &failure) {
  llvm::raw_ostream &os = llvm::errs();
  os << "tmc: " << (isColoured() ? "\033[31merror:\033[0m " : "error: ")
     << visible(failure.message) << "\n";
  for (const std::string &note : failure.notes)
    os << "tmc: note: " << visible(note) << "\n";
}

void tmc::warn(const std::string &message) {
  llvm::errs() << "tmc: warning: " << visible(message) << "\n";
}

/// Writes all that the output directory holds beside what is linked.
static Expected<bool> writeFiles(Compilation &compilation,
                                 OutputDirectory &directory, StepText &step) {
  const CompileOptions &options = compilation.options();
  if (auto done = directory.write("plan.json", planJson(compilation.planned()));
      !done)
    return done;
  if (options.emit == Artifact::Plan)
    return true;
  EmitOptions emit;
  emit.model = compilation.modelName();
  emit.backend = compilation.target().backend;
  emit.target = compilation.target().compiledFor();
  emit.budgetBytes = compilation.figures().budgetBytes;
  emit.reservedBytes = compilation.figures().reservedBytes;
  emit.predictedSeconds = compilation.figures().stepSeconds;
  emit.unconstrainedSeconds = compilation.figures().unconstrainedSeconds;
  emit.fileDirectory = options.fileDirectory;
  mem::ProgramOp program =
      *compilation.module().getOps<mem::ProgramOp>().begin();
  emit.entrySeconds = predictedSeconds(compilation.trace(), program);
  Expected<StepText> source = compilation.print(emit);
  if (!source)
    return std::move(source.failure());
  step = std::move(*source);
  bool cuda = emit.backend == Backend::Cuda;
  if (auto done = writeWeights(*compilation.weights(), directory); !done)
    return done;
  std::vector<std::pair<std::string, std::string>> files = {
      {cuda ? "step.cu" : "step.cpp", step.whole},
      {"step.h", emitHeader(program, emit)},
      {"step.mlir", compilation.shapedText()},
      {"report.html", planHtml(compilation.planned(), knownCurve(compilation))},
      {"plan-trace.json", planTraceJson(compilation.trace())}};
  if (!options.snapshot.empty())
    files.push_back({llvm::sys::path::filename(options.snapshot).str(),
                     memorySnapshot(compilation.trace())});
  if (!options.trace.empty())
    files.push_back({llvm::sys::path::filename(options.trace).str(),
                     stepTrace(compilation.trace())});
  for (const auto &[name, content] : files)
    if (auto done = directory.write(name, content); !done)
      return done;
  return true;
}

static Expected<bool> link(Compilation &compilation, OutputDirectory &directory,
                           const StepText &step) {
  Expected<Installation> installation = Installation::find();
  if (!installation)
    return std::move(installation.failure());
  auto header =
      llvm::MemoryBuffer::getFile(installation->includeDir + "/runtime/tmc.h");
  if (!header)
    return Failure::world("can't read '" + installation->includeDir +
                          "/runtime/tmc.h'");
  if (auto done = directory.write("tmc.h", (*header)->getBuffer().str()); !done)
    return done;
  Artifact emit = compilation.options().emit;
  if (emit != Artifact::Exe && emit != Artifact::Lib)
    return true;
  // The pieces say what step.cpp does, and go when they are compiled.
  std::string suffix =
      compilation.target().backend == Backend::Cuda ? ".cu" : ".cpp";
  std::vector<StepPiece> pieces;
  auto add = [&](const std::string &name, const std::string &text,
                 bool computes) {
    pieces.push_back({directory.staged(name + suffix), computes});
    return directory.write(name + suffix, text);
  };
  if (auto done = add("main", step.main, /*computes=*/false); !done)
    return done;
  for (const auto &[i, text] : llvm::enumerate(step.kernels))
    if (auto done = add("kernels_" + std::to_string(i), text, true); !done)
      return done;
  std::string cached =
      compilation.options().useCache ? ObjectCache::userDirectory() : "";
  Expected<bool> done =
      compileStep(*installation, compilation.target(), pieces,
                  directory.staged("libstep.so"),
                  emit == Artifact::Exe ? directory.staged("train") : "",
                  ObjectCache(cached));
  for (const StepPiece &piece : pieces)
    llvm::sys::fs::remove(piece.source);
  return done;
}

/// A rule for make and ninja: the outputs follow from the model file.
static Expected<bool> writeDepfile(const CompileOptions &options,
                                   const std::string &output) {
  std::error_code error;
  llvm::raw_fd_ostream os(options.depfile, error);
  if (error)
    return Failure::world("can't write '" + options.depfile +
                          "': " + error.message());
  os << output << "/plan.json: " << options.model
     << (options.weights.empty() ? "" : " ") << options.weights << "\n";
  return true;
}

Expected<bool> tmc::compileModel(const CompileOptions &options) {
  Compilation compilation(options);
  Phase last = std::min(options.to.value_or(Phase::Place), Phase::Place);
  if (options.emit == Artifact::Mlir)
    last = std::min(last, Phase::Place);
  Expected<bool> done = compilation.runTo(last);
  for (const std::string &warning : compilation.warnings())
    warn(warning);
  if (!done)
    return done;
  if ((options.to && *options.to <= Phase::Place) ||
      options.emit == Artifact::Mlir) {
    compilation.module().print(llvm::outs());
    return true;
  }
  if (options.to == Phase::Emit) {
    EmitOptions emit;
    emit.model = compilation.modelName();
    emit.backend = compilation.target().backend;
    emit.target = compilation.target().compiledFor();
    emit.fileDirectory = options.fileDirectory;
    Expected<StepText> source = compilation.print(emit);
    if (!source)
      return std::move(source.failure());
    llvm::outs() << source->whole;
    return true;
  }
  std::string output =
      options.output.empty() ? compilation.modelName() : options.output;
  Expected<OutputDirectory> directory = OutputDirectory::create(output);
  if (!directory)
    return std::move(directory.failure());
  StepText step;
  if (done = writeFiles(compilation, *directory, step); !done)
    return done;
  if (options.emit != Artifact::Plan)
    if (done = link(compilation, *directory, step); !done)
      return done;
  if (compilation.weights() && compilation.weights()->tensors.empty())
    removeOldWeights(output);
  // A trainer of another plan beside this one's text would mislead; but only a
  // directory with a plan is one of ours.
  std::vector<std::string> replaced;
  if (llvm::sys::fs::exists(output + "/plan.json"))
    replaced = {"train",           "libstep.so",  "step.cpp",
                "step.cu",         "step.h",      "step.mlir",
                "plan-trace.json", "report.html", "tmc.h"};
  if (done = directory->commit(replaced); !done)
    return done;
  if (!options.depfile.empty())
    if (done = writeDepfile(options, output); !done)
      return done;
  if (options.quiet)
    return true;
  llvm::errs() << visible(planTable(compilation.planned()) + "  wrote " +
                          output + "/\n");
  if (const WeightSources *weights = compilation.weights();
      weights && !weights->missing.empty())
    llvm::errs() << "tmc: note: the values of " << weights->missing.size()
                 << " of " << compilation.values().size()
                 << " tensors aren't here: " << visible(weights->why)
                 << "; train with --weights FILE or --init random:SEED\n";
  return true;
}
