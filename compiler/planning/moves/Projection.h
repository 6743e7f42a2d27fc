// Projection.h - a problem with spaces, seen from the device alone.
//
// Once the homes of persistent contents, the variant of each instruction and
// the price of a link's second are chosen, the remaining decisions are the
// device's: which values stay, which are recomputed, which come back from
// elsewhere. A fetch then is a recipe without inputs:
//
//     stash: a -> a@host, fetch: a@host -> a      is      fetch: {} -> a
//                                                         price x (both times)
//
// So the search for recomputations (`solve`) weighs a fetch against running
// kernels again, with all of its methods. It can't see the links' own time and
// the bytes held while they work: `placeMoves` (Moves.h) turns its plan into a
// plan with moves and measures that plan. The price and the bytes that are kept
// free are the two parameters.
//
// The projected list, all of it in the program's order:
//
//   - Kernels as they are, without values of other spaces.
//   - *Fetch u* before the first kernel of each segment that reads u, for u at
//     home elsewhere; it may run again like any recipe.
//   - *Stash u* after the maker of u, if u's home is elsewhere or work on the
//     host reads u.
//   - *Work* in the place of an instruction that runs on the host; its results
//     with a home on the device are fetched after it. It ends the life of the
//     contents that it overwrites: they are fetched before it, or not at all.
//
// Segments keep their trips, which the search folds to one
// (`search/LinearProblem.h`). A value from elsewhere is a value of its own in
// each segment, unless `LoopChoice` holds it over a loop. Values carried
// from trip to trip stay on the device; work that reads one stashes it after
// the last trip.
//
// Moves have one hop: forms in files are ignored.

#ifndef TMC_COMPILER_PLANNING_MOVES_PROJECTION_H
#define TMC_COMPILER_PLANNING_MOVES_PROJECTION_H

#include "compiler/planning/model/Problem.h"

#include "absl/status/statusor.h"

#include <vector>

namespace tmc::planning {

/// Exceptions to the defaults over the trips of a loop; see LoopChoices.h.
struct LoopChoice {
  /// Made outside, and fetched anew in each trip; default: held over all trips.
  std::vector<ValueId> anew;
  /// At home elsewhere, fetched before the loop and held over all trips;
  /// default: fetched anew in each trip.
  std::vector<ValueId> held;
};

/// The decisions that the projection takes as given.
struct SpaceChoice {
  std::vector<ValueId> homes;    // As `Solution::homes`.
  std::vector<int32_t> variants; // Per instruction, into its recipes.
  LoopChoice loops = {};
  /// Per value: 1 if no optional move takes it away from the device. Empty: all
  /// may go.
  std::vector<char> stays = {};
};

/// All contents at home in their main forms; each instruction by its first
/// recipe.
SpaceChoice plainChoice(const Problem &problem);

struct Projection {
  enum class Kind : uint8_t { Kernel, Fetch, Stash, Work };
  /// The meaning of a recipe of `problem`.
  struct Origin {
    Kind kind = Kind::Kernel;
    RecipeId recipe = kNone; // In the whole problem.
    InstructionId instruction = kNone;
    RecipeId stash = kNone; // Fetch of a device's value: its stash.
  };
  Problem problem;
  std::vector<Origin> origins; // Per recipe of `problem`.
  std::vector<ValueId> values; // Per value: the whole problem's, or kNone.
};

/// `price`: cost of a link's second, in seconds of compute; infinity: only
/// necessary fetches. A NotFound error if a move that the choice needs doesn't
/// exist.
absl::StatusOr<Projection> project(const Problem &problem,
                                   const SpaceChoice &choice, double price);

/// Lower bound on the makespan of each plan of the projection in the program's
/// order: per segment, the least load of its busiest engine. Work on the host
/// begins when its inputs can be there.
int64_t leastMakespan(const Problem &problem, const Projection &projection);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_PROJECTION_H
