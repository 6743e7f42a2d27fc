#include "compiler/planning/search/Schedule.h"

#include <algorithm>
#include <cassert>

using namespace tmc::planning;

static bool anyOverwritesIn(const LinearProblem &linear) {
  return std::any_of(linear.ops.begin(), linear.ops.end(),
                     [](const LinearOp &op) { return !op.overwrites.empty(); });
}

Schedule::Schedule(const LinearProblem &linear, int64_t limitBytes)
    : linear(linear), anyOverwrites(anyOverwritesIn(linear)),
      moments(linear, limitBytes), values(linear, anyOverwrites) {
  size_t n = linear.stages.size();
  variants.assign(n, 0);
  cloneIndex.resize(n);
  if (anyOverwrites)
    discounts.assign(n, {0});
  Timeline timeline = timelineOf(linear, ownExecutions(linear));
  values.start(timeline);
  std::vector<int64_t> live = timeline.liveBytes(linear.bytes);
  for (int32_t k = 0; k < int32_t(n); ++k) {
    int64_t discount = 0;
    if (anyOverwrites)
      discount = discounts[k][0] = discountAt(keyOf(k, kOwnRank), variantOf(k));
    moments.append(k, live[k] + linear.ops[variantOf(k)].workspaceBytes -
                          discount);
  }
  moments.live.count();
}

int64_t Schedule::discountAt(Key key, OpId op) const {
  return savedByOverwrites(linear.ops[op], [&](ValueId v) {
    int32_t i = values.instanceBefore(v, key);
    return i >= 0 && values.instances(v)[i].last == key;
  });
}

void Schedule::refreshTouched() {
  for (Key key : values.touched) {
    int32_t stage = stageOf(key);
    // A key may name a moment that has just been erased.
    int32_t index = rankOf(key) == kOwnRank ? moments.numClonesAt(stage)
                                            : moments.indexInStage(key);
    if (rankOf(key) != kOwnRank &&
        (index >= moments.numClonesAt(stage) ||
         linear.ops[moments.clonesAt(stage)[index]].rank != rankOf(key)))
      continue;
    OpId op = rankOf(key) == kOwnRank ? variantOf(stage)
                                      : moments.clonesAt(stage)[index];
    if (linear.ops[op].overwrites.empty())
      continue;
    // A few options cost no more than the rest of a change.
    constexpr size_t kFewOptions = 16;
    if (linear.ops[op].options.size() > kFewOptions)
      moments.live.work += int64_t(linear.ops[op].options.size());
    int64_t discount = discountAt(key, op);
    if (int64_t change = discounts[stage][index] - discount) {
      discounts[stage][index] = discount;
      moments.add(key, true, key, true, change);
    }
  }
  values.touched.clear();
}

void Schedule::insert(OpId op, int32_t stage) {
  const LinearOp &o = linear.ops[op];
  Key key = keyOf(stage, o.rank);
  const std::vector<OpId> &list = moments.clonesAt(stage);
  int32_t index = moments.indexInStage(key);

  // Bytes alive on the way into the next moment are alive at the new one.
  const LinearOp &next =
      linear.ops[index < int32_t(list.size()) ? list[index] : variantOf(stage)];
  int64_t live = moments.at(stage, index) - next.writtenBytes -
                 next.workspaceBytes + discountOf(stage, index);
  moments.insert(stage, index, op, live + o.workspaceBytes);
  if (anyOverwrites)
    discounts[stage].insert(discounts[stage].begin() + index, 0);
  cloneIndex[stage].insert(cloneIndex[stage].begin() + index,
                           int32_t(allClones.size()));
  allClones.push_back({op, stage});
  currentCost += o.cost * linear.stages[stage].trips;
  for (ValueId v : o.writes)
    values.addWrite(moments, v, key);
  for (ValueId v : o.reads)
    values.addUse(moments, v, key);
  if (anyOverwrites) {
    values.touched.push_back(key);
    refreshTouched();
  }
}

void Schedule::erase(OpId op, int32_t stage) {
  const LinearOp &o = linear.ops[op];
  Key key = keyOf(stage, o.rank);
  for (ValueId v : o.reads)
    values.dropUse(moments, v, key);
  for (ValueId v : o.writes)
    values.dropWrite(moments, v, key);
  currentCost -= o.cost * linear.stages[stage].trips;

  int32_t index = moments.indexInStage(key);
  moments.erase(stage, index);
  if (anyOverwrites)
    discounts[stage].erase(discounts[stage].begin() + index);
  int32_t hole = cloneIndex[stage][index];
  cloneIndex[stage].erase(cloneIndex[stage].begin() + index);
  if (hole != int32_t(allClones.size()) - 1) {
    Clone moved = allClones.back();
    allClones[hole] = moved;
    cloneIndex[moved.stage][moments.indexInStage(
        keyOf(moved.stage, linear.ops[moved.op].rank))] = hole;
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
    values.dropUse(moments, v, key);
  currentCost -= was.cost * linear.stages[stage].trips;
  moments.add(key, true, key, true,
              discountOf(stage, moments.numClonesAt(stage)) -
                  was.workspaceBytes);
  if (anyOverwrites)
    discounts[stage].back() = 0;
  variants[stage] = index;
  const LinearOp &is = linear.ops[variantOf(stage)];
  currentCost += is.cost * linear.stages[stage].trips;
  moments.add(key, true, key, true, is.workspaceBytes);
  for (ValueId v : is.reads)
    values.addUse(moments, v, key);
  if (anyOverwrites) {
    values.touched.push_back(key);
    refreshTouched();
  }
}

bool Schedule::isUseless(OpId op, int32_t stage) const {
  const LinearOp &o = linear.ops[op];
  Key key = keyOf(stage, o.rank);
  for (ValueId v : o.writes)
    if (values.instances(v)[values.instanceBefore(v, key + 1)].last != key)
      return false;
  return true;
}

Solution Schedule::toSolution(const Problem &problem) const {
  Solution solution;
  solution.segments.resize(problem.segments.size());
  for (int32_t k = 0; k < int32_t(linear.stages.size()); ++k) {
    const LinearStage &stage = linear.stages[k];
    std::vector<Execution> &list = solution.segments[stage.segment];
    for (OpId op : moments.clonesAt(k))
      list.push_back({linear.ops[op].recipe, kNone, {}});
    if (stage.instruction != kNone)
      list.push_back({linear.ops[variantOf(k)].recipe, stage.instruction, {}});
  }
  takeOverwrites(problem, solution);
  return solution;
}
