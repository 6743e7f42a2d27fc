// tmc - the command: compile, plan, explain, report, verify, merge.

#include "compiler/planning/driver/PlanBy.h"
#include "driver/pipeline/Compile.h"
#include "driver/pipeline/Config.h"
#include "driver/pipeline/Doctor.h"
#include "driver/pipeline/Interrupt.h"
#include "driver/pipeline/Messages.h"
#include "driver/pipeline/OutOfMemory.h"
#include "driver/pipeline/OutputDirectory.h"
#include "driver/pipeline/Show.h"
#include "passes/BaseSpec.h"
#include "passes/Offload.h"
#include "tools/CalibrateCommand.h"
#include "tools/CommandLine.h"
#include "tools/MergeCommand.h"
#include "tools/MeshFlags.h"
#include "tools/ReportCommand.h"
#include "tools/VerifyCommand.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <set>
#include <unistd.h>
#include <vector>

using namespace tmc;
namespace cl = llvm::cl;

namespace {

/// The flags of the commands that take a model.
struct ModelFlags {
  cl::OptionCategory category{"options"};
  cl::SubCommand compile{"compile",
                         "compile a model into a training step that fits"};
  cl::SubCommand plan{"plan", "say whether and how a step fits; no weights"};

  cl::SubCommand explain{"explain",
                         "say why each tensor was kept or recomputed"};

#define TMC_MODEL_FLAG                                                         \
  cl::sub(compile), cl::sub(plan), cl::sub(explain), cl::cat(category)
  cl::opt<std::string> model{cl::Positional, cl::desc("MODEL"), TMC_MODEL_FLAG};
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
  cl::opt<std::string> batch{"batch", cl::value_desc("N"),
                             cl::desc("samples per step"), TMC_MODEL_FLAG};
  cl::opt<std::string> devices{
      "devices", cl::value_desc("N[,N...]"),
      cl::desc("ranks that train together (many.md);\n"
               "                          several numbers: a step for each"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> parallel{
      "parallel", cl::value_desc("SPEC"),
      cl::desc(
          "what each rank does and keeps:\n"
          "                          dp=N,tp=N,zero=0..3,whole=N,sums=KIND\n"
          "                          dp: parts of the batch, tp: of heads "
          "and hidden columns\n"
          "                          zero=0: all, 1 and 2: shards of the "
          "moments, 3: of\n"
          "                          parameters, too, but for the first "
          "`whole`\n"
          "                          sums over micro-batches: whole, shards "
          "or auto\n"
          "                          (default: tmc chooses; many.md)"),
      TMC_MODEL_FLAG};
  cl::list<std::string> dims{"dim", cl::value_desc("NAME=N"),
                             cl::desc("size of a symbolic dimension"),
                             TMC_MODEL_FLAG};
  cl::list<std::string> prices{
      "prices", cl::value_desc("FILE"),
      cl::desc("a profile of a step on the target (the trainer's --profile):\n"
               "                          its kernels cost the time that they "
               "took"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> algorithms{
      "algorithms", cl::value_desc("FILE"),
      cl::desc("the fastest algorithms of products, measured on the card (the\n"
               "                          trainer's --tune-algorithms)"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> loss{
      "loss", cl::value_desc("SPEC"),
      cl::desc(
          "an output, or cross_entropy, soft_cross_entropy, bce, kl or mse "
          "of (a,b)"),
      TMC_MODEL_FLAG};
  /// A flag for each row of the table of levers.
  std::vector<std::unique_ptr<cl::opt<std::string>>> levers = leverFlags();
  cl::list<std::string> freeze{"freeze", cl::value_desc("GLOB"),
                               cl::desc("parameters that aren't trained"),
                               TMC_MODEL_FLAG};
  cl::opt<std::string> lora{
      "lora", cl::value_desc("SPEC"),
      cl::desc("train low-rank adapters in the place of the parameters:\n"
               "                          "
               "r=16,alpha=32,targets=q_proj,v_proj,dropout=0.05 "
               "(finetuning.md)"),
      TMC_MODEL_FLAG};
  cl::list<std::string> train{
      "train", cl::value_desc("GLOB"),
      cl::desc("with --lora: parameters that are trained whole"),
      TMC_MODEL_FLAG};
  cl::list<std::string> keep{
      "keep-output", cl::value_desc("NAME"),
      cl::desc("an output of the model to keep readable"), TMC_MODEL_FLAG};
  cl::opt<std::string> batchNorm{
      "batchnorm", cl::value_desc("HOW"),
      cl::desc("whose statistics batch norms take in micro-batches:\n"
               "                          per-micro-batch, each its own, or "
               "frozen, the running ones,\n"
               "                          which stay as they are (default: "
               "such a split is refused)"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> lossScale{
      "loss-scale", cl::init("auto"), cl::value_desc("SPEC"),
      cl::desc("what the loss is multiplied by for small gradients: none,\n"
               "                          dynamic(start=65536,interval=2000) "
               "or a number\n"
               "                          (default: dynamic for fp16, else "
               "none)"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> narrowCopies{
      "narrow-copies", cl::init("auto"), cl::value_desc("HOW"),
      cl::desc("who rounds the parameters that products on cards read in\n"
               "                          16 bits: kept (updates, two bytes "
               "more for each), cast\n"
               "                          (each step) or auto (default: the "
               "faster within the budget)"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> attention{
      "attention", cl::init("auto"), cl::value_desc("HOW"),
      cl::desc("whose kernels compute attention on cards: own, cudnn (the own\n"
               "                          ones where cuDNN can't) or auto "
               "(default: own, but where the\n"
               "                          target has a measured time by cuDNN "
               "that is less)"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> offload{
      "offload", cl::init("none"), cl::value_desc("SPEC"),
      cl::desc(
          "what may leave the device where that makes the step quicker: "
          "none\n"
          "                          (default), all, a list of "
          "activations, optimizer and\n"
          "                          parameters, or auto (all, if it doesn't "
          "fit without)"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> hostMemory{
      "host-budget", cl::value_desc("SIZE"),
      cl::desc("bytes of host memory for it (default: the target's)"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> nvme{
      "nvme", cl::value_desc("DIR[:SIZE]"),
      cl::desc("a directory for a file of what leaves the host's memory, too; "
               "the trainer's\n                          own, unless it names "
               "another"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> planner{
      "planner", cl::value_desc("NAME|exec:CMD"),
      cl::desc("who plans: tmc (default), another by name, or a program that\n"
               "                          reads the problem and writes a plan"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> effort{
      "effort", cl::value_desc("PERCENT"),
      cl::desc("how hard the planner searches, from 1 to 10000 (default: "
               "100)"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> to{
      "to", cl::value_desc("PHASE"),
      cl::desc("stop after import, raise, split, layout, autodiff, precision,\n"
               "                          shape, plan, lower, place or emit "
               "and print "
               "its result"),
      cl::sub(compile), cl::cat(category)};
  cl::opt<std::string> emit{"emit",
                            cl::init("exe"),
                            cl::value_desc("KIND"),
                            cl::desc("exe, lib, source, mlir or plan "
                                     "(default: exe)"),
                            cl::sub(compile),
                            cl::cat(category)};
  cl::opt<std::string> weights{
      "weights", cl::value_desc("FILE|DIR"),
      cl::desc("the values to start from: a .safetensors file, the index of "
               "its shards, or\n                          a folder with "
               "model.safetensors or that index (default: the model's)"),
      cl::sub(compile), cl::cat(category)};
  cl::opt<std::string> weightsPrefix{
      "weights-prefix", cl::value_desc("OLD=NEW"),
      cl::desc("names that begin with OLD in that file begin with NEW in the "
               "model; either may be empty"),
      cl::sub(compile), cl::cat(category)};
  cl::opt<bool> copyWeights{
      "copy-weights",
      cl::desc("copy the values of --weights into DIR (default: DIR records "
               "where they are)"),
      cl::sub(compile), cl::cat(category)};
  cl::opt<std::string> config{
      "config", cl::value_desc("FILE"),
      cl::desc(
          "flags from the table [compile] of a TOML file; those given here "
          "win"),
      TMC_MODEL_FLAG};
  cl::opt<std::string> output{"o", cl::value_desc("DIR"),
                              cl::desc("output directory (default: the "
                                       "model's name)"),
                              cl::sub(compile), cl::cat(category)};
  cl::opt<bool> force{"force",
                      cl::desc("write into a directory that holds other files, "
                               "too"),
                      cl::sub(compile), cl::cat(category)};
  cl::opt<std::string> stepName{
      "name", cl::value_desc("NAME"),
      cl::desc("of the step in a program with several: libNAME.so with\n"
               "                          NAME_step_create, ... (default: "
               "libstep.so, tmc_step_create)"),
      cl::sub(compile), cl::cat(category)};
  cl::opt<bool> noCache{"no-cache",
                        cl::desc("compile every kernel, even one whose object "
                                 "is kept in\n                          "
                                 "$XDG_CACHE_HOME/tmc (default: ~/.cache/tmc)"),
                        cl::sub(compile), cl::cat(category)};
  cl::opt<bool> depend{"MD", cl::desc("write a depfile"), cl::sub(compile),
                       cl::cat(category)};
  cl::opt<std::string> dependFile{"MF", cl::value_desc("FILE"),
                                  cl::desc("where (default: DIR.d)"),
                                  cl::sub(compile), cl::cat(category)};
  cl::list<std::string> dependTargets{
      "MT", cl::value_desc("FILE"),
      cl::desc("what it says depends (default: all that is written)"),
      cl::sub(compile), cl::cat(category)};
  cl::opt<std::string> plantDefect{
      "plant-defect",   cl::value_desc("PHASE:KIND"),
      cl::ReallyHidden, cl::desc("go wrong after a phase, for tests"),
      cl::sub(compile), cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("print plan.json"), cl::sub(plan),
                     cl::cat(category)};
  cl::opt<std::string> problem{
      "problem", cl::value_desc("FILE"),
      cl::desc("write the planning problem, as tmc-solve reads it"),
      cl::sub(plan), cl::cat(category)};
  cl::opt<bool> sweep{"sweep", cl::desc("plan for a row of budgets; print CSV"),
                      cl::sub(plan), cl::cat(category)};
  cl::opt<std::string> prefix{
      "o", cl::value_desc("PREFIX"),
      cl::desc("with --sweep: write PREFIX.csv and PREFIX.svg"), cl::sub(plan),
      cl::cat(category)};
  cl::opt<std::string> reportFile{"report", cl::value_desc("FILE"),
                                  cl::desc("write report.html of the plan"),
                                  cl::sub(plan), cl::cat(category)};
  cl::opt<std::string> snapshot{
      "snapshot",
      cl::value_desc("FILE"),
      cl::desc("write a memory snapshot for pytorch.org/memory_viz"),
      cl::sub(compile),
      cl::sub(plan),
      cl::cat(category)};
  cl::opt<std::string> trace{
      "trace",
      cl::value_desc("FILE"),
      cl::desc("write a trace of the planned step for Perfetto or Chrome"),
      cl::sub(compile),
      cl::sub(plan),
      cl::cat(category)};
  cl::opt<std::string> tensor{
      "tensor", cl::value_desc("GLOB"),
      cl::desc("tensors by name (default: the largest)"), cl::sub(explain),
      cl::cat(category)};

  Expected<CompileOptions> read();

private:
  std::vector<std::unique_ptr<cl::opt<std::string>>> leverFlags() {
    std::vector<std::unique_ptr<cl::opt<std::string>>> flags;
    for (const Lever &lever : leverTable())
      flags.push_back(std::make_unique<cl::opt<std::string>>(
          llvm::StringRef(lever.flag), cl::init(lever.byDefault),
          cl::value_desc(lever.valueName), cl::desc(lever.help),
          TMC_MODEL_FLAG));
    return flags;
  }
#undef TMC_MODEL_FLAG

  Expected<void> readModel(CompileOptions &options);
  Expected<void> readTrained(CompileOptions &options);
  Expected<void> readProgram(CompileOptions &options);
  Expected<void> readOffload(CompileOptions &options);
  Expected<void> readPlanning(CompileOptions &options);
  Expected<void> readOutput(CompileOptions &options);
};

/// The value that `word` stands for, in a table of pairs. `words`: "a, b, c".
template <typename T, size_t N>
Expected<T> meaningOf(const char *flag, const std::string &word,
                      const std::pair<const char *, T> (&table)[N],
                      const char *words) {
  for (const auto &[name, value] : table)
    if (word == name)
      return value;
  return Failure::usage("--" + std::string(flag) + "=" + word + " is none of " +
                        words);
}

/// Reads the model and its dimensions.
Expected<void> ModelFlags::readModel(CompileOptions &options) {
  options.model = model;
  options.target = target;
  options.prices.assign(prices.begin(), prices.end());
  options.algorithms = algorithms;
  options.loss = loss;
  options.outputs = {keep.begin(), keep.end()};
  for (const std::string &dim : dims) {
    auto [name, size] = llvm::StringRef(dim).split('=');
    int64_t value;
    if (name.empty() || size.getAsInteger(10, value) || value <= 0)
      return Failure::usage("--dim=" + dim + " isn't of the form NAME=N");
    options.dims[name.str()] = value;
  }
  if (batch.empty())
    return {};
  int64_t count;
  if (llvm::StringRef(batch).getAsInteger(10, count) || count <= 0)
    return Failure::usage("--batch=" + batch + " is no positive number");
  options.batch = count;
  return {};
}

/// Reads which parameters are trained.
Expected<void> ModelFlags::readTrained(CompileOptions &options) {
  options.freeze = {freeze.begin(), freeze.end()};
  options.train = {train.begin(), train.end()};
  if (lora.empty())
    return train.empty() ? Expected<void>()
                         : Failure::usage("--train goes with --lora: without "
                                          "it, all parameters are trained");
  llvm::Expected<LoraSpec> spec = LoraSpec::parse(lora);
  if (!spec)
    return Failure::usage("--" + llvm::toString(spec.takeError()));
  options.lora = *std::move(spec);
  return {};
}

/// Checks --base before the model is read.
static Expected<void> checkBase(const LeverValue &asked) {
  const Lever &row = leverTable()[kBase];
  // The words behind `auto` hold for each value.
  const LeverValue value =
      row.isFree(asked) ? LeverValue{{}, row.byDefault + row.restOf(asked)}
                        : asked;
  llvm::Expected<BaseSpec> read = BaseSpec::parse(value.name);
  if (read)
    return {};
  return Failure::usage("--" + llvm::toString(read.takeError()))
      .note("auto, in the place of the first format, chooses one");
}

/// Reads what makes the step's program, the levers included.
Expected<void> ModelFlags::readProgram(CompileOptions &options) {
  if (!batchNorm.empty() && batchNorm != "per-micro-batch" &&
      batchNorm != "frozen")
    return Failure::usage("--batchnorm=" + batchNorm +
                          " is none of per-micro-batch, frozen");
  options.batchNorm = batchNorm;
  options.lossScale = lossScale;
  static constexpr std::pair<const char *, NarrowCopies> kCopies[] = {
      {"auto", NarrowCopies::Auto},
      {"kept", NarrowCopies::Kept},
      {"cast", NarrowCopies::Cast}};
  Expected<NarrowCopies> copies =
      meaningOf("narrow-copies", narrowCopies, kCopies, "auto, kept, cast");
  if (!copies)
    return std::move(copies.failure());
  options.narrowCopies = *copies;
  static constexpr std::pair<const char *, const char *> kAttention[] = {
      {"auto", "auto"}, {"own", "own"}, {"cudnn", "cudnn"}};
  Expected<const char *> kernels =
      meaningOf("attention", attention, kAttention, "auto, own, cudnn");
  if (!kernels)
    return std::move(kernels.failure());
  options.attention = *kernels;
  for (auto [lever, flag, value] :
       llvm::zip(leverTable(), levers, options.levers.values)) {
    Expected<LeverValue> read = lever.parse(*flag);
    if (!read)
      return std::move(read.failure());
    value = *read;
  }
  return checkBase(options.levers[kBase]);
}

/// Reads which values may leave the device, and to which space.
Expected<void> ModelFlags::readOffload(CompileOptions &options) {
  llvm::Expected<OffloadSpec> spec = OffloadSpec::parse(offload.getValue());
  if (!spec)
    return Failure::usage("--" + llvm::toString(spec.takeError()));
  options.offload = *spec;
  if (!hostMemory.empty()) {
    Expected<int64_t> bytes = parseSize(hostMemory);
    if (!bytes)
      return std::move(bytes.failure());
    options.budgetBytes[SpaceKind::Host] = *bytes;
  }
  if (!nvme.empty()) {
    llvm::StringRef text = nvme.getValue();
    auto [directory, size] = text.rsplit(':');
    if (directory.empty())
      return Failure::usage("--nvme=" + nvme +
                            " isn't of the form DIR or DIR:SIZE");
    if (!size.empty()) {
      Expected<int64_t> bytes = parseSize(size.str());
      if (!bytes)
        return std::move(bytes.failure());
      options.budgetBytes[SpaceKind::File] = *bytes;
    }
    options.fileDirectory = directory.str();
  }
  for (const auto &[flag, text] :
       {std::pair("--host-budget", hostMemory.getValue()),
        {"--nvme", nvme.getValue()}})
    if (!text.empty() && spec->isNone())
      return Failure::usage(std::string(flag) +
                            " goes with --offload, which is none");
  return {};
}

/// Reads how the step is planned, and for which budget.
Expected<void> ModelFlags::readPlanning(CompileOptions &options) {
  if (!budget.empty()) {
    Expected<int64_t> bytes = parseSize(budget);
    if (!bytes)
      return std::move(bytes.failure());
    options.budgetBytes.device() = *bytes;
  }
  constexpr int64_t kMostEffort = 10000;
  if (!effort.empty() &&
      (llvm::StringRef(effort).getAsInteger(10, options.effort) ||
       options.effort < 1 || options.effort > kMostEffort))
    return Failure::usage("--effort=" + effort +
                          " isn't a number from 1 to 10000");
  if (!planner.empty() && !planning::isPlanner(planner.getValue()))
    return Failure::usage("there is no planner '" + planner + "'")
        .note("there are " + planning::plannerNames());
  options.planner = planner == "tmc" ? std::string() : planner;
  options.problemFile = problem;
  return {};
}

/// Reads the phase to end with, and the files to write.
Expected<void> ModelFlags::readOutput(CompileOptions &options) {
  static constexpr std::pair<const char *, Artifact> kArtifacts[] = {
      {"exe", Artifact::Exe},
      {"lib", Artifact::Lib},
      {"source", Artifact::Source},
      {"mlir", Artifact::Mlir},
      {"plan", Artifact::Plan}};
  Expected<Artifact> artifact =
      meaningOf("emit", emit, kArtifacts, "exe, lib, source, mlir, plan");
  if (!artifact)
    return std::move(artifact.failure());
  options.emit = *artifact;
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
  options.plantDefect = plantDefect;
  options.weights = weights;
  auto [inFile, inModel] = llvm::StringRef(weightsPrefix).split('=');
  if (!weightsPrefix.empty() && weightsPrefix.find('=') == std::string::npos)
    return Failure::usage("--weights-prefix=" + weightsPrefix +
                          " isn't OLD=NEW");
  options.weightsPrefix = {inFile.str(), inModel.str()};
  options.copyWeights = copyWeights;
  if (copyWeights && options.weights.empty())
    return Failure::usage("--copy-weights goes with --weights: the model's own "
                          "values are always copied");
  options.snapshot = snapshot;
  options.trace = trace;
  options.output = output;
  options.force = force;
  if (!stepName.empty() &&
      (!isStepName(stepName) || stepName == "tmc" || stepName == "step"))
    return Failure::usage("--name=" + stepName +
                          " can't begin identifiers of C, or is ours")
        .note(
            "letters, digits and _ can, at most 64, no digit first; not 'tmc' "
            "and 'step'");
  options.name = stepName;
  options.useCache = !noCache;
  if (depend || !dependFile.empty() || !dependTargets.empty()) {
    llvm::StringRef directory(output);
    std::string stem = directory.empty() ? llvm::sys::path::stem(model).str()
                                         : directory.rtrim('/').str();
    options.depfile = dependFile.empty() ? stem + ".d" : dependFile.getValue();
  }
  options.depfileTargets = {dependTargets.begin(), dependTargets.end()};
  options.progress = isProgressSeen();
  return {};
}

Expected<CompileOptions> ModelFlags::read() {
  CompileOptions options;
  TMC_TRY(readModel(options));
  TMC_TRY(readTrained(options));
  TMC_TRY(readProgram(options));
  TMC_TRY(readOffload(options));
  TMC_TRY(readPlanning(options));
  TMC_TRY(readOutput(options));
  TMC_TRY(readMesh(devices, parallel, bool(compile), options));
  freeLossChunk(options);
  return options;
}

/// Flags of a compilation that say nothing of the step.
constexpr llvm::StringRef kNotInConfig[] = {
    "o", "force", "messages", "MD", "MF", "MT", "no-cache", "plant-defect"};

int finish(const Expected<void> &done) {
  if (done)
    return 0;
  report(done.failure());
  return done.failure().exitCode();
}

/// Succeeds if the default target works.
int examineMachine() {
  Diagnosis diagnosis = examine();
  llvm::outs() << diagnosisTable(diagnosis, isatty(1) && !getenv("NO_COLOR"));
  bool cuda = llvm::StringRef(TMC_DEFAULT_TARGET).starts_with("cuda");
  return diagnosis.works(cuda ? Backend::Cuda : Backend::Cpu)
             ? 0
             : int(FailureKind::World);
}

} // namespace

/// Runs `body`; a crash in it is reported as a bug in tmc.
static int guarded(llvm::function_ref<int()> body) {
  int code = 0;
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext context;
  context.DumpStackAndCleanupOnFailure = true;
  if (context.RunSafely([&] { code = body(); }))
    return code;
  removeStaged();
  return finish(Failure::defect("tmc crashed, which is a defect of tmc")
                    .note("please report it with the command line and the "
                          "model"));
}

/// Runs the command line; the exit code.
static int runCommand(int argc, char **argv) {
  installInterruptHandler();
  installOutOfMemoryHandler();
  ModelFlags flags;
  ReportCommand beside;
  VerifyCommand verify;
  cl::SubCommand doctor{"doctor", "what is missing on this machine"};
  CalibrateCommand calibrate;
  MergeCommand merge;
  // parseCommandLine obeys it before it reports the first mistake.
  cl::opt<std::string> messages{
      "messages",
      cl::init("text"),
      cl::value_desc("FORMAT"),
      cl::desc("text (default), or json: standard error has one JSON object\n"
               "                          a line"),
      cl::sub(flags.compile),
      cl::sub(flags.plan),
      cl::sub(flags.explain),
      cl::sub(beside.command),
      cl::sub(verify.command),
      cl::sub(calibrate.command),
      cl::sub(merge.command),
      cl::cat(flags.category)};
  const Command commands[] = {
      {&flags.compile, "MODEL [flags]", 1,
       "compile a model into a training step that fits", "compile"},
      {&flags.plan, "MODEL [flags]", 1,
       "say whether and how a step fits; no weights, no code", "compile"},
      {&flags.explain, "DIR|MODEL [flags]", 1,
       "say why each tensor was kept or recomputed", "compile"},
      {&beside.command, "DIR [DIR] [flags]", 1,
       "two plans beside each other, or a measured step beside its plan",
       nullptr, 1},
      {&verify.command, "DIR [flags]", 1,
       "run a compiled step against the reference interpreter"},
      {&doctor, "", 0, "say what is missing on this machine, and the fix"},
      {&calibrate.command, "-o FILE", 0,
       "measure this machine into a target file"},
      {&merge.command, "-o DIR [flags]", 0,
       "add an adapter to the weights of its base"}};
  const Program program = {
      "tmc", "training steps that fit a memory budget",
      "tmc " TMC_VERSION " (default target: " TMC_DEFAULT_TARGET ")",
      "for example: tmc compile model.onnx --budget 12GiB -o step\n"
      "'tmc COMMAND --help' lists its flags\n",
      commands};
  std::vector<std::string> words(argv, argv + argc);
  if (std::optional<int> code = parseCommandLine(words, program))
    return *code;
  if (messages != "text" && messages != "json")
    return finish(
        Failure::usage("--messages=" + messages + " is none of text, json"));
  if (beside.command)
    return guarded([&] { return beside.run(); });
  if (verify.command)
    return guarded([&] { return verify.run(); });
  if (doctor)
    return guarded(examineMachine);
  if (calibrate.command)
    return guarded([&] { return calibrate.run(); });
  if (merge.command)
    return guarded([&] { return merge.run(); });
  Expected<CompileOptions> options = flags.read();
  if (!options)
    return finish(std::move(options.failure()));
  options->command = words;
  options->command[0] = program.name;
  if (flags.compile)
    options->config = configText(words, program, kNotInConfig);
  return guarded([&] {
    if (flags.explain)
      return finish(explainPlan(*options, flags.tensor));
    if (flags.compile)
      return finish(compileModel(*options));
    return finish(
        planModel(*options, {flags.json, flags.sweep, flags.prefix,
                             flags.reportFile, flags.snapshot, flags.trace}));
  });
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  const int code = runCommand(argc, argv);
  // A full disk behind `>` is noticed here. LLVM would end with another code.
  llvm::outs().flush();
  const std::error_code error = llvm::outs().error();
  llvm::outs().clear_error();
  return error && code == 0
             ? finish(Failure::world("can't write to standard output: " +
                                     error.message()))
             : code;
}
