#include "driver/pipeline/ObjectCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace tmc;
using llvm::StringRef;

/// The first bytes of an entry, before the hash of its content and a newline.
static constexpr StringRef kMagic = "tmc-object 1 ";

static std::string hashOf(StringRef content) {
  llvm::SHA256 hash;
  hash.update(content);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

/// The user's own plain file, which nobody else can write.
static bool isOwn(const struct stat &status) {
  return status.st_uid == geteuid() && status.st_nlink == 1 &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Makes `path` and its missing parents, for the user alone.
static bool makeDirectories(const std::string &path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST)
    return true;
  const size_t slash = path.find_last_of('/');
  return errno == ENOENT && slash != std::string::npos && slash > 0 &&
         makeDirectories(path.substr(0, slash)) &&
         (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST);
}

ObjectCache ObjectCache::open(const std::string &directory, int64_t mostBytes) {
  ObjectCache cache;
  if (directory.empty() || !makeDirectories(directory))
    return cache;
  Folder folder = Folder::open(directory, Folder::Links::Refused);
  if (!folder) {
    if (errno == ELOOP || errno == ENOTDIR) // Linux gives ENOTDIR for a link.
      cache.why = "it is no directory of its own";
  } else if (folder.status().st_uid != geteuid()) {
    cache.why = "it belongs to another user";
  } else if (folder.status().st_mode & (S_IWGRP | S_IWOTH)) {
    cache.why = "other users can write in it";
  } else if (fchmod(folder.fd(), 0700) == 0) {
    cache.folder = std::move(folder);
    cache.mostBytes = mostBytes;
  }
  if (!cache.why.empty())
    cache.why =
        "no compiled kernels are kept in '" + directory + "': " + cache.why;
  return cache;
}

std::string ObjectCache::userDirectory() {
  // By the XDG base directory specification a relative path doesn't count.
  const char *cache = std::getenv("XDG_CACHE_HOME");
  if (cache && cache[0] == '/')
    return std::string(cache) + "/tmc";
  const char *home = std::getenv("HOME");
  if (home && home[0] == '/')
    return std::string(home) + "/.cache/tmc";
  return "";
}

/// Writes a file that a tool of tmc reads next.
static bool writeFile(const std::string &path, StringRef content) {
  const int fd =
      ::open(path.c_str(),
             O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0)
    return false;
  llvm::raw_fd_ostream os(fd, /*shouldClose=*/true);
  os << content;
  os.close();
  const bool good = !os.has_error();
  os.clear_error();
  return good;
}

bool ObjectCache::fetch(const std::string &key, const std::string &file) const {
  if (isOff())
    return false;
  struct stat status;
  std::optional<std::string> entry = folder.read(key, mostBytes, &status);
  if (!entry)
    return false;
  StringRef content = *entry;
  bool whole = content.consume_front(kMagic);
  auto [hash, object] = content.split('\n');
  if (!whole || !isOwn(status) || hash != hashOf(object)) {
    folder.remove(key);
    return false;
  }
  utimensat(folder.fd(), key.c_str(), nullptr, AT_SYMLINK_NOFOLLOW); // Used.
  return writeFile(file, object);
}

void ObjectCache::keep(const std::string &key, const std::string &file) const {
  if (isOff())
    return;
  auto read = llvm::MemoryBuffer::getFile(file, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!read)
    return;
  StringRef object = (*read)->getBuffer();
  // The name is unique, also among processes of other machines with the same
  // number.
  const std::string ours =
      key + "." + llvm::utohexstr(llvm::sys::Process::GetRandomNumber()) + "." +
      std::to_string(getpid());
  const std::string head = kMagic.str() + hashOf(object) + "\n";
  if (!folder.create(ours, 0600, {head, object}))
    return; // A file of this name wasn't ours.
  if (!folder.rename(ours, folder, key)) {
    folder.remove(ours);
    return;
  }
  evict();
}

/// Removes the oldest files until the rest is within the limit. Another process
/// may remove the same files at the same time; a half-written file of a killed
/// process ages and is removed as well.
void ObjectCache::evict() const {
  struct Entry {
    int64_t seconds, nanoseconds, bytes;
    std::string name;
    auto age() const { return std::tie(seconds, nanoseconds, name); }
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  for (std::string &name : folder.names()) {
    std::optional<struct stat> status = folder.status(name);
    if (!status || !S_ISREG(status->st_mode))
      continue;
    entries.push_back({status->st_mtim.tv_sec, status->st_mtim.tv_nsec,
                       int64_t(status->st_size), std::move(name)});
    total += status->st_size;
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry &a, const Entry &b) { return a.age() < b.age(); });
  for (const Entry &entry : entries) {
    if (total <= mostBytes)
      break;
    folder.remove(entry.name);
    total -= entry.bytes;
  }
}
