#include "compiler/planning/search/ValueLives.h"

#include <algorithm>

using namespace tmc::planning;

void ValueLives::start(const Timeline &timeline) {
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
}

int32_t ValueLives::instanceBefore(ValueId v, Key key) const {
  const std::vector<Instance> &list = values[v].instances;
  int32_t i = int32_t(list.size()) - 1;
  while (i >= 0 && list[i].key >= key)
    --i;
  return i;
}

void ValueLives::addUse(StageMoments &moments, ValueId v, Key key) {
  ValueState &state = values[v];
  state.uses.insert(std::upper_bound(state.uses.begin(), state.uses.end(), key),
                    key);
  Instance &i = state.instances[instanceBefore(v, key)];
  if (i.last >= key)
    return;
  moments.add(i.last, false, key, true, linear.bytes[v]);
  touch(i.last);
  touch(key);
  i.last = key;
}

void ValueLives::dropUse(StageMoments &moments, ValueId v, Key key) {
  ValueState &state = values[v];
  auto at = std::lower_bound(state.uses.begin(), state.uses.end(), key);
  Instance &i = state.instances[instanceBefore(v, key)];
  if (i.last == key) {
    Key last =
        at == state.uses.begin() ? i.key : std::max(i.key, *std::prev(at));
    moments.add(last, false, key, true, -linear.bytes[v]);
    touch(last);
    touch(key);
    i.last = last;
  }
  state.uses.erase(at);
}

void ValueLives::addWrite(StageMoments &moments, ValueId v, Key key) {
  ValueState &state = values[v];
  int32_t index = instanceBefore(v, key);
  Instance &before = state.instances[index];
  Key last = key;
  if (before.last > key) {
    auto at = std::lower_bound(state.uses.begin(), state.uses.end(), key);
    Key use = at == state.uses.begin() ? before.key
                                       : std::max(before.key, *std::prev(at));
    moments.add(use, false, key, false, -linear.bytes[v]);
    touch(use);
    last = before.last;
    before.last = use;
  } else {
    moments.add(key, true, key, true, linear.bytes[v]);
  }
  state.instances.insert(state.instances.begin() + index + 1, {key, last});
}

void ValueLives::dropWrite(StageMoments &moments, ValueId v, Key key) {
  ValueState &state = values[v];
  int32_t index = instanceBefore(v, key + 1);
  Instance &before = state.instances[index - 1];
  if (Key last = state.instances[index].last; last > key) {
    moments.add(before.last, false, key, false, linear.bytes[v]);
    touch(before.last);
    before.last = last;
  } else {
    moments.add(key, true, key, true, -linear.bytes[v]);
  }
  state.instances.erase(state.instances.begin() + index);
}
