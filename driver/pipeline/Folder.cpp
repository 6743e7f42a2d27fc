#include "driver/pipeline/Folder.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace tmc;

namespace {

constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

/// Closes `fd` and keeps the reason of a failure.
bool closed(int fd, bool good) {
  const int error = errno;
  const bool done = close(fd) == 0 && good;
  if (!good)
    errno = error;
  return done;
}

bool writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno != EINTR)
      return false;
    bytes.remove_prefix(size_t(std::max<ssize_t>(done, 0)));
  }
  return true;
}

bool readAll(int fd, std::string &bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t done = read(fd, bytes.data() + at, bytes.size() - at);
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return false;
    at += size_t(done);
  }
  return true;
}

} // namespace

Folder::~Folder() {
  if (descriptor >= 0)
    close(descriptor);
}

Folder Folder::open(const std::string &path, Links links) {
  const int follows = links == Links::Refused ? O_NOFOLLOW : 0;
  return Folder(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | follows));
}

Folder Folder::folder(const std::string &name) const {
  return Folder(
      openat(descriptor, name.c_str(), O_RDONLY | O_DIRECTORY | kFlags));
}

struct stat Folder::status() const {
  struct stat found = {};
  fstat(descriptor, &found);
  return found;
}

std::optional<struct stat> Folder::status(const std::string &name) const {
  struct stat found;
  if (fstatat(descriptor, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
    return std::nullopt;
  return found;
}

std::vector<std::string> Folder::names() const {
  std::vector<std::string> found;
  // A new descriptor has a reading position of its own.
  const int own = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = own < 0 ? nullptr : fdopendir(own);
  if (!entries)
    return found;
  while (const dirent *entry = readdir(entries)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..")
      found.push_back(name);
  }
  closedir(entries);
  return found;
}

bool Folder::create(const std::string &name, mode_t mode,
                    const std::vector<std::string_view> &pieces) const {
  const int fd = openat(descriptor, name.c_str(),
                        O_WRONLY | O_CREAT | O_EXCL | kFlags, mode);
  if (fd < 0)
    return false;
  bool good = true;
  for (std::string_view piece : pieces)
    good = good && writeAll(fd, piece);
  if (closed(fd, good))
    return true;
  const int error = errno;
  remove(name);
  errno = error;
  return false;
}

std::optional<std::string> Folder::read(const std::string &name,
                                        int64_t mostBytes,
                                        struct stat *status) const {
  const int fd = openat(descriptor, name.c_str(), O_RDONLY | kFlags);
  struct stat found;
  if (fd < 0)
    return std::nullopt;
  std::string bytes;
  bool good = fstat(fd, &found) == 0 && S_ISREG(found.st_mode) &&
              found.st_size <= mostBytes;
  if (good) {
    bytes.resize(size_t(found.st_size));
    good = readAll(fd, bytes);
  }
  if (!closed(fd, good))
    return std::nullopt;
  if (status)
    *status = found;
  return bytes;
}

bool Folder::remove(const std::string &name) const {
  return unlinkat(descriptor, name.c_str(), 0) == 0;
}

bool Folder::removeFolder(const std::string &name) const {
  // A separate scope: the descriptor closes before the directory is removed.
  if (Folder inside = folder(name))
    for (const std::string &each : inside.names())
      inside.remove(each);
  return unlinkat(descriptor, name.c_str(), AT_REMOVEDIR) == 0;
}

bool Folder::rename(const std::string &name, const Folder &to,
                    const std::string &newName) const {
  return renameat(descriptor, name.c_str(), to.descriptor, newName.c_str()) ==
         0;
}

bool Folder::lock(bool waits) const {
  int done;
  do
    done = flock(descriptor, LOCK_EX | (waits ? 0 : LOCK_NB));
  while (done != 0 && errno == EINTR);
  return done == 0;
}

std::string tmc::makeOwnDirectory(const std::string &prefix) {
  std::string path = prefix + "XXXXXX";
  return mkdtemp(path.data()) ? path : "";
}

std::string tmc::makeTemporaryDirectory(const std::string &name) {
  llvm::SmallString<128> path;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, path);
  llvm::sys::path::append(path, name + "-");
  return makeOwnDirectory(path.str().str());
}
