//===- File.h - opening and replacing files ---------------------*- C++ -*-===//
//
// The one place where the runtime opens files for reading, and where it writes
// them: either whole and synced, or not at all.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_FILE_H
#define TMC_RUNTIME_STEP_FILE_H

#include "runtime/kernels/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

/// A file mapped for reading.
class MappedFile {
public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;

  /// Opens a file that the user named. It must be a regular file.
  static Status open(const std::string &path, MappedFile &file);

  /// Opens a file whose name stands in another file, and so may be hostile: it
  /// must lie below `directory`, be reached through no symbolic link, be a
  /// regular file, and have one name only (no hard link to something else).
  static Status openBeneath(const std::string &directory,
                            const std::string &name, MappedFile &file);

  const char *data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  /// Copies bytes [at, at + bytes) by a call. A file that has been cut since it
  /// was opened is Code::World here, and a signal where data() is touched.
  Status read(int64_t at, void *to, int64_t bytes) const;
  /// Drops the pages of these bytes from memory. Reading them again is allowed.
  void release(const char *from, int64_t bytes) const;

private:
  static Status map(int descriptor, const std::string &shown,
                    bool refuseHardLinks, MappedFile &file);
  const char *data_ = nullptr;
  int64_t bytes_ = 0;
  int descriptor_ = -1;
  std::string shown_;
};

/// Writes a file that replaces `directory`/`name` at once, or never:
///
///     temporary file -> write ... -> fsync -> rename -> fsync of the directory
///
/// Any failure removes the temporary file and leaves the old one as it was. A
/// failed fsync isn't retried: the data may be gone.
class AtomicFile {
public:
  AtomicFile() = default;
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  /// Makes the directory if it isn't there (not its parents).
  Status create(const std::string &directory, const std::string &name);
  Status write(const void *data, int64_t bytes);
  /// Writes over bytes that were written before.
  Status rewrite(int64_t at, const void *data, int64_t bytes);
  /// Syncs, renames, syncs the directory.
  Status commit();

private:
  Status fail(const char *what);
  int directory_ = -1, file_ = -1;
  std::string shown_, name_, temporary_;
};

/// "12.0 MiB": for messages.
std::string formatBytes(int64_t bytes);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_FILE_H
