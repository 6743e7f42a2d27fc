#include "compiler/pipeline/HostCompiler.h"

#include "compiler/pipeline/Config.h"
#include "compiler/pipeline/Interrupt.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <sys/statvfs.h>

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
  std::string built = (prefix + "/lib/libtmc-runtime-cpu.a").str();
  std::string installed =
      (prefix + "/" TMC_INSTALL_LIBDIR "/tmc/libtmc-runtime-cpu.a").str();
  if (sys::fs::exists(installed)) {
    found.includeDir = (prefix + "/" TMC_INSTALL_INCLUDEDIR "/tmc").str();
    found.libraryDir = sys::path::parent_path(installed).str();
  } else if (sys::fs::exists(built)) {
    found.includeDir = TMC_SOURCE_DIR;
    found.libraryDir = sys::path::parent_path(built).str();
  } else {
    return Failure::world("can't find libtmc-runtime-cpu.a beside '" + self +
                          "'");
  }
  return found;
}

std::string tmc::Installation::runtimeLibrary(Backend backend) const {
  return libraryDir + "/libtmc-runtime-" +
         (backend == Backend::Cuda ? "cuda" : "cpu") + ".a";
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

tmc::Expected<bool> tmc::runTool(const std::vector<std::string> &arguments,
                                 const std::string &log) {
  SmallVector<StringRef> args(arguments.begin(), arguments.end());
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(log),
                                          StringRef(log)};
  std::string error;
  // In a session of its own, so that all of it can be ended when we are.
  bool failed = false;
  sys::ProcessInfo child =
      sys::ExecuteNoWait(arguments[0], args, std::nullopt, redirects, 0, &error,
                         &failed, nullptr, /*DetachProcess=*/true);
  int code = -1;
  if (!failed) {
    setRunningGroup(child.Pid);
    code = sys::Wait(child, std::nullopt, &error).ReturnCode;
    setRunningGroup(0);
  }
  if (code == 0)
    return true;
  Failure failure = Failure::world("'" + arguments[0] + "' failed with code " +
                                   std::to_string(code) +
                                   (error.empty() ? "" : ": " + error));
  if (auto said = MemoryBuffer::getFile(log)) {
    SmallVector<StringRef> lines;
    (*said)->getBuffer().split(lines, '\n', -1, false);
    constexpr size_t kShown = 12;
    for (StringRef line : ArrayRef(lines).take_front(kShown))
      failure.notes.push_back(line.str());
  }
  struct statvfs disk;
  constexpr int64_t kNothing = 1 << 20;
  if (statvfs(log.c_str(), &disk) == 0 &&
      int64_t(disk.f_bavail) * int64_t(disk.f_frsize) < kNothing)
    failure.notes.push_back("the disk is full where '" + log + "' is");
  return failure;
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
    SmallVector<StringRef> flags;
    StringRef(TMC_RUNTIME_FLAGS).split(flags, ' ', -1, false);
    for (StringRef flag : flags)
      compile.push_back(flag.str());
  }
  compile.insert(compile.end(),
                 {"-I", installation.includeDir, "-c", source, "-o", object});
  return compile;
}

std::vector<std::string> tmc::stepLibraries(Backend backend) {
  std::vector<std::string> libraries;
  SmallVector<StringRef> words;
  StringRef(backend == Backend::Cuda ? TMC_CUDA_LIBRARIES
                                     : "-Wl,--as-needed -ldnnl -lgomp -pthread")
      .split(words, ' ', -1, false);
  for (StringRef word : words)
    libraries.push_back(word.str());
  return libraries;
}

tmc::Expected<bool> tmc::compileStep(const Installation &installation,
                                     const Target &target,
                                     const std::string &source,
                                     const std::string &library,
                                     const std::string &trainer) {
  bool cuda = target.backend == Backend::Cuda;
  std::string runtime = installation.runtimeLibrary(target.backend);
  if (!sys::fs::exists(runtime))
    return Failure::world("this tmc was built without the " +
                          std::string(cuda ? "cuda" : "cpu") +
                          " runtime: there is no '" + runtime + "'")
        .note(cuda ? "build it where a CUDA toolkit is found (cmake -DTMC_CUDA="
                     "ON), or use --target cpu"
                   : "build and install the whole of tmc")
        .note("--emit source does without it");
  tmc::Expected<std::string> compiler = stepCompiler(target.backend);
  if (!compiler)
    return std::move(compiler.failure());
  std::string object = source + ".o", log = source + ".log";
  if (auto done = runTool(
          compileCommand(*compiler, installation, target, source, object), log);
      !done)
    return done;

  std::vector<std::string> libraries = stepLibraries(target.backend);
  std::vector<std::string> link = {*compiler, "-shared", object, "-o", library};
  // Everything that the C interface promises, whether the step calls it or not.
  std::string whole = "-Wl,--whole-archive," + runtime + ",--no-whole-archive";
  if (cuda)
    link.insert(link.end(), {"-Xlinker", "--whole-archive", runtime, "-Xlinker",
                             "--no-whole-archive"});
  else
    link.push_back(whole);
  link.insert(link.end(), libraries.begin(), libraries.end());
  if (auto done = runTool(link, log); !done)
    return done;
  if (!trainer.empty()) {
    std::vector<std::string> exe = {
        *compiler,
        object,
        "-o",
        trainer,
        installation.libraryDir + "/libtmc-trainer.a",
        runtime};
    exe.insert(exe.end(), libraries.begin(), libraries.end());
    if (auto done = runTool(exe, log); !done)
      return done;
  }
  sys::fs::remove(object);
  sys::fs::remove(log);
  return true;
}
