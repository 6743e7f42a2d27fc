// ModeLoads.h - estimates the cost of update modes before anything is planned.
//
// Only few of thousands of choices are worth a plan. A sketch of the step finds
// them: the program's order in 96 pieces of equal length, each with its load on
// every engine and its live bytes.
//
//   bytes     all at home on the device, less the bytes that the modes remove:
//             states everywhere except at their update, parameters outside
//             [first use, last use], gradients after their stash
//   relief    where bytes exceed the budget, gaps of activations and of
//             parameters that can be fetched again, cheapest first at a given
//             price of a link's second: each value is recomputed or moved
//   time      compute waits for its inputs from the link, which works ahead as
//             far as bytes are free, and for stashes without room to wait;
//             updates on the host begin when their gradients are there, one
//             after the other; their results follow
//
// The step ends with its last engine, or when the host's memory has moved all
// that the engines share it for. The estimate is no bound;
// `leastMakespan` gives one.

#ifndef TMC_COMPILER_PLANNING_MOVES_MODELOADS_H
#define TMC_COMPILER_PLANNING_MOVES_MODELOADS_H

#include "compiler/planning/moves/UpdateGroups.h"

#include <array>

namespace tmc::planning {

/// Loads of all groups' choices, computed once. After that, a choice takes one
/// pass over the groups and the pieces.
class ModeLoads {
public:
  ModeLoads(const Problem &problem, const UpdateGroups &groups);

  /// Prices of a link's second, in seconds of compute, that the sketch tries.
  static constexpr std::array<double, 3> kPrices = {0.02, 0.5, 8};

  struct Loads {
    int64_t estimate = 0; // Plans should come near it.
    int64_t moved = 0;    // Time of both links.
    double price = 0;     // The price of the least estimate.
    bool fits = true;     // Relief was found for all missing bytes.
  };
  Loads of(const UpdateModes &modes) const;

  struct Candidate {
    Loads loads;
    UpdateModes modes;
  };
  /// The most promising modes, best first, none twice. The search starts from
  /// prefixes of the groups and changes stretches of groups while the estimate
  /// falls. A later call starts from the best modes of the call before.
  std::vector<Candidate> ranked(size_t most);

  /// Keeps this many bytes of the budget free from now on.
  void keepFree(int64_t bytes) {
    budget = whole < 0 ? -1 : std::max<int64_t>(0, whole - bytes);
  }

  /// Stretches of groups, [first, last), of about equal bytes.
  std::vector<std::pair<size_t, size_t>> stretches(size_t count) const;

private:
  static constexpr size_t kPieces = 96;
  using Pieces = std::array<int64_t, kPieces>;

  /// Pieces [first, last) in which a value need not be in memory.
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
    int64_t device = 0, host = 0; // Cost of its update.
    int32_t update = 0;           // Piece.
    std::vector<Gradient> gradients;
    int64_t statesIn = 0, statesOut = 0; // Link time.
    int64_t sharedIn = 0, sharedOut = 0, copyOut = 0, returnIn = 0;
    int64_t stateBytes = 0, sharedBytes = 0;
    /// Uses of the shared contents other than the update, and the longest gap
    /// between them.
    int32_t firstUse = 0, lastUse = -1;
    Range gap;
    int64_t trips = 1; // Times it is fetched.
  };
  /// A span in which a value may be absent.
  struct Gap {
    Range inside;
    int32_t from = 0, to = 0; // Pieces of the uses around it.
    int64_t bytes = 0;
    int64_t again = -1;        // Cost of a recomputation, or -1.
    int64_t in = -1, out = -1; // Time of the links, or -1.
    int32_t group = kNone;     // Gradient: the update that reads it.
  };
  /// Loads of a choice on the pieces.
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
  std::vector<UpdateModes> starts; // For `ranked`.
  /// Per price, gaps in the order of cost per byte.
  std::array<std::vector<int32_t>, kPrices.size()> order;
  Pieces baseLive = {}, baseCompute = {};
  int64_t places = 0;
  int64_t whole = -1;      // The budget, reserved left out.
  int64_t budget = -1;     // Without the bytes kept free.
  int64_t mostAtHome = -1; // Bytes on the host; -1: no limit.
  bool hasFile = false;
  double linkTime = 0; // Per byte.
  double readTime = 0, writeTime = 0;
  /// Parts of the host's memory that the links and updates there take.
  double linkShare = 0, updateShare = 0;

  // Per value, by main form; used to build the data above.
  struct Use {
    int64_t place;
    bool reads;
  };
  std::vector<std::vector<Use>> uses;
  std::vector<int64_t> inTime, outTime, tripsAt;
  std::vector<int32_t> placeOf; // Per instruction.
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_MODELOADS_H
