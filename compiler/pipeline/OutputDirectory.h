// OutputDirectory.h - files that appear together or not at all.
//
// A compilation fills a staging directory inside the output directory; `commit`
// moves its files into place one rename at a time, and the destructor removes
// what was not committed. A failed compilation leaves an existing directory as
// it was.

#ifndef TMC_COMPILER_PIPELINE_OUTPUTDIRECTORY_H
#define TMC_COMPILER_PIPELINE_OUTPUTDIRECTORY_H

#include "compiler/support/Failure.h"

#include <string>
#include <string_view>
#include <vector>

namespace tmc {

class OutputDirectory {
public:
  /// Makes `path` and its staging directory.
  static Expected<OutputDirectory> create(const std::string &path);
  OutputDirectory(OutputDirectory &&other);
  OutputDirectory &operator=(OutputDirectory &&) = delete;
  ~OutputDirectory();

  /// Where file `name` is until `commit`.
  std::string staged(const std::string &name) const;
  /// Writes `content` to the staged file `name`.
  Expected<bool> write(const std::string &name, const std::string &content) {
    return write(name, std::vector<std::string_view>{content});
  }
  /// Writes `pieces`, one after the other, without joining them in memory.
  Expected<bool> write(const std::string &name,
                       const std::vector<std::string_view> &pieces);
  /// Moves every staged file into place. Of the files `replaced`, which an
  /// earlier compilation may have left, none stays that isn't staged.
  Expected<bool> commit(const std::vector<std::string> &replaced = {});

private:
  OutputDirectory(std::string path, std::string staging, bool made)
      : path(std::move(path)), staging(std::move(staging)), made(made) {}

  std::string path, staging;
  bool made; // We made `path`, and remove it if nothing comes of it.
};

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_OUTPUTDIRECTORY_H
