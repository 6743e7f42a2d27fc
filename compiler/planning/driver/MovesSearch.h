// MovesSearch.h - plans with several spaces and engines.
//
// Three nested loops decide:
//
//   - *Modes.* Each update, with its private values, belongs to the device, to
//     the host (its states live there and it runs there), or to the device with
//     its states on the host (they come and go); its parameter lives on either
//     side (`moves/UpdateGroups.h`). The search first plans the modes that a
//     sketch ranks best (`moves/ModeLoads.h`), then changes stretches of
//     updates, by halving.
//   - *A price* for each second of a link, and *free bytes* for transfers in
//     progress. If the host can't hold what moves, a rule limits it
//     (`HostRoom.h`), and plans without the rule are sought near the price that
//     fills the host (`RefineKnobs.h`).
//   - The device's plan with both (`moves/Projection.h`, `solve`), and its
//     moves (`moves/Moves.h`).
//
// Values for which the host has no room go on to a file, if there is one
// (`moves/FileMoves.h`): each plan decides this by the host's bytes.
//
// The fastest plan that fits all budgets wins, or one that is up to 0.05 %
// longer and takes less beside the device. The candidates include the plans of
// `solve` without moves and those of published rules (`kOffloadRules`): a step
// is never slower than with these by more than that.
//
// Most choices need no plan. The busiest engine's own work is a lower bound on
// the time of a choice. If this bound, or the bound of all choices
// (`bound/Bound.h`), is within a two-thousandth of the best plan, the
// search stops there. The published rules go first, because they are cheap. If
// the best plan stays a twentieth above the bound, modes and knobs are searched
// once more with every strategy, in smaller stretches.
//
// Then plans that are up to 0.05 % longer, or gain less than 0.5 % on the step
// that moves nothing, are sought that take less beside the device
// (`TakeLess.h`). A plan that is still 1 % above the bound gets a bound
// with ten times the work.
//
// Last, a small problem whose best plan isn't proved optimal is planned
// exactly, below the time of that plan, if the caller can (`SolveOptions`).
//
// A *coarse* search uses few modes and knobs, omits the chain's rule and spends
// little work on recomputation alone. It takes a tenth of the time and serves
// to compare levers. Its plan may be slower than those of the chain and of
// recomputation.

#ifndef TMC_COMPILER_PLANNING_DRIVER_MOVESSEARCH_H
#define TMC_COMPILER_PLANNING_DRIVER_MOVESSEARCH_H

#include "compiler/planning/driver/Solve.h"

namespace tmc::planning {

/// The best plan found within the budgets in `problem.spaces`;
/// `SolveOptions::budgetBytes` is not read. `smaller`, if not null, receives
/// other plans that fit and use less of the device's budget: the fastest first,
/// each with a smaller peak there than those before it. They are forms of each
/// plan that was the best at its time, with more bytes kept free of moves. A
/// coarse search makes none. An error: the problem is malformed.
absl::StatusOr<Plan> solveMoves(const Problem &problem,
                                const SolveOptions &options,
                                std::vector<MovedPlan> *smaller = nullptr);

/// The same of problems without networks.
absl::StatusOr<Plan> searchMoves(const Problem &problem,
                                 const SolveOptions &options,
                                 std::vector<MovedPlan> &smaller);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_MOVESSEARCH_H
