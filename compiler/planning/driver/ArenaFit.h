// ArenaFit.h - plans of one problem whose arena fits, for one budget or many.
//
// A plan's live peak is a promise; what must fit the budget is the arena that
// its buffers are packed into, a little larger at times. A `PlanCache` solves
// coarsely, walks on from there twice, packs, and where the arena is too large
// and nothing as cheap fits, packs in other ways, changes the plan
// where buffers stick out, and then plans for a smaller limit. It remembers
// every plan that it has seen with its arena:
//
//     fit(12 GiB)   solve, pack: 12.1 GiB; headroom of 0.1 GiB at the backward
//                   of two layers, pack: fits
//     fit(13 GiB)   solve, pack: fits; the cheapest of the three plans wins
//
// so that more memory never costs more time within one cache, and the smallest
// plan it knows is the answer wherever nothing better is found. That one is
// sought without regard to any budget, so it is the same in every cache of
// the problem, and its arena always works when given as the budget.

#ifndef TMC_COMPILER_PLANNING_DRIVER_ARENAFIT_H
#define TMC_COMPILER_PLANNING_DRIVER_ARENAFIT_H

#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/pack/Buffers.h"

#include <memory>

namespace tmc::planning {

/// Certifies `plan` anew for another budget: the same prices prove
/// less where there is more room.
void recertify(const Problem &problem, Plan &plan, int64_t budgetBytes);

/// Looks for a proof by cases of a plan that costs more than its prices prove
/// at `budgetBytes`.
void proveByCases(const Problem &problem, Plan &plan, int64_t budgetBytes);

struct FittedPlan {
  Plan plan;
  int64_t arenaBytes = 0;   // Reserved left out.
  PackOptions packing = {}; // That finds this arena.
};

class PlanCache {
public:
  /// `options` less the budget hold for every plan. No plan is proved by cases:
  /// that is for the one that is chosen (`proveByCases`).
  /// `planner` finds the plans (see Planners.h; empty: our own search), and
  /// `problemFile` is what a program gets to read that plans.
  PlanCache(Problem problem, int64_t alignment, SolveOptions options,
            std::string planner = {}, std::string problemFile = {});

  const Problem &problem() const { return stated; }

  /// The cheapest plan in the cache whose arena fits, after looking for one at
  /// this budget (reserved included; -1: no limit). Null where none is known.
  /// An error: the problem is malformed.
  absl::StatusOr<const FittedPlan *> fit(int64_t budgetBytes);

  /// The plan with the smallest arena that is known whatever the budget.
  absl::StatusOr<const FittedPlan *> smallest();

  /// Counted work of what is sought from here on, in percent of what was given.
  void setEffort(int64_t percent) { options.effort = given.scaled(percent); }

  /// Whether `smallest` has been sought with less than the work it wants.
  bool isSmallestStoppedEarly() const { return smallestStoppedEarly; }

  /// The cheapest plan of the cache within a budget; null: none.
  const FittedPlan *cheapestWithin(int64_t budgetBytes) const;

  /// The plans of the cache that cost less than every one with a smaller arena,
  /// by ascending arena.
  std::vector<const FittedPlan *> frontier() const;

  /// No plan can be below, in any order.
  int64_t impossibleBelowBytes() const { return impossible; }

  /// Remembers that the arena of `plan` turned out to be another.
  void correct(const FittedPlan *plan, int64_t arenaBytes);

private:
  Problem stated;
  int64_t alignment;
  SolveOptions options;
  Effort given;
  std::string planner, problemFile;
  int64_t impossible;
  std::vector<std::unique_ptr<FittedPlan>> plans;
  const FittedPlan *smallestPlan = nullptr;
  bool smallestStoppedEarly = false;

  using Orders = std::vector<std::vector<InstructionId>>;

  /// `orders`: those of first executions, if they are to stay; else null.
  absl::StatusOr<Plan> planFor(const SolveOptions &how,
                               const Orders *orders) const;
  /// Solves and packs.
  absl::StatusOr<FittedPlan> fittedFor(int64_t limitBytes,
                                       const SolveOptions &how,
                                       const Orders *orders = nullptr) const;
  absl::StatusOr<FittedPlan> leastFitted() const;
  FittedPlan packed(Plan plan) const;
  void packHarder(FittedPlan &plan, int64_t roomBytes) const;
  std::vector<int64_t> overAt(const FittedPlan &plan, int64_t roomBytes) const;
  bool isOver(const Solution &solution, const std::vector<int64_t> &headroom,
              int64_t limitBytes) const;
  absl::Status walk(const Plan &coarse, int64_t limitBytes, int64_t roomBytes,
                    Expensive expensive, std::vector<FittedPlan> &found) const;
  absl::Status repairOnce(const SolveOptions &how, int64_t limitBytes,
                          int64_t roomBytes, const Orders &orders,
                          std::vector<FittedPlan> &found) const;
  absl::StatusOr<std::vector<FittedPlan>> repair(const FittedPlan &first,
                                                 int64_t limitBytes,
                                                 int64_t roomBytes,
                                                 uint64_t seed) const;
  const FittedPlan *keep(FittedPlan plan);
  void keepSmallest(FittedPlan plan);
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_ARENAFIT_H
