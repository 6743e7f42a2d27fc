// SpaceSearch.h - plans with several spaces and engines.
//
// Three things are decided one inside the other:
//
//   - *Modes.* Each update, with all that it alone uses, is the device's, the
//     host's (its states are at home there and it runs there), or the device's
//     with its states on the host (they come and go); its parameter is at home
//     on either side (`search/UpdateGroups.h`). First those are planned whose
//     sketch promises most (`search/ModeLoads.h`), then changes of stretches
//     of updates, by halving.
//   - *A price* of a link's second, and *bytes kept free* for what is under
//     way.
//   - With these the device's plan (`Projection.h`, `solve`), and its moves
//     (`Moves.h`).
//
// What the host has no room for goes on to a file, if there is one
// (`search/FileMoves.h`): that is decided for each plan, by the host's bytes.
//
// The quickest plan that fits all budgets wins. Among them are what `solve`
// finds without moves and what the rules of others come to: a step is never
// slower than by these.
//
// Most choices need no plan. The busiest engine's own work says what a choice
// takes at the least; where that, or what is proved of all choices
// (`bound/SpaceBound.h`), is within a two-thousandth of the best plan, no more
// is sought there. The rules of others go first, because they are cheap. Where
// the best plan stays a tenth above what is proved, modes and knobs are gone
// through once more with every strategy, by finer steps.
//
// Last, what is small and not proved to be the quickest is planned exactly,
// below the best plan so far (`peers/Optimum.h`).
//
// *Coarse* is the same with a few modes and knobs, without the chain's rule and
// with little work for recomputing alone: a tenth of the time, for who asks
// what a lever is worth. It may lose to either of these.

#ifndef TMC_COMPILER_PLANNING_DRIVER_SPACESEARCH_H
#define TMC_COMPILER_PLANNING_DRIVER_SPACESEARCH_H

#include "compiler/planning/bound/SpaceBound.h"
#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/search/Moves.h"

#include <limits>

namespace tmc::planning {

/// What plans: the search, or one of those that it never loses to, but for
/// ZeroOffloadBlocks, which it doesn't begin with, and Optimum, which it asks
/// for few instructions only.
enum class SpacePlanner {
  Search,
  Recompute,
  ZeroOffload,
  ZeroOffloadBlocks,
  OldestFirst,
  Knapsack,
  Chain,
  Optimum
};

struct SpaceSearchOptions {
  uint64_t seed = 1;
  SpacePlanner planner = SpacePlanner::Search;
  /// Of the plan that moves nothing; others get small parts of it.
  Effort effort = Effort::interactive();
  bool coarse = false;
  /// Far from what is proved, modes and knobs are gone through once more.
  bool secondPass = true;
  /// What is small is planned exactly, where the search may gain.
  bool optimum = true;
  /// A plan to begin with: it is the answer if it fits and none quicker is
  /// found. Null: none.
  const Solution *known = nullptr;
  /// Plans that take so long or longer are of no use: where that is proved of
  /// all, none is sought. Picoseconds.
  int64_t useless = std::numeric_limits<int64_t>::max();
};

struct SpacePlan {
  Solution solution;
  bool feasible = false; // Within the budgets of all spaces.
  int64_t makespan = 0;
  std::vector<int64_t> peakBytes; // Of each space, reserved left out.
  /// Other plans that fit, for who can't use all of the device's budget: the
  /// quickest first, each with a smaller peak there than those before it. Of
  /// each plan that was the best at its time there are forms that leave more of
  /// the budget free to what moves. Coarsely: none.
  std::vector<MovedPlan> smaller;
  SpaceCertificate proof; // Of `provenMakespan`.
  int64_t provenMakespan = 0;
  int64_t tried = 0;   // Plans of the device.
  int64_t refused = 0; // Lists that came out wrong, and were left out.
  double seconds = 0;
};

/// The best plan found within the budgets in `problem.spaces`. Errors: the
/// problem is malformed, or has loops without exact trips; of
/// SpacePlanner::Optimum, it is too large for it.
absl::StatusOr<SpacePlan> solveSpaces(const Problem &problem,
                                      const SpaceSearchOptions &options);

/// Plans for budgets of one space, the smallest first, each begun with the one
/// before: a larger budget is never slower. Of each, `problem` is what
/// `solveSpaces` takes, less that budget.
absl::StatusOr<std::vector<SpacePlan>>
sweepBudgets(const Problem &problem, SpaceId space,
             const std::vector<int64_t> &budgets,
             const SpaceSearchOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_SPACESEARCH_H
