// NetworkCompiler.h - libraries that move bytes between the ranks of a step.
//
// A step for several devices has one or more of these beside its trainer
// (runtime/network/Library.h). They come as source files with the runtime, and
// are compiled where the step is:
//
//     libtmc-network-mpi.so    Mpi.cpp, by mpicxx (or $MPICXX): the binary
//                              interface of MPI differs between its kinds
//     libtmc-network-gloo.so   Gloo.cpp, by the host's compiler, with -lgloo
//     libtmc-network-nccl.so   Nccl.cpp, by nvcc, for steps of cards. NCCL is
//                              that of the toolkit or the system, or of the
//                              folder $NCCL_HOME

#ifndef TMC_DRIVER_PIPELINE_NETWORKCOMPILER_H
#define TMC_DRIVER_PIPELINE_NETWORKCOMPILER_H

#include "driver/pipeline/HostCompiler.h"

#include <functional>
#include <string>
#include <vector>

namespace tmc {

/// One of the libraries, on this host.
struct NetworkTool {
  std::string name;                   // "mpi", "gloo" or "nccl"
  std::string file;                   // "libtmc-network-mpi.so"
  std::vector<std::string> command;   // compiles it into "-o"; empty: can't
  std::vector<std::string> libraries; // at the end of the command
  std::string missing;                // the reason and the fix; "": none
};

/// Looks for the libraries of a backend's steps: MPI and Gloo, and for cards
/// NCCL, too. `scratch`: prefix of the names of temporary files.
std::vector<NetworkTool> findNetworks(const Installation &installation,
                                      Backend backend,
                                      const std::string &scratch);

/// Compiles the library `name`, or all that this host can where it is "", into
/// the paths that `place` gives to the names of files. Returns these names. A
/// failure of the kind World, with a fix for each library, if it can compile
/// none.
Expected<std::vector<std::string>>
compileNetworks(const Installation &installation, Backend backend,
                const std::string &name, const std::string &scratch,
                const std::function<std::string(const std::string &)> &place);

/// Compiles runtime/network/Launch.cpp into `path`: the trainer of a directory
/// with steps for several numbers of ranks. `scratch`: prefix of temporary
/// files.
Expected<void> compileLauncher(const Installation &installation,
                               const std::string &path,
                               const std::string &scratch);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_NETWORKCOMPILER_H
