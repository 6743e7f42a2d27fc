// ObjectCache.h - compiled pieces of steps, kept for the next compilation.
//
// An entry is an object file under the name of its key: a hash of all that the
// object follows from (HostCompiler.cpp says what that is). So entries never
// change, and nothing has to be locked:
//
//     keep    write a new file beside the entries, rename it into place; two
//             processes that keep the same key keep the same bytes
//     fetch   read, compare with the hash that the entry begins with, copy;
//             what is damaged is removed, and counts as not there
//
// Objects are linked into programs that the user runs. So an entry counts only
// where nobody else could have put it: the directory is the user's own and open
// to nobody else (0700, which `open` sees to), and so is the file. Otherwise
// there is no cache, and `warning` says why.
//
// Beyond its limit in bytes a cache loses what has gone unused for longest. A
// cache that can't be made, read or written is no error: all is compiled then.

#ifndef TMC_COMPILER_PIPELINE_OBJECTCACHE_H
#define TMC_COMPILER_PIPELINE_OBJECTCACHE_H

#include "compiler/pipeline/Folder.h"

#include <cstdint>
#include <string>

namespace tmc {

class ObjectCache {
public:
  static constexpr int64_t kDefaultBytes = int64_t(256) << 20;

  ObjectCache() = default; // None.
  /// The cache in `directory`, which is made; empty: none.
  static ObjectCache open(const std::string &directory,
                          int64_t mostBytes = kDefaultBytes);

  /// $XDG_CACHE_HOME/tmc, else ~/.cache/tmc; empty where there is no home.
  static std::string userDirectory();

  bool isOff() const { return !folder; }
  /// Why there is none although the directory is there; "": no reason to say.
  const std::string &warning() const { return why; }

  /// Writes the entry `key` to `file`, and marks it as used. False: there is no
  /// such entry, or `file` can't be written.
  bool fetch(const std::string &key, const std::string &file) const;

  /// Keeps the content of `file` as the entry `key`, if that can be.
  void keep(const std::string &key, const std::string &file) const;

private:
  Folder folder;
  int64_t mostBytes = 0;
  std::string why;

  void evict() const;
};

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_OBJECTCACHE_H
