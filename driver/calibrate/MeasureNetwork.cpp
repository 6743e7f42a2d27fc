#include "driver/calibrate/MeasureNetwork.h"

#include "driver/pipeline/NetworkCompiler.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace llvm;
using namespace tmc;

/// A rank that stands still would hold the calibration.
static constexpr unsigned kLimitSeconds = 300;
static constexpr const char *kLauncher = "mpirun";

/// Takes MPI where a launcher can start it.
static tmc::Expected<std::string>
libraryOf(const std::vector<NetworkTool> &tools, const std::string &asked) {
  Failure failure = Failure::world(
      asked.empty() ? "this machine has no network for ranks"
                    : "this machine can't run ranks by '" + asked + "'");
  for (const NetworkTool &tool : tools) {
    if (!asked.empty() && tool.name != asked)
      continue;
    if (!tool.missing.empty())
      failure.notes.push_back(tool.missing);
    else if (tool.name == "mpi" && !sys::findProgramByName(kLauncher))
      failure.notes.push_back(std::string("mpi: there is no '") + kLauncher +
                              "': apt-get install openmpi-bin");
    else
      return tool.name;
  }
  return std::move(failure);
}

tmc::Expected<void> NetworkRunner::prepare() {
  if (std::error_code error = sys::fs::create_directory(directory))
    return Failure::world("can't make '" + directory + "': " + error.message());
  tmc::Expected<Installation> installation = Installation::find();
  if (!installation)
    return std::move(installation.failure());
  const std::string scratch = directory + "/";
  tmc::Expected<std::string> chosen =
      libraryOf(findNetworks(*installation, Backend::Cpu, scratch), library);
  if (!chosen)
    return std::move(chosen.failure());
  library = *chosen;
  auto compiled =
      compileNetworks(*installation, Backend::Cpu, library, scratch,
                      [&](const std::string &file) { return scratch + file; });
  if (!compiled)
    return std::move(compiled.failure());
  tmc::Expected<std::string> compiler = stepCompiler(Backend::Cpu);
  if (!compiler)
    return std::move(compiler.failure());
  return runTool({*compiler, "-std=c++20", "-O2", "-I",
                  installation->includeDir,
                  installation->includeDir + "/runtime/network/Measure.cpp",
                  installation->libraryDir + "/libtmc-network.a", "-pthread",
                  "-ldl", "-o", program()},
                 scratch + "compile.log");
}

/// A port of this machine that no program has at the moment.
static int freePort() {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto *its = reinterpret_cast<sockaddr *>(&address);
  const bool isFound =
      !bind(descriptor, its, length) && !getsockname(descriptor, its, &length);
  (void)close(descriptor);
  return isFound ? ntohs(address.sin_port) : 0;
}

/// Runs a program for each list of words, and returns the first code that isn't
/// 0. The first one's output goes to `out`, and its errors to `log`: rank 0
/// says what ended another one.
static int runAll(const std::vector<std::vector<std::string>> &commands,
                  ArrayRef<StringRef> environment, const std::string &out,
                  const std::string &log, std::string &error) {
  std::vector<sys::ProcessInfo> processes;
  int code = 0;
  for (const std::vector<std::string> &words : commands) {
    SmallVector<StringRef> arguments(words.begin(), words.end());
    const bool isFirst = processes.empty();
    std::optional<StringRef> redirects[] = {StringRef(),
                                            isFirst ? StringRef(out) : "",
                                            isFirst ? StringRef(log) : ""};
    bool isFailed = false;
    processes.push_back(sys::ExecuteNoWait(words[0], arguments, environment,
                                           redirects, 0, &error, &isFailed));
    if (isFailed)
      code = -1;
  }
  for (const sys::ProcessInfo &process : processes) {
    if (!process.Pid)
      continue;
    const sys::ProcessInfo ended = sys::Wait(process, kLimitSeconds, &error);
    if (code == 0)
      code = ended.ReturnCode;
  }
  return code;
}

tmc::Expected<void> NetworkRunner::measure() {
  std::vector<std::vector<std::string>> commands;
  const std::string count = std::to_string(ranks);
  if (library == "mpi") {
    commands.push_back({*sys::findProgramByName(kLauncher), "-n", count,
                        program(), library, directory});
  } else {
    const int port = freePort();
    for (int64_t rank = 0; rank < ranks; ++rank)
      commands.push_back({program(), library, directory, std::to_string(rank),
                          count, "127.0.0.1:" + std::to_string(port)});
  }
  // The ranks may be more than the cores, and the program touches no file.
  std::vector<StringRef> environment = {
      "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
      "OMPI_MCA_rmaps_base_oversubscribe=1",
      "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"};
  for (char **each = environ; *each; ++each)
    environment.push_back(*each);
  const std::string out = directory + "/measure.out",
                    log = directory + "/measure.log";
  std::string error;
  const int code = runAll(commands, environment, out, log, error);
  const auto textOf = [](const std::string &path) {
    auto file = MemoryBuffer::getFile(path);
    return file ? (*file)->getBuffer().trim().str() : std::string();
  };
  std::optional<MeasuredNetwork> network = networkOfText(textOf(out));
  if (code != 0 || !network) {
    Failure failure = Failure::world(
        "ranks by '" + library + "' ended with code " + std::to_string(code) +
        (error.empty() ? "" : ": ") + error);
    if (const std::string text = textOf(log); !text.empty())
      failure.notes.push_back(text);
    return std::move(failure);
  }
  network->ranks = ranks;
  keepFastest(*network, fastest);
  fastest.level = {"this machine by " + library, NetworkLevel::kAnyRanks,
                   fitNetwork(fastest.times, ranks)};
  return {};
}
