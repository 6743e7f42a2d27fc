#include "compiler/pipeline/HostCompiler.h"

#include "compiler/pipeline/Config.h"
#include "compiler/pipeline/Interrupt.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace llvm;
using tmc::Failure;

tmc::Expected<tmc::Installation> tmc::Installation::find() {
  std::string self = sys::fs::getMainExecutable(
      nullptr, reinterpret_cast<void *>(&tmc::compileStep));
  StringRef prefix = sys::path::parent_path(sys::path::parent_path(self));
  Installation found;
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

/// Runs `arguments`, keeping what it prints.
static tmc::Expected<bool> runTool(ArrayRef<std::string> arguments,
                                   StringRef logPath) {
  ErrorOr<std::string> program = sys::findProgramByName(arguments[0]);
  if (!program)
    return Failure::world("can't find the compiler '" + arguments[0] + "'")
        .note("tmc needs it to compile a step; --emit=source does without");
  SmallVector<StringRef> args(arguments.begin(), arguments.end());
  std::optional<StringRef> redirects[] = {StringRef(), logPath, logPath};
  std::string error;
  // In a session of its own, so that all of it can be ended when we are.
  bool failed = false;
  sys::ProcessInfo child =
      sys::ExecuteNoWait(*program, args, std::nullopt, redirects, 0, &error,
                         &failed, nullptr, /*DetachProcess=*/true);
  int code = -1;
  if (!failed) {
    tmc::setRunningGroup(child.Pid);
    code = sys::Wait(child, std::nullopt, &error).ReturnCode;
    tmc::setRunningGroup(0);
  }
  if (code == 0)
    return true;
  Failure failure = Failure::world("'" + arguments[0] + "' failed with code " +
                                   std::to_string(code) +
                                   (error.empty() ? "" : ": " + error));
  if (auto log = MemoryBuffer::getFile(logPath)) {
    SmallVector<StringRef> lines;
    (*log)->getBuffer().split(lines, '\n', -1, false);
    constexpr size_t kShown = 12;
    for (StringRef line : ArrayRef(lines).take_front(kShown))
      failure.notes.push_back(line.str());
  }
  return failure;
}

tmc::Expected<bool> tmc::compileStep(const Installation &installation,
                                     const Target &target,
                                     const std::string &source,
                                     const std::string &library,
                                     const std::string &trainer) {
  bool cuda = target.backend == Backend::Cuda;
  std::string object = source + ".o", log = source + ".log";
  std::vector<std::string> compile;
  if (cuda) {
    compile = {"nvcc",
               "-std=c++20",
               "-O3",
               "-fmad=false",
               "-arch=" + target.arch,
               "-Xcompiler",
               "-fPIC",
               "--expt-relaxed-constexpr",
               "--extended-lambda"};
  } else {
    compile = {TMC_CXX_COMPILER, "-std=c++20", "-fPIC"};
    SmallVector<StringRef> flags;
    StringRef(TMC_RUNTIME_FLAGS).split(flags, ' ', -1, false);
    for (StringRef flag : flags)
      compile.push_back(flag.str());
  }
  compile.insert(compile.end(),
                 {"-I", installation.includeDir, "-c", source, "-o", object});
  if (auto done = runTool(compile, log); !done)
    return done;

  const char *backend = cuda ? "cuda" : "cpu";
  std::string driver = cuda ? "nvcc" : TMC_CXX_COMPILER;
  std::string runtime =
      installation.libraryDir + "/libtmc-runtime-" + backend + ".a";
  std::vector<std::string> libraries =
      cuda ? std::vector<std::string>{"-lcublasLt", "-lcudnn"}
           : std::vector<std::string>{"-Wl,--as-needed", "-ldnnl", "-lgomp",
                                      "-pthread"};
  std::vector<std::string> link = {driver, "-shared", object, "-o", library};
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
        driver,
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
