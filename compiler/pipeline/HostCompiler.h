// HostCompiler.h - from an emitted step to libstep.so and the trainer.

#ifndef TMC_COMPILER_PIPELINE_HOSTCOMPILER_H
#define TMC_COMPILER_PIPELINE_HOSTCOMPILER_H

#include "compiler/target/Target.h"
#include "frontends/Failure.h"

#include <string>
#include <vector>

namespace tmc {

/// Where this installation keeps what emitted code needs.
struct Installation {
  std::string program;    // tmc itself.
  std::string includeDir; // Holds runtime/...
  std::string libraryDir; // Holds libtmc-runtime-*.a and libtmc-trainer-*.a.

  /// Found beside the running program: a build tree or an installed one.
  static Expected<Installation> find();

  /// libtmc-runtime-cpu.a or libtmc-runtime-cuda.a, whether it is there or not.
  std::string runtimeLibrary(Backend backend) const;
};

/// The compiler of a backend's steps: the one that tmc was built with, or what
/// goes by its usual name; fails where there is neither.
Expected<std::string> stepCompiler(Backend backend);

/// The words that compile a step for `target`.
std::vector<std::string> compileCommand(const std::string &compiler,
                                        const Installation &installation,
                                        const Target &target,
                                        const std::string &source,
                                        const std::string &object);

/// What steps are linked with, beside the runtime: "-ldnnl", ...
std::vector<std::string> stepLibraries(Backend backend);

/// Runs `arguments`; what it prints is in the file `log`, and the first lines
/// of it are notes where it fails.
Expected<bool> runTool(const std::vector<std::string> &arguments,
                       const std::string &log);

/// Compiles `source` and links `library` and, unless it is empty, `trainer`.
/// A missing compiler or one that fails is the world's fault; its messages
/// become notes.
Expected<bool> compileStep(const Installation &installation,
                           const Target &target, const std::string &source,
                           const std::string &library,
                           const std::string &trainer);

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_HOSTCOMPILER_H
