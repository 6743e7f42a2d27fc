// External.h - external planner programs: a command line in, executions out.
//
// `CMD FILE BUDGET` gets the problem file's path and the budget in bytes. It
// writes the answer to standard output, words separated by white space. For a
// graph: node numbers in execution order. For a full problem, in any number of
// spaces:
//
//     home VALUE             a form that is a home (R14); the main form is one
//                            of itself
//     SEGMENT RECIPE         an execution on the compute engine
//     SEGMENT RECIPE start   work on another engine (R10)
//     SEGMENT RECIPE done    the end of that engine's oldest work
//
// An instruction's first execution is its own. Overwrites are taken where R4
// and R13 permit. Exit code 0 means success; any other code means no plan.
// After `timeLimitSeconds` (default: ten minutes) the program is killed.

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

/// The lists that an answer says, not checked yet.
absl::StatusOr<Solution> parseAnswer(const Problem &problem,
                                     std::string_view text, bool isGraph);

/// The solution of a graph that runs these nodes in order.
absl::StatusOr<Solution> solutionOfNodes(const Problem &problem,
                                         const std::vector<int64_t> &nodes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PEERS_EXTERNAL_H
