// SpaceSearch.h - plans with several spaces and engines.
//
// Three things are decided one inside the other:
//
//   - *Modes.* Each update, with all that it alone uses, is the device's, the
//     host's (its states are at home there and it runs there), or the device's
//     with its states on the host (they come and go). Updates whose gradients
//     are there first are the first to leave, so that the host works while the
//     backward pass goes on. Of n updates, how many: by halving.
//   - *A price* of a link's second, and *bytes kept free* for what is under
//   way.
//   - With these the device's plan (`Projection.h`, `solve`), and its moves
//     (`Moves.h`).
//
// The quickest plan that fits all budgets wins. One is what `solve` finds
// without moves: offload never makes a step slower than recomputing alone does.

#ifndef TMC_COMPILER_PLANNING_DRIVER_SPACESEARCH_H
#define TMC_COMPILER_PLANNING_DRIVER_SPACESEARCH_H

#include "compiler/planning/driver/Solve.h"

namespace tmc::planning {

struct SpaceSearchOptions {
  uint64_t seed = 1;
  /// Of the plan that moves nothing; others get small parts of it.
  Effort effort = Effort::interactive();
};

struct SpacePlan {
  Solution solution;
  bool feasible = false; // Within the budgets of all spaces.
  int64_t makespan = 0;
  std::vector<int64_t> peakBytes; // Of each space, reserved left out.
  int64_t tried = 0;              // Plans of the device.
  double seconds = 0;
};

/// The best plan found within the budgets in `problem.spaces`. Errors: the
/// problem is malformed, or has loops.
absl::StatusOr<SpacePlan> solveSpaces(const Problem &problem,
                                      const SpaceSearchOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_SPACESEARCH_H
