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

#include "compiler/planning/search/LinearProblem.h"
#include "compiler/planning/search/LiveProfile.h"

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
  bool has(OpId op, int32_t stage) const;
  void insert(OpId op, int32_t stage);
  void erase(OpId op, int32_t stage);
  /// Runs `stage` by another of its variants.
  void switchVariant(int32_t stage, int32_t index);

  /// Whether no output of the recomputation is read.
  bool isUseless(OpId op, int32_t stage) const;

  int64_t cost() const { return currentCost; } // Above the base cost.
  int64_t excess() const { return moments.excess(); }
  int64_t peakBytes() const { return moments.peak(); }
  int64_t limit() const { return moments.limit(); }
  void setLimit(int64_t bytes) { moments.setLimit(bytes); }
  /// Live bytes while `stage` itself runs.
  int64_t liveAtOwn(int32_t stage) const;

  const std::vector<Clone> &clones() const { return allClones; }
  OpId variantOf(int32_t stage) const {
    return linear.stages[stage].variants[variants[stage]];
  }
  int32_t variantIndex(int32_t stage) const { return variants[stage]; }
  /// Recomputations of a stage in the order they run.
  const std::vector<OpId> &clonesAt(int32_t stage) const {
    return stageClones[stage];
  }

  struct Instance {
    Key key;
    Key last;
  };
  const std::vector<Instance> &instances(ValueId v) const {
    return values[v].instances;
  }
  const std::vector<Key> &uses(ValueId v) const { return values[v].uses; }
  /// Index of the last instance of `v` with a key below `key`, or -1.
  int32_t instanceBefore(ValueId v, Key key) const;

  /// The stage of a moment above the limit, searched from `from` on and around;
  /// -1: none.
  int32_t stageAboveLimit(int32_t from) const;

  /// The schedule as a solution of the problem that was linearized.
  Solution toSolution(const Problem &problem) const;

  /// Small steps taken so far.
  int64_t work() const { return moments.work; }
  void addWork(int64_t steps) { moments.work += steps; }

private:
  static constexpr int32_t kBlockStages = 32;
  struct ValueState {
    std::vector<Instance> instances;
    std::vector<Key> uses;
  };

  int32_t indexInStage(Key key) const;
  int32_t positionOf(Key key) const; // Within its block.
  int64_t discountOf(int32_t stage, int32_t index) const {
    return anyOverwrites ? discounts[stage][index] : 0;
  }
  /// Adds to the moments between two keys; a closed end is included.
  void add(Key from, bool fromClosed, Key to, bool toClosed, int64_t bytes);
  void addUse(ValueId v, Key key);
  void dropUse(ValueId v, Key key);
  void addWrite(ValueId v, Key key);
  void dropWrite(ValueId v, Key key);
  int64_t discountAt(Key key, OpId op) const;
  void refreshTouched();

  const LinearProblem &linear;
  LiveProfile moments;
  int64_t currentCost = 0;
  std::vector<int32_t> variants;
  std::vector<std::vector<OpId>> stageClones;
  std::vector<std::vector<int32_t>> cloneIndex; // Into `allClones`.
  /// Bytes saved by overwrites, the stage's own last; empty if no op
  /// overwrites.
  std::vector<std::vector<int64_t>> discounts;
  std::vector<int32_t> offset; // Per stage: its first moment, within its block.
  std::vector<ValueState> values;
  std::vector<Clone> allClones;
  std::vector<Key> touched; // Moments whose discount may have changed.
  bool anyOverwrites = false;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_SCHEDULE_H
