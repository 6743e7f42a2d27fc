// Archive.h - the zip file of a .pt2.
//
//   model.pt2 ─┬─ model/archive_format            "pt2"
//              ├─ model/models/model.json         the graph
//              ├─ model/data/weights/..config.json, weight_0, weight_1, ...
//              └─ model/data/constants/..         the same for constants
//
// All entries lie under one folder, with any name. libzip reads the directory,
// ZIP64 included, and inflates. A stored entry is a range of the mapped file
// and isn't copied; libzip's own reads reveal its offset.
//
// The archive may be hostile. Refused are: entries that share bytes (a small
// file that expands to a large one), names that climb out, duplicate names,
// encryption, methods other than stored and deflated.

#ifndef TMC_FRONTENDS_TORCH_ARCHIVE_H
#define TMC_FRONTENDS_TORCH_ARCHIVE_H

#include "frontends/SafeFile.h"

#include <map>
#include <memory>

namespace tmc::torch_import {

class Archive {
public:
  /// Reads the directory of `file`. Fails with `Input` if it is no valid zip.
  static Expected<Archive> open(SafeFile file);
  Archive(Archive &&);
  ~Archive();

  /// True if there is an entry `name` below the common folder.
  bool has(const std::string &name) const { return entries.count(name); }
  /// The names of all entries, without the common folder.
  std::vector<std::string> names() const;
  /// The size of entry `name` in bytes; -1 if there is none.
  int64_t sizeOf(const std::string &name) const;
  /// The bytes of `name`, valid as long as this object. Fails with `World` if
  /// there is no such entry, with `Input` if the entry can't be read, or would
  /// inflate to more than `limitBytes`.
  Expected<std::string_view> read(const std::string &name, int64_t limitBytes);
  const std::string &path() const;

private:
  struct Zip; // libzip's state, and the mapped file that it reads.
  struct Entry {
    uint64_t index = 0;
    int64_t size = 0;
    int64_t offset = 0; ///< The place of its stored bytes in the file.
    bool stored = true;
  };
  explicit Archive(std::unique_ptr<Zip> zip);

  std::unique_ptr<Zip> zip;
  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> inflated; ///< The entries that were read.
};

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_ARCHIVE_H
