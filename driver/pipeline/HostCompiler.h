// HostCompiler.h - from an emitted step to libstep.so and the trainer.

#ifndef TMC_DRIVER_PIPELINE_HOSTCOMPILER_H
#define TMC_DRIVER_PIPELINE_HOSTCOMPILER_H

#include "compiler/support/Failure.h"
#include "compiler/target/Target.h"
#include "driver/pipeline/ObjectCache.h"

#include <string>
#include <vector>

namespace tmc {

/// The files of this installation that emitted code needs.
struct Installation {
  std::string program;    // tmc itself.
  std::string includeDir; // Holds runtime/...
  std::string libraryDir; // Holds libtmc-runtime-*.a and libtmc-trainer-*.a.

  /// Found beside the running program: a build tree or an installed one.
  static Expected<Installation> find();

  /// libtmc-runtime-cpu-v3.a, libtmc-runtime-cuda.a, ...; the file may be
  /// missing.
  std::string runtimeLibrary(const Target &target) const;
};

/// Compiler flags of a step for the instruction set `arch`.
std::vector<std::string> cpuFlags(const std::string &arch);

/// The compiler of a backend's steps: the one that built tmc, or the command
/// with its usual name. Fails if both are missing.
Expected<std::string> stepCompiler(Backend backend);

/// The command that compiles a step for `target`, one word an element.
std::vector<std::string> compileCommand(const std::string &compiler,
                                        const Installation &installation,
                                        const Target &target,
                                        const std::string &source,
                                        const std::string &object);

/// Libraries of a step, beside the runtime: "-pthread", ...
std::vector<std::string> stepLibraries(Backend backend);

struct ToolRun {
  std::vector<std::string> arguments;
  std::string log; // The file for its output.
};

/// Runs all of `runs`, as many at a time as the machine has processors. If one
/// fails, the others are ended, and the result is the failure of the first such
/// run in the list, with the first lines of its log as notes.
Expected<void> runTools(const std::vector<ToolRun> &runs);

inline Expected<void> runTool(const std::vector<std::string> &arguments,
                              const std::string &log) {
  return runTools({{arguments, log}});
}

/// A file of a step, compiled by itself.
struct StepPiece {
  std::string source;
  /// Whether it holds kernels. Code that only calls kernels gains nothing by
  /// the optimizer, and there is much of it.
  bool computes = true;
};

/// The linked files of a step.
struct StepFiles {
  std::string library; // Its file name is the SONAME, by which programs find
                       // it.
  std::string exports; // A version script; empty: all symbols are exported.
  std::string trainer; // Empty: none.
  bool connectsRanks = false; // The trainer is one of several ranks.
};

/// Compiles `pieces` in parallel, except those that `cache` has, and links
/// `files`. A missing compiler, or one that fails, is a failure of the kind
/// World; its messages become notes.
Expected<void> compileStep(const Installation &installation,
                           const Target &target,
                           const std::vector<StepPiece> &pieces,
                           const StepFiles &files,
                           const ObjectCache &cache = ObjectCache());

/// Files that compileStep reads beside `pieces`: tmc, the runtime's libraries
/// and headers. A change of one of them may change the output.
std::vector<std::string> filesOf(const Installation &installation,
                                 const Target &target, bool connectsRanks);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_HOSTCOMPILER_H
