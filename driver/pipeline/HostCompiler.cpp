#include "driver/pipeline/HostCompiler.h"

#include "driver/pipeline/Config.h"
#include "driver/pipeline/Interrupt.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SHA256.h"

#include <algorithm>
#include <sys/statvfs.h>
#include <thread>

using namespace llvm;
using namespace tmc;

tmc::Expected<tmc::Installation> tmc::Installation::find() {
  std::string self = sys::fs::getMainExecutable(
      nullptr, reinterpret_cast<void *>(&tmc::compileStep));
  StringRef prefix = sys::path::parent_path(sys::path::parent_path(self));
  Installation found;
  found.program = self;
  // A build tree keeps libraries in lib/ and headers in the source tree; an
  // installation has both under directories of its own.
  std::string built = (prefix + "/lib/libtmc-trainer.a").str();
  std::string installed =
      (prefix + "/" TMC_INSTALL_LIBDIR "/tmc/libtmc-trainer.a").str();
  if (sys::fs::exists(installed)) {
    found.includeDir = (prefix + "/" TMC_INSTALL_INCLUDEDIR "/tmc").str();
    found.libraryDir = sys::path::parent_path(installed).str();
  } else if (sys::fs::exists(built)) {
    found.includeDir = TMC_SOURCE_DIR;
    found.libraryDir = sys::path::parent_path(built).str();
  } else {
    return Failure::world("can't find libtmc-trainer.a beside '" + self + "'");
  }
  return found;
}

std::string tmc::Installation::runtimeLibrary(const Target &target) const {
  return libraryDir + "/libtmc-runtime-" +
         (target.backend == Backend::Cuda ? "cuda" : "cpu-" + target.arch) +
         ".a";
}

std::vector<std::string> tmc::cpuFlags(const std::string &arch) {
  std::vector<std::string> flags;
  auto add = [&](StringRef words) {
    SmallVector<StringRef> split;
    words.split(split, ' ', -1, false);
    for (StringRef word : split)
      flags.push_back(word.str());
  };
  add(TMC_RUNTIME_FLAGS);
  // "v3=-march=x86-64-v3;v4=...".
  SmallVector<StringRef> sets;
  StringRef(TMC_CPU_SETS).split(sets, ';', -1, false);
  for (StringRef set : sets)
    if (auto [name, words] = set.split('='); name == arch)
      add(words);
  return flags;
}

tmc::Expected<std::string> tmc::stepCompiler(Backend backend) {
  bool cuda = backend == Backend::Cuda;
  StringRef built = cuda ? TMC_NVCC : TMC_CXX_COMPILER;
  if (sys::fs::can_execute(built))
    return built.str();
  StringRef usual = cuda ? "nvcc" : "g++";
  if (ErrorOr<std::string> program = sys::findProgramByName(usual))
    return *program;
  return Failure::world("there is no compiler '" + usual.str() +
                        "' to compile the step with")
      .note(cuda ? "install the CUDA toolkit, or use --target cpu"
                 : "install it: apt-get install g++")
      .note("--emit source does without a compiler");
}

/// Why `run` failed.
static Failure toolFailure(const ToolRun &run, int code,
                           const std::string &error) {
  Failure failure = Failure::world(
      "'" + run.arguments[0] + "' failed with code " + std::to_string(code) +
      (error.empty() ? "" : ": " + error));
  if (auto said = MemoryBuffer::getFile(run.log)) {
    SmallVector<StringRef> lines;
    (*said)->getBuffer().split(lines, '\n', -1, false);
    constexpr size_t kShown = 12;
    for (StringRef line : ArrayRef(lines).take_front(kShown))
      failure.notes.push_back(line.str());
  }
  struct statvfs disk;
  constexpr int64_t kNothing = 1 << 20;
  if (statvfs(run.log.c_str(), &disk) == 0 &&
      int64_t(disk.f_bavail) * int64_t(disk.f_frsize) < kNothing)
    failure.notes.push_back("the disk is full where '" + run.log + "' is");
  return failure;
}

tmc::Expected<void> tmc::runTools(const std::vector<ToolRun> &runs) {
  struct Child {
    sys::ProcessInfo process;
    std::string error;
    bool failed = false;
  };
  std::vector<Child> children(runs.size());
  auto start = [&](size_t i) {
    SmallVector<StringRef> args(runs[i].arguments.begin(),
                                runs[i].arguments.end());
    std::optional<StringRef> redirects[] = {StringRef(), StringRef(runs[i].log),
                                            StringRef(runs[i].log)};
    Child &child = children[i];
    // In a session of its own, so that one signal ends all its processes.
    child.process =
        sys::ExecuteNoWait(runs[i].arguments[0], args, std::nullopt, redirects,
                           0, &child.error, &child.failed, nullptr,
                           /*DetachProcess=*/true);
    if (!child.failed)
      setRunningGroup(int(i) % kMostRunningGroups, child.process.Pid);
  };
  size_t places = std::clamp<size_t>(std::thread::hardware_concurrency(), 1,
                                     kMostRunningGroups);
  std::optional<Failure> failure;
  size_t started = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (; !failure && started < std::min(runs.size(), i + places); ++started)
      start(started);
    if (i >= started)
      break;
    Child &child = children[i];
    int code = -1;
    if (!child.failed) {
      if (failure)
        killGroup(child.process.Pid);
      code = sys::Wait(child.process, std::nullopt, &child.error).ReturnCode;
      setRunningGroup(int(i) % kMostRunningGroups, 0);
    }
    if (code != 0 && !failure)
      failure = toolFailure(runs[i], code, child.error);
  }
  if (failure)
    return std::move(*failure);
  return {};
}

std::vector<std::string> tmc::compileCommand(const std::string &compiler,
                                             const Installation &installation,
                                             const Target &target,
                                             const std::string &source,
                                             const std::string &object) {
  std::vector<std::string> compile;
  if (target.backend == Backend::Cuda) {
    compile = {compiler,
               "-std=c++20",
               "-O3",
               "-fmad=false",
               "-arch=" + target.arch,
               "-Xcompiler",
               "-fPIC",
               "--expt-relaxed-constexpr",
               "--extended-lambda"};
  } else {
    compile = {compiler, "-std=c++20", "-fPIC"};
    for (std::string &flag : cpuFlags(target.arch))
      compile.push_back(std::move(flag));
  }
  compile.insert(compile.end(),
                 {"-I", installation.includeDir, "-c", source, "-o", object});
  return compile;
}

std::vector<std::string> tmc::stepLibraries(Backend backend) {
  std::vector<std::string> libraries;
  SmallVector<StringRef> words;
  StringRef(backend == Backend::Cuda ? TMC_CUDA_LIBRARIES : TMC_CPU_LIBRARIES)
      .split(words, ' ', -1, false);
  for (StringRef word : words)
    libraries.push_back(word.str());
  return libraries;
}

/// The runtime's headers, sorted; none if they can't be listed.
static std::vector<std::string>
runtimeHeaders(const Installation &installation) {
  std::vector<std::string> headers;
  std::error_code error;
  for (sys::fs::recursive_directory_iterator
           at(installation.includeDir + "/runtime", error),
       end;
       !error && at != end; at.increment(error))
    if (StringRef(at->path()).ends_with(".h"))
      headers.push_back(at->path());
  if (error)
    return {};
  std::sort(headers.begin(), headers.end());
  return headers;
}

/// A file with the includes of pieces, if its precompiled form lies beside it
/// (runtime/CMakeLists.txt makes both) and no header of `headers` is newer;
/// otherwise "". A compiler that can't use that form reads the file itself.
static std::string precompiled(const Installation &installation,
                               const Target &target,
                               const std::vector<std::string> &headers) {
  std::string file =
      installation.libraryDir + "/tmc-step-cpu-" + target.arch + ".h";
  sys::fs::file_status made, header;
  if (target.backend == Backend::Cuda || headers.empty() ||
      sys::fs::status(file + ".gch", made))
    return "";
  for (const std::string &each : headers)
    if (sys::fs::status(each, header) ||
        header.getLastModificationTime() > made.getLastModificationTime())
      return "";
  return file;
}

/// The command that compiles one piece, which first includes the file `first`,
/// if any.
static std::vector<std::string>
pieceCommand(const std::string &compiler, const Installation &installation,
             const Target &target, const StepPiece &piece,
             const std::string &first, const std::string &object) {
  std::vector<std::string> command =
      compileCommand(compiler, installation, target, piece.source, object);
  if (target.backend == Backend::Cuda)
    return command;           // nvcc takes -O once.
  command.push_back("-pipe"); // No temporary files, even if killed.
  if (!piece.computes)
    command.push_back("-O1");
  if (!first.empty())
    command.insert(command.end(), {"-include", first});
  return command;
}

/// The inputs of an object, beside the text of its piece: the compiler and its
/// version, flags and their meaning on this machine (-march=native), and the
/// runtime's headers. Headers of the system come with the compiler. Empty if
/// they aren't known. `near`: prefix of the names of temporary files.
static std::string identify(const std::string &compiler,
                            const Installation &installation,
                            const Target &target,
                            const std::vector<std::string> &headers,
                            const std::string &near) {
  bool cuda = target.backend == Backend::Cuda;
  Installation nowhere; // The content of headers counts, not their directory.
  std::string log = near + ".identity", identity;
  std::vector<std::string> command =
      compileCommand(compiler, nowhere, target, "", "");
  identity = join(command, " ") + "\n";
  std::vector<std::vector<std::string>> questions;
  if (cuda) {
    questions = {{compiler, "--version"}};
    if (ErrorOr<std::string> host = sys::findProgramByName("g++"))
      questions.push_back({*host, "--version"});
  } else {
    command = compileCommand(compiler, installation, target, "/dev/null", log);
    llvm::erase(command, "-c");
    llvm::erase(command, "/dev/null"); // Its name has no C++ suffix.
    command.insert(command.end(), {"-dM", "-E", "-x", "c++", "/dev/null"});
    questions = {command};
  }
  for (const std::vector<std::string> &question : questions) {
    std::string said = log + ".log";
    bool answered(runTool(question, said));
    auto answer = MemoryBuffer::getFile(cuda ? said : log);
    if (answered && answer)
      identity += (*answer)->getBuffer().str();
    sys::fs::remove(said);
    sys::fs::remove(log);
    if (!answered || !answer)
      return "";
  }
  for (const std::string &header : headers) {
    auto text = MemoryBuffer::getFile(header);
    if (!text)
      return "";
    identity += header.substr(installation.includeDir.size()) + "\n";
    identity += (*text)->getBuffer().str();
  }
  return headers.empty() ? "" : identity;
}

/// The cache key of the object of `piece`; empty: none.
static std::string keyOf(const std::string &identity, const StepPiece &piece) {
  auto text = MemoryBuffer::getFile(piece.source);
  if (!text)
    return "";
  SHA256 hash;
  // The length separates the two texts that are hashed.
  hash.update(std::to_string(identity.size()) +
              (piece.computes ? " computes\n" : " calls\n"));
  hash.update(identity);
  hash.update((*text)->getBuffer());
  return toHex(hash.final(), /*LowerCase=*/true);
}

/// Whether machine code for `built` ("sm_80", "sm_90a") runs on `arch`: later
/// cards of a generation run the code of earlier ones, except
/// architecture-specific code ("a").
static bool runsOn(StringRef built, StringRef arch) {
  int64_t have = 0, want = 0;
  if (!arch.consume_front("sm_") || arch.consumeInteger(10, want) ||
      !built.consume_front("sm_") || built.consumeInteger(10, have))
    return false;
  const bool hasPtx = have == 100; // tools/cmake/TmcCuda.cmake
  return have == want || (hasPtx && want > have) ||
         (built.empty() && have / 10 == want / 10 && have < want);
}

/// The first architecture with kernels (tools/cmake/TmcCuda.cmake).
static constexpr int64_t kFirstArchitecture = 75;

/// Fails if the cuda backend has no kernels for the card.
static tmc::Expected<void> checkKernels(const Target &target) {
  SmallVector<StringRef> built;
  StringRef(TMC_CUDA_KERNELS).split(built, ' ', -1, false);
  if (llvm::any_of(built,
                   [&](StringRef name) { return runsOn(name, target.arch); }))
    return {};
  int64_t number = 0;
  const bool isKnown =
      to_integer(StringRef(target.arch).drop_front(3), number) &&
      number >= kFirstArchitecture;
  return Failure::world("this tmc was built with kernels for " +
                        join(built, ", ") + ", not for " + target.arch)
      .note(isKnown ? "configure it with -DTMC_CUDA_ARCHITECTURES=" +
                          std::to_string(number) + ", or all"
                    : "no kernels exist for cards before sm_75")
      .note("--emit source does without them");
}

/// The command that links the trainer.
static std::vector<std::string>
trainerCommand(const std::string &compiler, const Installation &installation,
               const Target &target, const std::vector<std::string> &objects,
               const StepFiles &files) {
  std::vector<std::string> command = {compiler};
  command.insert(command.end(), objects.begin(), objects.end());
  command.insert(
      command.end(),
      {"-o", files.trainer, installation.libraryDir + "/libtmc-trainer.a"});
  // Nothing else names it: trainers of one device have no network.
  if (files.connectsRanks)
    command.insert(command.end(),
                   {"-Xlinker", "--undefined=tmc_open_ranks",
                    installation.libraryDir + "/libtmc-network.a"});
  command.push_back(installation.runtimeLibrary(target));
  const std::vector<std::string> libraries = stepLibraries(target.backend);
  command.insert(command.end(), libraries.begin(), libraries.end());
  return command;
}

tmc::Expected<void> tmc::compileStep(const Installation &installation,
                                     const Target &target,
                                     const std::vector<StepPiece> &pieces,
                                     const StepFiles &files,
                                     const ObjectCache &cache) {
  bool cuda = target.backend == Backend::Cuda;
  std::string runtime = installation.runtimeLibrary(target);
  if (!sys::fs::exists(runtime))
    return Failure::world("this tmc was built without the " +
                          std::string(cuda ? "cuda" : target.compiledFor()) +
                          " runtime: there is no '" + runtime + "'")
        .note(cuda ? "build it where a CUDA toolkit is found (cmake -DTMC_CUDA="
                     "ON), or use --target cpu"
                   : "build and install the whole of tmc with a compiler that "
                     "knows the instructions (tmc doctor), or use --target "
                     "cpu:v3")
        .note("--emit source does without it");
  if (cuda)
    TMC_TRY(checkKernels(target));
  tmc::Expected<std::string> compiler = stepCompiler(target.backend);
  if (!compiler)
    return std::move(compiler.failure());
  std::vector<std::string> headers = runtimeHeaders(installation);
  std::string first = precompiled(installation, target, headers);
  std::string identity =
      cache.isOff()
          ? ""
          : identify(*compiler, installation, target, headers, files.library);
  std::vector<std::string> objects;
  std::vector<ToolRun> compiles;
  std::vector<std::pair<std::string, std::string>> fresh; // Key, object.
  for (const StepPiece &piece : pieces) {
    std::string object = piece.source + ".o";
    std::vector<std::string> command =
        pieceCommand(*compiler, installation, target, piece, first, object);
    objects.push_back(object);
    std::string key = identity.empty() ? "" : keyOf(identity, piece);
    if (!key.empty() && cache.fetch(key, object))
      continue;
    compiles.push_back({command, piece.source + ".log"});
    if (!key.empty())
      fresh.push_back({key, object});
  }
  TMC_TRY(runTools(compiles));
  for (const auto &[key, object] : fresh)
    cache.keep(key, object);

  std::vector<std::string> libraries = stepLibraries(target.backend);
  // nvcc splits arguments for the linker at commas.
  auto forLinker = [&](const std::string &word) {
    std::string text;
    for (char c : word)
      text += cuda && c == ',' ? "\\," : std::string(1, c);
    return std::vector<std::string>{"-Xlinker", text};
  };
  std::vector<std::string> link = {*compiler, "-shared"};
  auto add = [&](const std::vector<std::string> &words) {
    link.insert(link.end(), words.begin(), words.end());
  };
  add(objects);
  add({"-o", files.library});
  // A program may hold several steps. Each step's calls stay in its own
  // library, and only its interface is exported.
  add(forLinker("-Bsymbolic"));
  add(forLinker("-soname=" + sys::path::filename(files.library).str()));
  if (!files.exports.empty())
    add(forLinker("--version-script=" + files.exports));
  // The library needs the whole C interface, whether the step calls it or not.
  // nvcc moves archives in front of the linker's arguments, so --whole-archive
  // has no effect. One undefined name links the object with the whole
  // interface; kernels (and their libraries) are linked only if the step uses
  // them.
  if (cuda)
    add({"-Xlinker", "--undefined=tmc_step_create", runtime});
  else
    add({"-Wl,--whole-archive", runtime, "-Wl,--no-whole-archive"});
  add(libraries);
  std::vector<ToolRun> links = {{link, files.library + ".log"}};
  if (!files.trainer.empty())
    links.push_back(
        {trainerCommand(*compiler, installation, target, objects, files),
         files.trainer + ".log"});
  TMC_TRY(runTools(links));
  for (const StepPiece &piece : pieces)
    sys::fs::remove(piece.source + ".log");
  for (const std::string &object : objects)
    sys::fs::remove(object);
  for (const ToolRun &run : links)
    sys::fs::remove(run.log);
  return {};
}

std::vector<std::string> tmc::filesOf(const Installation &installation,
                                      const Target &target,
                                      bool connectsRanks) {
  std::vector<std::string> files = {
      installation.program, installation.runtimeLibrary(target),
      installation.libraryDir + "/libtmc-trainer.a"};
  if (connectsRanks) {
    const std::string network = installation.includeDir + "/runtime/network/";
    files.insert(files.end(), {installation.libraryDir + "/libtmc-network.a",
                               network + "Mpi.cpp", network + "Gloo.cpp",
                               network + "Nccl.cpp"});
  }
  for (const std::string &header : runtimeHeaders(installation))
    files.push_back(header);
  llvm::erase_if(
      files, [](const std::string &file) { return !sys::fs::exists(file); });
  return files;
}
