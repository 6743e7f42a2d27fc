// StageMoments.h - the moments of a schedule, and the live bytes at each.
//
// A stage's moments are its recomputations in the order they run, and then the
// stage itself:
//
//   stage        6                7
//   moments      op 2  op 4  own  own
//   live bytes   120   150   150  140
//
// A key (stage, rank) names a moment. Moments are stored in blocks of 32 stages
// (`LiveProfile.h`).

#ifndef TMC_COMPILER_PLANNING_SEARCH_STAGEMOMENTS_H
#define TMC_COMPILER_PLANNING_SEARCH_STAGEMOMENTS_H

#include "compiler/planning/search/LinearProblem.h"
#include "compiler/planning/search/LiveProfile.h"

namespace tmc::planning {

class StageMoments {
public:
  /// No moments; `append` adds those of the stages themselves.
  StageMoments(const LinearProblem &linear, int64_t limitBytes);

  /// Adds the moment of the next stage.
  void append(int32_t stage, int64_t bytes);
  /// Adds a recomputation as moment `index` of its stage.
  void insert(int32_t stage, int32_t index, OpId op, int64_t bytes);
  void erase(int32_t stage, int32_t index);
  /// Adds to the moments between two keys; a closed end is included.
  void add(Key from, bool fromClosed, Key to, bool toClosed, int64_t bytes);

  /// Recomputations of a stage in the order they run.
  const std::vector<OpId> &clonesAt(int32_t stage) const {
    return clones[stage];
  }
  int32_t numClonesAt(int32_t stage) const {
    return int32_t(clones[stage].size());
  }
  /// The number of recomputations of the key's stage that run before it.
  int32_t indexInStage(Key key) const;
  /// Live bytes at moment `index` of a stage.
  int64_t at(int32_t stage, int32_t index) const;
  /// The stage of a moment above the limit, searched from `from` on and around;
  /// -1: none.
  int32_t stageAboveLimit(int32_t from) const;

  LiveProfile live;

private:
  static constexpr int32_t kBlockStages = 32;
  int32_t positionOf(Key key) const; // Within its block.
  /// Moves the moments of the later stages of the block.
  void shift(int32_t stage, int32_t by);

  const LinearProblem &linear;
  std::vector<std::vector<OpId>> clones; // Per stage.
  std::vector<int32_t> offset; // Per stage: its first moment, within its block.
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_STAGEMOMENTS_H
