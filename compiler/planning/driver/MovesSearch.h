// SpaceSearch.h - plans with several spaces and engines.
//
// Three nested loops decide:
//
//   - *Modes.* Each update, with its private values, belongs to the device, to
//     the host (its states live there and it runs there), or to the device with
//     its states on the host (they come and go); its parameter lives on either
//     side (`search/UpdateGroups.h`). The search first plans the modes that a
//     sketch ranks best (`search/ModeLoads.h`), then changes stretches of
//     updates, by halving.
//   - *A price* for each second of a link, and *free bytes* for transfers in
//     progress.
//   - The device's plan with both (`Projection.h`, `solve`), and its moves
//     (`Moves.h`).
//
// Values for which the host has no room go on to a file, if there is one
// (`search/FileMoves.h`): each plan decides this by the host's bytes.
//
// The fastest plan that fits all budgets wins. The candidates include the plans
// of `solve` without moves and those of published rules (`kRules`): a step is
// never slower than with these.
//
// Most choices need no plan. The busiest engine's own work is a lower bound on
// the time of a choice. If this bound, or the bound of all choices
// (`bound/SpaceBound.h`), is within a two-thousandth of the best plan, the
// search stops there. The published rules go first, because they are cheap. If
// the best plan stays a tenth above the bound, modes and knobs are searched
// once more with every strategy, in smaller stretches.
//
// Last, a small problem whose best plan isn't proved optimal is planned
// exactly, below the time of that plan (`peers/Optimum.h`).
//
// A *coarse* search uses few modes and knobs, omits the chain's rule and spends
// little work on recomputation alone. It takes a tenth of the time and serves
// to compare levers. Its plan may be slower than those of the chain and of
// recomputation.

#ifndef TMC_COMPILER_PLANNING_DRIVER_SPACESEARCH_H
#define TMC_COMPILER_PLANNING_DRIVER_SPACESEARCH_H

#include "compiler/planning/bound/SpaceBound.h"
#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/search/Moves.h"

#include <limits>

namespace tmc::planning {

/// The planner: the search, or one of those that it is never slower than.
/// Exceptions: the search doesn't begin with ZeroOffloadBlocks, and uses
/// Optimum only for few instructions.
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
  /// The effort of the plan without moves; others get small parts of it.
  Effort effort = Effort::interactive();
  bool coarse = false;
  /// Far from the bound, search modes and knobs once more.
  bool secondPass = true;
  /// Plan small problems exactly, if the search may gain.
  bool optimum = true;
  /// An initial plan: it is the answer if it fits and no faster one is found.
  /// Null: none.
  const Solution *known = nullptr;
  /// Plans of this time or longer are useless, in picoseconds: if that is
  /// proved of all plans, none is sought.
  int64_t useless = std::numeric_limits<int64_t>::max();
};

struct SpacePlan {
  Solution solution;
  bool feasible = false; // Within the budgets of all spaces.
  int64_t makespan = 0;
  std::vector<int64_t> peakBytes; // For each space, without reserved bytes.
  /// Other plans that fit and use less of the device's budget: the fastest
  /// first, each with a smaller peak there than those before it. They are forms
  /// of each plan that was the best at its time, with more bytes kept free of
  /// moves. A coarse search makes none.
  std::vector<MovedPlan> smaller;
  SpaceCertificate proof; // Proves `provenMakespan`.
  int64_t provenMakespan = 0;
  int64_t tried = 0;   // Plans of the device.
  int64_t refused = 0; // Invalid lists that were left out.
  double seconds = 0;
};

/// The best plan found within the budgets in `problem.spaces`. Errors: the
/// problem is malformed, or has loops without exact trips; of
/// SpacePlanner::Optimum, it is too large for it.
absl::StatusOr<SpacePlan> solveSpaces(const Problem &problem,
                                      const SpaceSearchOptions &options);

/// Plans for budgets of one space, the smallest first. Each search starts from
/// the plan before: a larger budget is never slower. `problem` is the input of
/// `solveSpaces`, except for that budget.
absl::StatusOr<std::vector<SpacePlan>>
sweepBudgets(const Problem &problem, SpaceId space,
             const std::vector<int64_t> &budgets,
             const SpaceSearchOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_SPACESEARCH_H
