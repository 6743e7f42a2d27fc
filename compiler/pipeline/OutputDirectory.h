// OutputDirectory.h - the files of a step, which appear at its end or not at
// all.
//
// A compilation fills a staging directory inside the output directory, of a
// random name, which it has locked. `commit` moves into place what was
// written, one rename at a time, plan.json last; the destructor removes the
// rest. A failed compilation leaves an existing directory as it was.
//
//     step/plan.json, train, ...    of the last compilation that ended
//     step/.tmc-x81Kq0/             of one that runs, or was killed
//
// A staging directory without a lock is abandoned: it is removed, and nothing
// in it is published. A process that is killed between two renames leaves parts
// of two steps. They tell by their identity (compiler/emit/StepInterface.h),
// which whoever starts a step compares, and the next compilation replaces them.

#ifndef TMC_COMPILER_PIPELINE_OUTPUTDIRECTORY_H
#define TMC_COMPILER_PIPELINE_OUTPUTDIRECTORY_H

#include "compiler/pipeline/Folder.h"
#include "compiler/support/Failure.h"

#include <string>
#include <string_view>
#include <vector>

namespace tmc {

/// Whether a step may have this name: it begins C identifiers.
bool isStepName(const std::string &name);

/// The library that a step is linked into: of "gan_d" libgan_d.so, of one
/// without a name libstep.so.
std::string libraryOf(const std::string &stepName);

/// The name of the step that a compilation left in `directory`.
std::string stepNameIn(const std::string &directory);

class OutputDirectory {
public:
  /// Fails where `path` holds files, and none tells that a compilation wrote
  /// them: those could be a user's own. Says nothing of what can't be read.
  static Expected<void> check(const std::string &path);

  /// Makes `path` and its staging directory. `force`: whoever's files are
  /// there.
  static Expected<OutputDirectory> create(const std::string &path,
                                          bool force = false);
  OutputDirectory(OutputDirectory &&other) = default;
  OutputDirectory &operator=(OutputDirectory &&) = delete;
  ~OutputDirectory();

  /// Where the file `name`, which a tool writes, is until `commit` moves it.
  std::string staged(const std::string &name);
  /// A file that isn't published: where it may be.
  std::string scratch(const std::string &name) const;
  /// Writes `content` to the staged file `name`.
  Expected<void> write(const std::string &name, const std::string &content) {
    return write(name, std::vector<std::string_view>{content});
  }
  /// Writes `pieces`, one after the other, without joining them in memory.
  Expected<void> write(const std::string &name,
                       const std::vector<std::string_view> &pieces);
  Expected<void> writeScratch(const std::string &name,
                              const std::string &content) const;

  /// Moves every staged file into place. Where an earlier compilation wrote the
  /// directory, its files go that this one has no others for, and so do
  /// `replaced`.
  Expected<void> commit(const std::vector<std::string> &replaced = {});

  /// What was published, in the order in which it was staged.
  const std::vector<std::string> &names() const { return written; }

private:
  OutputDirectory() = default;

  std::string path;                     // As the user has it.
  std::string stagingPath, stagingName; // The latter empty: there is none.
  Folder directory, staging;            // The latter with its lock.
  std::vector<std::string> written;
  bool made = false; // We made `path`, and remove it if nothing comes of it.
};

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_OUTPUTDIRECTORY_H
