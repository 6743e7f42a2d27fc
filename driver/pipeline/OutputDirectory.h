// OutputDirectory.h - the files of a step, which appear only if the compilation
// succeeds.
//
// A compilation fills a staging directory inside the output directory. The
// staging directory has a random name and a lock. `commit` moves the written
// files into place, one rename at a time, plan.json last; the destructor
// removes the rest. A failed compilation leaves an existing directory as it
// was.
//
//     step/plan.json, train, ...    of the last compilation that ended
//     step/.tmc-x81Kq0/             of one that runs, or was killed
//     step/ranks-4/plan.json, ...   of one for several numbers of ranks
//
// A staging directory without a lock is abandoned: it is removed, and none of
// its files is published. A process that is killed between two renames leaves
// parts of two steps. Their identities differ (compiler/emit/StepInterface.h);
// each program that starts a step compares them. The next compilation replaces
// both parts.

#ifndef TMC_DRIVER_PIPELINE_OUTPUTDIRECTORY_H
#define TMC_DRIVER_PIPELINE_OUTPUTDIRECTORY_H

#include "compiler/support/Failure.h"
#include "driver/pipeline/Folder.h"

#include <string>
#include <string_view>
#include <vector>

namespace tmc {

/// Whether a step may have this name: it begins C identifiers.
bool isStepName(const std::string &name);

/// The library of a step: libgan_d.so for "gan_d", libstep.so without a name.
std::string libraryOf(const std::string &stepName);

/// The name of the step that a compilation left in `directory`.
std::string stepNameIn(const std::string &directory);

/// The folder of the step for this number of ranks, where a directory has steps
/// for several: "ranks-4".
std::string meshFolderOf(int64_t ranks);

class OutputDirectory {
public:
  /// Fails if `path` holds files and none of them shows that a compilation
  /// wrote them: the files could be the user's own. Ignores files that can't be
  /// read.
  static Expected<void> check(const std::string &path);

  /// The folders in `path` of steps for several numbers of ranks, if it has
  /// such and their trainer, and no step of its own.
  static std::vector<std::string> meshFoldersIn(const std::string &path);

  /// Makes `path` and its staging directory. `force`: even if others wrote the
  /// files there.
  static Expected<OutputDirectory> create(const std::string &path,
                                          bool force = false);
  OutputDirectory(OutputDirectory &&other) = default;
  OutputDirectory &operator=(OutputDirectory &&) = delete;
  ~OutputDirectory();

  /// The path of the file `name`, which a tool writes, until `commit` moves it.
  std::string staged(const std::string &name);
  /// The path of a file that isn't published.
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

  /// Moves every staged file into place. Removes the files of an earlier
  /// compilation that have no replacement, and the files `replaced`.
  /// `makesNoStep`: an earlier one's plan.json, too.
  Expected<void> commit(const std::vector<std::string> &replaced = {},
                        bool makesNoStep = false);

  /// Names of the published files, in the order of staging.
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

#endif // TMC_DRIVER_PIPELINE_OUTPUTDIRECTORY_H
