// HostCompiler.h - from an emitted step to libstep.so and the trainer.

#ifndef TMC_COMPILER_PIPELINE_HOSTCOMPILER_H
#define TMC_COMPILER_PIPELINE_HOSTCOMPILER_H

#include "compiler/pipeline/ObjectCache.h"
#include "compiler/support/Failure.h"
#include "compiler/target/Target.h"

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

  /// libtmc-runtime-cpu-v3.a, libtmc-runtime-cuda.a, ..., whether it is there
  /// or not.
  std::string runtimeLibrary(const Target &target) const;
};

/// What a step for the instruction set `arch` is compiled with.
std::vector<std::string> cpuFlags(const std::string &arch);

/// The compiler of a backend's steps: the one that tmc was built with, or what
/// goes by its usual name; fails where there is neither.
Expected<std::string> stepCompiler(Backend backend);

/// The words that compile a step for `target`.
std::vector<std::string> compileCommand(const std::string &compiler,
                                        const Installation &installation,
                                        const Target &target,
                                        const std::string &source,
                                        const std::string &object);

/// What steps are linked with, beside the runtime: "-pthread", ...
std::vector<std::string> stepLibraries(Backend backend);

struct ToolRun {
  std::vector<std::string> arguments;
  std::string log; // The file that gets what it prints.
};

/// Runs all of `runs`, as many at a time as the machine has processors. Fails
/// as the first of them that fails does, with the first lines of its log as
/// notes, and ends the others.
Expected<void> runTools(const std::vector<ToolRun> &runs);

inline Expected<void> runTool(const std::vector<std::string> &arguments,
                              const std::string &log) {
  return runTools({{arguments, log}});
}

/// A file of a step, compiled by itself.
struct StepPiece {
  std::string source;
  /// Whether it holds kernels. What only calls them gains nothing by the
  /// optimizer, and there is much of it.
  bool computes = true;
};

/// What a step is linked into.
struct StepFiles {
  std::string library; // Its file name is what programs look for: the SONAME.
  std::string exports; // A version script; empty: it exports all that it has.
  std::string trainer; // Empty: none.
};

/// Compiles `pieces` side by side, but for those that `cache` has, and links
/// `files`. A missing compiler or one that fails is the world's fault; its
/// messages become notes.
Expected<void> compileStep(const Installation &installation,
                           const Target &target,
                           const std::vector<StepPiece> &pieces,
                           const StepFiles &files,
                           const ObjectCache &cache = ObjectCache());

/// What compileStep reads beside `pieces`, and a change of which may change
/// what it makes: tmc, the runtime's libraries and headers.
std::vector<std::string> filesOf(const Installation &installation,
                                 const Target &target);

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_HOSTCOMPILER_H
