// OptimumModel.h - lookup tables for the search for an optimum: sets of values
// as bits, the recipes that a segment may run, and the least time of its
// kernels.

#ifndef TMC_COMPILER_PLANNING_LABORATORY_OPTIMUMMODEL_H
#define TMC_COMPILER_PLANNING_LABORATORY_OPTIMUMMODEL_H

#include "compiler/planning/model/Problem.h"

#include <bit>

namespace tmc::planning {

/// A set of values, one bit each.
using Names = uint64_t;
inline constexpr size_t kMostNames = 64;
inline Names bitOf(ValueId v) { return Names(1) << v; }
template <typename Visit> void forEachName(Names names, Visit &&visit) {
  for (; names; names &= names - 1)
    visit(ValueId(std::countr_zero(names)));
}

/// One way to take the overwrites of a recipe.
struct Taking {
  uint32_t overwrites = 0; // Bits of the recipe's overwrites.
  /// Pairs (giver, taker) of storage: the overwrites, and old homes that the
  /// recipe doesn't read.
  std::vector<std::pair<ValueId, ValueId>> places;
  Names gives = 0;
};

/// Facts about a recipe for all homes.
struct RecipeFacts {
  Names reads = 0, writes = 0;
  bool isWork = false;
  /// Readers of its results may be done before it is (see `Optimum.h`).
  bool outlastsReaders = false;
};

/// Facts about a segment.
struct SegmentFacts {
  int64_t trips = 1;
  std::vector<RecipeId> again; // Recipes that may run again.
  Names writable = 0;          // By all that may run in it.
  Names before = 0;            // May be there before its first trip.
  Names carried = 0;           // By the segment.
  Names nothing = 0;           // In its first trip.
  bool movesNothing = false;   // The first trip may be faster.
  /// Values of which a read may mean two instances: the one from before the
  /// trip, or one that the trip wrote.
  Names twofold = 0;
  std::vector<int64_t> leastBefore; // Compute's, before each instruction.
  int64_t leastEarlier = 0;         // Compute's, in all segments before.
};

struct OptimumModel {
  explicit OptimumModel(const Problem &problem);

  const Problem &problem;
  std::vector<RecipeFacts> recipes;
  std::vector<SegmentFacts> segments;
  std::vector<Names> inSpace;
  std::vector<int64_t> budgets; // Reserved left out; -1: no limit.

  int64_t bytesOf(Names names) const;
  /// The outside name of the instance that v is in a first trip.
  ValueId outsideOf(SegmentId s, ValueId v) const;
  /// Those of several values.
  Names outsideNamesOf(SegmentId s, Names names) const;
};

/// One choice of homes.
struct Homes {
  std::vector<ValueId> chosen; // As `Solution::homes`.
  Names persistent = 0;        // Homes of persistent contents, old and new.
  Names atBegin = 0, atEnd = 0;
};

/// All choices; empty if there are more than `most`.
std::vector<Homes> everyHomes(const Problem &problem, size_t most);

/// The ways in which the recipe may take overwrites (R4, R13, R14).
std::vector<Taking> takingsOf(const Problem &problem, const Homes &homes,
                              RecipeId recipe);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_LABORATORY_OPTIMUMMODEL_H
