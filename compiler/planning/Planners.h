// Planners.h - solvers by name, ours and anybody's.
//
// A planner takes a problem and a budget and answers with a solution; whatever
// comes back is checked by `Verify.h` before use. Two ways to add one:
//
//  - in C++: `registerPlanner("mine", "what it does", function)` from any file
//    linked into the tool;
//  - as a program: `--planner exec:./mine`. It gets the problem file's path as
//    its first argument and the budget in bytes as its second, and writes the
//    answer to standard output: for a graph, node numbers in execution order
//    separated by white space; for a full problem, one line per execution,
//    `segment recipe` by number. Exit code 0, or it has no plan. It may take
//    ten minutes, or `timeLimitSeconds`, and is killed then.
//
// docs/planning.md works an example of both.

#ifndef TMC_COMPILER_PLANNING_PLANNERS_H
#define TMC_COMPILER_PLANNING_PLANNERS_H

#include "compiler/planning/Solve.h"

#include <functional>
#include <string_view>

namespace tmc::planning {

using PlannerFunction = std::function<absl::StatusOr<Solution>(
    const Problem &, const SolveOptions &)>;

struct Planner {
  std::string name;
  std::string summary;
  PlannerFunction plan;
};

/// Adds a planner; one of the same name replaces the earlier one.
void registerPlanner(std::string name, std::string summary,
                     PlannerFunction plan);
const std::vector<Planner> &planners();
/// Whether `planBy` knows `name`.
bool isPlanner(std::string_view name);
/// All names, for messages: "tmc, none, ..., exec:COMMAND".
std::string plannerNames();

/// Runs the planner `name` ("exec:CMD" included) and checks its answer. The
/// `tmc` planner is `solve` itself; others come without certificate.
/// `problemFile` is what an external program is given.
absl::StatusOr<Plan> planBy(std::string_view name, const Problem &problem,
                            const SolveOptions &options,
                            const std::string &problemFile);

/// One execution per number or pair, as external planners write them.
absl::StatusOr<Solution> parseAnswer(const Problem &problem,
                                     std::string_view text, bool isGraph);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PLANNERS_H
