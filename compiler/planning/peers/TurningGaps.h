// TurningGaps.h - values that a step holds while it turns from forward to
// backward, and lists that drop some of them.
//
// Activations pile up until the step turns. The classic planners decide the
// same for each: keep it, run its kernel again, or fetch it from the host.
//
//     places     f1 f2 f3 | g3 g2 g1
//     a1         [==u     |       u]     the gap from f2 to g1 spans the turn
//
// `listOf` is the program's order with these decisions: a dropped value comes
// back before the first kernel that reads it, and its missing inputs come back
// before it. Values that the program itself no longer needs count as dropped,
// unless they are kept for recomputation.

#ifndef TMC_COMPILER_PLANNING_PEERS_TURNINGGAPS_H
#define TMC_COMPILER_PLANNING_PEERS_TURNINGGAPS_H

#include "compiler/planning/moves/Moves.h"

#include <functional>

namespace tmc::planning {

class Timeline;

class TurningGaps {
public:
  enum class Decision : uint8_t { Keep, Recompute, Fetch };

  struct Item {
    ValueId value = kNone; // In the projection.
    int64_t bytes = 0;
    size_t made = 0;        // Its maker's place.
    RecipeId fetch = kNone; // kNone: nothing moves it.
    int64_t linkTime = 0;   // Time of its fetch.
    bool canRecompute = false;
    /// Cost of its kernel and of the kernels of its dropped inputs.
    int64_t recomputeCost = 0;
  };

  /// `projection` must be that of `plainChoice`, which moves nothing by itself.
  TurningGaps(const Problem &whole, const Projection &projection);

  /// In the order in which the values are made.
  std::vector<Item> items;
  /// The place after that of the most live bytes.
  size_t turn = 0;
  int64_t timeBefore = 0, timeBehind = 0; // Kernel times.

  /// The segment that turns: the one with the most work.
  const std::vector<InstructionId> &order() const {
    return device.segments[segment].instructions;
  }
  const Recipe &recipeAt(size_t place) const {
    return device.recipes[device.instructions[order()[place]].recipes[0]];
  }

  /// The list for the decisions, one per value of the projection. `Keep` for a
  /// value that isn't an item holds it for recomputations.
  Solution listOf(const std::vector<Decision> &decisions) const;
  /// Keeps all items; drops values that the backward part doesn't use.
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
  std::vector<ValueId> held;    // Read right before and after the turn.
  std::vector<RecipeId> makers; // The cheapest kernel that recomputes a value.
  std::vector<size_t> madeAt, lastUse; // Places, per value.
};

/// The plan with the most held bytes for which `decisionsWithin` gives a list
/// that fits `liveBytes` (-1: no limit). Tries the bytes of all items in
/// twelfths, from above, then by halving.
absl::StatusOr<MovedPlan>
placeWithin(const Problem &whole, const SpaceChoice &choice,
            const Projection &projection, const TurningGaps &gaps,
            int64_t liveBytes,
            const std::function<std::vector<TurningGaps::Decision>(int64_t)>
                &decisionsWithin);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PEERS_TURNINGGAPS_H
