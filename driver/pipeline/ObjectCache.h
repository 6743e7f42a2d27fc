// ObjectCache.h - compiled pieces of steps, kept for the next compilation.
//
// An entry is an object file. Its name is its key: a hash of all inputs of the
// object (`identify` in HostCompiler.cpp lists them). So entries never change,
// and no lock is needed:
//
//     keep    write a new file beside the entries, rename it into place; two
//             processes that keep the same key keep the same bytes
//     fetch   read, compare with the hash that the entry begins with, copy;
//             a damaged entry is removed, and counts as missing
//
// Objects are linked into programs that the user runs. So an entry counts only
// if no other user can have written it: the user owns the directory, nobody
// else may open it (0700, which `open` ensures), and the same holds for the
// file. Otherwise there is no cache, and `warning` gives the reason.
//
// Beyond its limit in bytes a cache removes the entries that were unused for
// the longest time. A cache that can't be created, read or written is no error:
// all pieces are compiled.

#ifndef TMC_DRIVER_PIPELINE_OBJECTCACHE_H
#define TMC_DRIVER_PIPELINE_OBJECTCACHE_H

#include "driver/pipeline/Folder.h"

#include <cstdint>
#include <string>

namespace tmc {

class ObjectCache {
public:
  static constexpr int64_t kDefaultBytes = int64_t(256) << 20;

  ObjectCache() = default; // None.
  /// The cache in `directory`, which is created; empty: none.
  static ObjectCache open(const std::string &directory,
                          int64_t mostBytes = kDefaultBytes);

  /// $XDG_CACHE_HOME/tmc, else ~/.cache/tmc; empty where there is no home.
  static std::string userDirectory();

  bool isOff() const { return !folder; }
  /// The reason for having no cache although the directory exists; "": no
  /// reason.
  const std::string &warning() const { return why; }

  /// Writes the entry `key` to `file`, and marks it as used. False: there is no
  /// such entry, or `file` can't be written.
  bool fetch(const std::string &key, const std::string &file) const;

  /// Keeps the content of `file` as the entry `key`; failures are ignored.
  void keep(const std::string &key, const std::string &file) const;

private:
  Folder folder;
  int64_t mostBytes = 0;
  std::string why;

  void evict() const;
};

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_OBJECTCACHE_H
