// OptimumSteps.h - the states of the search for an optimum, and the steps
// before each state's list (`Optimum.h` explains them).

#ifndef TMC_COMPILER_PLANNING_LABORATORY_OPTIMUMSTEPS_H
#define TMC_COMPILER_PLANNING_LABORATORY_OPTIMUMSTEPS_H

#include "compiler/planning/laboratory/OptimumReach.h"

#include <limits>

namespace tmc::planning {

/// Work whose Done is in the list, but not yet its Start.
struct OpenWork {
  RecipeId recipe = kNone;
  InstructionId instruction = kNone;
  const Taking *taking = nullptr;
};

/// The least time that remains in the trip after the end of: a compute entry
/// written next, work done at this place, an engine's next work, each open
/// work.
struct Tails {
  static constexpr int64_t kNever = -1; // Nothing waits for it.
  int64_t compute = 0, done = kNever;
  std::vector<int64_t> engine, work;
};

/// The trips of a loop: the last, and all others, of which the middle ones hold
/// the most. A segment that isn't a loop has only `Last`.
enum Lane : size_t { Last, Others };

struct OptimumState {
  int32_t homes = 0;          // Index of the choice.
  SegmentId segment = 0;      // kNone: the whole step is written.
  int32_t left = 0;           // Instructions that have to start.
  Names carries = 0;          // Guessed: carried values that cross.
  Names guessed = 0;          // Guessed: their initial values that cross.
  Names need[2] = {0, 0};     // Per lane.
  Names crosses = 0;          // From outside, in all trips but the last.
  Names outer = 0;            // Read as instances from before the trip.
  std::vector<OpenWork> open; // By engine; latest Done first.
  std::vector<int64_t> spare; // Least free bytes per space, in `Others`.
  /// The first trip's, if it may be faster; all other trips'.
  std::vector<Tails> tails;
  int64_t behind = 0; // Time of the later segments.
};

/// The entry that was written last.
struct OptimumStep {
  RecipeId recipe = kNone; // kNone: a border of segments.
  InstructionId instruction = kNone;
  Phase phase = Phase::Whole;
  uint32_t overwrites = 0;
};

class OptimumSteps {
public:
  struct Next {
    OptimumState state;
    OptimumStep step;
  };

  OptimumSteps(const Problem &problem, std::vector<Homes> homes);

  /// The states of an empty list, for each choice of homes.
  std::vector<Next> ends() const;
  /// All lists that are one step longer.
  std::vector<Next> before(const OptimumState &s) const;
  /// Lower bound on the time of a step that ends with the state's list;
  /// `kNoList`: nothing can stand before it.
  int64_t boundOf(const OptimumState &s) const;
  static constexpr int64_t kNoList = std::numeric_limits<int64_t>::max();
  const std::vector<ValueId> &homesOf(const OptimumState &s) const {
    return allHomes[s.homes].chosen;
  }

private:
  using State = OptimumState;
  const SegmentFacts &factsOf(const State &s) const {
    return model.segments[s.segment];
  }
  bool isLoop(const State &s) const { return factsOf(s).trips > 1; }
  Lane mostNeeding(const State &s) const { return isLoop(s) ? Others : Last; }
  Names persistent(const State &s) const {
    return allHomes[s.homes].persistent;
  }
  /// Whether the recipe moves nothing in a first trip.
  bool movesNothing(const State &s, RecipeId r) const {
    return p.isMove(p.recipes[r]) &&
           (model.recipes[r].reads & factsOf(s).nothing);
  }
  /// Values that a trip may write.
  Names writableIn(const State &s) const {
    const Names homes = isLoop(s) ? persistent(s) : 0; // R14.
    return factsOf(s).writable & ~homes;
  }

  // Memory.
  bool isFirst(const State &s, Lane lane) const {
    const int64_t trips = factsOf(s).trips;
    return trips == 1 || (trips == 2 && lane == Others);
  }
  int64_t bytesIn(const State &s, Lane lane, SpaceId space) const;
  int64_t shared(const State &s, bool first, const Taking &taking,
                 SpaceId space) const;
  bool fits(State &s, RecipeId running, const Taking *taking) const;
  bool cross(State &s, Names names) const;

  // Time.
  int64_t leastTrip(const State &s, size_t trip, const Reach &before) const;

  // Steps.
  void enter(State s, SegmentId segment, Names needed,
             std::vector<Next> &next) const;
  void enterLoop(const State &s, Names needed, std::vector<Next> &next) const;
  void leave(State s, std::vector<Next> &next) const;
  bool isAllowed(const State &s, RecipeId r, InstructionId own) const;
  void place(const State &s, RecipeId r, InstructionId own,
             std::vector<Next> &next) const;
  void placeReading(const State &s, RecipeId r, InstructionId own,
                    const Taking &taking, std::vector<Next> &next) const;
  void placeAs(State s, RecipeId r, InstructionId own, const Taking &taking,
               Names outer, std::vector<Next> &next) const;
  void start(State s, size_t open, std::vector<Next> &next) const;

  const Problem &p;
  const OptimumModel model;
  const std::vector<Homes> allHomes;
  const OptimumReach reach;
  std::vector<std::vector<std::vector<Taking>>> takings; // By homes, recipe.
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_LABORATORY_OPTIMUMSTEPS_H
