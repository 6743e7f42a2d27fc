//===- File.h - opening and replacing files ---------------------*- C++ -*-===//
//
// All files that the runtime reads are opened here, and all files that it
// writes are written here: completely and synced, or not at all.
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

  /// Opens a file whose name comes from another file and may be hostile. The
  /// file must be below `directory`, behind no symbolic link, regular, and have
  /// a single name (no hard links).
  static Status openBeneath(const std::string &directory,
                            const std::string &name, MappedFile &file);

  const char *data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  /// Copies bytes [at, at + bytes) by a system call. If the file was truncated
  /// after it was opened, this returns Code::World; access to data() would
  /// raise a signal.
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

/// Writes a file that replaces `directory`/`name` atomically, or never:
///
///     temporary file -> write ... -> fsync -> rename -> fsync of the directory
///
/// A failure removes the temporary file and leaves the old file unchanged. A
/// failed fsync isn't retried: the data may be lost.
///
/// Other processes may write parts of the file: they join() it by the name of
/// the temporary file, which no other program can guess. They never rename or
/// remove it.
class AtomicFile {
public:
  AtomicFile() = default;
  /// Without `writes` every call succeeds and does nothing: another rank writes
  /// the file.
  explicit AtomicFile(bool writes) : writes_(writes) {}
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  /// Creates the directory if it doesn't exist (its parents must exist).
  Status create(const std::string &directory, const std::string &name);
  /// The name of the temporary file in the directory.
  const std::string &temporary() const { return temporary_; }
  /// Opens the temporary file of another process. False if this one doesn't
  /// see it, or sees another number of bytes than `bytes`.
  bool join(const std::string &directory, const std::string &name,
            const std::string &temporary, int64_t bytes);
  Status write(const void *data, int64_t bytes);
  /// The file has `bytes` bytes: zeros where nothing is written.
  Status resize(int64_t bytes);
  Status writeAt(int64_t at, const void *data, int64_t bytes);
  /// Brings what was written to the disk.
  Status sync();
  /// Reads what any process has written and synced.
  Status readBack(int64_t at, void *to, int64_t bytes);
  /// Removes the temporary file.
  void discard();
  /// Syncs the file, renames it, and syncs the directory.
  Status commit();

private:
  Status fail(const char *what);
  bool writes_ = true, isOwner_ = true;
  int directory_ = -1, file_ = -1;
  /// A file that is open for both is read, page by page, before parts of pages
  /// are written: another host's parts may be lost.
  int readable_ = -1;
  std::string shown_, name_, temporary_;
};

/// "12.0 MiB": for messages.
std::string formatBytes(int64_t bytes);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_FILE_H
