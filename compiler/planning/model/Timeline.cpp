#include "compiler/planning/model/Timeline.h"

#include <algorithm>

using namespace tmc::planning;

void Timeline::reserve(size_t moments, size_t references) {
  refs.reserve(references);
  refBegin.reserve(moments + 1);
  readEnd.reserve(moments);
}

int32_t Timeline::addMoment(int32_t length) {
  refBegin.push_back(int32_t(refs.size()));
  readEnd.push_back(int32_t(refs.size()));
  int32_t t = int32_t(size()) - 1;
  last = t + length;
  if (length && lengths.empty())
    lengths.resize(t, 0);
  if (length || !lengths.empty())
    lengths.push_back(length);
  return t;
}

void Timeline::read(int32_t instance) {
  if (instance != kNone)
    instances[instance].last = std::max(instances[instance].last, last);
  refs.push_back(instance);
  ++readEnd.back();
}

int32_t Timeline::write(ValueId value) {
  refs.push_back(int32_t(instances.size()));
  instances.push_back({value, int32_t(size()) - 1, last, kNone, last});
  return refs.back();
}

bool Timeline::freesAt(int32_t instance, size_t t) const {
  const Instance &i = instances[instance];
  if (i.last != endOf(t) || i.made >= int32_t(t))
    return false;
  if (i.last == int32_t(t))
    return true;
  for (int32_t use : usesOf(instance))
    if (use != int32_t(t) && endOf(use) >= int32_t(t))
      return false;
  return true;
}

int32_t Timeline::addInitial(ValueId value) {
  instances.push_back({value, -1, -1, kNone, -1});
  return int32_t(instances.size()) - 1;
}

void Timeline::finish(bool countUses) {
  refBegin.push_back(int32_t(refs.size()));
  if (!countUses)
    return;
  useBegin.assign(instances.size() + 1, 0);
  for (size_t t = 0; t < size(); ++t)
    for (int32_t i : readsAt(t))
      if (i != kNone)
        ++useBegin[i + 1];
  for (size_t i = 0; i < instances.size(); ++i)
    useBegin[i + 1] += useBegin[i];
  uses.resize(useBegin.back());
  std::vector<int32_t> fill(useBegin.begin(), useBegin.end() - 1);
  for (size_t t = 0; t < size(); ++t)
    for (int32_t i : readsAt(t))
      if (i != kNone)
        uses[fill[i]++] = int32_t(t);
}

int32_t Timeline::readAt(size_t t, ValueId value, const Recipe &recipe) const {
  for (size_t i = 0; i < readsAt(t).size(); ++i)
    if (recipe.reads[i] == value)
      return readsAt(t)[i];
  return kNone;
}

int32_t Timeline::writtenAt(size_t t, ValueId value,
                            const Recipe &recipe) const {
  for (size_t i = 0; i < writesAt(t).size(); ++i)
    if (recipe.writes[i] == value)
      return writesAt(t)[i];
  return kNone;
}

std::vector<int64_t>
Timeline::liveBytes(std::span<const int64_t> bytesOfValue) const {
  size_t n = size();
  std::vector<int64_t> live(n + 2, 0); // Differences first.
  for (const Instance &i : instances) {
    int64_t bytes = bytesOfValue[i.value];
    live[std::max(i.begin, 0)] += bytes;
    live[std::min<size_t>(i.last + 1, n + 1)] -= bytes;
    if (i.storageOf != kNone) { // Both count during an overwrite.
      int64_t shared =
          std::min(bytes, bytesOfValue[instances[i.storageOf].value]);
      live[i.begin] -= shared;
      live[i.made + 1] += shared;
    }
  }
  for (size_t t = 1; t < n; ++t)
    live[t] += live[t - 1];
  live.resize(n);
  return live;
}

std::vector<int64_t>
Timeline::crossingBytes(std::span<const int64_t> bytesOfValue) const {
  std::vector<int64_t> across(size() + 2, 0);
  for (const Instance &i : instances)
    if (i.begin >= 0 && i.last > i.begin) {
      across[i.begin + 1] += bytesOfValue[i.value];
      across[i.last + 1] -= bytesOfValue[i.value];
    }
  across.pop_back();
  for (size_t t = 1; t < across.size(); ++t)
    across[t] += across[t - 1];
  return across;
}
