#include "driver/pipeline/NetworkCompiler.h"

#include "runtime/network/Network.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"

#include <cstdlib>

using namespace llvm;
using namespace tmc;

static std::vector<std::string> commandOf(const std::string &compiler,
                                          const Installation &installation,
                                          StringRef source) {
  return {compiler,
          "-std=c++20",
          "-O2",
          "-fPIC",
          "-shared",
          "-I",
          installation.includeDir,
          installation.includeDir + "/runtime/network/" + source.str()};
}

static NetworkTool findMpi(const Installation &installation) {
  NetworkTool tool{"mpi", networkFile("mpi"), {}, {}, ""};
  const char *named = std::getenv("MPICXX");
  for (StringRef program : {StringRef(named ? named : ""), StringRef("mpicxx"),
                            StringRef("mpic++")}) {
    if (program.empty())
      continue;
    if (ErrorOr<std::string> path = sys::findProgramByName(program)) {
      tool.command = commandOf(*path, installation, "Mpi.cpp");
      return tool;
    }
  }
  tool.missing = "mpi: there is no 'mpicxx': apt-get install libopenmpi-dev "
                 "openmpi-bin, or set MPICXX";
  return tool;
}

static NetworkTool findGloo(const Installation &installation,
                            const std::string &scratch) {
  NetworkTool tool{"gloo", networkFile("gloo"), {}, {"-lgloo", "-pthread"}, ""};
  tmc::Expected<std::string> compiler = stepCompiler(Backend::Cpu);
  if (!compiler) {
    tool.missing = "gloo: " + compiler.failure().message;
    return tool;
  }
  const std::string object = scratch + "gloo.o", log = scratch + "gloo.log";
  const bool isThere(
      runTool({*compiler, "-E", "-include", "gloo/rendezvous/context.h", "-x",
               "c++", "/dev/null", "-o", object},
              log));
  sys::fs::remove(object);
  sys::fs::remove(log);
  if (isThere)
    tool.command = commandOf(*compiler, installation, "Gloo.cpp");
  else
    tool.missing = "gloo: there are no headers of Gloo: apt-get install "
                   "libgloo-dev";
  return tool;
}

std::vector<NetworkTool> tmc::findNetworks(const Installation &installation,
                                           const std::string &scratch) {
  return {findMpi(installation), findGloo(installation, scratch)};
}

tmc::Expected<std::vector<std::string>> tmc::compileNetworks(
    const Installation &installation, const std::string &name,
    const std::string &scratch,
    const std::function<std::string(const std::string &)> &place) {
  std::vector<ToolRun> runs;
  std::vector<std::string> files;
  Failure failure = Failure::world(
      name.empty()
          ? "this machine can compile no library of the network"
          : "this machine can't compile the network's library '" + name + "'");
  for (const NetworkTool &tool : findNetworks(installation, scratch)) {
    if (!name.empty() && name != tool.name)
      continue;
    if (!tool.missing.empty()) {
      failure.notes.push_back(tool.missing);
      continue;
    }
    std::vector<std::string> command = tool.command;
    command.insert(command.end(), {"-o", place(tool.file)});
    command.insert(command.end(), tool.libraries.begin(), tool.libraries.end());
    runs.push_back({command, scratch + tool.file + ".log"});
    files.push_back(tool.file);
  }
  if (runs.empty())
    return std::move(failure);
  TMC_TRY(runTools(runs));
  for (const ToolRun &run : runs)
    sys::fs::remove(run.log);
  return files;
}

tmc::Expected<void> tmc::compileLauncher(const Installation &installation,
                                         const std::string &path,
                                         const std::string &scratch) {
  tmc::Expected<std::string> compiler = stepCompiler(Backend::Cpu);
  if (!compiler)
    return std::move(compiler.failure());
  const std::string log = scratch + "launch.log";
  TMC_TRY(
      runTool({*compiler, "-std=c++20", "-O2", "-I", installation.includeDir,
               installation.includeDir + "/runtime/network/Launch.cpp",
               installation.libraryDir + "/libtmc-network.a", "-o", path},
              log));
  sys::fs::remove(log);
  return {};
}
