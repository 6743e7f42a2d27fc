// Checks.h - whether a problem's spaces, and a solution's lists, are well
// formed.
//
// Each is a part of a larger check, and runs first, because later parts look up
// what it has checked.

#ifndef TMC_COMPILER_PLANNING_MODEL_CHECKS_H
#define TMC_COMPILER_PLANNING_MODEL_CHECKS_H

#include "compiler/planning/model/Problem.h"

namespace tmc::planning {

/// The part of `check` (Problem.h) for R9, R10, R14 and R16: the first defect
/// of spaces, engines, forms, or of the values that engines read and write, in
/// words with names and numbers.
absl::Status checkSpaces(const Problem &problem);

/// The part of `timelineOf` (Timeline.h) before a list is laid out: the first
/// defect of the lists or the homes, in words. It checks indices, instructions
/// that run once, work with a Start and a Done, engines first in, first out,
/// and possible homes. It doesn't know the contents of memory.
absl::Status checkLists(const Problem &problem, const Solution &solution);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_CHECKS_H
