// Planners.h - the registry of planners other than our own search.
//
// A planner takes a problem and a request and returns a solution; `Verify.h`
// checks every solution before use (`driver/PlanBy.h`). Two ways to add one:
//
//  - in C++: `registerPlanner("mine", "what it does", function)` from any file
//    linked into the tool;
//  - as a program: `--planner exec:./mine` (`External.h`).
//
// docs/planning/search.md shows an example of both.

#ifndef TMC_COMPILER_PLANNING_PEERS_PLANNERS_H
#define TMC_COMPILER_PLANNING_PEERS_PLANNERS_H

#include "compiler/planning/search/LinearProblem.h"

#include <functional>
#include <string>
#include <vector>

namespace tmc::planning {

/// A request to a planner.
struct PlanRequest {
  int64_t budgetBytes = -1;    // Reserved included; -1: no limit.
  int64_t effort = 100;        // Counted work, in percent of the default.
  double timeLimitSeconds = 0; // A guard; 0: none.
};

using PlannerFunction = std::function<absl::StatusOr<Solution>(
    const Problem &, const PlanRequest &)>;

struct Planner {
  std::string name;
  std::string summary;
  PlannerFunction plan;
  bool takesMoves = false; // It takes problems of several spaces.
};

/// Adds a planner; one of the same name replaces the earlier one.
void registerPlanner(std::string name, std::string summary,
                     PlannerFunction plan, bool takesMoves = false);
const std::vector<Planner> &planners();

/// The limit of live bytes within a budget in bytes (reserved included; -1:
/// none), without persistent values.
int64_t liveLimit(const Problem &problem, const LinearProblem &linear,
                  int64_t budgetBytes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PEERS_PLANNERS_H
