#include "compiler/planning/moves/Transfers.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {

/// Rounds of places and times, and rounds without gain; more rounds changed
/// little in measurements.
constexpr int kRounds = 6, kIdleRounds = 2;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 2;

} // namespace

Transfers::Transfers(const Problem &whole,
                     std::vector<TransferSegment> segments,
                     std::vector<const Recipe *> kernels,
                     std::vector<int64_t> live, int64_t limit)
    : whole(whole), segments(std::move(segments)), kernels(std::move(kernels)),
      live(std::move(live)), limit(limit), places(this->kernels.size()),
      unstalled(places + 1, 0), trip(whole.engines.size()),
      makers(whole.values.size(), kNone), reachedBy(places + 1, kNone),
      stashedAt(whole.values.size(), 0) {
  for (size_t e = 0; e < places; ++e)
    unstalled[e + 1] =
        unstalled[e] + (this->kernels[e] ? this->kernels[e]->cost : 0);
}

std::vector<Transfer> Transfers::Queue::sorted() const {
  std::vector<Transfer> made;
  made.reserve(all.size());
  for (int32_t i : order)
    made.push_back(all[i]);
  return made;
}

int64_t Transfers::place(bool isEager) {
  for (Queue *queue : {&out, &in, &host}) {
    queue->ends.resize(queue->all.size());
    queue->starts.assign(queue->all.size(), kNone);
    queue->takes.clear();
    for (const Transfer &t : queue->all)
      queue->takes.push_back(whole.recipes[t.recipe].cost);
  }
  Placed best;
  placeFrom(isEager, best);
  // Once more with the times that transfers take beside other work. A list with
  // stalls tells later beginnings than one without needs.
  if (isSlowed())
    placeFrom(isEager, best);
  stashes = std::move(best.stashes);
  fetches = std::move(best.fetches);
  works = std::move(best.works);
  return best.makespan;
}

/// Rounds from the times of kernels without stalls.
void Transfers::placeFrom(bool isEager, Placed &best) {
  begin = unstalled;
  host.ends.assign(works.size(), kNever);
  in.ends.assign(fetches.size(), -1);
  for (int i = 0, idle = 0; i < kRounds && idle < kIdleRounds; ++i) {
    round(isEager);
    const int64_t makespan = takeTimes();
    if (makespan < best.makespan) {
      best = {makespan, out.sorted(), in.sorted(), host.sorted()};
      idle = 0;
    } else {
      ++idle;
    }
  }
}

/// True if a transfer took longer than its cost.
bool Transfers::isSlowed() const {
  for (const Queue *queue : {&out, &in})
    for (size_t i = 0; i < queue->all.size(); ++i)
      if (queue->takes[i] > whole.recipes[queue->all[i].recipe].cost)
        return true;
  return false;
}

void Transfers::round(bool isEager) {
  room.resize(live.size());
  for (size_t e = 0; e < live.size(); ++e)
    room[e] = limit - live[e];
  placeStashes();
  placeWorks();
  placeFetches(isEager);
  placeReturns();
}

/// The first place that is reached at `time` or later.
size_t Transfers::entryAt(int64_t time) const {
  return size_t(std::lower_bound(begin.begin(), begin.end(), time) -
                begin.begin());
}

void Transfers::take(size_t from, size_t to, int64_t bytes) {
  for (size_t e = from; e < to; ++e)
    room[e] -= bytes;
}

/// Each stash begins as soon as its value is made and the link is free; a copy
/// begins where the link is idle, or where its work needs it.
void Transfers::placeStashes() {
  out.order.clear();
  std::vector<size_t> wanted(stashes.size());
  std::vector<int32_t> copies;
  for (size_t i = 0; i < stashes.size(); ++i)
    if (stashes[i].isIdle)
      copies.push_back(int32_t(i));
  std::stable_sort(copies.begin(), copies.end(), [&](int32_t a, int32_t b) {
    return works[stashes[a].work].first < works[stashes[b].work].first;
  });
  int64_t now = 0; // Time when the link is free.
  size_t copy = 0, place = 0;
  auto add = [&](int32_t i, size_t start) {
    Transfer &t = stashes[i];
    t.start = place = std::max(start, place);
    now = std::max(now, begin[t.start]) + out.takes[i];
    wanted[i] = std::min(entryAt(now), t.end);
    out.order.push_back(i);
  };
  auto mostOf = [&](const Transfer &t) {
    return std::max(t.first, works[t.work].first);
  };
  for (size_t i = 0; i < stashes.size(); ++i) {
    const Transfer &t = stashes[i];
    if (t.isIdle)
      continue;
    for (; copy < copies.size(); ++copy) {
      const Transfer &next = stashes[copies[copy]];
      const int64_t from = std::max(now, begin[next.first]);
      if (next.first > t.first ||
          (from + out.takes[copies[copy]] > begin[t.first] &&
           works[next.work].first > t.first))
        break;
      add(copies[copy], std::clamp(entryAt(from), next.first,
                                   std::min(t.first, mostOf(next))));
    }
    add(int32_t(i), t.first);
  }
  for (; copy < copies.size(); ++copy) {
    const Transfer &next = stashes[copies[copy]];
    add(copies[copy], std::clamp(entryAt(now), next.first, mostOf(next)));
  }
  std::fill(stashedAt.begin(), stashedAt.end(), places);
  for (const Transfer &t : fetches) // Where a value first comes back.
    if (!t.isIdle)
      stashedAt[t.value] = std::min(stashedAt[t.value], t.first);
  // The last first: one that must end early makes earlier ones end early too.
  size_t latest = places;
  for (size_t k = out.order.size(); k-- > 0;) {
    Transfer &t = stashes[out.order[k]];
    size_t end = std::min(
        {wanted[out.order[k]], latest, t.nextWrite, stashedAt[t.value]});
    if (t.isIdle)
      end = std::min(end, works[t.work].last);
    end = std::max(end, t.start);
    size_t done = t.isIdle ? end : std::min(t.last, end);
    while (done < end && done < room.size() && room[done] >= t.bytes)
      ++done;
    if (done > t.last && !t.isIdle)
      take(t.last, done, t.bytes);
    t.done = done;
    latest = std::min(latest, done);
  }
  for (size_t k = 0; k < out.order.size(); ++k) { // Not before its own start.
    Transfer &t = stashes[out.order[k]];
    t.done = std::max(t.done, t.start);
    if (k)
      t.done = std::max(t.done, stashes[out.order[k - 1]].done);
  }
}

/// Work that overwrites its inputs starts where they have been copied.
void Transfers::placeWorks() {
  for (Transfer &t : works)
    t.start = t.first;
  for (const Transfer &t : stashes)
    if (t.isIdle)
      works[t.work].start = std::max(works[t.work].start, t.done);
  host.order.resize(works.size());
  for (size_t i = 0; i < works.size(); ++i)
    host.order[i] = int32_t(i);
  std::stable_sort(
      host.order.begin(), host.order.end(),
      [&](int32_t a, int32_t b) { return works[a].start < works[b].start; });
  for (Transfer &t : works)
    t.done = t.end;
}

/// Each fetch ends when it is wanted, or when the next one must begin.
void Transfers::placeFetches(bool isEager) {
  std::vector<size_t> wanted(fetches.size());
  int64_t next = kNever;
  for (size_t i = fetches.size(); i-- > 0;) {
    const Transfer &t = fetches[i];
    if (t.isIdle)
      continue;
    next = std::min(next, begin[t.done]) - in.takes[i];
    // Before the last place that is reached by then.
    size_t at = entryAt(next);
    if (at > 0 && (at >= begin.size() || begin[at] > next))
      --at;
    wanted[i] = next < 0 || isEager ? 0 : at;
  }
  // Where a value is elsewhere from. Works are waited for.
  std::fill(stashedAt.begin(), stashedAt.end(), 0);
  for (const Transfer &t : stashes)
    stashedAt[t.value] = t.done;
  for (const Transfer &t : works)
    for (ValueId v : whole.recipes[t.recipe].writes)
      stashedAt[whole.contentOf(v)] = t.start;
  size_t earliest = 0;
  for (size_t i = 0; i < fetches.size(); ++i) {
    Transfer &t = fetches[i];
    if (t.isIdle)
      continue;
    const size_t latest = std::min(t.first, t.done);
    const size_t least =
        std::max({earliest, t.last, t.begin, stashedAt[t.value], wanted[i]});
    size_t start = latest;
    while (start > least && start > 0 && room[start - 1] >= t.bytes)
      --start;
    if (start < latest)
      take(start, latest, t.bytes);
    t.start = std::max(start, std::min(earliest, t.done));
    earliest = std::max(earliest, t.start);
  }
}

/// Places returns of updated contents where the link to the device is idle.
void Transfers::placeReturns() {
  std::vector<int32_t> returns;
  for (size_t i = 0; i < fetches.size(); ++i)
    if (fetches[i].isIdle)
      returns.push_back(int32_t(i));
  std::stable_sort(returns.begin(), returns.end(), [&](int32_t a, int32_t b) {
    const Transfer &x = works[fetches[a].work], &y = works[fetches[b].work];
    return std::pair(host.ends[fetches[a].work], x.start) <
           std::pair(host.ends[fetches[b].work], y.start);
  });
  in.order.clear();
  int64_t now = 0;
  size_t next = 0, place = 0;
  auto add = [&](int32_t i, size_t start) {
    Transfer &t = fetches[i];
    t.start = place = std::max({start, place, t.begin});
    in.order.push_back(i);
  };
  auto addReturn = [&](size_t most) {
    const int32_t i = returns[next++];
    const Transfer &t = fetches[i];
    const int64_t from = std::max(now, host.ends[t.work]);
    const size_t least = std::max({t.last, works[t.work].start, t.begin});
    add(i, std::clamp(entryAt(from), least, std::max(least, most)));
    now = std::max(now, from) + in.takes[i];
  };
  for (size_t i = 0; i < fetches.size(); ++i) {
    const Transfer &t = fetches[i];
    if (t.isIdle)
      continue;
    const int64_t from = std::max(
        now, in.ends[i] >= 0 ? in.ends[i] - in.takes[i] : begin[t.start]);
    auto goesBefore = [&](int32_t other) {
      const Transfer &r = fetches[other];
      return r.end < t.begin ||
             (std::max(r.last, works[r.work].start) <= t.start &&
              std::max(now, host.ends[r.work]) + in.takes[other] <= from);
    };
    while (next < returns.size() && goesBefore(returns[next]))
      addReturn(std::min(t.start, fetches[returns[next]].end));
    add(int32_t(i), t.start);
    now = std::max(now, begin[t.start]) + in.takes[i];
  }
  while (next < returns.size())
    addReturn(fetches[returns[next]].end);
  // Ends stand in the order of starts.
  size_t latest = places;
  for (size_t k = in.order.size(); k-- > 0;) {
    Transfer &t = fetches[in.order[k]];
    if (t.isIdle)
      t.done = std::min(t.end, latest);
    latest = std::min(latest, t.done);
  }
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

/// Times at which places are reached in the list; returns the makespan.
int64_t Transfers::takeTimes() {
  int64_t makespan = 0, from = 0;
  for (size_t s = 0; s < segments.size(); ++s) {
    const size_t first = s ? segments[s - 1].end + 1 : 0;
    addTrip(first, segments[s].end);
    trip.run();
    for (size_t e = first; e <= segments[s].end; ++e)
      begin[e] =
          from +
          (reachedBy[e] == kNone ? 0 : trip.times[size_t(reachedBy[e])].end);
    for (Queue *queue : {&out, &in, &host})
      for (size_t k = 0; k < queue->started; ++k) {
        const int32_t i = queue->order[k];
        if (queue->all[i].end < first)
          continue;
        const TimeSpan &time = trip.times[size_t(queue->starts[i])];
        queue->ends[i] = from + time.end;
        queue->takes[i] = std::max(queue->takes[i], time.end - time.begin);
      }
    from += trip.length;
    makespan += segments[s].trips * trip.length;
  }
  begin[places] = from;
  return makespan;
}

/// The list of the segment with places [first, last].
void Transfers::addTrip(size_t first, size_t last) {
  trip.clear();
  std::fill(makers.begin(), makers.end(), kNone);
  for (Queue *queue : {&out, &in, &host})
    queue->started = queue->done =
        size_t(std::ranges::partition_point(
                   queue->order,
                   [&](int32_t i) { return queue->all[i].end < first; }) -
               queue->order.begin());
  passed = kNone;
  for (size_t e = first; e <= last; ++e) {
    addStarts(out, e);
    addDones(out, e);
    addStarts(host, e);
    addStarts(in, e);
    addDones(in, e);
    addDones(host, e);
    reachedBy[e] = passed;
    if (e < places && kernels[e]) {
      passed = int32_t(trip.size());
      trip.add({kernels[e]}, {});
    }
  }
}

void Transfers::addStarts(Queue &queue, size_t place) {
  for (; queue.started < queue.order.size(); ++queue.started) {
    const int32_t i = queue.order[queue.started];
    if (queue.all[i].start != place)
      break;
    const Recipe &recipe = whole.recipes[queue.all[i].recipe];
    std::vector<int32_t> waitsFor;
    for (ValueId v : recipe.reads)
      if (makers[v] != kNone)
        waitsFor.push_back(makers[v]);
    queue.starts[i] = int32_t(trip.size());
    for (ValueId v : recipe.writes)
      makers[v] = queue.starts[i];
    trip.add({&recipe, Phase::Start}, waitsFor);
  }
}

void Transfers::addDones(Queue &queue, size_t place) {
  for (; queue.done < queue.started; ++queue.done) {
    const int32_t i = queue.order[queue.done];
    if (queue.all[i].done != place)
      break;
    const Recipe &recipe = whole.recipes[queue.all[i].recipe];
    trip.add(
        {&recipe, Phase::Done, queue.starts[i], whole.touchesDevice(recipe)},
        {});
  }
}
