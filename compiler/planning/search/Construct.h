// Construct.h - a whole schedule from prices, in one pass.
//
// Given a price per byte for each stage, walk the stages forward. Whenever a
// value is needed and isn't there, compare
//
//   extend     its bytes times the prices since it was last alive, and
//   recompute  the cheapest recipe, plus what its inputs need in turn,
//
// and take the cheaper. An input that is recomputed now is there for its own
// next use as well: what it would have paid then is taken off, so that chains
// of activations come back together, a block at a time, from the values that
// are cheap to hold. That is checkpointing, with the checkpoints found by
// price.
//
// The live bytes of the result tell which prices were too low; a subgradient
// loop raises those and lowers the others, and keeps the cheapest schedule that
// fits. One pass costs O(nodes + edges + recomputations), so this is what
// scales to a million nodes; annealing then polishes.

#ifndef TMC_COMPILER_PLANNING_SEARCH_CONSTRUCT_H
#define TMC_COMPILER_PLANNING_SEARCH_CONSTRUCT_H

#include "compiler/planning/search/Anneal.h"
#include "compiler/planning/search/LinearProblem.h"

namespace tmc::planning {

/// Recomputations chosen by `prices`, one per stage of `linear`.
std::vector<Schedule::Clone> construct(const LinearProblem &linear,
                                       const std::vector<double> &prices,
                                       int64_t &work);

/// Live bytes per stage, the most over its moments, of the schedule with these
/// recomputations (all instructions by their first recipe).
std::vector<int64_t> liveOf(const LinearProblem &linear,
                            std::vector<Schedule::Clone> clones);

struct ConstructOptions {
  int rounds = 60;
  int64_t work = 200'000'000; // Counted steps, about a nanosecond each.
  std::function<bool()> stop;
};

/// The cheapest schedule within `limitBytes` that the loop meets from `prices`
/// on, or else the one nearest to fitting.
RematPlan constructWithin(const LinearProblem &linear, int64_t limitBytes,
                          std::vector<double> prices,
                          const ConstructOptions &options, int64_t &work);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_CONSTRUCT_H
