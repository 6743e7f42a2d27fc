// Anneal.h - simulated annealing over sets of recomputations.
//
// The state is a `Schedule` that may exceed its limit; the energy is its cost
// plus `penalty` times its excess. A move inserts a recomputation before a use
// (and a chain of recomputations for inputs that were dropped too), erases one
// (and those that only it needed), shifts one, swaps one for another, runs an
// instruction by another of its recipes, or copies the recomputations of one
// layer to another. The penalty rises while the walk stays above the limit and
// falls while it stays below, so the walk crosses the border of feasibility
// again and again. For large problems the penalty grows by a ramp instead: it
// starts so low that the walk gives up too many recomputations. The result is
// the cheapest feasible state met; a journal of the moves accepted since then
// leads back to it.

#ifndef TMC_COMPILER_PLANNING_SEARCH_ANNEAL_H
#define TMC_COMPILER_PLANNING_SEARCH_ANNEAL_H

#include "compiler/planning/model/Random.h"
#include "compiler/planning/search/RematPlan.h"
#include "compiler/planning/search/Repeats.h"

#include <functional>

namespace tmc::planning {

struct AnnealOptions {
  int64_t work = 1'000'000'000; // Counted steps (`Schedule::work`).
  double startTemperature = 1;  // In mean costs of an operation.
  double endTemperature = 0.001;
  /// If > 0: the penalty grows by this factor over the walk.
  double penaltyRamp = 0;
  /// With a ramp: the first penalty, as a part of the value that giving up one
  /// recomputation has at the start. By default it is low: many recomputations
  /// erased together exceed the limit at more moments than one alone.
  double firstPenalty = 0.05;
  /// Accepted steps after the best state before that state is copied as a plan.
  size_t longestJournal = 1 << 20;
  /// Also run instructions by variants other than the first.
  bool switchesVariants = true;
  /// Repeats in the schedule's problem; null: don't use repeats.
  Repeats *repeats = nullptr;
  std::function<bool()> stop; // Asked now and then; true ends the walk.
};

/// Leaves `schedule` in the best feasible state met, or else in the state of
/// least excess, and returns that state.
RematPlan anneal(const LinearProblem &linear, Schedule &schedule,
                 Random &random, const AnnealOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_ANNEAL_H
