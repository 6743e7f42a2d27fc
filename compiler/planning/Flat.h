// Flat.h - a planning problem as one straight line, which the search works on.
//
// Every instruction becomes a *stage*: its own execution closes the stage, and
// recomputations placed in the stage run before it, ordered among themselves by
// rank. So the time of an execution is the pair (stage, rank), packed in one
// `Key`, and a schedule is nothing but a set of (operation, stage) pairs:
//
//     stage        0     1     2        3               4
//     runs        F1    F2    F3    [F1 F2] B3      [F1] B2
//
// Loops fold to one trip. A pseudo stage opens each segment that carries values
// (it writes them), another closes each segment of several trips (it reads what
// the next trip needs), and what a stage of the segment costs counts once per
// trip. The bytes alive at a stage are then at least those of any trip, and
// equal to those of a middle one.
//
// Persistent values are alive throughout; they become part of `constantBytes`
// and leave no trace but the hazard: an operation that reads the old version of
// an updated value has its `lastStage` at the update.

#ifndef TMC_COMPILER_PLANNING_FLAT_H
#define TMC_COMPILER_PLANNING_FLAT_H

#include "compiler/planning/Problem.h"

#include <algorithm>
#include <span>

namespace tmc::planning {

using OpId = int32_t;

struct FlatOverwrite {
  ValueId read;
  ValueId written;
  bool must;
};

/// A recipe as the search sees it: persistent values left out.
struct FlatOp {
  std::vector<ValueId> reads, writes;
  std::vector<FlatOverwrite> overwrites;
  int64_t cost = 0;
  int64_t workspaceBytes = 0;
  int64_t writtenBytes = 0;
  int32_t rank = 0; // Order among recomputations of one stage; unique.
  /// Stages in which it may recompute; empty range: never.
  int32_t firstStage = 0;
  int32_t lastStage = -1;
  RecipeId recipe = kNone; // kNone: a pseudo operation.
};

struct FlatStage {
  std::vector<OpId> mains; // By which it may run; the first by default.
  InstructionId instruction = kNone;
  SegmentId segment = kNone;
  int64_t trips = 1;
};

struct Flat {
  std::vector<FlatOp> ops;
  std::vector<FlatStage> stages;
  std::vector<int64_t> bytes;                // Of each value; 0 if persistent.
  std::vector<std::vector<OpId>> recomputes; // Ops that can remake a value.
  std::vector<int32_t> madeAt;               // Stage of a value's maker, or -1.
  int64_t constantBytes = 0;                 // Persistent values.
  int64_t baseCost = 0;
};

/// `orders[s]` is a permutation of segment s's instructions; empty: the
/// program's own. The problem has passed `check`.
Flat flatten(const Problem &problem,
             std::span<const std::vector<InstructionId>> orders = {});

/// The bytes that `op` saves by writing results in the place of what dies with
/// it: each result and each operand serve once, in the order of the options.
template <typename Dies>
int64_t savedByOverwrites(const Flat &flat, const FlatOp &op, Dies &&dies) {
  const std::vector<FlatOverwrite> &options = op.overwrites;
  int64_t saved = 0;
  for (size_t o = 0; o < options.size(); ++o) {
    bool used = !dies(options[o].read);
    for (size_t p = 0; p < o && !used; ++p)
      used = (options[p].read == options[o].read ||
              options[p].written == options[o].written) &&
             dies(options[p].read);
    if (!used)
      saved +=
          std::min(flat.bytes[options[o].read], flat.bytes[options[o].written]);
  }
  return saved;
}

/// Time of an execution: stage in the high half, rank in the low one; a
/// stage's own execution comes last.
using Key = int64_t;
inline constexpr int32_t kMainRank = 0x7fffffff;
inline Key keyOf(int32_t stage, int32_t rank) {
  return Key(stage) << 32 | rank;
}
inline int32_t stageOf(Key key) { return int32_t(key >> 32); }
inline int32_t rankOf(Key key) { return int32_t(key & 0x7fffffff); }

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_FLAT_H
