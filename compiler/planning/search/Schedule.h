// Schedule.h - a schedule that can be changed and undone quickly, with its live
// bytes at every moment.
//
// A schedule is a set of recomputations (op, stage) over a `LinearProblem`. Two
// primitives change it, `insert` and `erase`; both update
//   - per value, the keys of its uses and its instances [key, last],
//   - the live bytes of each moment, and the *excess*: the sum over all moments
//     of the bytes above the limit, which a search drives to zero.
//
// Moments are stored in blocks of 32 stages under a tree (`LiveProfile.h`):
// adding bytes to a range of moments walks the two blocks at its ends and a few
// nodes in between. Near a solution a change costs O(deg * (64 + log n)) small
// steps.

#ifndef TMC_COMPILER_PLANNING_SEARCH_SCHEDULE_H
#define TMC_COMPILER_PLANNING_SEARCH_SCHEDULE_H

#include "compiler/planning/search/ValueLives.h"

#include <algorithm>

namespace tmc::planning {

class Schedule {
public:
  /// One recomputation.
  struct Clone {
    OpId op;
    int32_t stage;
    friend bool operator==(const Clone &, const Clone &) = default;
  };

  /// A schedule without recomputations; `limitBytes` is the limit of the live
  /// bytes, persistent values left out.
  Schedule(const LinearProblem &linear, int64_t limitBytes);

  bool canInsert(OpId op, int32_t stage) const {
    const LinearOp &o = linear.ops[op];
    return o.mayRecomputeAt(stage) && !has(op, stage);
  }
  bool has(OpId op, int32_t stage) const {
    const std::vector<OpId> &list = moments.clonesAt(stage);
    return std::find(list.begin(), list.end(), op) != list.end();
  }
  void insert(OpId op, int32_t stage);
  void erase(OpId op, int32_t stage);
  /// Runs `stage` by another of its variants.
  void switchVariant(int32_t stage, int32_t index);

  /// Whether no output of the recomputation is read.
  bool isUseless(OpId op, int32_t stage) const;

  int64_t cost() const { return currentCost; } // Above the base cost.
  int64_t excess() const { return moments.live.excess(); }
  int64_t peakBytes() const { return moments.live.peak(); }
  int64_t limit() const { return moments.live.limit(); }
  void setLimit(int64_t bytes) { moments.live.setLimit(bytes); }
  /// Live bytes while `stage` itself runs.
  int64_t liveAtOwn(int32_t stage) const {
    return moments.at(stage, moments.numClonesAt(stage));
  }

  const std::vector<Clone> &clones() const { return allClones; }
  OpId variantOf(int32_t stage) const {
    return linear.stages[stage].variants[variants[stage]];
  }
  int32_t variantIndex(int32_t stage) const { return variants[stage]; }
  /// Recomputations of a stage in the order they run.
  const std::vector<OpId> &clonesAt(int32_t stage) const {
    return moments.clonesAt(stage);
  }
  /// The uses and instances of the values.
  const ValueLives &lives() const { return values; }

  /// The stage of a moment above the limit, searched from `from` on and around;
  /// -1: none.
  int32_t stageAboveLimit(int32_t from) const {
    return moments.stageAboveLimit(from);
  }

  /// The schedule as a solution of the problem that was linearized.
  Solution toSolution(const Problem &problem) const;

  /// Small steps taken so far.
  int64_t work() const { return moments.live.work; }
  void addWork(int64_t steps) { moments.live.work += steps; }

private:
  int64_t discountOf(int32_t stage, int32_t index) const {
    return anyOverwrites ? discounts[stage][index] : 0;
  }
  int64_t discountAt(Key key, OpId op) const;
  void refreshTouched();

  const LinearProblem &linear;
  const bool anyOverwrites;
  StageMoments moments;
  ValueLives values;
  int64_t currentCost = 0;
  std::vector<int32_t> variants;
  std::vector<std::vector<int32_t>> cloneIndex; // Into `allClones`.
  /// Bytes saved by overwrites, the stage's own last; empty if no op
  /// overwrites.
  std::vector<std::vector<int64_t>> discounts;
  std::vector<Clone> allClones;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_SCHEDULE_H
