// FileMoves.h - a plan whose host bytes exceed their budget, with a part of
// them in a file.
//
// The plan of the device stays as it is: what touches the device keeps its
// order, so the device's bytes are what they were. Around it are put
//
//   - reads, each as late as its link and those behind it allow, if there is
//     room until it is used;
//   - updates that run on the host, as soon as what they read is there;
//   - writes, right behind what makes them.
//
// The list is made in the order of a clock: a Done stands where its work ends,
// so no engine waits for it, and its bytes are free for what starts there. Room
// that runs out is waited for. In the tail of a step, where updates wait for
// the file, that is a pipeline of reads, updates and writes:
//
//     read     1 2 3   4   5
//     host         1   2   3          as many at once as there is room for
//     write          1   2   3
//
// How much is in the file (`FileForms.h`) and how many bytes stay free for the
// pipeline is tried in turn; the quickest list within the budgets is taken.

#ifndef TMC_COMPILER_PLANNING_SEARCH_FILEMOVES_H
#define TMC_COMPILER_PLANNING_SEARCH_FILEMOVES_H

#include "compiler/planning/search/Moves.h"

namespace tmc::planning {

/// `plan` if its bytes on the host are within that space's budget or the
/// problem has no file; else what is found with a part of them in the file,
/// which may exceed a budget still.
absl::StatusOr<MovedPlan> moveToFile(const Problem &problem, MovedPlan plan);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_FILEMOVES_H
