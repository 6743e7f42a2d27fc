// SpaceCheck.h - checks that a problem's spaces, engines and forms are well
// formed.
//
// The part of `check` (Problem.h) for R9, R10, R14 and R16. It runs first,
// because later parts look up contents and engines without a check.

#ifndef TMC_COMPILER_PLANNING_MODEL_SPACECHECK_H
#define TMC_COMPILER_PLANNING_MODEL_SPACECHECK_H

#include "compiler/planning/model/Problem.h"

namespace tmc::planning {

/// The first defect of spaces, engines, forms, or of the values that engines
/// read and write, in words with names and numbers.
absl::Status checkSpaces(const Problem &problem);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_SPACECHECK_H
