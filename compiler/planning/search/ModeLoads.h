// ModeLoads.h - what modes of updates come to before anything is planned.
//
// Of thousands of choices few are worth a plan. Which, a sketch of the step
// says: the program's order in some hundred pieces of equal length, each with
// what it loads on every engine and the bytes that are alive there.
//
//   bytes     all at home on the device, less what the modes take away: states
//             everywhere but at their update, parameters but from their first
//             use to their last, gradients from their stash on
//   relief    where the budget lacks bytes, gaps of activations and of
//             parameters that can be fetched again, the cheapest first at a
//             price of a link's second: each is recomputed or moved
//   time      compute waits for what it needs from the link, which works ahead
//             as far as bytes are free, and for stashes that have no room to
//             wait; updates on the host begin when their gradients are there,
//             one after the other; what they return follows
//
// The last of all engines ends the step. This proves nothing: `leastMakespan`
// does.

#ifndef TMC_COMPILER_PLANNING_SEARCH_MODELOADS_H
#define TMC_COMPILER_PLANNING_SEARCH_MODELOADS_H

#include "compiler/planning/search/UpdateGroups.h"

#include <array>

namespace tmc::planning {

/// Of all groups' choices, computed once; a choice then takes one pass over the
/// groups and the pieces.
class ModeLoads {
public:
  ModeLoads(const Problem &problem, const UpdateGroups &groups);

  /// Prices of a link's second, in seconds of compute, that are sketched.
  static constexpr std::array<double, 3> kPrices = {0.02, 0.5, 8};

  struct Loads {
    int64_t estimate = 0; // Plans should come near it.
    int64_t moved = 0;    // Of both links.
    double price = 0;     // At which it is least.
    bool fits = true;     // Relief was found for all that lacks.
  };
  Loads of(const UpdateModes &modes) const;

  struct Candidate {
    Loads loads;
    UpdateModes modes;
  };
  /// Modes that promise most, the best first and none twice: from prefixes of
  /// the groups on, by changes of stretches of groups while these gain. Asked
  /// again, it begins with the best of before.
  std::vector<Candidate> ranked(size_t most);

  /// From now on so many bytes of the budget stay free.
  void keepFree(int64_t bytes) {
    budget = whole < 0 ? -1 : std::max<int64_t>(0, whole - bytes);
  }

  /// Stretches of groups, [first, last), of about equal bytes.
  std::vector<std::pair<size_t, size_t>> stretches(size_t count) const;

private:
  static constexpr size_t kPieces = 96;
  using Pieces = std::array<int64_t, kPieces>;

  /// Pieces [first, last): inside, a value need not be there.
  struct Range {
    int32_t first = 0, last = 0;
    bool isEmpty() const { return first >= last; }
  };
  struct Gradient {
    int32_t made = 0; // Piece.
    Range waits;      // Until the update.
    int64_t bytes = 0, out = 0;
  };
  struct Group {
    int64_t device = 0, host = 0; // Its update.
    int32_t update = 0;           // Piece.
    std::vector<Gradient> gradients;
    int64_t statesIn = 0, statesOut = 0; // Time of the links.
    int64_t sharedIn = 0, sharedOut = 0, copyOut = 0, returnIn = 0;
    int64_t stateBytes = 0, sharedBytes = 0;
    /// Of what is shared: its uses besides the update, and the longest gap
    /// between them.
    int32_t firstUse = 0, lastUse = -1;
    Range gap;
    int64_t trips = 1; // So often it is fetched.
  };
  /// A span in which a value may be gone.
  struct Gap {
    Range inside;
    int32_t from = 0, to = 0; // Pieces of the uses around it.
    int64_t bytes = 0;
    int64_t again = -1;        // Cost of a recomputation, or -1.
    int64_t in = -1, out = -1; // Time of the links, or -1.
    int32_t group = kNone;     // Of a gradient: the update that reads it.
  };
  /// What a choice loads on the pieces.
  struct Sketch {
    Pieces live = {}, most = {}; // Bytes; the largest that come and go.
    Pieces compute = {}, in = {}, out = {}, host = {}, returned = {},
           copied = {};
    std::array<int32_t, kPieces> release = {}; // Piece before `in` can begin.
    int64_t homes = 0, moved = 0;
  };

  void addPlaces(const Problem &problem);
  void addGroup(const Problem &problem, const UpdateGroup &group);
  void addGaps(const Problem &problem);
  Range inside(int64_t from, int64_t to) const;
  int32_t pieceOf(int64_t place) const {
    return int32_t(place * int64_t(kPieces) / std::max<int64_t>(1, places));
  }

  void addMode(Sketch &sketch, const Group &group, GroupMode mode) const;
  bool relieve(Sketch &sketch, const UpdateModes &modes, size_t price,
               int64_t &moved) const;
  int64_t timeOf(const Sketch &sketch) const;
  void climb(Candidate &candidate,
             const std::vector<std::pair<size_t, size_t>> &stretches) const;

  const UpdateGroups &all;
  std::vector<Group> groups;
  std::vector<Gap> gaps;
  std::vector<UpdateModes> starts; // Of `ranked`.
  /// Of each price, gaps in the order of what a byte costs.
  std::array<std::vector<int32_t>, kPrices.size()> order;
  Pieces baseLive = {}, baseCompute = {};
  int64_t places = 0;
  int64_t whole = -1;  // The budget, reserved left out.
  int64_t budget = -1; // Less what stays free.
  int64_t hostBudget = -1;
  bool hasFile = false;
  double linkTime = 0; // Of a byte.
  double readTime = 0, writeTime = 0;

  // Of values, by their main forms; used to build the above.
  struct Use {
    int64_t place;
    bool reads;
  };
  std::vector<std::vector<Use>> uses;
  std::vector<int64_t> inTime, outTime, tripsAt;
  std::vector<int32_t> placeOf; // Of instructions.
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_MODELOADS_H
