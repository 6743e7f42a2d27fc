// FileList.h - one list of a plan with a part of its host bytes in a file.
//
// See FileMoves.h. A list is made segment by segment. Entries that touch the
// device are fixed: they stand in the plan's order. The others float:
//
//   load   a read of a form in the file, before its first use on the host
//   task   an update on the host: begins when all that it reads is there
//   save   a write behind what makes a form that goes to the file
//   back   a fetch of what such an update made, which nothing reads before the
//          segment ends: behind all fixed entries
//
// The clock that orders them is R12's.

#ifndef TMC_COMPILER_PLANNING_SEARCH_FILELIST_H
#define TMC_COMPILER_PLANNING_SEARCH_FILELIST_H

#include "compiler/planning/search/FileForms.h"

#include "absl/status/statusor.h"

namespace tmc::planning {

struct FileListOptions {
  std::vector<char> isFiled; // Of values on the host: candidates that leave.
  /// Of what the segments' entries need on the host, in all (-1: any number).
  int64_t hostBytes = -1;
  /// What a fetch has read stays on the host for the update that follows it, or
  /// is read again: updates may have to wait for long.
  bool keepsForUpdates = true;
};

/// `solution` with its homes moved and all moves of the file put in; what it
/// takes is for `simulate` to say. A FailedPrecondition error where a list
/// can't be made so.
absl::StatusOr<Solution> listWithFile(const Problem &problem,
                                      const FileForms &forms,
                                      const Solution &solution,
                                      const Timeline &timeline,
                                      const FileListOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_FILELIST_H
