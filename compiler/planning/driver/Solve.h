// Solve.h - the entry point of planning: a problem and a budget in, a checked
// plan with its proof out.
//
// A problem of one space is planned by recomputation (FreeOrder.h, Search.h),
// one with other spaces by moves as well (MovesSearch.h). The live bytes of a
// plan fit the budget; `PlanCache` (PlanCache.h) finds plans whose arenas do.

#ifndef TMC_COMPILER_PLANNING_DRIVER_SOLVE_H
#define TMC_COMPILER_PLANNING_DRIVER_SOLVE_H

#include "compiler/planning/driver/Plan.h"
#include "compiler/planning/driver/Strategies.h"
#include "compiler/planning/moves/Moves.h"

#include <functional>
#include <limits>

namespace tmc::planning {

enum class OrderMode : uint8_t {
  Fixed, // First executions keep the program's order.
  Free,  // Any order that the data allows.
};

/// A policy for expensive operations, as a loss over a large vocabulary.
enum class Expensive : uint8_t {
  HeldFirst, // Plans are sought first that don't recompute them.
  Held,      // They aren't recomputed.
  Free,      // They may be recomputed.
};

struct SolveOptions {
  /// Bytes of the device that live values and `reservedBytes` may take; -1: no
  /// limit. The problem's spaces hold the budgets of the others.
  int64_t budgetBytes = -1;
  OrderMode order = OrderMode::Fixed;
  uint64_t seed = 1;
  /// The amount of work (`Strategies.h`).
  Effort effort = Effort::interactive();
  /// Strategies that are left out, by name.
  Without without = {};
  /// Upper limit on the counted work of a search for the smallest plan, over
  /// all orders; if it ends the search, `Stats::stoppedEarly` is set. 0: none.
  int64_t smallestWork = 0;
  /// A time limit, 0: none. If it ends a search, `Stats::timeLimitHit` is set
  /// and the answer may differ from run to run.
  double timeLimitSeconds = 0;
  /// An initial plan, which may exceed the budget: a plan for a little more
  /// memory shortens the search for one with less. With moves it counts only if
  /// it fits. Null: none.
  const Solution *start = nullptr;
  /// For each instruction, bytes that stay free below the limit during its
  /// first execution, because a packing exceeded the budget there. Empty: none.
  /// Bounds and claims of infeasibility ignore it.
  std::vector<int64_t> headroom = {};
  Expensive expensive = Expensive::HeldFirst;
  /// With a free order: choose an order by an eighth of the work, and stop if
  /// it has a plan. With moves: few choices, a tenth of the time, to compare
  /// settings of levers.
  bool coarse = false;
  /// Recomputations of the first plans that the budget doesn't need are erased:
  /// for a search without walks.
  bool dropsNeedless = false;
  /// Look for prices that prove a lower bound as well.
  bool wantBound = true;
  /// Look for a proof by cases, if that is affordable and proves more.
  bool wantCases = true;
  /// Look for the smallest budget with a plan even when this one has a plan.
  bool wantFrontier = false;
  /// Look for the smallest budget if this one has no plan.
  bool wantSmallest = true;

  // With moves:

  /// Plans of this cost or more are useless: if that is proved of all plans,
  /// none is sought.
  int64_t useless = std::numeric_limits<int64_t>::max();
  /// Plans a few instructions exactly, below a cost; nothing if no such plan
  /// exists. Null: the search has no such help. Errors: Unimplemented and
  /// ResourceExhausted, if the problem is too large.
  std::function<absl::StatusOr<std::optional<MovedPlan>>(const Problem &,
                                                         int64_t costBelow)>
      exact = nullptr;
};

/// Whether one operation takes at least 1/25 of the step.
inline bool isExpensive(int64_t cost, int64_t baseCost) {
  return cost >= baseCost / 25;
}

/// Whether `solution` recomputes an expensive operation.
bool recomputesExpensive(const Problem &problem, const Solution &solution);

/// The best plan found within the counted work. An error: the problem is
/// malformed. An infeasible answer is no error: see `Plan::feasible`.
absl::StatusOr<Plan> solve(const Problem &problem, const SolveOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_SOLVE_H
