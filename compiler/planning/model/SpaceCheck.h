// SpaceCheck.h - whether a problem's spaces, engines and forms are well formed.
//
// The part of `check` (Problem.h) that knows R9, R10, R14 and R16. It runs
// first: later parts look contents and engines up without asking whether they
// are there.

#ifndef TMC_COMPILER_PLANNING_MODEL_SPACECHECK_H
#define TMC_COMPILER_PLANNING_MODEL_SPACECHECK_H

#include "compiler/planning/model/Problem.h"

namespace tmc::planning {

/// The first thing wrong with spaces, engines, forms, or what engines read and
/// write, in words with names and numbers.
absl::Status checkSpaces(const Problem &problem);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_SPACECHECK_H
