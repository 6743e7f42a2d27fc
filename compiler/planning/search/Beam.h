// Beam.h - plans a small problem with little memory by keeping many partial
// plans side by side.
//
// With few bytes and random dependences, a plan recomputes whole sets of values
// many times, and no single added recomputation makes a plan better: local
// search gets stuck. The memory contents sum up all past decisions of a plan,
// so the beam goes forward through the stages with *states*, sets of values in
// memory:
//
//     stage 4                     stage 5                     stage 6
//     {a c d}  cost 3   -----+->  {a d e}  cost 3   ------->  ...
//     {a b d}  cost 7        +->  {c d e}  cost 3
//     {b c}    cost 0   ------->  {b c e}  cost 9 (recomputed d)
//
// In a stage, a state may recompute missing values from its values, until the
// stage's own instruction finds its inputs. A value leaves memory only if
// something else needs the room; each of the cheapest ways to make room is a
// state. If two states have the same set, the cheaper one stays. A state is
// dropped if another state has all of its values for no more cost.
//
// States are ranked by their cost plus a bound on the future cost, in prices
// per byte (`Bound.h`). Each value that is read later costs the lesser of
// holding it at those prices and recomputing it. A missing value must be
// recomputed, and so must the missing inputs of that recomputation. The best
// `width` states of each stage are followed; the width grows while work is
// left.
//
// Within a stage values may be made in any order and more than once, which a
// `Schedule` can't express: the result lists its recomputations in execution
// order.

#ifndef TMC_COMPILER_PLANNING_SEARCH_BEAM_H
#define TMC_COMPILER_PLANNING_SEARCH_BEAM_H

#include "compiler/planning/search/Anneal.h"

#include <limits>

namespace tmc::planning {

/// Largest number of stages for which a beam is worth its time.
inline constexpr size_t kMostBeamStages = 400;

struct BeamOptions {
  int64_t work = 100'000'000; // Counted steps, about a nanosecond each.
  /// Seeks only plans cheaper than this.
  int64_t costBelow = std::numeric_limits<int64_t>::max();
  /// Ends with the first feasible plan.
  bool wantAny = false;
  std::function<bool()> stop;
};

/// The cheapest plan found within the limit; infeasible if none was found.
/// `prices`: cost per byte, one for each stage of `linear`. Adds the counted
/// steps to `work`.
RematPlan beam(const LinearProblem &linear, int64_t limitBytes,
               const std::vector<double> &prices, const BeamOptions &options,
               int64_t &work);

/// The solution that `plan` lists by its `sequence`.
Solution solutionOf(const Problem &problem, const LinearProblem &linear,
                    const RematPlan &plan);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_BEAM_H
