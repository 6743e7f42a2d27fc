// FileMoves.h - moves a part of a plan's host bytes to a file, if they exceed
// the host's budget.
//
// The device's plan doesn't change: entries that touch the device keep their
// order, so the device's bytes are the same. Around them come
//
//   - reads, each as late as its link and the later reads allow, if there is
//     room until the use;
//   - updates on the host, as soon as their inputs are there;
//   - writes, right after the makers of their inputs.
//
// The list is made in the order of a clock: a Done stands where its work ends,
// so no engine waits for it, and its bytes are free for the work that starts
// there. If there is no room, work waits for it. At the end of a step, where
// updates wait for the file, this gives a pipeline of reads, updates and
// writes:
//
//     read     1 2 3   4   5
//     host         1   2   3          as many at once as there is room for
//     write          1   2   3
//
// Several amounts of bytes in the file (`FileForms.h`) and of free bytes for
// the pipeline are tried; the fastest list within the budgets is taken.

#ifndef TMC_COMPILER_PLANNING_MOVES_FILEMOVES_H
#define TMC_COMPILER_PLANNING_MOVES_FILEMOVES_H

#include "compiler/planning/moves/Moves.h"

namespace tmc::planning {

/// `plan` if its bytes on the host are within that space's budget or the
/// problem has no file. Otherwise the best plan found with a part of its host
/// bytes in the file; it may still exceed a budget.
absl::StatusOr<MovedPlan> moveToFile(const Problem &problem, MovedPlan plan);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_FILEMOVES_H
