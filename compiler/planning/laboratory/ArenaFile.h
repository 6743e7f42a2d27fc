// ArenaFile.h - packing problems as CSV.
//
//     id,lower,upper,size[,alignment][,inside,distance][,fixed]
//
// Columns may stand in any order and names after `size` may be missing; empty
// fields are the default. A buffer is alive in [lower, upper). The answer is
// the same rows with a column `offset`.

#ifndef TMC_COMPILER_PLANNING_LABORATORY_ARENAFILE_H
#define TMC_COMPILER_PLANNING_LABORATORY_ARENAFILE_H

#include "compiler/planning/pack/Arena.h"

#include "absl/status/statusor.h"

#include <string_view>

namespace tmc::planning {

/// An error names the line. The result has passed `checkArena`; the default
/// alignment is 1.
absl::StatusOr<ArenaProblem> parseArena(std::string_view text);
/// The problem without ties, as `parseArena` reads it.
std::string printLifetimes(const ArenaProblem &problem);
std::string printPacking(const ArenaProblem &problem, const Packing &packing);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_LABORATORY_ARENAFILE_H
