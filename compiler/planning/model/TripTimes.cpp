#include "compiler/planning/model/TripTimes.h"

#include <algorithm>

using namespace tmc::planning;

namespace {

using Wide = __int128;

} // namespace

void TripTimes::clear() {
  entries.clear();
  makers.clear();
  makersBegin = {0};
}

void TripTimes::add(const Entry &entry, std::span<const int32_t> waitsFor) {
  entries.push_back(entry);
  makers.insert(makers.end(), waitsFor.begin(), waitsFor.end());
  makersBegin.push_back(makers.size());
}

void TripTimes::run() {
  begin();
  for (int64_t time = 0; time != kNever; time = soonest())
    settle(time);
  length = now;
}

void TripTimes::begin() {
  times.assign(entries.size(), {});
  ended.assign(entries.size(), 0);
  gate.assign(entries.size(), 0);
  passed.clear();
  complete = next = 0;
  isReached = isComputing = false;
  now = computed = length = shares = 0;
  for (Queue &queue : engines) {
    queue.work.clear();
    queue.next = 0;
    queue.active = kNone;
    queue.waits = false;
  }
}

/// An end lets others begin, and work without a cost ends at once.
void TripTimes::settle(int64_t time) {
  now = time;
  for (bool changes = true; changes;) {
    changes = false;
    compute();
    for (Queue &queue : engines)
      changes |= end(queue) || beginNext(queue);
  }
}

int64_t TripTimes::soonest() const {
  int64_t soonest = isComputing ? computed : kNever;
  for (const Queue &queue : engines)
    if (queue.active != kNone)
      soonest = std::min(soonest, endOf(queue));
  return soonest;
}

bool TripTimes::isOver() const {
  return next == entries.size() &&
         std::all_of(engines.begin(), engines.end(), [](const Queue &queue) {
           return queue.active == kNone && queue.next == queue.work.size();
         });
}

void TripTimes::meet(size_t engine, int64_t cost) {
  Queue &queue = engines[engine];
  queue.waits = false;
  queue.rest = cost;
  queue.since = now;
  times[size_t(queue.active)].begin = now;
}

/// Compute goes as far as it can: into the next entry that takes time, or to
/// the Done of work that it waits for.
void TripTimes::compute() {
  while (next < entries.size()) {
    if (!isReached)
      times[next].begin = now;
    isReached = true;
    if (!passes(next))
      return;
    times[next].end = now;
    isReached = isComputing = false;
    ++next;
  }
}

/// True if compute is past the entry that it has come to.
bool TripTimes::passes(size_t at) {
  const Entry &entry = entries[at];
  if (!entry.recipe)
    return true;
  switch (entry.phase) {
  case Phase::Whole:
    if (!isComputing)
      computed = now + entry.recipe->cost;
    isComputing = true;
    return computed <= now;
  case Phase::Start:
    gate[at] = passed.size();
    engines[size_t(entry.recipe->engine)].work.push_back(int32_t(at));
    return true;
  case Phase::Done:
    if (entry.waits)
      return isEnded(entry.start);
    passed.push_back(entry.start);
    return true;
  }
  return true;
}

/// Begins the next work of an engine, if it is complete.
bool TripTimes::beginNext(Queue &queue) {
  while (complete < passed.size() && isEnded(passed[complete]))
    ++complete;
  if (queue.active != kNone || queue.next == queue.work.size())
    return false;
  const size_t entry = size_t(queue.work[queue.next]);
  if (gate[entry] > complete)
    return false;
  for (size_t m = makersBegin[entry]; m < makersBegin[entry + 1]; ++m)
    if (!isEnded(makers[m]))
      return false;
  share(entries[entry].recipe->busShare);
  queue.active = int32_t(entry);
  queue.rest = entries[entry].recipe->cost;
  queue.since = now;
  queue.waits = entries[entry].meets;
  ++queue.next;
  times[entry].begin = now;
  return true;
}

bool TripTimes::end(Queue &queue) {
  if (queue.active == kNone || endOf(queue) > now)
    return false;
  const size_t entry = size_t(queue.active);
  share(-entries[entry].recipe->busShare);
  queue.active = kNone;
  ended[entry] = 1;
  times[entry].end = now;
  return true;
}

int64_t TripTimes::endOf(const Queue &queue) const {
  if (queue.waits)
    return kNever;
  const int64_t sum =
      entries[size_t(queue.active)].recipe->busShare ? shares : 0;
  if (sum <= kWholeBus)
    return queue.since + queue.rest;
  return queue.since +
         int64_t((Wide(queue.rest) * sum + kWholeBus - 1) / kWholeBus);
}

/// The shares in flight change: all work on the bus has gone on at its old
/// speed until now.
void TripTimes::share(int64_t by) {
  if (by == 0)
    return;
  for (Queue &queue : engines) {
    if (queue.active == kNone ||
        !entries[size_t(queue.active)].recipe->busShare)
      continue;
    const int64_t passes = now - queue.since;
    queue.rest -=
        std::min(queue.rest, shares <= kWholeBus
                                 ? passes
                                 : int64_t(Wide(passes) * kWholeBus / shares));
    queue.since = now;
  }
  shares += by;
}
