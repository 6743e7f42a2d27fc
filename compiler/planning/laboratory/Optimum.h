// Optimum.h - the fastest plan of a small problem, and a proof that no plan is
// faster.
//
// It is exact about all of R1 to R16 and R18: any number of copies and
// recomputations, any homes and variants, overwrites taken or not, files, loops
// with a first, a middle and a last trip. It covers plans in the program's
// order: the instructions' own executions start in the order in which segments
// list them.
//
// The list is written from its end to its beginning. There, the values that
// must be in memory are known: those that the later entries still read.
//
//     list so far              .. )fetch  g1        needs on the device a, d
//     before it, a choice of   fetch( | )stash | f3 | f1 | ...
//
// So a fetch, a stash or a recomputation is added only if a later entry reads
// one of its results. Also known are whether these values exceed a budget, and
// the time from each engine's last entry to the end of the trip. A *state* is
//
//   - the segment, and how many of its instructions still have to start;
//   - the work that has its Done in the list, but not yet its Start;
//   - the values that are needed;
//   - the *tails* of the trip: the least time from compute, from each engine
//   and
//     from each piece of that work to the trip's end. Every wait of R12 is a
//     maximum of sums, so the tails hold all information about times.
//
// A loop's trips run one list. So its trips take their steps side by side:
//
//     trip               must leave for later          begins with
//     last               values needed later           values that cross
//     others             values that cross             the same
//     first, its tails   (a copy of nothing takes no time)
//
// Values that cross the border of two trips: carried values are guessed when
// the search comes to the loop's end. A value from outside begins to cross when
// the first of its reads is met. It is then in memory in all trips but the
// last, so its bytes must be free at every later entry; the state holds the
// least number of free bytes. A read of such a value may also mean the instance
// that the trip itself wrote: both are tried. In a first trip a carried value
// is nothing, or the very instance of its initial value.
//
// The search is A*: the state goes first whose tails, with the remaining
// kernels and the shortest ways to the needed values (OptimumReach.h), promise
// the fastest step. When a state holds the whole step, no
// other can be faster. A state is dropped if another state at the same place
// needs no further value, has no longer tails, and no fewer free bytes: every
// list that can stand before the one can stand before the other. This ends all
// cycles, and as only tails below the limit count, the search ends.
//
// The cost grows as two to the number of values that may be in several places
// at once. A graph of twelve kernels, all of which may run again and some of
// whose results may move, takes some ten thousand states; so does one layer of
// a training step with all its states and the update on either side. Two layers
// take more than the search allows. 200,000 states take a second and 300 MB.
// The search gives up after a counted number of states, without an answer: the
// same input gives the same outcome.

#ifndef TMC_COMPILER_PLANNING_LABORATORY_OPTIMUM_H
#define TMC_COMPILER_PLANNING_LABORATORY_OPTIMUM_H

#include "compiler/planning/model/Problem.h"

#include <limits>
#include <optional>

namespace tmc::planning {

struct OptimumLimits {
  /// Seeks only plans with a makespan below this.
  int64_t below = std::numeric_limits<int64_t>::max();
  /// States after which the search gives up.
  size_t mostStates = 200'000;
};

struct OptimalPlan {
  Solution solution;
  int64_t makespan = 0;
};

/// The fastest plan within the budgets of all spaces; none if the search proves
/// that no plan is below the limit. Errors: Unimplemented if the problem is too
/// large; ResourceExhausted after too many states. `problem` must pass `check`.
absl::StatusOr<std::optional<OptimalPlan>>
planOptimum(const Problem &problem, const OptimumLimits &limits = {});

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_LABORATORY_OPTIMUM_H
