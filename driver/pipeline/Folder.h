// Folder.h - an open directory, and plain files in it by name.
//
// A path can mean another directory from one call to the next. Checks and
// writes here refer to one open directory:
//
//     Folder cache = Folder::open(path, Folder::Links::Refused);
//     if (cache && isOurs(cache.status()))
//       cache.create("name", 0600, {bytes});     // openat: of this directory
//
// Names have no slash in them. No call follows a symbolic link instead of a
// file, and no call waits for a pipe. Calls that fail leave the reason in
// `errno`.

#ifndef TMC_DRIVER_PIPELINE_FOLDER_H
#define TMC_DRIVER_PIPELINE_FOLDER_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace tmc {

class Folder {
public:
  /// For the last part of a directory's path.
  enum class Links { Followed, Refused };

  Folder() = default; // None.
  Folder(Folder &&other) noexcept { *this = std::move(other); }
  Folder &operator=(Folder &&other) noexcept {
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~Folder();

  static Folder open(const std::string &path, Links links);
  /// The directory `name` in this one, not by a link.
  Folder folder(const std::string &name) const;

  explicit operator bool() const { return descriptor >= 0; }
  int fd() const { return descriptor; }

  struct stat status() const;
  /// The status of `name`, of a link itself; nothing if there is no such file.
  std::optional<struct stat> status(const std::string &name) const;
  /// All names in it except "." and "..".
  std::vector<std::string> names() const;

  /// Writes `pieces` to a new file; an old one of that name is an error. Leaves
  /// no file where it fails.
  bool create(const std::string &name, mode_t mode,
              const std::vector<std::string_view> &pieces) const;
  /// The content of a plain file of at most `mostBytes`, and its status.
  std::optional<std::string> read(const std::string &name, int64_t mostBytes,
                                  struct stat *status = nullptr) const;
  bool remove(const std::string &name) const;
  /// Removes the directory `name` and the files in it; subdirectories are an
  /// error.
  bool removeFolder(const std::string &name) const;
  bool rename(const std::string &name, const Folder &to,
              const std::string &newName) const;

  /// Takes the directory's lock, which ends with this object or its process.
  /// Other processes notice the lock only by asking for it.
  bool lock(bool waits) const;

private:
  explicit Folder(int descriptor) : descriptor(descriptor) {}
  int descriptor = -1;
};

/// Makes a directory `prefix` + random letters, which its owner alone may read,
/// and returns its path; "" on failure.
std::string makeOwnDirectory(const std::string &prefix);

/// The same among the temporary files: "/tmp/NAME-XXXXXX".
std::string makeTemporaryDirectory(const std::string &name);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_FOLDER_H
