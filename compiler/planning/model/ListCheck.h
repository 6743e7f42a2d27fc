// ListCheck.h - whether a solution's lists and homes are well formed.
//
// What the timeline asks before it lays anything out: indices, instructions
// that run once, work that has its Start and its Done, engines first in, first
// out, and homes that can be. It knows nothing of what is in memory.

#ifndef TMC_COMPILER_PLANNING_MODEL_LISTCHECK_H
#define TMC_COMPILER_PLANNING_MODEL_LISTCHECK_H

#include "compiler/planning/model/Problem.h"

namespace tmc::planning {

/// The first thing wrong with the lists or the homes, in words.
absl::Status checkLists(const Problem &problem, const Solution &solution);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_LISTCHECK_H
