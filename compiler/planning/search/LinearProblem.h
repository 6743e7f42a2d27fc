// LinearProblem.h - a planning problem as one straight line, for the search.
//
// Every instruction becomes a *stage*: its own execution closes the stage, and
// recomputations placed in the stage run before it, ordered among themselves by
// rank. So the time of an execution is the pair (stage, rank), packed in one
// `Key`, and a schedule is a set of (operation, stage) pairs:
//
//     stage        0     1     2        3               4
//     runs        F1    F2    F3    [F1 F2] B3      [F1] B2
//
// Loops fold to one trip, which is the search's own simplification. A pseudo
// stage opens each segment that carries values and writes them; another closes
// each segment of several trips and reads the values that the next trip needs.
// The cost of a stage counts once per trip. The bytes alive at a stage are then
// at least those of any trip, and equal to those of a middle one. A value that
// a loop reads from outside is recomputed in a trip only before its first read
// there: earlier reads would still need the instance from outside (R7).
//
// Persistent values are alive throughout; they become part of `constantBytes`.
// Only their hazard remains: an operation that reads the old version of an
// updated value has its `lastStage` at the update.

#ifndef TMC_COMPILER_PLANNING_SEARCH_LINEARPROBLEM_H
#define TMC_COMPILER_PLANNING_SEARCH_LINEARPROBLEM_H

#include "compiler/planning/model/Timeline.h"

#include <algorithm>
#include <span>

namespace tmc::planning {

using OpId = int32_t;

struct LinearOverwrite {
  ValueId read;
  ValueId written;
  bool must;
};

/// One overwrite option of a result, in order.
struct OverwriteOption {
  ValueId read;
  bool opens;  // The first of its result.
  bool serves; // The first of its operand; later ones never serve.
  int64_t bytes;
};

/// A recipe as the search sees it: persistent values left out.
struct LinearOp {
  std::vector<ValueId> reads, writes;
  std::vector<LinearOverwrite> overwrites;
  /// `overwrites` by result, for `savedByOverwrites` (`indexOverwrites`).
  std::vector<OverwriteOption> options;
  int64_t cost = 0;
  int64_t workspaceBytes = 0;
  int64_t writtenBytes = 0;
  int32_t rank = 0; // Order among recomputations of one stage; unique.
  /// Stages in which it may recompute; empty range: never.
  int32_t firstStage = 0;
  int32_t lastStage = -1;
  /// Stages [heldFrom, heldUntil) of loops hold a value that it writes.
  int32_t heldFrom = 0, heldUntil = 0;
  RecipeId recipe = kNone; // kNone: a pseudo operation.

  bool mayRecomputeAt(int32_t stage) const {
    return stage >= firstStage && stage <= lastStage &&
           (stage < heldFrom || stage >= heldUntil);
  }
};

struct LinearStage {
  std::vector<OpId> variants; // Ways to run it; the first by default.
  InstructionId instruction = kNone;
  SegmentId segment = kNone;
  int64_t trips = 1;
};

struct LinearProblem {
  std::vector<LinearOp> ops;
  std::vector<LinearStage> stages;
  std::vector<int64_t> bytes;                // Per value; 0 if persistent.
  std::vector<std::vector<OpId>> recomputes; // Ops that can make a value again.
  std::vector<int32_t> madeAt;               // Stage of a value's maker, or -1.
  int64_t constantBytes = 0;                 // Persistent values.
  int64_t baseCost = 0;
};

/// `orders[s]` is a permutation of segment s's instructions; empty: the
/// program's own order. The problem must pass `check`.
LinearProblem
linearize(const Problem &problem,
          std::span<const std::vector<InstructionId>> orders = {});

/// The timeline of these operations in this order: without loops, without
/// values of persistent storage. `countUses`: see `Timeline::finish`.
Timeline timelineOf(const LinearProblem &linear, std::span<const OpId> sequence,
                    bool countUses = true);
/// The stages' own executions, each by its first variant: moment k is stage k.
std::vector<OpId> ownExecutions(const LinearProblem &linear);

/// Fills `op.options`: per result, the options up to the last that can serve. A
/// kernel fused of a hundred others has an overwrite for each pair of operand
/// and result; its options are one per operand.
void indexOverwrites(const LinearProblem &linear, LinearOp &op);

/// Bytes that `op` saves by writing results into operands that die with it:
/// each result takes the first of its options whose operand dies, and each
/// operand serves by its first option only.
template <typename Dies>
int64_t savedByOverwrites(const LinearOp &op, Dies &&dies) {
  int64_t saved = 0;
  bool taken = false;
  for (const OverwriteOption &option : op.options) {
    taken = taken && !option.opens;
    if (taken || !dies(option.read))
      continue;
    taken = true;
    if (option.serves)
      saved += option.bytes;
  }
  return saved;
}

/// Time of an execution: stage in the high half, rank in the low one; a
/// stage's own execution comes last.
using Key = int64_t;
inline constexpr int32_t kOwnRank = 0x7fffffff;
inline Key keyOf(int32_t stage, int32_t rank) {
  return Key(stage) << 32 | rank;
}
inline int32_t stageOf(Key key) { return int32_t(key >> 32); }
inline int32_t rankOf(Key key) { return int32_t(key & 0x7fffffff); }

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_LINEARPROBLEM_H
