// Projection.h - a problem with spaces, seen from the device alone.
//
// Once it is said where persistent contents are at home, by which variant each
// instruction runs and what a second of a link is worth, what is left to decide
// is the device's: which values stay, which are made again, which come back
// from elsewhere. A fetch then is a recipe that makes a value of nothing:
//
//     stash: a -> a@host, fetch: a@host -> a      is      fetch: {} -> a
//                                                         price x (both times)
//
// so that the search for recomputations (`solve`) weighs it against running
// kernels again, with all that it knows of chains, loads and orders. What it
// can't see are the links' own time and the bytes that are held while they
// work: `placeMoves` (Moves.h) turns its plan into one with moves, and says
// what came of it; the price and the bytes that are kept free are the knobs.
//
// The projected list, all of it in the program's order:
//
//   - Kernels as they are, less values of other spaces.
//   - *Fetch u* before the first kernel of each segment that reads u, for u at
//     home elsewhere; it may run again like any recipe.
//   - *Stash u* behind the maker of u, where u's home is elsewhere or work on
//     the host reads it.
//   - *Work* in the place of an instruction that runs on the host; the values
//   of
//     the device that it leaves are fetched behind it. It ends the life of the
//     contents that it overwrites: they are fetched before it, or not at all.
//
// Segments keep their trips. The projection has R7's and R8's loops, which hold
// no less than the whole problem's exact ones: what is in memory in the middle
// of all trips. What comes from elsewhere is a value of its own in each
// segment, unless `LoopChoice` holds it over a loop. What is carried from trip
// to trip stays on the device; work that reads it stashes it behind the last
// trip.
//
// So far moves have one hop. Forms in files are left alone.

#ifndef TMC_COMPILER_PLANNING_SEARCH_PROJECTION_H
#define TMC_COMPILER_PLANNING_SEARCH_PROJECTION_H

#include "compiler/planning/model/Problem.h"

#include "absl/status/statusor.h"

#include <vector>

namespace tmc::planning {

/// What is done otherwise over the trips of a loop; see LoopChoices.h.
struct LoopChoice {
  /// Made outside, and fetched anew in each trip; else it is held over all.
  std::vector<ValueId> anew;
  /// At home elsewhere, fetched before the loop and held over all trips; else
  /// it is fetched anew in each.
  std::vector<ValueId> held;
};

/// What the projection doesn't decide.
struct SpaceChoice {
  std::vector<ValueId> homes;    // As `Solution::homes`.
  std::vector<int32_t> variants; // Of each instruction, into its recipes.
  LoopChoice loops = {};
};

/// All at home in main forms, by first recipes.
SpaceChoice plainChoice(const Problem &problem);

struct Projection {
  enum class Kind : uint8_t { Kernel, Fetch, Stash, Work };
  /// What a recipe of `problem` stands for.
  struct Origin {
    Kind kind = Kind::Kernel;
    RecipeId recipe = kNone; // Of the whole problem.
    InstructionId instruction = kNone;
    RecipeId stash = kNone; // Of a fetch of what is made on the device.
  };
  Problem problem;
  std::vector<Origin> origins; // Of each recipe of `problem`.
  std::vector<ValueId> values; // Of each value, the whole problem's; or kNone.
};

/// `price`: what a second of a link costs, in seconds of compute; infinity:
/// only what has to be fetched is. A NotFound error where no move
/// leads where the choice needs one.
absl::StatusOr<Projection> project(const Problem &problem,
                                   const SpaceChoice &choice, double price);

/// What no plan of the projection in the program's order is quicker than: of
/// each segment, what its busiest engine has to do at the least. Work on the
/// host begins when what it reads can be there.
int64_t leastMakespan(const Problem &problem, const Projection &projection);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_PROJECTION_H
