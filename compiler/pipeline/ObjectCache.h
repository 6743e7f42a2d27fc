// ObjectCache.h - compiled pieces of steps, kept for the next compilation.
//
// An entry is an object file under the name of its key: a hash of all that the
// object follows from (HostCompiler.cpp says what that is). So entries never
// change, and nothing has to be locked:
//
//     keep    write a file of our own beside the entries, rename it into place;
//             two processes that keep the same key keep the same bytes
//     fetch   read, compare with the hash that the entry begins with, copy;
//             what is damaged is removed, and counts as not there
//
// Beyond its limit in bytes a cache loses what has gone unused for longest. A
// cache that can't be read or written is no error: all is compiled then.

#ifndef TMC_COMPILER_PIPELINE_OBJECTCACHE_H
#define TMC_COMPILER_PIPELINE_OBJECTCACHE_H

#include <cstdint>
#include <string>

namespace tmc {

class ObjectCache {
public:
  static constexpr int64_t kDefaultBytes = int64_t(256) << 20;

  /// `directory` is made when there is something to keep; empty: no cache.
  explicit ObjectCache(std::string directory, int64_t mostBytes = kDefaultBytes)
      : directory(std::move(directory)), mostBytes(mostBytes) {}

  /// $XDG_CACHE_HOME/tmc, else ~/.cache/tmc; empty where there is no home.
  static std::string userDirectory();

  bool isOff() const { return directory.empty(); }

  /// Writes the entry `key` to `file`, and marks it as used. False: there is no
  /// such entry, or `file` can't be written.
  bool fetch(const std::string &key, const std::string &file) const;

  /// Keeps the content of `file` as the entry `key`, if that can be.
  void keep(const std::string &key, const std::string &file) const;

private:
  std::string directory;
  int64_t mostBytes;

  void evict() const;
};

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_OBJECTCACHE_H
