// PlanCache.h - plans of one problem whose arenas fit, for one budget or many.
//
// The budget limits the arena into which the plan's buffers are packed; the
// arena may be a little larger than the plan's live peak. A problem with moves
// is fitted by MovesFit.h. Of a problem of one space, a `PlanCache` solves
// coarsely, anneals twice from that plan, and packs. If the arena is too large
// and no known plan of that cost fits, it packs in other ways, changes the plan
// at the instructions where buffers exceed the budget, and then plans for a
// smaller limit. It keeps every plan with its arena:
//
//     fit(12 GiB)   solve, pack: 12.1 GiB; headroom of 0.1 GiB at the backward
//                   of two layers, pack: fits
//     fit(13 GiB)   solve, pack: fits; the cheapest of the three plans wins
//
// So more memory never costs more time within one cache, and the smallest known
// plan is the answer if no better one is found. The search for the smallest
// plan ignores the budget, so that plan is the same in every cache of the
// problem, and its arena always works as a budget.

#ifndef TMC_COMPILER_PLANNING_DRIVER_PLANCACHE_H
#define TMC_COMPILER_PLANNING_DRIVER_PLANCACHE_H

#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/pack/Buffers.h"

#include <memory>

namespace tmc::planning {

class PlanCache {
public:
  /// All of `options` but the budget hold for every plan. No plan gets a proof
  /// by cases: that is for the chosen one (`proveByCases`). `planner` finds the
  /// plans (see PlanBy.h; empty: tmc's own search). `alignments` are those of
  /// buffers in each space, in bytes.
  PlanCache(Problem problem, std::vector<int64_t> alignments,
            SolveOptions options, std::string planner = {});

  const Problem &problem() const { return stated; }

  /// Seeks a plan for this budget of the device (reserved bytes included; -1:
  /// no limit), and returns the cheapest plan of the cache whose arenas fit.
  /// Null if none is known. Errors: a malformed problem; FailedPrecondition:
  /// another planner than tmc's own search failed.
  absl::StatusOr<const Plan *> fit(int64_t budgetBytes);

  /// The plan with the smallest arena known, for any budget.
  absl::StatusOr<const Plan *> smallest();

  /// Counted work of later searches, in percent of the given effort.
  void setEffort(int64_t percent) { options.effort = given.scaled(percent); }

  /// Whether the search of `smallest` ended before its work was done.
  bool isSmallestStoppedEarly() const { return smallestStoppedEarly; }

  /// The cheapest plan of the cache within a budget; null: none.
  const Plan *cheapestWithin(int64_t budgetBytes) const;

  /// The plans of the cache that cost less than every one with a smaller arena,
  /// by ascending arena.
  std::vector<const Plan *> frontier() const;

  /// No plan has a smaller budget, in any order.
  int64_t impossibleBelowBytes() const { return impossible; }

  /// Replaces the arena of `plan` by a measured one.
  void correct(const Plan *plan, int64_t arenaBytes);

private:
  Problem stated;
  std::vector<int64_t> alignments;
  SolveOptions options;
  Effort given;
  std::string planner;
  int64_t impossible;
  std::vector<std::unique_ptr<Plan>> plans;
  const Plan *smallestPlan = nullptr;
  bool smallestStoppedEarly = false;

  absl::StatusOr<const Plan *> fitOnDevice(int64_t budgetBytes);
  absl::StatusOr<const Plan *> fitWithMoves(int64_t budgetBytes);
  absl::Status findSmallestWithMoves();
  /// `orders`: the orders of first executions, if they are fixed; otherwise
  /// null.
  absl::StatusOr<Plan> planFor(const SolveOptions &how,
                               const Orders *orders) const;
  /// Solves and packs.
  absl::StatusOr<Plan> fittedFor(int64_t limitBytes, const SolveOptions &how,
                                 const Orders *orders = nullptr) const;
  absl::StatusOr<Plan> leastFitted() const;
  Plan packed(Plan plan) const;
  void packHarder(Plan &plan, int64_t roomBytes) const;
  std::vector<int64_t> overAt(const Plan &plan, int64_t roomBytes) const;
  bool isOver(const Solution &solution, const std::vector<int64_t> &headroom,
              int64_t limitBytes) const;
  absl::Status walk(const Plan &coarse, int64_t limitBytes, int64_t roomBytes,
                    Expensive expensive, std::vector<Plan> &found) const;
  absl::Status repairOnce(const SolveOptions &how, int64_t limitBytes,
                          int64_t roomBytes, const Orders &orders,
                          std::vector<Plan> &found) const;
  absl::StatusOr<std::vector<Plan>> repair(const Plan &first,
                                           int64_t limitBytes,
                                           int64_t roomBytes,
                                           uint64_t seed) const;
  const Plan *keep(Plan plan);
  void keepSmallest(Plan plan);
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_PLANCACHE_H
