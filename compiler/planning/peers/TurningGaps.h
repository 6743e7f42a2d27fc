// TurningGaps.h - what a step holds while it turns from forward to backward,
// and lists that do without some of it.
//
// Activations pile up until the step turns; the classic planners all ask the
// same of each: keep it, run its kernel again, or have it come back from the
// host.
//
//     places     f1 f2 f3 | g3 g2 g1
//     a1         [==u     |       u]     the gap from f2 to g1 spans the turn
//
// `listOf` is the program's order with the answers put in: a value that is
// gone comes back before the first kernel that reads it, and whatever that
// needs and isn't there comes back before it. Values that the program itself
// no longer needs count as gone, unless they are kept for this.

#ifndef TMC_COMPILER_PLANNING_PEERS_TURNINGGAPS_H
#define TMC_COMPILER_PLANNING_PEERS_TURNINGGAPS_H

#include "compiler/planning/search/Moves.h"

#include <functional>

namespace tmc::planning {

class Timeline;

class TurningGaps {
public:
  enum class Decision : uint8_t { Keep, Recompute, Fetch };

  struct Item {
    ValueId value = kNone; // Of the projection.
    int64_t bytes = 0;
    size_t made = 0;        // Its maker's place.
    RecipeId fetch = kNone; // kNone: nothing moves it.
    int64_t linkTime = 0;   // Of its fetch.
    bool canRecompute = false;
    /// Of its kernel and of those of gone values that this reads.
    int64_t recomputeCost = 0;
  };

  /// `projection` moves nothing by itself: it is that of `plainChoice`.
  TurningGaps(const Problem &whole, const Projection &projection);

  /// In the order in which they are made.
  std::vector<Item> items;
  /// The first place behind the one of the most live bytes.
  size_t turn = 0;
  int64_t timeBefore = 0, timeBehind = 0; // Of the kernels.

  /// The segment that turns: the one of the most work.
  const std::vector<InstructionId> &order() const {
    return device.segments[segment].instructions;
  }
  const Recipe &recipeAt(size_t place) const {
    return device.recipes[device.instructions[order()[place]].recipes[0]];
  }

  /// A list by the decision of each value of the projection. `Keep` of what
  /// isn't an item holds it for those that are run again.
  Solution listOf(const std::vector<Decision> &decisions) const;
  /// Items are kept, and what the backward part has no use for is gone.
  std::vector<Decision> keepingAll() const {
    std::vector<Decision> decisions(device.values.size(), Decision::Recompute);
    for (const Item &item : items)
      decisions[item.value] = Decision::Keep;
    for (ValueId v : held)
      decisions[v] = Decision::Keep;
    return decisions;
  }

private:
  class Builder;
  void readTimeline(const Timeline &timeline, std::vector<char> &isGap);
  int64_t chainCost(ValueId v, int depth) const;

  const Problem &whole;
  const Projection &projection;
  const Problem &device;
  size_t segment = 0;
  std::vector<ValueId> held;    // Read right before the turn and behind it.
  std::vector<RecipeId> makers; // The cheapest kernel that makes a value again.
  std::vector<size_t> madeAt, lastUse; // Places, by values.
};

/// The plan of the most bytes for which `decisionsWithin` leads to a list that
/// fits `liveBytes` (-1: anything): the bytes of all items in twelfths, from
/// above, then by halving.
absl::StatusOr<MovedPlan>
placeWithin(const Problem &whole, const SpaceChoice &choice,
            const Projection &projection, const TurningGaps &gaps,
            int64_t liveBytes,
            const std::function<std::vector<TurningGaps::Decision>(int64_t)>
                &decisionsWithin);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PEERS_TURNINGGAPS_H
