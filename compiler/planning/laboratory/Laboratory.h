// Laboratory.h - planners for research, which the compiler doesn't link.
//
// The exact solver of small problems (Optimum.h), the MILP of Checkmate
// (Milp.h) and PyTorch's min cut (MinCut.h) take minutes where a compiler has
// seconds, or need a library that users do without. `tmc-solve` and the tests
// register them.

#ifndef TMC_COMPILER_PLANNING_LABORATORY_LABORATORY_H
#define TMC_COMPILER_PLANNING_LABORATORY_LABORATORY_H

#include "compiler/planning/moves/Moves.h"

#include <optional>

namespace tmc::planning {

/// The planner whose plans are the fastest of all.
inline constexpr const char *kExactPlanner = "optimum";

/// Adds `optimum`, `milp` and `mincut` to the registry of planners.
void registerLaboratory();

/// The fastest plan of a small problem, if one below `costBelow` exists:
/// `SolveOptions::exact`, with as many states as `optimum` (Optimum.h).
absl::StatusOr<std::optional<MovedPlan>> planExactly(const Problem &problem,
                                                     int64_t costBelow);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_LABORATORY_LABORATORY_H
