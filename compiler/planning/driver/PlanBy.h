// PlanBy.h - a checked plan by the planner of a given name.
//
// `tmc` is `solve`; the others are those of the registry (`peers/Planners.h`)
// and programs, as `exec:CMD`. Their answers are measured by the verifier and
// come without a certificate.

#ifndef TMC_COMPILER_PLANNING_DRIVER_PLANBY_H
#define TMC_COMPILER_PLANNING_DRIVER_PLANBY_H

#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/peers/Planners.h"

#include <string_view>

namespace tmc::planning {

/// Whether `planBy` knows `name`.
bool isPlanner(std::string_view name);
/// All names, for messages: "tmc, none, ..., exec:COMMAND".
std::string plannerNames();
/// Name and summary of each planner, `tmc` first.
std::vector<std::pair<std::string, std::string>> plannerSummaries();

/// Runs the planner `name` ("exec:CMD" included) and checks its answer.
/// `problemFile` is the input of a planner that is a program.
absl::StatusOr<Plan> planBy(std::string_view name, const Problem &problem,
                            const SolveOptions &options,
                            const std::string &problemFile);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_PLANBY_H
