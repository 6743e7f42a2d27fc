// SafeFile.h - the only code with which a frontend opens files.
//
// Two kinds of file are read. The user names the model itself, and may name any
// file. The model's author, who may be hostile, names the files of external
// data: they must lie beneath the model's directory and be reached without a
// symbolic link, and have only one name, so that no link to a private file can
// be planted there.
//
//   model.onnx            openByUser("dir/model.onnx")
//   model.onnx.data       openBeneath("dir", "model.onnx.data")
//   ../../etc/passwd      refused, even if it exists
//
// Files are mapped, read only: a model of many gigabytes takes only the pages
// that are read.

#ifndef TMC_FRONTENDS_SAFEFILE_H
#define TMC_FRONTENDS_SAFEFILE_H

#include "compiler/support/Failure.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tmc {

/// A regular file, mapped into memory for reading. Movable, not copyable.
class SafeFile {
public:
  SafeFile() = default;
  SafeFile(SafeFile &&other) noexcept { *this = std::move(other); }
  SafeFile &operator=(SafeFile &&other) noexcept;
  ~SafeFile();

  std::string_view bytes() const { return {data, size}; }
  const std::string &path() const { return name; }

  /// Takes over `fd`, an open file, and maps it. `path` is for messages.
  static Expected<SafeFile> fromDescriptor(int fd, std::string path);

private:
  const char *data = nullptr;
  size_t size = 0;
  std::string name;
};

/// Opens the file that the user named. Fails with `Input` if it doesn't exist,
/// may not be read or is no regular file, with `World` if it can't be opened
/// for another reason.
Expected<SafeFile> openByUser(const std::string &path);

/// Opens `name`, which a model in `directory` names. Fails with `Input` if it
/// is absolute, climbs out of `directory`, passes a symbolic link, or is a file
/// with several hard links; with `World` if it doesn't exist or can't be read.
Expected<SafeFile> openBeneath(const std::string &directory,
                               const std::string &name);

} // namespace tmc

#endif // TMC_FRONTENDS_SAFEFILE_H
