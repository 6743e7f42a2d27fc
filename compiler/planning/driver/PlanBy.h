// PlanBy.h - a checked plan by the planner of a given name.
//
// `tmc` is `solve`, and `recompute` is `solve` without moves. The others are
// those of the registry (`peers/Planners.h`), published rules for moves
// (`peers/OffloadRules.h`), and programs, as `exec:CMD`. The verifier measures
// their answers. They come without a certificate.
//
// A planner that knows one space gets a problem with moves as the device sees
// it: everything is at home there, and nothing moves.

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

/// Runs the planner `name` ("exec:CMD" included; empty: `tmc`) within the
/// budget of `options` and checks its answer. `problemFile` is the input of a
/// planner that is a program; empty: a temporary file is written.
absl::StatusOr<Plan> planBy(std::string_view name, const Problem &problem,
                            const SolveOptions &options,
                            const std::string &problemFile = {});

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_PLANBY_H
