#include "driver/pipeline/OutputDirectory.h"

#include "driver/pipeline/Interrupt.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <unistd.h>

using namespace tmc;
using llvm::StringRef;
namespace fs = std::filesystem;

namespace {

constexpr const char *kPlan = "plan.json";
constexpr const char *kStagingPrefix = ".tmc-";
constexpr const char *kMeshPrefix = "ranks-";
/// Marks a staging directory whose files are being moved into place.
constexpr const char *kPublishing = "publishing";
/// The files that a compilation may write, beside its library and weights.
constexpr const char *kFiles[] = {"train",
                                  "step.cpp",
                                  "step.cu",
                                  "step.h",
                                  "step.mlir",
                                  "plan-trace.json",
                                  "report.html",
                                  "tmc.h",
                                  "libtmc-network-mpi.so",
                                  "libtmc-network-gloo.so",
                                  "libtmc-network-nccl.so"};

/// No plan of tmc is larger.
constexpr int64_t kMostPlanBytes = int64_t(64) << 20;

Failure worldFailure(const std::string &what, const std::string &path,
                     int error) {
  return Failure::world("can't " + what + " '" + path +
                        "': " + std::strerror(error));
}

std::string joined(const std::string &directory, const std::string &name) {
  return (fs::path(directory) / name).string();
}

/// The text of a plan.json that a compilation wrote; nothing if there is none
/// or another program wrote it.
std::optional<std::string> planIn(const Folder &directory) {
  std::optional<std::string> text = directory.read(kPlan, kMostPlanBytes);
  // Compares the printed text, so no parser runs on a foreign file.
  for (const char *key : {"\n  \"compiled_for\": ", "\n  \"schema\": "})
    if (text && !StringRef(*text).contains(key))
      return std::nullopt;
  return text;
}

/// The name of that plan's step; "": it has none, or no library.
std::string stepNameOf(StringRef plan) {
  StringRef name = plan.split("\n  \"library\": \"lib").second.split('"').first;
  return name.consume_back(".so") && name != "step" && isStepName(name.str())
             ? name.str()
             : "";
}

/// Whether a staging directory of this user has no lock.
bool isAbandoned(const Folder &directory, const std::string &name) {
  if (!StringRef(name).starts_with(kStagingPrefix))
    return false;
  Folder staging = directory.folder(name);
  return staging && staging.status().st_uid == geteuid() &&
         staging.lock(/*waits=*/false);
}

bool isStaging(const Folder &directory, const std::string &name) {
  std::optional<struct stat> status = directory.status(name);
  return StringRef(name).starts_with(kStagingPrefix) && status &&
         S_ISDIR(status->st_mode);
}

void removeAbandoned(const Folder &directory) {
  for (const std::string &name : directory.names())
    if (isAbandoned(directory, name))
      directory.removeFolder(name);
}

std::string strangerIn(const Folder &directory);

/// True if `name` is the folder of a step for some number of ranks, or was to
/// be one.
bool isMeshFolder(const Folder &directory, const std::string &name) {
  StringRef number(name);
  int64_t ranks = 0;
  if (!number.consume_front(kMeshPrefix) || number.getAsInteger(10, ranks) ||
      name != meshFolderOf(ranks))
    return false;
  Folder folder = directory.folder(name);
  return folder && strangerIn(folder).empty();
}

std::vector<std::string> meshFoldersOf(const Folder &directory) {
  std::vector<std::string> folders = directory.names();
  llvm::erase_if(folders, [&](const std::string &name) {
    return !isMeshFolder(directory, name);
  });
  return folders;
}

/// A file that no compilation has written, or "": all are tmc's.
std::string strangerIn(const Folder &directory) {
  if (planIn(directory))
    return "";
  // These have a trainer for all, and the flags.
  std::vector<std::string> known = meshFoldersOf(directory);
  if (!known.empty())
    known.insert(known.end(), {"train", "config.toml"});
  std::string stranger;
  for (const std::string &name : directory.names()) {
    if (llvm::is_contained(known, name))
      continue;
    if (!isStaging(directory, name)) {
      if (stranger.empty() || name < stranger)
        stranger = name;
    } else if (isAbandoned(directory, name) &&
               directory.folder(name).status(kPublishing)) {
      return ""; // The files here were being published.
    }
  }
  return stranger;
}

Expected<void> refuseStrangers(const Folder &directory,
                               const std::string &path) {
  const std::string stranger = strangerIn(directory);
  if (stranger.empty())
    return {};
  return Failure::usage("'" + path +
                        "' holds files that tmc compile didn't "
                        "write: '" +
                        stranger + "'")
      .note("-o NAME makes another directory; with --force files of a step "
            "replace those of their names");
}

/// Signals wait while files are moved into place.
struct SignalsHeld {
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
  }
  ~SignalsHeld() { sigprocmask(SIG_SETMASK, &old, nullptr); }
  sigset_t old;
};

} // namespace

bool tmc::isStepName(const std::string &name) {
  constexpr size_t kMost = 64;
  return !name.empty() && name.size() <= kMost && !llvm::isDigit(name[0]) &&
         llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

std::string tmc::libraryOf(const std::string &stepName) {
  return "lib" + (stepName.empty() ? "step" : stepName) + ".so";
}

std::string tmc::meshFolderOf(int64_t ranks) {
  return kMeshPrefix + std::to_string(ranks);
}

std::vector<std::string>
OutputDirectory::meshFoldersIn(const std::string &path) {
  Folder directory = Folder::open(path, Folder::Links::Followed);
  if (!directory || planIn(directory) || !directory.status("train"))
    return {};
  return meshFoldersOf(directory);
}

std::string tmc::stepNameIn(const std::string &path) {
  Folder directory = Folder::open(path, Folder::Links::Followed);
  std::optional<std::string> plan;
  if (directory)
    plan = planIn(directory);
  return plan ? stepNameOf(*plan) : "";
}

Expected<void> OutputDirectory::check(const std::string &path) {
  Folder directory = Folder::open(path, Folder::Links::Followed);
  return directory ? refuseStrangers(directory, path) : Expected<void>();
}

Expected<OutputDirectory> OutputDirectory::create(const std::string &path,
                                                  bool force) {
  OutputDirectory output;
  output.path = path;
  std::error_code error;
  const bool made = fs::create_directories(path, error);
  if (error)
    return worldFailure("make the directory", path, error.value());
  output.directory = Folder::open(path, Folder::Links::Followed);
  if (!output.directory)
    return worldFailure("open the directory", path, errno);
  output.made = made;
  // A separate descriptor, whose lock ends with it: no process looks for
  // abandoned directories between the creation of a staging directory and its
  // lock.
  Folder held = Folder::open(path, Folder::Links::Followed);
  held.lock(/*waits=*/true);
  if (!force)
    TMC_TRY(refuseStrangers(output.directory, path));
  // Programs would read a name that begins with a dash or an at sign as an
  // option.
  const std::string place = fs::path(path).is_absolute() ? path : "./" + path;
  std::string staging = makeOwnDirectory(joined(place, kStagingPrefix));
  if (staging.empty())
    return worldFailure("write in", path, errno);
  output.stagingPath = staging;
  output.stagingName = fs::path(staging).filename().string();
  output.staging = output.directory.folder(output.stagingName);
  if (!output.staging)
    return worldFailure("open", staging, errno);
  output.staging.lock(/*waits=*/false);
  if (planIn(output.directory))
    removeAbandoned(output.directory);
  removeWhenStopped(staging, made ? path : "");
  return output;
}

OutputDirectory::~OutputDirectory() {
  if (!directory)
    return;
  if (!stagingName.empty()) {
    keepWhenStopped(stagingPath);
    directory.removeFolder(stagingName);
  }
  std::error_code ignored;
  if (made)
    fs::remove(path, ignored); // Succeeds only if it is empty.
}

std::string OutputDirectory::staged(const std::string &name) {
  if (!llvm::is_contained(written, name))
    written.push_back(name);
  return scratch(name);
}

std::string OutputDirectory::scratch(const std::string &name) const {
  return joined(stagingPath, name);
}

Expected<void>
OutputDirectory::write(const std::string &name,
                       const std::vector<std::string_view> &pieces) {
  staging.remove(name); // An earlier file of this name.
  if (!staging.create(name, 0666, pieces))
    return worldFailure("write", joined(path, name), errno);
  staged(name);
  return {};
}

Expected<void> OutputDirectory::writeScratch(const std::string &name,
                                             const std::string &content) const {
  if (!staging.create(name, 0666, {content}))
    return worldFailure("write", joined(path, name), errno);
  return {};
}

Expected<void> OutputDirectory::commit(const std::vector<std::string> &replaced,
                                       bool makesNoStep) {
  SignalsHeld signals;
  Folder held = Folder::open(path, Folder::Links::Followed);
  held.lock(/*waits=*/true); // Two steps are published one after the other.
  for (const std::string &name : written)
    if (auto old = directory.status(name); old && S_ISDIR(old->st_mode))
      return worldFailure("replace", joined(path, name), EISDIR);
  std::vector<std::string> obsolete = replaced;
  if (std::optional<std::string> plan = planIn(directory)) {
    obsolete.insert(obsolete.end(), std::begin(kFiles), std::end(kFiles));
    obsolete.push_back(libraryOf(stepNameOf(*plan)));
    if (makesNoStep)
      obsolete.push_back(kPlan);
  }
  if (!staging.create(kPublishing, 0600, {}))
    return worldFailure("write in", path, errno);
  auto publish = [&](const std::string &name) -> Expected<void> {
    if (!staging.rename(name, directory, name))
      return worldFailure("move into place", name, errno);
    return {};
  };
  // plan.json goes last, so that make rebuilds a half-published directory.
  for (const std::string &name : written)
    if (name != kPlan)
      TMC_TRY(publish(name));
  for (const std::string &name : obsolete)
    if (!llvm::is_contained(written, name))
      directory.remove(name);
  if (llvm::is_contained(written, kPlan))
    TMC_TRY(publish(kPlan));
  keepWhenStopped(stagingPath);
  directory.removeFolder(stagingName);
  stagingName.clear();
  made = false;
  removeAbandoned(directory);
  return {};
}
