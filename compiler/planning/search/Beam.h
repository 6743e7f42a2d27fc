// Beam.h - a plan for a small problem with little room, by keeping many
// half-made plans side by side.
//
// Where bytes are scarce and values depend on each other at random, a plan
// recomputes whole sets of values many times, and no single recomputation
// can be added to one plan to make a better one: walks from plan to plan get
// stuck. What is in memory sums up all that a plan has done so far, so this
// goes forward through the stages with *states*, sets of values in memory:
//
//     stage 4                     stage 5                     stage 6
//     {a c d}  cost 3   -----+->  {a d e}  cost 3   ------->  ...
//     {a b d}  cost 7        +->  {c d e}  cost 3
//     {b c}    cost 0   ------->  {b c e}  cost 9 (recomputed d)
//
// In a stage, a state may recompute missing values, by whatever its values
// allow, until the stage's own instruction finds what it reads. Nothing leaves
// memory before something else needs the room; then each of the cheapest ways
// to make room is a state. Of two equal states the cheaper stays, and none
// stays that has less in memory than another one, for more.
//
// States are ranked by their cost plus a bound on what is yet to come, in
// prices per byte (`Bound.h`): each value that is read later costs the least of
// holding it at those prices and recomputing it; what is missing is recomputed
// in any case, and so is what that needs in turn. Of each stage the best
// `width` states are followed, fewer first and then more, while the work
// lasts.
//
// Values may be made in any order within a stage, and more than once, which a
// `Schedule` can't say: the answer lists its recomputations in the order in
// which they run.

#ifndef TMC_COMPILER_PLANNING_SEARCH_BEAM_H
#define TMC_COMPILER_PLANNING_SEARCH_BEAM_H

#include "compiler/planning/search/Anneal.h"

#include <limits>

namespace tmc::planning {

/// Stages up to which a beam is worth its while.
inline constexpr size_t kMostBeamStages = 400;

struct BeamOptions {
  int64_t work = 100'000'000; // Counted steps, about a nanosecond each.
  /// Only plans cheaper than this are sought.
  int64_t costBelow = std::numeric_limits<int64_t>::max();
  /// The first plan will do.
  bool wantAny = false;
  std::function<bool()> stop;
};

/// The cheapest plan found within the limit, or one that isn't feasible.
/// `prices`: per byte, one for each stage of `linear`.
RematPlan beam(const LinearProblem &linear, int64_t limitBytes,
               const std::vector<double> &prices, const BeamOptions &options,
               int64_t &work);

/// The solution that `plan` lists by its `sequence`.
Solution solutionOf(const Problem &problem, const LinearProblem &linear,
                    const RematPlan &plan);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_BEAM_H
