// FileList.h - one list of a plan, with a part of its host bytes in a file.
//
// See FileMoves.h. A list is made segment by segment. Entries that touch the
// device are fixed: they keep the plan's order. The others float:
//
//   load   a read of a form in the file, before its first use on the host
//   task   an update on the host; begins when all of its inputs are there
//   save   a write of a form that goes to the file, after its maker
//   back   a fetch of a result of such an update that nothing else reads in the
//          segment; it comes after all fixed entries
//
// The clock of R12 orders them.

#ifndef TMC_COMPILER_PLANNING_MOVES_FILELIST_H
#define TMC_COMPILER_PLANNING_MOVES_FILELIST_H

#include "compiler/planning/moves/FileForms.h"

#include "absl/status/statusor.h"

namespace tmc::planning {

struct FileListOptions {
  std::vector<char> isFiled; // By values on the host: candidates that leave.
  /// Bytes on the host that all entries of the segments may need (-1: no
  /// limit).
  int64_t hostBytes = -1;
  /// Whether a value that was read for a fetch stays on the host for the update
  /// that follows. If not, it is read again, because updates may wait long.
  bool keepsForUpdates = true;
};

/// `solution` with its homes moved and all file moves inserted; `simulate` then
/// gives its bytes and time. A FailedPrecondition error if a list can't be made
/// this way.
absl::StatusOr<Solution> listWithFile(const Problem &problem,
                                      const FileForms &forms,
                                      const Solution &solution,
                                      const Timeline &timeline,
                                      const FileListOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_FILELIST_H
