// External.h - external planner programs: a command line in, executions out.
//
// `CMD FILE BUDGET` gets the problem file's path and the budget in bytes. It
// writes the answer to standard output: for a graph, node numbers in execution
// order separated by white space; for a full problem, one line per execution,
// `segment recipe` by number. Exit code 0 means success; any other code means
// no plan. After `timeLimitSeconds` (default: ten minutes) the program is
// killed.

#ifndef TMC_COMPILER_PLANNING_PEERS_EXTERNAL_H
#define TMC_COMPILER_PLANNING_PEERS_EXTERNAL_H

#include "compiler/planning/peers/Planners.h"

#include <string_view>

namespace tmc::planning {

/// The answer of the shell command `command`, not checked yet.
absl::StatusOr<Solution> planByProgram(const std::string &command,
                                       const Problem &problem,
                                       const PlanRequest &request,
                                       const std::string &problemFile);

/// One execution per number or pair, as external planners write them.
absl::StatusOr<Solution> parseAnswer(const Problem &problem,
                                     std::string_view text, bool isGraph);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PEERS_EXTERNAL_H
