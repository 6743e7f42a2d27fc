#include "driver/pipeline/Doctor.h"

#include "compiler/emit/Emit.h"
#include "driver/pipeline/Config.h"
#include "driver/pipeline/Folder.h"
#include "driver/pipeline/NetworkCompiler.h"
#include "driver/pipeline/SystemMemory.h"
#include "runtime/step/Processor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstring>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

using namespace llvm;
using namespace tmc;

namespace {

/// Warn of less free space for temporary files: the host compiler's
/// intermediate files of a large model take some tens of MiB.
constexpr int64_t kLittleSpace = int64_t(256) << 20;

/// A new directory for trials; removed at the end.
struct Workplace {
  SmallString<128> path;
  std::error_code error;

  Workplace() : path(makeTemporaryDirectory("tmc-doctor")) {
    if (path.empty())
      error = std::error_code(errno, std::generic_category());
  }
  ~Workplace() {
    if (!error)
      sys::fs::remove_directories(path);
  }
  std::string file(StringRef name) const { return (path + "/" + name).str(); }
};

Finding examineTemporary(const Workplace &place) {
  SmallString<128> where;
  sys::path::system_temp_directory(true, where);
  Finding finding{Finding::Good, "temporary files", where.str().str(), ""};
  struct statvfs info;
  if (place.error) {
    finding.state = Finding::Missing;
    finding.detail += ": " + place.error.message();
    finding.fix = "set TMPDIR to a directory that can be written";
  } else if (statvfs(where.c_str(), &info) == 0) {
    int64_t bytes = int64_t(info.f_bavail) * int64_t(info.f_frsize);
    finding.detail += ", " + readableBytes(bytes) + " free";
    if (bytes < kLittleSpace) {
      finding.state = Finding::Doubt;
      finding.fix = "set TMPDIR to a directory with more space";
    }
  }
  return finding;
}

Finding examineCores() {
  cpu_set_t set;
  int allowed = sched_getaffinity(0, sizeof set, &set) == 0
                    ? CPU_COUNT(&set)
                    : int(sysconf(_SC_NPROCESSORS_ONLN));
  return {Finding::Fact, "cores", std::to_string(allowed), ""};
}

Finding examineMemory() {
  const SystemMemory memory = systemMemory();
  if (memory.totalBytes < 0)
    return {Finding::Fact, "memory", "unknown", ""};
  return {Finding::Fact, "memory",
          readableBytes(memory.totalBytes) + ", " +
              readableBytes(memory.availableBytes) + " of it free",
          ""};
}

/// A limit on the bytes of an arena or a saved file.
void examineLimit(std::vector<Finding> &findings, int which, const char *name,
                  const char *fix) {
  struct rlimit limit;
  if (getrlimit(which, &limit) || limit.rlim_cur == RLIM_INFINITY)
    return;
  findings.push_back({Finding::Doubt, name,
                      "limited to " + readableBytes(int64_t(limit.rlim_cur)),
                      fix});
}

/// The version in the output of `tool --version`: after "release ", otherwise
/// the last word of the first line.
std::string versionOf(const std::string &tool, const Workplace &place) {
  std::string log = place.file("version");
  if (!runTool({tool, "--version"}, log))
    return "";
  auto text = MemoryBuffer::getFile(log);
  SmallVector<StringRef> lines;
  if (text)
    (*text)->getBuffer().split(lines, '\n');
  for (StringRef line : lines)
    if (size_t at = line.find("release "); at != StringRef::npos)
      return " " + line.substr(at + 8).split(',').first.str();
  return lines.empty() ? "" : " " + lines[0].rsplit(' ').second.str();
}

/// Processor features needed by each instruction set, in the order of
/// cpuArchs().
constexpr uint32_t kAsked[] = {kV3, kV4, kV4Bf16, kV4Amx};

/// The instruction sets that steps can be compiled for, and those that this
/// processor runs. The others are for other machines.
Finding examineProcessor(const tmc::Expected<Installation> &installation,
                         Target target) {
  const uint32_t available = instructionsOf(readCpuid());
  std::string here, elsewhere;
  bool runsDefault = false;
  for (auto [arch, asked] : zip_equal(cpuArchs(), kAsked)) {
    bool runs = (available & asked) == asked;
    runsDefault |= runs && arch == defaultCpuArch();
    target.arch = arch;
    if (!installation || !sys::fs::exists(installation->runtimeLibrary(target)))
      continue;
    std::string &list = runs ? here : elsewhere;
    list += (list.empty() ? "" : " ") + arch;
  }
  Finding finding{
      Finding::Good, "instructions",
      "cpu is cpu:" + defaultCpuArch() +
          "; compiled and run here: " + (here.empty() ? "none" : here),
      ""};
  if (!elsewhere.empty())
    finding.detail += "; for other machines: " + elsewhere;
  if (!runsDefault) {
    finding.state = Finding::Doubt;
    finding.fix = here.empty() ? "run steps on a machine with AVX2"
                               : "compile with --target cpu:v3, or configure "
                                 "tmc with -DTMC_CPU_TARGET=v3";
  }
  return finding;
}

/// The headers by which graphs of cuDNN are made, as they were when tmc was
/// built.
Finding examineFrontend() {
  if (StringRef(TMC_CUDNN_FRONTEND).empty())
    return {Finding::Fact, "cuDNN frontend",
            "none where tmc was built; convolutions on cards are slow, and "
            "--attention=cudnn is refused",
            "pip install nvidia-cudnn-frontend, and build tmc again"};
  return {Finding::Good, "cuDNN frontend",
          TMC_CUDNN_FRONTEND ", built with cuDNN " TMC_CUDNN
                             ", for convolutions and --attention=cudnn",
          ""};
}

/// The libraries that connect the ranks of a step for several devices: those of
/// the host, or those of cards.
void examineNetworks(const Installation &installation, Backend backend,
                     const Workplace &place, std::vector<Finding> &findings) {
  for (const NetworkTool &tool :
       findNetworks(installation, backend, place.file("network")))
    if ((backend == Backend::Cuda) == (tool.name == "nccl"))
      findings.push_back({tool.missing.empty() ? Finding::Good : Finding::Fact,
                          "network " + tool.name,
                          tool.missing.empty()
                              ? tool.file + " can be compiled, for --devices"
                              : tool.missing,
                          ""});
}

/// Tries to compile a step's first line, and to link the libraries of a step.
std::vector<Finding> examineBackend(Backend backend, const Workplace &place) {
  bool cuda = backend == Backend::Cuda;
  std::vector<Finding> findings;
  tmc::Expected<std::string> compiler = stepCompiler(backend);
  const char *getCuda = "install the CUDA toolkit, 12 or newer";
  const char *getCompiler = "apt-get install g++";
  Finding tool{Finding::Good, cuda ? "nvcc" : "c++ compiler", "", ""};
  if (compiler) {
    tool.detail = *compiler + versionOf(*compiler, place);
  } else {
    tool = {Finding::Missing, tool.name, "none is found",
            cuda ? getCuda : getCompiler};
  }

  tmc::Expected<Installation> installation = Installation::find();
  Target target;
  target.backend = backend;
  target.arch = cuda ? "sm_80" : defaultCpuArch();
  Finding runtime{Finding::Missing, cuda ? "cuda runtime" : "cpu runtime",
                  "not beside tmc", "build or install the whole of tmc"};
  if (installation) {
    std::string library = installation->runtimeLibrary(target);
    std::string header = installation->includeDir + "/runtime/tmc.h";
    bool there = sys::fs::exists(library);
    runtime.detail = there ? library : library + " isn't there";
    if (cuda && !there)
      runtime.fix = "build tmc where the CUDA toolkit is found";
    if (there && !sys::fs::exists(header))
      runtime.detail = header + " isn't there";
    else if (there)
      runtime = {Finding::Good, runtime.name, library, ""};
  }

  std::string source = place.file(cuda ? "try.cu" : "try.cpp");
  std::string object = source + ".o", log = source + ".log";
  if (compiler && installation && !place.error &&
      runtime.state == Finding::Good) {
    std::error_code error;
    raw_fd_ostream os(source, error);
    os << "#include \"runtime/step/Program.h\"\nint main() { return 0; }\n";
    os.close();
    tmc::Expected<void> compiled = runTool(
        compileCommand(*compiler, *installation, target, source, object), log);
    if (!compiled) {
      tool.state = Finding::Missing;
      tool.detail += ", which fails: " + (compiled.failure().notes.empty()
                                              ? compiled.failure().message
                                              : compiled.failure().notes[0]);
      tool.fix = cuda ? getCuda : getCompiler;
    }
    struct Library {
      const char *flag, *name, *fix;
    };
    std::vector<Library> libraries =
        cuda ? std::vector<Library>{{"-lcublasLt", "cuBLASLt", getCuda},
                                    {"-lcudnn", "cuDNN",
                                     "install cuDNN, for convolutions"}}
             : std::vector<Library>{}; // the cpu's runtime needs none
    if (compiled)
      for (const Library &library : libraries) {
        bool linked(runTool(
            {*compiler, object, "-o", place.file("try"), library.flag}, log));
        bool wanted =
            is_contained(stepLibraries(backend), StringRef(library.flag));
        findings.push_back({linked   ? Finding::Good
                            : wanted ? Finding::Missing
                                     : Finding::Doubt,
                            library.name, linked ? "linked" : "can't be linked",
                            linked ? "" : library.fix});
      }
  }
  if (cuda)
    findings.push_back(examineFrontend());
  findings.insert(findings.begin(), {tool, runtime});
  if (!cuda)
    findings.push_back(examineProcessor(installation, target));
  if (installation && !place.error)
    examineNetworks(*installation, backend, place, findings);
  if (cuda && access("/dev/nvidiactl", F_OK))
    findings.push_back({Finding::Fact, "GPU",
                        "none here; steps are compiled, and run elsewhere",
                        ""});
  else if (cuda)
    findings.push_back({Finding::Good, "GPU", "there is a driver", ""});
  return findings;
}

} // namespace

bool Diagnosis::works(Backend backend) const {
  auto isGood = [](const Finding &finding) {
    return finding.state != Finding::Missing;
  };
  return all_of(machine, isGood) &&
         all_of(backend == Backend::Cuda ? cuda : cpu, isGood);
}

Diagnosis tmc::examine() {
  Workplace place;
  Diagnosis diagnosis;
  diagnosis.machine = {examineCores(), examineMemory(),
                       examineTemporary(place)};
  examineLimit(diagnosis.machine, RLIMIT_AS, "address space",
               "ulimit -v unlimited");
  examineLimit(diagnosis.machine, RLIMIT_FSIZE, "size of files",
               "ulimit -f unlimited");
  diagnosis.cpu = examineBackend(Backend::Cpu, place);
  diagnosis.cuda = examineBackend(Backend::Cuda, place);
  return diagnosis;
}

std::string tmc::diagnosisTable(const Diagnosis &diagnosis, bool isColoured) {
  std::string text;
  raw_string_ostream os(text);
  StringRef usual = StringRef(TMC_DEFAULT_TARGET).split(':').first;
  // A tool that only another target than the default needs isn't alarming.
  auto print = [&](const char *title, const std::vector<Finding> &findings,
                   bool matters) {
    os << title << "\n";
    for (const Finding &finding : findings) {
      static constexpr const char *kMarks[] = {"ok", "", "look", "missing"};
      static constexpr const char *kColours[] = {"\033[32m", "", "\033[33m",
                                                 "\033[31m"};
      bool calm = finding.state == Finding::Missing && !matters;
      os << "  " << (isColoured && !calm ? kColours[finding.state] : "")
         << left_justify(calm ? "absent" : kMarks[finding.state], 9)
         << (isColoured && !calm ? "\033[0m" : "")
         << left_justify(finding.name, 17) << finding.detail << "\n";
      if (!finding.fix.empty())
        os << std::string(28, ' ') << "fix: " << finding.fix << "\n";
    }
  };
  print("this machine", diagnosis.machine, true);
  print("--target cpu", diagnosis.cpu, usual == "cpu");
  print("--target cuda:...", diagnosis.cuda, usual == "cuda");
  for (Backend backend : {Backend::Cpu, Backend::Cuda}) {
    StringRef name = backend == Backend::Cuda ? "cuda" : "cpu";
    os << "steps for " << name << (diagnosis.works(backend) ? " can" : " can't")
       << " be compiled here";
    if (usual == name)
      os << " (the default target, " TMC_DEFAULT_TARGET ")";
    os << "\n";
  }
  return text;
}
