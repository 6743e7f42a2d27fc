#include "compiler/planning/search/StageMoments.h"

#include <algorithm>

using namespace tmc::planning;

StageMoments::StageMoments(const LinearProblem &linear, int64_t limitBytes)
    : live(int32_t((linear.stages.size() + kBlockStages - 1) / kBlockStages),
           limitBytes),
      linear(linear), clones(linear.stages.size()),
      offset(linear.stages.size()) {}

void StageMoments::append(int32_t stage, int64_t bytes) {
  const int32_t block = stage / kBlockStages;
  offset[stage] = live.sizeOf(block);
  live.append(block, bytes);
}

void StageMoments::shift(int32_t stage, int32_t by) {
  int32_t end = std::min(int32_t(linear.stages.size()),
                         (stage / kBlockStages + 1) * kBlockStages);
  for (int32_t k = stage + 1; k < end; ++k)
    offset[k] += by;
}

void StageMoments::insert(int32_t stage, int32_t index, OpId op,
                          int64_t bytes) {
  live.insert(stage / kBlockStages, offset[stage] + index, bytes);
  clones[stage].insert(clones[stage].begin() + index, op);
  shift(stage, 1);
}

void StageMoments::erase(int32_t stage, int32_t index) {
  live.erase(stage / kBlockStages, offset[stage] + index);
  clones[stage].erase(clones[stage].begin() + index);
  shift(stage, -1);
}

int32_t StageMoments::indexInStage(Key key) const {
  const std::vector<OpId> &list = clones[stageOf(key)];
  int32_t rank = rankOf(key);
  int32_t index = 0, size = int32_t(list.size());
  while (index < size && linear.ops[list[index]].rank < rank)
    ++index;
  return index;
}

int32_t StageMoments::positionOf(Key key) const {
  return offset[stageOf(key)] + (rankOf(key) == kOwnRank
                                     ? numClonesAt(stageOf(key))
                                     : indexInStage(key));
}

void StageMoments::add(Key from, bool fromClosed, Key to, bool toClosed,
                       int64_t bytes) {
  int32_t first = stageOf(from) / kBlockStages,
          last = stageOf(to) / kBlockStages;
  int32_t begin = positionOf(from) + !fromClosed,
          end = positionOf(to) + toClosed;
  if (first == last) {
    live.add(first, begin, end, bytes);
    return;
  }
  live.add(first, begin, live.sizeOf(first), bytes);
  live.addToBlocks(first + 1, last, bytes);
  live.add(last, 0, end, bytes);
}

int64_t StageMoments::at(int32_t stage, int32_t index) const {
  return live.at(stage / kBlockStages, offset[stage] + index);
}

int32_t StageMoments::stageAboveLimit(int32_t from) const {
  int32_t block = live.blockAbove(from / kBlockStages);
  if (block < 0)
    return -1;
  int32_t worst = live.worstIn(block), stage = block * kBlockStages;
  int32_t end = std::min(int32_t(linear.stages.size()), stage + kBlockStages);
  while (stage + 1 < end && offset[stage + 1] <= worst)
    ++stage;
  return stage;
}
