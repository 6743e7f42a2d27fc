#include "compiler/pipeline/OutputDirectory.h"

#include "compiler/pipeline/Interrupt.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <unistd.h>

using namespace tmc;
namespace fs = std::filesystem;

static Failure worldFailure(const std::string &what, const std::string &path,
                            const std::error_code &error) {
  return Failure::world("can't " + what + " '" + path +
                        "': " + error.message());
}

Expected<OutputDirectory> OutputDirectory::create(const std::string &path) {
  std::error_code error;
  bool made = fs::create_directories(path, error);
  if (error)
    return worldFailure("make the directory", path, error);
  std::string staging =
      (fs::path(path) / (".tmc-" + std::to_string(getpid()))).string();
  fs::create_directory(staging, error);
  if (error) {
    std::error_code ignored;
    if (made)
      fs::remove(path, ignored);
    return worldFailure("write in", path, error);
  }
  removeWhenStopped(staging, made ? path : "");
  return OutputDirectory(path, staging, made);
}

OutputDirectory::OutputDirectory(OutputDirectory &&other)
    : path(std::move(other.path)), staging(std::move(other.staging)),
      made(other.made) {
  other.staging.clear();
}

OutputDirectory::~OutputDirectory() {
  if (staging.empty())
    return;
  keepWhenStopped();
  std::error_code ignored;
  fs::remove_all(staging, ignored);
  if (made)
    fs::remove(path, ignored); // Only where it is empty.
}

std::string OutputDirectory::staged(const std::string &name) const {
  return (fs::path(staging) / name).string();
}

Expected<bool>
OutputDirectory::write(const std::string &name,
                       const std::vector<std::string_view> &pieces) {
  std::string file = staged(name);
  FILE *out = std::fopen(file.c_str(), "wb");
  bool ok = out;
  for (std::string_view piece : pieces)
    ok = ok && std::fwrite(piece.data(), 1, piece.size(), out) == piece.size();
  int problem = errno;
  if (out && std::fclose(out) != 0 && ok) {
    ok = false;
    problem = errno;
  }
  if (!ok)
    return Failure::world("can't write '" + (fs::path(path) / name).string() +
                          "': " + std::strerror(problem));
  return true;
}

/// Signals wait while files are moved into place.
namespace {
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

Expected<bool>
OutputDirectory::commit(const std::vector<std::string> &replaced) {
  SignalsHeld held;
  std::error_code error;
  for (const std::string &name : replaced)
    if (!fs::exists(staged(name), error))
      fs::remove(fs::path(path) / name, error);
  error.clear();
  for (const fs::directory_entry &entry :
       fs::directory_iterator(staging, error)) {
    fs::rename(entry.path(), fs::path(path) / entry.path().filename(), error);
    if (error)
      return worldFailure("move into place", entry.path().filename(), error);
  }
  if (error)
    return worldFailure("read", staging, error);
  fs::remove(staging, error);
  staging.clear();
  keepWhenStopped();
  return true;
}
