// ProblemReader.h - reads the text file of a planning problem.
//
// `model/ProblemFile.h` explains the format, and writes it.

#ifndef TMC_COMPILER_PLANNING_LABORATORY_PROBLEMREADER_H
#define TMC_COMPILER_PLANNING_LABORATORY_PROBLEMREADER_H

#include "compiler/planning/model/Problem.h"

#include <string_view>

namespace tmc::planning {

/// True if `text` begins like a problem file.
bool isProblemFile(std::string_view text);

/// An error names the line. The result still has to pass `check`.
absl::StatusOr<Problem> parseProblem(std::string_view text);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_LABORATORY_PROBLEMREADER_H
