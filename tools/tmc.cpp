// tmc - the command: compile, plan, verify.

#include "compiler/pipeline/Compile.h"
#include "compiler/pipeline/Config.h"
#include "compiler/pipeline/PlanReport.h"
#include "tools/VerifyCommand.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

using namespace tmc;
namespace cl = llvm::cl;

namespace {

/// The flags of the commands that take a model.
struct ModelFlags {
  cl::OptionCategory category{"options"};
  cl::SubCommand compile{"compile",
                         "compile a model into a training step that fits"};
  cl::SubCommand plan{"plan", "say whether and how a step fits; no weights"};

#define TMC_MODEL_FLAG cl::sub(compile), cl::sub(plan), cl::cat(category)
  cl::opt<std::string> model{cl::Positional, cl::Required, cl::desc("MODEL"),
                             TMC_MODEL_FLAG};
  cl::opt<std::string> budget{
      "budget", cl::value_desc("SIZE"),
      cl::desc("bytes the device may hold: 12GiB, 800MB, ... "
               "(default: the target's memory)"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> target{
      "target", cl::init(TMC_DEFAULT_TARGET), cl::value_desc("NAME"),
      cl::desc(
          "cpu, cuda:sm_90, cuda:rtx3060, ... (default: " TMC_DEFAULT_TARGET
          ")"),
      TMC_MODEL_FLAG};
  cl::opt<int64_t> batch{"batch", cl::init(0), cl::value_desc("N"),
                         cl::desc("samples per step"), TMC_MODEL_FLAG};
  cl::list<std::string> dims{"dim", cl::value_desc("NAME=N"),
                             cl::desc("size of a symbolic dimension"),
                             TMC_MODEL_FLAG};
  cl::opt<std::string> loss{
      "loss", cl::value_desc("SPEC"),
      cl::desc("an output, cross_entropy(logits,labels) or mse(a,b)"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> optimizer{
      "optimizer", cl::init("adamw"), cl::value_desc("SPEC"),
      cl::desc("adamw(weight_decay=0.1,clip=1.0,...) or sgd(momentum=0.9,...)"),
      TMC_MODEL_FLAG};
  cl::list<std::string> freeze{"freeze", cl::value_desc("GLOB"),
                               cl::desc("parameters that aren't trained"),
                               TMC_MODEL_FLAG};
  cl::list<std::string> keep{
      "keep-output", cl::value_desc("NAME"),
      cl::desc("an output of the model to keep readable"), TMC_MODEL_FLAG};
  cl::opt<std::string> microBatches{
      "micro-batches", cl::init("1"), cl::value_desc("N"),
      cl::desc("pieces that the batch is cut into"), TMC_MODEL_FLAG};
  cl::opt<int64_t> lossChunk{
      "loss-chunk", cl::init(0), cl::value_desc("ROWS"),
      cl::desc("hold at most so many rows of logits (default: all)"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> to{"to", cl::value_desc("PHASE"),
                          cl::desc("stop after a phase and print its result"),
                          cl::sub(compile), cl::cat(category)};
  cl::opt<std::string> emit{"emit",
                            cl::init("exe"),
                            cl::value_desc("KIND"),
                            cl::desc("exe, lib, source, mlir or plan"),
                            cl::sub(compile),
                            cl::cat(category)};
  cl::opt<std::string> weights{
      "weights", cl::value_desc("FILE"),
      cl::desc("a .safetensors file with the values to start from (default: "
               "the model's)"),
      cl::sub(compile), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::value_desc("DIR"),
                              cl::desc("output directory (default: the "
                                       "model's name)"),
                              cl::sub(compile), cl::cat(category)};
  cl::opt<bool> depend{"MD", cl::desc("write a depfile"), cl::sub(compile),
                       cl::cat(category)};
  cl::opt<std::string> dependFile{"MF", cl::value_desc("FILE"),
                                  cl::desc("where (default: DIR.d)"),
                                  cl::sub(compile), cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("print plan.json"), cl::sub(plan),
                     cl::cat(category)};
#undef TMC_MODEL_FLAG

  Expected<CompileOptions> read();
};

Expected<CompileOptions> ModelFlags::read() {
  CompileOptions options;
  options.model = model;
  if (!budget.empty()) {
    Expected<int64_t> bytes = parseSize(budget);
    if (!bytes)
      return std::move(bytes.failure());
    options.budgetBytes = *bytes;
  }
  options.target = target;
  if (batch < 0)
    return Failure::usage("--batch=" + std::to_string(batch) + " is negative");
  if (batch > 0)
    options.batch = batch;
  for (const std::string &dim : dims) {
    auto [name, size] = llvm::StringRef(dim).split('=');
    int64_t value;
    if (name.empty() || size.getAsInteger(10, value) || value <= 0)
      return Failure::usage("--dim=" + dim + " isn't of the form NAME=N");
    options.dims[name.str()] = value;
  }
  options.loss = loss;
  options.optimizer = optimizer;
  options.freeze = {freeze.begin(), freeze.end()};
  options.outputs = {keep.begin(), keep.end()};
  if (llvm::StringRef(microBatches).getAsInteger(10, options.microBatches) ||
      options.microBatches < 1)
    return Failure::usage("--micro-batches=" + microBatches +
                          " is no positive number");
  options.lossChunk = lossChunk;
  static const std::pair<const char *, Artifact> kArtifacts[] = {
      {"exe", Artifact::Exe},
      {"lib", Artifact::Lib},
      {"source", Artifact::Source},
      {"mlir", Artifact::Mlir},
      {"plan", Artifact::Plan}};
  auto *artifact = llvm::find_if(
      kArtifacts, [&](const auto &entry) { return emit == entry.first; });
  if (artifact == std::end(kArtifacts))
    return Failure::usage("--emit=" + emit +
                          " is none of exe, lib, source, mlir, plan");
  options.emit = artifact->second;
  if (!to.empty()) {
    options.to = phaseNamed(to);
    if (!options.to) {
      std::string names;
      for (const std::string &name : phaseNames())
        names += (names.empty() ? "" : ", ") + name;
      return Failure::usage("there is no phase '" + to + "'")
          .note("there are " + names);
    }
  }
  options.weights = weights;
  options.output = output;
  if (depend || !dependFile.empty())
    options.depfile =
        dependFile.empty()
            ? (output.empty() ? std::string("step") : std::string(output)) +
                  ".d"
            : std::string(dependFile);
  options.progress = isatty(2);
  return options;
}

int finish(const Expected<bool> &done) {
  if (done)
    return 0;
  report(done.failure());
  return done.failure().exitCode();
}

Expected<bool> planModel(CompileOptions options, bool json) {
  options.emit = Artifact::Plan;
  Compilation compilation(options);
  Expected<bool> done = compilation.runTo(Phase::Place);
  for (const std::string &warning : compilation.warnings())
    warn(warning);
  bool infeasible = !done && done.failure().kind == FailureKind::OverBudget;
  if (json && (done || infeasible))
    llvm::outs() << planJson(compilation);
  else if (done)
    llvm::outs() << planTable(compilation);
  return done;
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  ModelFlags flags;
  VerifyCommand verify;
  cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "tmc " TMC_VERSION " (targets: default " TMC_DEFAULT_TARGET ")\n";
  });
  for (cl::SubCommand *command : {&flags.compile, &flags.plan})
    cl::HideUnrelatedOptions(flags.category, *command);
  cl::HideUnrelatedOptions(flags.category);
  cl::HideUnrelatedOptions(verify.category, verify.command);
  if (!cl::ParseCommandLineOptions(
          argc, argv,
          "tmc - training steps that fit a memory budget\n\n"
          "  tmc compile model.onnx --budget 12GiB\n",
          &llvm::errs()))
    return int(FailureKind::Usage);
  if (verify.command)
    return verify.run();
  if (!flags.compile && !flags.plan) {
    report(Failure::usage("no command is given")
               .note("try 'tmc --help', or 'tmc compile MODEL --budget SIZE'"));
    return int(FailureKind::Usage);
  }
  Expected<CompileOptions> options = flags.read();
  if (!options)
    return finish(std::move(options.failure()));
  return finish(flags.compile ? compileModel(*options)
                              : planModel(*options, flags.json));
}
