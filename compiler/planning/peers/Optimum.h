// Optimum.h - the quickest plan of a small problem, and a proof that there is
// none quicker.
//
// It is exact about all of R1 to R16: any number of copies and recomputations,
// any homes and variants, overwrites taken or not, files, loops with a first, a
// middle and a last trip. Of plans in the program's order, that is: the
// instructions' own executions start in the order in which segments list them.
//
// The list is written from its end to its beginning. There, what has to be in
// memory is known, and not a choice: what the entries behind still read.
//
//     list so far              .. )fetch  g1        needs on the device a, d
//     before it, a choice of   fetch( | )stash | f3 | f1 | ...
//
// So a fetch, a stash or a recomputation is added only if a later entry reads
// one of its results. It is also known when that is too
// much for a budget, and how long it is from each engine's last entry to the
// end of the trip. A *state* is
//
//   - the segment, and how many of its instructions still have to start;
//   - which work has its Done in the list, and not yet its Start;
//   - which values are needed;
//   - the *tails* of the trip: how long after compute, after each engine, and
//     after each piece of that work it ends, at the least. Every wait of R12 is
//     a maximum of sums, so tails are all that there is to know of times.
//
// A loop's trips run one list. So its trips take their steps side by side:
//
//     trip               must leave behind             begins with
//     last               what is needed behind         what crosses the border
//     others             what crosses the border       the same
//     first, its tails   (a copy of nothing takes no time)
//
// What crosses: of what is carried that is guessed when the search comes to the
// loop's end. A value from outside begins to cross when the first of its reads
// is met; it then is there in all trips but the last, so its bytes must be
// spare at every entry behind, of which the least is remembered. A read of such
// a value may also mean what the trip itself wrote: both are tried. In a first
// trip a carried value is the nothing, or the very instance that it begins as.
//
// It is A*: of all states the one whose tails, with the kernels that are left,
// promise the quickest step goes first. With the first that has written the
// whole step no other can be quicker. A state is dropped where another in the
// same place needs no value that it doesn't, has no longer tails, and no fewer
// bytes to spare: whatever can stand before the one may stand before the other.
// That ends all going round in circles, and as only such tails count that end
// below the limit, the search ends.
//
// What it costs grows with two to the number of values that may be in more than
// one place at once. A graph of twelve kernels, all of which may run again and
// some of whose results may move, takes some ten thousand states; so does one
// layer of a training step with all its states and the update on either side,
// and two layers take more than it looks at. 200,000 states take a second and
// 300 MB. It gives up after a counted number of them, without an answer: same
// input, same outcome.

#ifndef TMC_COMPILER_PLANNING_PEERS_OPTIMUM_H
#define TMC_COMPILER_PLANNING_PEERS_OPTIMUM_H

#include "compiler/planning/model/Problem.h"

#include <limits>
#include <optional>

namespace tmc::planning {

struct OptimumLimits {
  /// Only plans that take less are sought.
  int64_t below = std::numeric_limits<int64_t>::max();
  /// States after which it gives up.
  size_t mostStates = 200'000;
};

struct OptimalPlan {
  Solution solution;
  int64_t makespan = 0;
};

/// The quickest plan within the budgets of all spaces; none if that is proved
/// to be impossible below the limit. Errors: Unimplemented where the problem is
/// too large to be looked at, or has loops without exact trips;
/// ResourceExhausted after too many states. `problem` is right (`check`).
absl::StatusOr<std::optional<OptimalPlan>>
planOptimum(const Problem &problem, const OptimumLimits &limits = {});

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PEERS_OPTIMUM_H
