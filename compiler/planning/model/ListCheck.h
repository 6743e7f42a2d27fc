// ListCheck.h - checks that a solution's lists and homes are well formed.
//
// The timeline runs this check before it lays out a list: indices, instructions
// that run once, work with a Start and a Done, engines first in, first out, and
// possible homes. The check doesn't know the contents of memory.

#ifndef TMC_COMPILER_PLANNING_MODEL_LISTCHECK_H
#define TMC_COMPILER_PLANNING_MODEL_LISTCHECK_H

#include "compiler/planning/model/Problem.h"

namespace tmc::planning {

/// The first defect of the lists or the homes, in words.
absl::Status checkLists(const Problem &problem, const Solution &solution);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_LISTCHECK_H
