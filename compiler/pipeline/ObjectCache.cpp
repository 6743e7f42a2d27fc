#include "compiler/pipeline/ObjectCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <vector>

using namespace tmc;
using llvm::StringRef;
namespace fs = std::filesystem;

/// What an entry begins with, before the hash of its content and a newline.
static constexpr StringRef kMagic = "tmc-object 1 ";

static std::string hashOf(StringRef content) {
  llvm::SHA256 hash;
  hash.update(content);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

static bool writeAll(const std::string &path, StringRef head, StringRef body) {
  FILE *out = std::fopen(path.c_str(), "wb");
  if (!out)
    return false;
  bool ok = std::fwrite(head.data(), 1, head.size(), out) == head.size() &&
            std::fwrite(body.data(), 1, body.size(), out) == body.size();
  return std::fclose(out) == 0 && ok;
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

bool ObjectCache::fetch(const std::string &key, const std::string &file) const {
  if (isOff())
    return false;
  std::string entry = directory + "/" + key;
  auto read = llvm::MemoryBuffer::getFile(entry, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!read)
    return false;
  StringRef content = (*read)->getBuffer();
  bool whole = content.consume_front(kMagic);
  auto [hash, object] = content.split('\n');
  if (!whole || hash != hashOf(object)) {
    unlink(entry.c_str());
    return false;
  }
  utimensat(AT_FDCWD, entry.c_str(), nullptr, 0); // Used now.
  return writeAll(file, "", object);
}

void ObjectCache::keep(const std::string &key, const std::string &file) const {
  if (isOff())
    return;
  auto read = llvm::MemoryBuffer::getFile(file, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  std::error_code error;
  fs::create_directories(directory, error);
  if (!read || error)
    return;
  StringRef object = (*read)->getBuffer();
  std::string ours = directory + "/" + key + "." + std::to_string(getpid());
  std::string head = kMagic.str() + hashOf(object) + "\n";
  if (!writeAll(ours, head, object) ||
      std::rename(ours.c_str(), (directory + "/" + key).c_str()) != 0) {
    unlink(ours.c_str());
    return;
  }
  evict();
}

/// Removes the oldest files until the rest is within the limit: what another
/// process removes at the same time is gone either way, and what one that was
/// killed has left half-written grows old as well.
void ObjectCache::evict() const {
  struct Entry {
    int64_t seconds, nanoseconds, bytes;
    std::string path;
    auto age() const { return std::tie(seconds, nanoseconds, path); }
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    struct stat status;
    std::string path = at->path().string();
    if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    entries.push_back({status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                       int64_t(status.st_size), path});
    total += status.st_size;
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry &a, const Entry &b) { return a.age() < b.age(); });
  for (const Entry &entry : entries) {
    if (total <= mostBytes)
      break;
    unlink(entry.path.c_str());
    total -= entry.bytes;
  }
}
