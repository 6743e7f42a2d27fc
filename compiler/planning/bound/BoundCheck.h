// BoundCheck.h - what the checkers of bounds know of a problem, on their own.
//
// Walks the instructions forward and finds, with no code of `Relax.cpp`, what
// each moment needs at least and where the gaps are; the essay is in `Bound.h`.
// Both checkers, that of prices and that of cases, stand on it.

#ifndef TMC_COMPILER_PLANNING_BOUND_BOUNDCHECK_H
#define TMC_COMPILER_PLANNING_BOUND_BOUNDCHECK_H

#include "compiler/planning/model/Problem.h"

#include <functional>
#include <set>

namespace tmc::planning {

using Wide = __int128;

/// An error where moves may bring back what is absent: the bounds of `Bound.h`
/// and `Branch.h` count on its recomputation, and prove nothing then.
absl::Status checkNothingMoves(const Problem &problem);

/// A sum that remembers having overflowed.
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
  int64_t cost = -1; // The least that breaking it costs; -1: it can't be.
  SegmentId from = kNone, to = kNone; // Where the two uses are.
  bool avoidable = false; // Another recipe does without the later use.
};

class GapWalk {
public:
  explicit GapWalk(const Problem &problem);
  /// Calls `onMoment` for each instruction and `onGap` for each gap that has
  /// moments and bytes.
  void run();

  /// Bytes that are in memory when the instruction first runs, gaps left out.
  std::function<void(int64_t moment, Wide bytes)> onMoment;
  std::function<void(const WalkedGap &)> onGap;
  /// What running every instruction by its cheapest recipe adds: at most 0.
  Wide cheaperRecipes = 0;

  const Problem &problem;
  std::vector<InstructionId> order;
  std::vector<int64_t> starts; // Of segments; and the end of the last.

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
  std::vector<std::vector<SegmentId>> makers; // Where each remaking may run.
  std::vector<std::pair<int64_t, SegmentId>> last;
  std::set<std::pair<ValueId, ValueId>> carrier; // (from, carried)
  std::vector<SegmentId> home;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_BOUNDCHECK_H
