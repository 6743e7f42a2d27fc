// Construct.h - makes a whole schedule from prices, in one pass.
//
// Given a price per byte for each stage, the pass walks the stages forward. If
// an instruction needs a value that isn't in memory, the pass compares
//
//   extend     its bytes times the prices since it was last alive, and
//   recompute  the cheapest recipe, plus the price of its missing inputs,
//
// and takes the cheaper one. An input that is recomputed now is also there for
// its own next use; the price of that use is subtracted. So chains of
// activations come back together, one block at a time, from the values that
// are cheap to hold. This is checkpointing with checkpoints found by price.
//
// The live bytes of the result show which prices were too low. A subgradient
// loop raises those and lowers the others, and keeps the cheapest schedule that
// fits. One pass costs O(nodes + edges + recomputations), so it scales to a
// million nodes; annealing then improves the result.

#ifndef TMC_COMPILER_PLANNING_SEARCH_CONSTRUCT_H
#define TMC_COMPILER_PLANNING_SEARCH_CONSTRUCT_H

#include "compiler/planning/search/Anneal.h"
#include "compiler/planning/search/LinearProblem.h"

namespace tmc::planning {

/// How far a pass looks from a value that isn't in memory.
struct Reach {
  /// Inputs of inputs, and values visited for one missing value: a block or
  /// two.
  int depth = 20;
  int32_t visits = 400;
  /// The next use of an input is credited with at most this many times the cost
  /// of its own recipe. Near the smallest limits the inputs of that recipe are
  /// away as well, so making the input again costs several times as much. With
  /// a credit of 1 a block then never returns as a whole, at any price.
  double credit = 1;
};

/// Recomputations chosen by `prices` (cost per byte, one per stage of
/// `linear`).
std::vector<Schedule::Clone> construct(const LinearProblem &linear,
                                       const std::vector<double> &prices,
                                       const Reach &reach, int64_t &work);

/// Live bytes per stage (maximum over its moments) of the schedule with these
/// recomputations; all instructions run by their first recipe.
std::vector<int64_t> liveOf(const LinearProblem &linear,
                            std::vector<Schedule::Clone> clones);

struct ConstructOptions {
  int rounds = 60;
  Reach reach;
  int64_t work = 200'000'000; // Counted steps, about 1 ns each.
  std::function<bool()> stop;
};

/// The cheapest schedule within `limitBytes` that the loop meets, starting from
/// `prices`, or else the schedule nearest to fitting.
RematPlan constructWithin(const LinearProblem &linear, int64_t limitBytes,
                          std::vector<double> prices,
                          const ConstructOptions &options, int64_t &work);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_CONSTRUCT_H
