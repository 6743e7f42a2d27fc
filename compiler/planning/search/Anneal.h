// Anneal.h - simulated annealing over sets of recomputations.
//
// The state is a `Schedule` that may exceed its limit; the energy is its cost
// plus `penalty` times its excess. Moves insert a recomputation before a use
// (and, when its inputs have been dropped too, theirs: a chain), erase one (and
// what only it needed), shift one, swap one for another, run an instruction by
// another of its recipes, or do in one layer as another does. The penalty
// follows the walk: up while it stays above the limit, down while it stays
// below, so that it crosses the border of feasibility again and again. Or, for
// what is large, it grows by a ramp, from what is measured at the start to be
// low enough that too much is given up. The cheapest feasible state met is the
// answer: a journal of what has been accepted since leads back to it.

#ifndef TMC_COMPILER_PLANNING_SEARCH_ANNEAL_H
#define TMC_COMPILER_PLANNING_SEARCH_ANNEAL_H

#include "compiler/planning/model/Random.h"
#include "compiler/planning/search/RematPlan.h"
#include "compiler/planning/search/Repeats.h"

#include <functional>

namespace tmc::planning {

struct AnnealOptions {
  int64_t work = 1'000'000'000; // Steps of `Schedule::work`.
  double startTemperature = 1;  // In units of the mean cost of an operation.
  double endTemperature = 0.001;
  /// If > 0: the penalty grows by this factor over the walk.
  double penaltyRamp = 0;
  /// Steps from the best state on after which it is written down.
  size_t longestJournal = 1 << 20;
  /// Run instructions by other variants too.
  bool switchesVariants = true;
  /// What repeats in the schedule's problem; null: nothing, or not to be used.
  Repeats *repeats = nullptr;
  std::function<bool()> stop; // A guard; asked now and then.
};

/// Leaves `schedule` in the best feasible state met, or else in the one of
/// least excess, and returns that.
RematPlan anneal(const LinearProblem &linear, Schedule &schedule,
                 Random &random, const AnnealOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_ANNEAL_H
