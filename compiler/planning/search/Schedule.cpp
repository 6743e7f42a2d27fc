#include "compiler/planning/search/Schedule.h"

#include <algorithm>
#include <cassert>

using namespace tmc::planning;

Schedule::Schedule(const LinearProblem &linear, int64_t limitBytes)
    : linear(linear),
      moments(int32_t((linear.stages.size() + kBlockStages - 1) / kBlockStages),
              limitBytes) {
  size_t n = linear.stages.size();
  variants.assign(n, 0);
  stageClones.resize(n);
  cloneIndex.resize(n);
  offset.resize(n);
  values.resize(linear.bytes.size());
  for (const LinearOp &op : linear.ops)
    anyOverwrites |= !op.overwrites.empty();
  if (anyOverwrites)
    discounts.assign(n, {0});
  Timeline timeline = timelineOf(linear, ownExecutions(linear));
  for (int32_t i = 0; i < int32_t(timeline.instances.size()); ++i) {
    const tmc::planning::Instance &instance = timeline.instances[i];
    ValueState &state = values[instance.value];
    state.instances.push_back(
        {keyOf(instance.begin, kOwnRank), keyOf(instance.last, kOwnRank)});
    std::span<const int32_t> uses = timeline.usesOf(i);
    state.uses.reserve(state.uses.size() + uses.size() + 1);
    for (int32_t k : uses)
      state.uses.push_back(keyOf(k, kOwnRank));
  }
  std::vector<int64_t> live = timeline.liveBytes(linear.bytes);
  for (int32_t k = 0; k < int32_t(n); ++k) {
    int32_t block = k / kBlockStages;
    offset[k] = moments.sizeOf(block);
    int64_t discount = 0;
    if (anyOverwrites)
      discount = discounts[k][0] = discountAt(keyOf(k, kOwnRank), variantOf(k));
    moments.append(block, live[k] + linear.ops[variantOf(k)].workspaceBytes -
                              discount);
  }
  moments.count();
}

int64_t Schedule::liveAtOwn(int32_t stage) const {
  return moments.at(stage / kBlockStages,
                    offset[stage] + int32_t(stageClones[stage].size()));
}

bool Schedule::has(OpId op, int32_t stage) const {
  for (OpId o : stageClones[stage])
    if (o == op)
      return true;
  return false;
}

int32_t Schedule::indexInStage(Key key) const {
  const std::vector<OpId> &list = stageClones[stageOf(key)];
  int32_t rank = rankOf(key);
  int32_t index = 0, size = int32_t(list.size());
  while (index < size && linear.ops[list[index]].rank < rank)
    ++index;
  return index;
}

int32_t Schedule::positionOf(Key key) const {
  return offset[stageOf(key)] + (rankOf(key) == kOwnRank
                                     ? int32_t(stageClones[stageOf(key)].size())
                                     : indexInStage(key));
}

void Schedule::add(Key from, bool fromClosed, Key to, bool toClosed,
                   int64_t bytes) {
  int32_t first = stageOf(from) / kBlockStages,
          last = stageOf(to) / kBlockStages;
  int32_t begin = positionOf(from) + !fromClosed,
          end = positionOf(to) + toClosed;
  if (first == last) {
    moments.add(first, begin, end, bytes);
    return;
  }
  moments.add(first, begin, moments.sizeOf(first), bytes);
  moments.addToBlocks(first + 1, last, bytes);
  moments.add(last, 0, end, bytes);
}

int32_t Schedule::instanceBefore(ValueId v, Key key) const {
  const std::vector<Instance> &list = values[v].instances;
  int32_t i = int32_t(list.size()) - 1;
  while (i >= 0 && list[i].key >= key)
    --i;
  return i;
}

void Schedule::addUse(ValueId v, Key key) {
  ValueState &state = values[v];
  state.uses.insert(std::upper_bound(state.uses.begin(), state.uses.end(), key),
                    key);
  Instance &i = state.instances[instanceBefore(v, key)];
  if (i.last >= key)
    return;
  add(i.last, false, key, true, linear.bytes[v]);
  if (anyOverwrites)
    touched.push_back(i.last), touched.push_back(key);
  i.last = key;
}

void Schedule::dropUse(ValueId v, Key key) {
  ValueState &state = values[v];
  auto at = std::lower_bound(state.uses.begin(), state.uses.end(), key);
  Instance &i = state.instances[instanceBefore(v, key)];
  if (i.last == key) {
    Key last =
        at == state.uses.begin() ? i.key : std::max(i.key, *std::prev(at));
    add(last, false, key, true, -linear.bytes[v]);
    if (anyOverwrites)
      touched.push_back(last), touched.push_back(key);
    i.last = last;
  }
  state.uses.erase(at);
}

void Schedule::addWrite(ValueId v, Key key) {
  ValueState &state = values[v];
  int32_t index = instanceBefore(v, key);
  Instance &before = state.instances[index];
  Key last = key;
  if (before.last > key) {
    auto at = std::lower_bound(state.uses.begin(), state.uses.end(), key);
    Key use = at == state.uses.begin() ? before.key
                                       : std::max(before.key, *std::prev(at));
    add(use, false, key, false, -linear.bytes[v]);
    if (anyOverwrites)
      touched.push_back(use);
    last = before.last;
    before.last = use;
  } else {
    add(key, true, key, true, linear.bytes[v]);
  }
  state.instances.insert(state.instances.begin() + index + 1, {key, last});
}

void Schedule::dropWrite(ValueId v, Key key) {
  ValueState &state = values[v];
  int32_t index = instanceBefore(v, key + 1);
  Instance &before = state.instances[index - 1];
  if (Key last = state.instances[index].last; last > key) {
    add(before.last, false, key, false, linear.bytes[v]);
    if (anyOverwrites)
      touched.push_back(before.last);
    before.last = last;
  } else {
    add(key, true, key, true, -linear.bytes[v]);
  }
  state.instances.erase(state.instances.begin() + index);
}

int64_t Schedule::discountAt(Key key, OpId op) const {
  return savedByOverwrites(linear.ops[op], [&](ValueId v) {
    int32_t i = instanceBefore(v, key);
    return i >= 0 && values[v].instances[i].last == key;
  });
}

void Schedule::refreshTouched() {
  for (Key key : touched) {
    int32_t stage = stageOf(key);
    // A key may name a moment that has just been erased.
    int32_t index = rankOf(key) == kOwnRank ? int32_t(stageClones[stage].size())
                                            : indexInStage(key);
    if (rankOf(key) != kOwnRank &&
        (index >= int32_t(stageClones[stage].size()) ||
         linear.ops[stageClones[stage][index]].rank != rankOf(key)))
      continue;
    OpId op =
        rankOf(key) == kOwnRank ? variantOf(stage) : stageClones[stage][index];
    if (linear.ops[op].overwrites.empty())
      continue;
    // A few options cost no more than the rest of a change.
    constexpr size_t kFewOptions = 16;
    if (linear.ops[op].options.size() > kFewOptions)
      moments.work += int64_t(linear.ops[op].options.size());
    int64_t discount = discountAt(key, op);
    if (int64_t change = discounts[stage][index] - discount) {
      discounts[stage][index] = discount;
      add(key, true, key, true, change);
    }
  }
  touched.clear();
}

void Schedule::insert(OpId op, int32_t stage) {
  const LinearOp &o = linear.ops[op];
  Key key = keyOf(stage, o.rank);
  std::vector<OpId> &list = stageClones[stage];
  int32_t block = stage / kBlockStages, index = indexInStage(key);

  // Bytes alive on the way into the next moment are alive at the new one.
  const LinearOp &next =
      linear.ops[index < int32_t(list.size()) ? list[index] : variantOf(stage)];
  int64_t live = moments.at(block, offset[stage] + index) - next.writtenBytes -
                 next.workspaceBytes + discountOf(stage, index);
  moments.insert(block, offset[stage] + index, live + o.workspaceBytes);
  list.insert(list.begin() + index, op);
  if (anyOverwrites)
    discounts[stage].insert(discounts[stage].begin() + index, 0);
  cloneIndex[stage].insert(cloneIndex[stage].begin() + index,
                           int32_t(allClones.size()));
  allClones.push_back({op, stage});
  int32_t end = std::min(int32_t(linear.stages.size()),
                         (stage / kBlockStages + 1) * kBlockStages);
  for (int32_t k = stage + 1; k < end; ++k)
    ++offset[k];
  currentCost += o.cost * linear.stages[stage].trips;
  for (ValueId v : o.writes)
    addWrite(v, key);
  for (ValueId v : o.reads)
    addUse(v, key);
  if (anyOverwrites) {
    touched.push_back(key);
    refreshTouched();
  }
}

void Schedule::erase(OpId op, int32_t stage) {
  const LinearOp &o = linear.ops[op];
  Key key = keyOf(stage, o.rank);
  for (ValueId v : o.reads)
    dropUse(v, key);
  for (ValueId v : o.writes)
    dropWrite(v, key);
  currentCost -= o.cost * linear.stages[stage].trips;

  std::vector<OpId> &list = stageClones[stage];
  int32_t index = indexInStage(key);
  moments.erase(stage / kBlockStages, offset[stage] + index);
  list.erase(list.begin() + index);
  if (anyOverwrites)
    discounts[stage].erase(discounts[stage].begin() + index);
  int32_t hole = cloneIndex[stage][index];
  cloneIndex[stage].erase(cloneIndex[stage].begin() + index);
  int32_t end = std::min(int32_t(linear.stages.size()),
                         (stage / kBlockStages + 1) * kBlockStages);
  for (int32_t k = stage + 1; k < end; ++k)
    --offset[k];
  if (hole != int32_t(allClones.size()) - 1) {
    Clone moved = allClones.back();
    allClones[hole] = moved;
    cloneIndex[moved.stage]
              [indexInStage(keyOf(moved.stage, linear.ops[moved.op].rank))] =
                  hole;
  }
  allClones.pop_back();
  if (anyOverwrites)
    refreshTouched();
}

void Schedule::switchVariant(int32_t stage, int32_t index) {
  Key key = keyOf(stage, kOwnRank);
  const LinearOp &was = linear.ops[variantOf(stage)];
  // Both variants write the same values: only reads, cost and workspace change.
  for (ValueId v : was.reads)
    dropUse(v, key);
  currentCost -= was.cost * linear.stages[stage].trips;
  add(key, true, key, true,
      discountOf(stage, int32_t(stageClones[stage].size())) -
          was.workspaceBytes);
  if (anyOverwrites)
    discounts[stage].back() = 0;
  variants[stage] = index;
  const LinearOp &is = linear.ops[variantOf(stage)];
  currentCost += is.cost * linear.stages[stage].trips;
  add(key, true, key, true, is.workspaceBytes);
  for (ValueId v : is.reads)
    addUse(v, key);
  if (anyOverwrites) {
    touched.push_back(key);
    refreshTouched();
  }
}

bool Schedule::isUseless(OpId op, int32_t stage) const {
  const LinearOp &o = linear.ops[op];
  Key key = keyOf(stage, o.rank);
  for (ValueId v : o.writes)
    if (values[v].instances[instanceBefore(v, key + 1)].last != key)
      return false;
  return true;
}

int32_t Schedule::stageAboveLimit(int32_t from) const {
  int32_t block = moments.blockAbove(from / kBlockStages);
  if (block < 0)
    return -1;
  int32_t worst = moments.worstIn(block), stage = block * kBlockStages;
  int32_t end = std::min(int32_t(linear.stages.size()), stage + kBlockStages);
  while (stage + 1 < end && offset[stage + 1] <= worst)
    ++stage;
  return stage;
}

Solution Schedule::toSolution(const Problem &problem) const {
  Solution solution;
  solution.segments.resize(problem.segments.size());
  for (int32_t k = 0; k < int32_t(linear.stages.size()); ++k) {
    const LinearStage &stage = linear.stages[k];
    std::vector<Execution> &list = solution.segments[stage.segment];
    for (OpId op : stageClones[k])
      list.push_back({linear.ops[op].recipe, kNone, {}});
    if (stage.instruction != kNone)
      list.push_back({linear.ops[variantOf(k)].recipe, stage.instruction, {}});
  }
  takeOverwrites(problem, solution);
  return solution;
}
