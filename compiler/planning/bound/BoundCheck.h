// BoundCheck.h - the facts about a problem that the checkers of bounds share.
//
// Walks the instructions forward and finds, without code of `Relax.cpp`, the
// least bytes of each moment and the gaps; `Bound.h` explains them. Both
// checkers, of prices and of cases, use this walk.

#ifndef TMC_COMPILER_PLANNING_BOUND_BOUNDCHECK_H
#define TMC_COMPILER_PLANNING_BOUND_BOUNDCHECK_H

#include "compiler/planning/model/Problem.h"

#include <functional>
#include <set>

namespace tmc::planning {

using Wide = __int128;

/// An error if moves may bring back absent values: the bounds of `Bound.h` and
/// `Branch.h` assume that those are recomputed, and then prove nothing.
absl::Status checkNothingMoves(const Problem &problem);

/// A sum that records an overflow.
struct CheckedSum {
  Wide value = 0;
  bool overflow = false;
  void add(Wide x) { overflow |= __builtin_add_overflow(value, x, &value); }
  void addProduct(Wide a, Wide b) {
    Wide product;
    overflow |= __builtin_mul_overflow(a, b, &product);
    add(product);
  }
};

/// The moments [begin, end) strictly between two uses of a value.
struct WalkedGap {
  ValueId value = kNone;
  int64_t begin = 0, end = 0;
  int64_t cost = -1; // The least cost to break it; -1: unbreakable.
  SegmentId from = kNone, to = kNone; // Segments of the two uses.
  bool avoidable = false;             // Another recipe avoids the later use.
};

class GapWalk {
public:
  explicit GapWalk(const Problem &problem);
  /// Calls `onMoment` for each instruction, and `onGap` for each gap with
  /// moments and bytes.
  void run();

  /// Bytes in memory when the instruction first runs, gaps left out.
  std::function<void(int64_t moment, Wide bytes)> onMoment;
  std::function<void(const WalkedGap &)> onGap;
  /// Change of cost if every instruction runs its cheapest recipe: at most 0.
  Wide cheaperRecipes = 0;

  const Problem &problem;
  std::vector<InstructionId> order;
  std::vector<int64_t> starts; // By segment; and the end of the last.

private:
  int64_t trips(SegmentId s) const { return problem.segments[s].trips; }
  bool counts(ValueId v) const {
    return v != kNone && problem.values[v].kind != ValueKind::Persistent;
  }
  ValueId aliasIn(ValueId v, SegmentId s) const;
  void shareCosts();
  void visit(int64_t k);
  void endOfTrip(SegmentId s);
  std::vector<ValueId> ownCarriers(SegmentId s);
  void close(ValueId v, int64_t k, SegmentId s, int64_t avoid);

  Wide pins = 0;
  std::vector<int64_t> share;
  std::vector<std::vector<SegmentId>> makers; // Segments of its recipes.
  std::vector<std::pair<int64_t, SegmentId>> last;
  std::set<std::pair<ValueId, ValueId>> carrier; // (from, carried)
  std::vector<SegmentId> home;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_BOUNDCHECK_H
