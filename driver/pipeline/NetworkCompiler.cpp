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

static NetworkTool findNccl(const Installation &installation,
                            const std::string &scratch) {
  NetworkTool tool{"nccl", networkFile("nccl"), {}, {}, ""};
  tmc::Expected<std::string> compiler = stepCompiler(Backend::Cuda);
  if (!compiler) {
    tool.missing = "nccl: " + compiler.failure().message;
    return tool;
  }
  const std::string source =
      installation.includeDir + "/runtime/network/Nccl.cpp";
  tool.command = {*compiler,    "-std=c++20", "-O2", "-shared",
                  "-Xcompiler", "-fPIC",      "-I",  installation.includeDir};
  // The package of PyPI has no libnccl.so.
  tool.libraries = {"-l:libnccl.so.2"};
  if (const char *home = std::getenv("NCCL_HOME"); home && *home) {
    const std::string folder = home;
    tool.command.insert(tool.command.end(),
                        {"-I", folder + "/include", "-L", folder + "/lib"});
    tool.libraries.insert(tool.libraries.end(),
                          {"-Xlinker", "-rpath=" + folder + "/lib"});
  }
  const std::string object = scratch + "nccl.ii", log = scratch + "nccl.log";
  std::vector<std::string> question = tool.command;
  llvm::erase(question, "-shared");
  question.insert(question.end(), {"-E", source, "-o", object});
  const bool isThere(runTool(question, log));
  sys::fs::remove(object);
  sys::fs::remove(log);
  if (isThere)
    tool.command.push_back(source);
  else
    tool.missing = "nccl: there is no nccl.h: apt-get install libnccl-dev, or "
                   "pip install nvidia-nccl-cu13 and set NCCL_HOME to its "
                   "folder nvidia/nccl";
  return tool;
}

std::vector<NetworkTool> tmc::findNetworks(const Installation &installation,
                                           Backend backend,
                                           const std::string &scratch) {
  std::vector<NetworkTool> tools = {findMpi(installation),
                                    findGloo(installation, scratch)};
  if (backend == Backend::Cuda)
    tools.push_back(findNccl(installation, scratch));
  return tools;
}

tmc::Expected<std::vector<std::string>> tmc::compileNetworks(
    const Installation &installation, Backend backend, const std::string &name,
    const std::string &scratch,
    const std::function<std::string(const std::string &)> &place) {
  std::vector<ToolRun> runs;
  std::vector<std::string> files;
  Failure failure = Failure::world(
      name.empty()
          ? "this machine can compile no library of the network"
          : "this machine can't compile the network's library '" + name + "'");
  for (const NetworkTool &tool : findNetworks(installation, backend, scratch)) {
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
