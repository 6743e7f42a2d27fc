#include "compiler/planning/Schedule.h"

#include <algorithm>
#include <cassert>

using namespace tmc::planning;

namespace {
struct MostAndExcess {
  int64_t most, excess;
};

// A third of all time is spent here; wide integer compares halve it. The sums
// are of integers, so the answer is the same with and without.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif
MostAndExcess
mostAndExcess(const int64_t *live, size_t n, int64_t limit) {
  int64_t most = 0, excess = 0;
  for (size_t i = 0; i < n; ++i) {
    most = live[i] > most ? live[i] : most;
    int64_t over = live[i] - limit;
    excess += over > 0 ? over : 0;
  }
  return {most, excess};
}
} // namespace

Schedule::Schedule(const Flat &flat, int64_t limitBytes)
    : flat(flat), limitBytes(limitBytes) {
  size_t n = flat.stages.size();
  mains.assign(n, 0);
  stageClones.resize(n);
  cloneIndex.resize(n);
  discounts.assign(n, {0});
  offset.resize(n);
  values.resize(flat.bytes.size());
  for (const FlatOp &op : flat.ops)
    anyOverwrites |= !op.overwrites.empty();
  std::vector<int64_t> delta(n + 1, 0);
  for (int32_t k = 0; k < int32_t(n); ++k) {
    const FlatOp &op = flat.ops[mainOf(k)];
    Key key = keyOf(k, kMainRank);
    for (ValueId v : op.reads) {
      values[v].uses.push_back(key);
      values[v].instances.back().last = key;
    }
    for (ValueId v : op.writes)
      values[v].instances.push_back({key, key});
  }
  for (size_t v = 0; v < values.size(); ++v)
    for (const Instance &i : values[v].instances) {
      delta[stageOf(i.key)] += flat.bytes[v];
      delta[stageOf(i.last) + 1] -= flat.bytes[v];
    }
  blocks.resize((n + kBlockStages - 1) / kBlockStages);
  spans.resize((blocks.size() + kSpanBlocks - 1) / kSpanBlocks);
  int64_t live = 0;
  for (int32_t k = 0; k < int32_t(n); ++k) {
    Block &block = blocks[k / kBlockStages];
    live += delta[k];
    offset[k] = int32_t(block.live.size());
    int64_t discount = discountAt(keyOf(k, kMainRank), mainOf(k));
    discounts[k][0] = discount;
    block.live.push_back(live + flat.ops[mainOf(k)].workspaceBytes - discount);
  }
  for (Block &block : blocks)
    recount(block);
}

void Schedule::recount(Block &block) {
  // Sums of 63 bits: a search for which that is too little would hold more
  // than 2^42 bytes over its limit at each of 2^21 moments.
  Span &span = spanOf(block);
  auto [most, excess] = mostAndExcess(block.live.data(), block.live.size(),
                                      limitBytes - block.lazy - span.lazy);
  currentExcess += excess - block.excess;
  span.above += (excess > 0) - (block.excess > 0);
  block.most = most;
  block.excess = excess;
  span.most = std::max(span.most, most + block.lazy);
  work += int64_t(block.live.size());
}

void Schedule::settle(Block &block) {
  Span &span = spanOf(block);
  span.most = std::max(span.most, block.most + block.lazy);
  if (block.excess > 0 || block.most + block.lazy + span.lazy > limitBytes)
    recount(block);
}

void Schedule::addToBlocks(int32_t first, int32_t last, int64_t bytes) {
  for (int32_t b = first; b < last;) {
    Span &span = spans[b / kSpanBlocks];
    bool whole = b % kSpanBlocks == 0 && b + kSpanBlocks <= last;
    ++work;
    if (whole && span.above == 0 &&
        span.most + span.lazy + bytes <= limitBytes) {
      span.lazy += bytes;
      b += kSpanBlocks;
      continue;
    }
    int32_t end = std::min(last, (b / kSpanBlocks + 1) * kSpanBlocks);
    work += end - b - 1;
    for (int32_t c = b; c < end; ++c) {
      blocks[c].lazy += bytes;
      settle(blocks[c]);
    }
    if (whole) { // Its blocks are all at hand: be exact again.
      span.most = blocks[b].most + blocks[b].lazy;
      for (int32_t c = b + 1; c < end; ++c)
        span.most = std::max(span.most, blocks[c].most + blocks[c].lazy);
    }
    b = end;
  }
}

void Schedule::setLimit(int64_t bytes) {
  limitBytes = bytes;
  for (Block &block : blocks)
    recount(block);
}

int64_t Schedule::peakBytes() const {
  int64_t peak = 0;
  for (const Block &block : blocks)
    if (int64_t lazy = lazyOf(block); block.most + lazy > peak)
      for (int64_t live : block.live)
        peak = std::max(peak, live + lazy);
  return peak;
}

int64_t Schedule::liveAtMain(int32_t stage) const {
  const Block &block = blocks[stage / kBlockStages];
  return block.live[offset[stage] + stageClones[stage].size()] + lazyOf(block);
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
  while (index < size && flat.ops[list[index]].rank < rank)
    ++index;
  return index;
}

int32_t Schedule::positionOf(Key key) const {
  return offset[stageOf(key)] + (rankOf(key) == kMainRank
                                     ? int32_t(stageClones[stageOf(key)].size())
                                     : indexInStage(key));
}

OpId Schedule::opAt(Key key) const {
  int32_t stage = stageOf(key);
  return rankOf(key) == kMainRank ? mainOf(stage)
                                  : stageClones[stage][indexInStage(key)];
}

void Schedule::add(Key from, bool fromClosed, Key to, bool toClosed,
                   int64_t bytes) {
  int32_t first = stageOf(from) / kBlockStages,
          last = stageOf(to) / kBlockStages;
  int32_t begin = positionOf(from) + !fromClosed,
          end = positionOf(to) + toClosed;
  auto partial = [&](Block &block, int32_t lo, int32_t hi) {
    if (lo >= hi)
      return;
    for (int32_t i = lo; i < hi; ++i)
      block.live[i] += bytes;
    block.most += std::max<int64_t>(bytes, 0);
    work += 4;
    settle(block);
  };
  if (first == last) {
    partial(blocks[first], begin, end);
    return;
  }
  partial(blocks[first], begin, int32_t(blocks[first].live.size()));
  addToBlocks(first + 1, last, bytes);
  partial(blocks[last], 0, end);
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
  add(i.last, false, key, true, flat.bytes[v]);
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
    add(last, false, key, true, -flat.bytes[v]);
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
    add(use, false, key, false, -flat.bytes[v]);
    if (anyOverwrites)
      touched.push_back(use);
    last = before.last;
    before.last = use;
  } else {
    add(key, true, key, true, flat.bytes[v]);
  }
  state.instances.insert(state.instances.begin() + index + 1, {key, last});
}

void Schedule::dropWrite(ValueId v, Key key) {
  ValueState &state = values[v];
  int32_t index = instanceBefore(v, key + 1);
  Instance &before = state.instances[index - 1];
  if (Key last = state.instances[index].last; last > key) {
    add(before.last, false, key, false, flat.bytes[v]);
    if (anyOverwrites)
      touched.push_back(before.last);
    before.last = last;
  } else {
    add(key, true, key, true, -flat.bytes[v]);
  }
  state.instances.erase(state.instances.begin() + index);
}

int64_t Schedule::discountAt(Key key, OpId op) const {
  const std::vector<FlatOverwrite> &options = flat.ops[op].overwrites;
  int64_t discount = 0;
  for (size_t o = 0; o < options.size(); ++o) {
    int32_t i = instanceBefore(options[o].read, key);
    if (i < 0 || values[options[o].read].instances[i].last != key)
      continue;
    bool used = false; // By an option before it that was taken.
    for (size_t p = 0; p < o; ++p)
      if (options[p].read == options[o].read ||
          options[p].written == options[o].written) {
        int32_t j = instanceBefore(options[p].read, key);
        used |= j >= 0 && values[options[p].read].instances[j].last == key;
      }
    if (!used)
      discount +=
          std::min(flat.bytes[options[o].read], flat.bytes[options[o].written]);
  }
  return discount;
}

void Schedule::refreshTouched() {
  for (Key key : touched) {
    int32_t stage = stageOf(key);
    // A moment that has just been closed may still be named.
    int32_t index = rankOf(key) == kMainRank
                        ? int32_t(stageClones[stage].size())
                        : indexInStage(key);
    if (rankOf(key) != kMainRank &&
        (index >= int32_t(stageClones[stage].size()) ||
         flat.ops[stageClones[stage][index]].rank != rankOf(key)))
      continue;
    OpId op =
        rankOf(key) == kMainRank ? mainOf(stage) : stageClones[stage][index];
    if (flat.ops[op].overwrites.empty())
      continue;
    int64_t discount = discountAt(key, op);
    if (int64_t change = discounts[stage][index] - discount) {
      discounts[stage][index] = discount;
      add(key, true, key, true, change);
    }
  }
  touched.clear();
}

void Schedule::insert(OpId op, int32_t stage) {
  const FlatOp &o = flat.ops[op];
  Key key = keyOf(stage, o.rank);
  std::vector<OpId> &list = stageClones[stage];
  Block &block = blocks[stage / kBlockStages];
  int32_t index = indexInStage(key);

  // What is alive on the way into the next moment is alive at the new one.
  const FlatOp &next =
      flat.ops[index < int32_t(list.size()) ? list[index] : mainOf(stage)];
  int64_t live = block.live[offset[stage] + index] - next.writtenBytes -
                 next.workspaceBytes + discounts[stage][index];
  block.live.insert(block.live.begin() + offset[stage] + index,
                    live + o.workspaceBytes);
  list.insert(list.begin() + index, op);
  discounts[stage].insert(discounts[stage].begin() + index, 0);
  cloneIndex[stage].insert(cloneIndex[stage].begin() + index,
                           int32_t(allClones.size()));
  allClones.push_back({op, stage});
  int32_t end = std::min(int32_t(flat.stages.size()),
                         (stage / kBlockStages + 1) * kBlockStages);
  for (int32_t k = stage + 1; k < end; ++k)
    ++offset[k];
  block.most = std::max(block.most, live + o.workspaceBytes);
  settle(block);

  currentCost += o.cost * flat.stages[stage].trips;
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
  const FlatOp &o = flat.ops[op];
  Key key = keyOf(stage, o.rank);
  for (ValueId v : o.reads)
    dropUse(v, key);
  for (ValueId v : o.writes)
    dropWrite(v, key);
  currentCost -= o.cost * flat.stages[stage].trips;

  std::vector<OpId> &list = stageClones[stage];
  Block &block = blocks[stage / kBlockStages];
  int32_t index = indexInStage(key);
  block.live.erase(block.live.begin() + offset[stage] + index);
  list.erase(list.begin() + index);
  discounts[stage].erase(discounts[stage].begin() + index);
  int32_t hole = cloneIndex[stage][index];
  cloneIndex[stage].erase(cloneIndex[stage].begin() + index);
  int32_t end = std::min(int32_t(flat.stages.size()),
                         (stage / kBlockStages + 1) * kBlockStages);
  for (int32_t k = stage + 1; k < end; ++k)
    --offset[k];
  if (block.excess > 0)
    recount(block);
  if (hole != int32_t(allClones.size()) - 1) {
    Clone moved = allClones.back();
    allClones[hole] = moved;
    cloneIndex[moved.stage]
              [indexInStage(keyOf(moved.stage, flat.ops[moved.op].rank))] =
                  hole;
  }
  allClones.pop_back();
  if (anyOverwrites)
    refreshTouched();
}

void Schedule::switchMain(int32_t stage, int32_t index) {
  Key key = keyOf(stage, kMainRank);
  const FlatOp &was = flat.ops[mainOf(stage)];
  // Both write the same values: only reads, cost and workspace change.
  for (ValueId v : was.reads)
    dropUse(v, key);
  currentCost -= was.cost * flat.stages[stage].trips;
  add(key, true, key, true, discounts[stage].back() - was.workspaceBytes);
  discounts[stage].back() = 0;
  mains[stage] = index;
  const FlatOp &is = flat.ops[mainOf(stage)];
  currentCost += is.cost * flat.stages[stage].trips;
  add(key, true, key, true, is.workspaceBytes);
  for (ValueId v : is.reads)
    addUse(v, key);
  if (anyOverwrites) {
    touched.push_back(key);
    refreshTouched();
  }
}

bool Schedule::isUseless(OpId op, int32_t stage) const {
  const FlatOp &o = flat.ops[op];
  Key key = keyOf(stage, o.rank);
  for (ValueId v : o.writes)
    if (values[v].instances[instanceBefore(v, key + 1)].last != key)
      return false;
  return true;
}

int32_t Schedule::stageAboveLimit(int32_t from) const {
  if (blocks.empty())
    return -1;
  size_t start = size_t(from) / kBlockStages;
  for (size_t i = 0; i < blocks.size(); ++i) {
    size_t b = (start + i) % blocks.size();
    const Block &block = blocks[b];
    if (spans[b / kSpanBlocks].above == 0) {
      size_t end = std::min(blocks.size(), (b / kSpanBlocks + 1) * kSpanBlocks);
      i += end - b - 1; // None in the rest of the span.
      continue;
    }
    if (block.excess <= 0)
      continue;
    int64_t lazy = lazyOf(block);
    int32_t first = int32_t(b) * kBlockStages;
    int32_t end = std::min(int32_t(flat.stages.size()), first + kBlockStages);
    int32_t worst = -1;
    int64_t most = limitBytes;
    for (int32_t k = first; k < end; ++k)
      for (size_t m = 0; m <= stageClones[k].size(); ++m)
        if (int64_t live = block.live[offset[k] + m] + lazy; live > most)
          most = live, worst = k;
    if (worst >= 0)
      return worst;
  }
  return -1;
}

Solution Schedule::toSolution(const Problem &problem) const {
  Solution solution;
  solution.segments.resize(problem.segments.size());
  for (int32_t k = 0; k < int32_t(flat.stages.size()); ++k) {
    const FlatStage &stage = flat.stages[k];
    std::vector<Execution> &list = solution.segments[stage.segment];
    for (OpId op : stageClones[k])
      list.push_back({flat.ops[op].recipe, kNone, {}});
    if (stage.instruction != kNone)
      list.push_back({flat.ops[mainOf(k)].recipe, stage.instruction, {}});
  }
  takeOverwrites(problem, solution);
  return solution;
}
