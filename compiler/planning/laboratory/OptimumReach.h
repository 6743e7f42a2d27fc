// OptimumReach.h - which values can be there at all at a place of the list, and
// when at the earliest: the part of A*'s bound that looks at the list's
// beginning (`Optimum.h`).
//
// The search writes a list from its end. A state needs values that entries
// before it have to make. If budgets are forgotten and nothing is ever dropped,
// the values that the rest of the list can make are a closure over recipes, and
// the earliest time of each is a shortest path:
//
//     left: F0 F1          makeable a0, a0@host, a1; a0@host by cost(F0) +
//                          cost(stash)
//     a state that needs g1 has no list: B1 isn't left
//     homes with which some kernel that is left has no room have none either
//     host work that reads a0@host ends the trip no sooner than that time, its
//     cost and its tail

#ifndef TMC_COMPILER_PLANNING_LABORATORY_OPTIMUMREACH_H
#define TMC_COMPILER_PLANNING_LABORATORY_OPTIMUMREACH_H

#include "compiler/planning/laboratory/OptimumModel.h"

namespace tmc::planning {

/// The values that may be there before a place of a segment's list.
struct Reach {
  Names makeable = 0; // Nothing, if a kernel before has no room.
  /// For each value, the least time from the begin of the trip until it is
  /// made; 0 in a loop, and of values from before the segment.
  std::vector<int64_t> ready;
};

class OptimumReach {
public:
  OptimumReach(const OptimumModel &model, const std::vector<Homes> &homes);

  /// Before an entry with `left` instructions of the segment still to start.
  const Reach &of(int32_t homes, SegmentId segment, int32_t left) const {
    return all[size_t(homes)][size_t(segment)][size_t(left)];
  }
  /// Values that only compute and work that compute waits for can make.
  Names awaited() const { return onlyAwaited; }

private:
  Reach reachOf(const OptimumModel &model, Names before, SegmentId segment,
                size_t left) const;
  static bool hasRoom(const OptimumModel &model, const Homes &homes,
                      InstructionId instruction);

  std::vector<std::vector<std::vector<Reach>>> all;
  Names onlyAwaited = ~Names(0);
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_LABORATORY_OPTIMUMREACH_H
