#include "compiler/planning/moves/Overlap.h"

#include "compiler/planning/model/Timeline.h"
#include "compiler/planning/moves/ProjectedRecipe.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {

/// One segment's list without the work of networks, and that work. A *place* is
/// an entry, or the list's end; work starts and ends before a place.
class SegmentOverlap {
public:
  /// `list`: each Done of a network right after its Start. `home`: as
  /// `homesOf` has it. `overtakes`: work goes before other work that is needed
  /// later.
  SegmentOverlap(const Problem &problem, const std::vector<Execution> &list,
                 const std::vector<ValueId> &home, bool overtakes)
      : problem(problem), home(home), overtakes(overtakes) {
    for (size_t i = 0; i < list.size(); ++i)
      if (!problem.isOnNetwork(problem.recipes[list[i].recipe])) {
        entries.push_back(list[i]);
        indexOf.push_back(i);
      } else if (list[i].phase == Phase::Start) {
        Work work;
        work.start = list[i], work.done = list[i + 1];
        work.index = i;
        work.place = work.from = work.to = entries.size();
        works.push_back(std::move(work));
      }
  }

  /// `live`: the most bytes of each entry of the list; `begin`: when it begins
  /// if networks take no time, and the trip's length.
  std::vector<Execution> run(const std::vector<int64_t> &live,
                             const std::vector<int64_t> &begin, int64_t limit) {
    const size_t n = entries.size();
    room.assign(n + 1, limit);
    times.assign(n + 1, begin.back());
    for (size_t e = 0; e < n; ++e) {
      room[e] = limit - live[indexOf[e]];
      times[e] = begin[indexOf[e]];
    }
    for (const Work &w : works) {
      room[w.place] = std::min(
          {room[w.place], limit - live[w.index], limit - live[w.index + 1]});
      if (w.place == n)
        times[n] = begin.back();
    }
    findDeadlines();
    placeStarts();
    placeDones();
    return build();
  }

private:
  struct Work {
    Execution start, done;
    size_t index = 0;        // In the list.
    size_t place = 0;        // In the plan.
    size_t latest = 0;       // The last place at which it may be done.
    size_t from = 0, to = 0; // The places of its Start and its Done.
  };

  const Recipe &recipeOf(const Execution &e) const {
    return problem.recipes[e.recipe];
  }
  const Recipe &recipeOf(const Work &w) const { return recipeOf(w.start); }
  bool isHome(ValueId v) const { return home[problem.contentOf(v)] == v; }

  /// True if `later` may not begin before `w` is done: it writes an operand or
  /// takes its storage.
  bool disturbs(const Recipe &later, const Recipe &w) const {
    auto touches = [&](ValueId v) {
      return contains(w.reads, v) || contains(w.writes, v);
    };
    for (ValueId v : later.writes)
      if (touches(v) || (problem.values[v].updates != kNone &&
                         contains(w.reads, problem.values[v].updates)))
        return true;
    return std::any_of(later.overwrites.begin(), later.overwrites.end(),
                       [&](const Overwrite &o) { return touches(o.read); });
  }
  /// The first place at which `w` must be done.
  size_t latestOf(const Work &w) const {
    const Recipe &r = recipeOf(w);
    for (size_t e = w.place; e < entries.size(); ++e) {
      if (entries[e].phase == Phase::Done)
        continue;
      const Recipe &later = recipeOf(entries[e]);
      const bool reads =
          later.engine == 0 &&
          std::any_of(later.reads.begin(), later.reads.end(),
                      [&](ValueId v) { return contains(r.writes, v); });
      if (reads || disturbs(later, r))
        return e;
    }
    return entries.size();
  }

  /// The place behind the last use of v from `place` on, before v is written
  /// anew; the end if it stays.
  size_t lastUse(ValueId v, size_t place) const {
    const Value &main = problem.values[problem.contentOf(v)];
    if (isHome(v) && (main.kind == ValueKind::Persistent || main.liveOut))
      return entries.size() + 1;
    size_t last = place;
    for (size_t e = place; e < entries.size(); ++e) {
      const Recipe &r = recipeOf(entries[e]);
      if (contains(r.reads, v))
        last = e + 1;
      if (contains(r.writes, v))
        break;
    }
    return last;
  }

  /// Takes bytes at a place beyond those of the plan, if they are free.
  bool take(size_t place, int64_t bytes) {
    if (room[place] < bytes)
      return false;
    room[place] -= bytes;
    return true;
  }

  /// True if the work reads a result of the other.
  bool readsOf(const Work &w, const Work &other) const {
    const Recipe &r = recipeOf(w), &made = recipeOf(other);
    return std::any_of(r.reads.begin(), r.reads.end(),
                       [&](ValueId v) { return contains(made.writes, v); });
  }

  /// Finds when each work must be done, and so the order of each engine: what
  /// is needed first goes first. A gather thus overtakes an exchange.
  void findDeadlines() {
    for (size_t k = works.size(); k-- > 0;) {
      Work &w = works[k];
      w.latest = latestOf(w);
      for (size_t j = k + 1; j < works.size(); ++j) {
        if (works[j].place > w.latest)
          break;
        if (disturbs(recipeOf(works[j]), recipeOf(w)))
          w.latest = works[j].place;
        else if (readsOf(works[j], w))
          w.latest = std::min(w.latest, works[j].latest);
      }
    }
    order.resize(works.size());
    for (size_t k = 0; k < order.size(); ++k)
      order[k] = k;
    if (overtakes)
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return works[a].latest < works[b].latest;
      });
  }

  /// Starts, the last first: as late as the work ends in time.
  void placeStarts() {
    std::vector<int64_t> next(problem.engines.size(),
                              std::numeric_limits<int64_t>::max());
    for (size_t o = order.size(); o-- > 0;) {
      Work &w = works[order[o]];
      const Recipe &r = recipeOf(w);
      int64_t &wanted = next[size_t(r.engine)];
      wanted = std::min(wanted, times[w.latest]) - r.cost;
      if (times[w.place] <= wanted)
        continue;
      const size_t earliest = earliestOf(order[o]);
      int64_t bytes = r.workspaceSpace == 0 ? r.workspaceBytes : 0;
      for (ValueId v : r.writes)
        bytes += problem.values[v].bytes;
      while (w.from > earliest && times[w.from] > wanted &&
             take(w.from - 1, bytes))
        --w.from;
    }
    std::vector<size_t> last(problem.engines.size(), 0);
    for (size_t k : order) {
      size_t &least = last[size_t(recipeOf(works[k]).engine)];
      works[k].from = least = std::max(least, works[k].from);
    }
  }

  /// Dones, the first first: until the work ends or is needed.
  void placeDones() {
    std::vector<int64_t> idle(problem.engines.size(), 0);
    for (size_t k : order) {
      Work &w = works[k];
      const Recipe &r = recipeOf(w);
      int64_t &ends = idle[size_t(r.engine)];
      ends = std::max(ends, times[w.from]) + r.cost;
      size_t latest = w.latest;
      for (size_t j = k + 1; j < works.size(); ++j)
        if (works[j].from < latest && disturbs(recipeOf(works[j]), r))
          latest = std::min(latest, works[j].from);
      std::vector<std::pair<size_t, int64_t>> held; // Until, and bytes.
      for (ValueId v : r.reads)
        held.push_back({lastUse(v, w.place), problem.values[v].bytes});
      w.to = std::max(w.from, w.place);
      for (size_t e = w.place; e < latest && (e < w.from || times[e] < ends);
           ++e) {
        int64_t bytes = r.workspaceSpace == 0 ? r.workspaceBytes : 0;
        for (auto [until, its] : held)
          bytes += e >= until ? its : 0;
        if (!take(e, bytes))
          break;
        w.to = std::max(w.to, e + 1);
      }
      w.to = std::max(w.from, std::min(w.to, latest));
    }
    std::vector<size_t> next(problem.engines.size(), entries.size());
    for (size_t o = order.size(); o-- > 0;) {
      Work &w = works[order[o]];
      size_t &most = next[size_t(recipeOf(w).engine)];
      w.to = most = std::min(most, w.to);
    }
  }

  /// The first place at which `w` may start.
  size_t earliestOf(size_t k) const {
    const Work &w = works[k];
    const Recipe &r = recipeOf(w);
    const bool isInPlace =
        !r.overwrites.empty() ||
        std::any_of(r.writes.begin(), r.writes.end(), [&](ValueId v) {
          return problem.values[v].updates != kNone && isHome(v);
        });
    if (isInPlace)
      return w.place;
    size_t earliest = 0;
    for (size_t e = w.place; e-- > earliest;) {
      const Recipe &before = recipeOf(entries[e]);
      auto isNeeded = [&](ValueId v) {
        return contains(r.writes, v) ||
               (contains(r.reads, v) && contains(before.writes, v));
      };
      if (std::any_of(before.reads.begin(), before.reads.end(), isNeeded) ||
          std::any_of(before.writes.begin(), before.writes.end(), isNeeded))
        earliest = e + 1;
    }
    for (size_t j = 0; j < k; ++j) {
      const Recipe &other = recipeOf(works[j]);
      if (disturbs(r, other) || readsOf(w, works[j]))
        earliest = std::max(earliest, works[j].place);
    }
    return std::min(earliest, w.place);
  }

  std::vector<Execution> build() const {
    std::vector<Execution> list;
    for (size_t e = 0; e <= entries.size(); ++e) {
      for (size_t k : order)
        if (works[k].from < e && works[k].to == e)
          list.push_back(works[k].done);
      for (size_t k : order)
        if (works[k].from == e) {
          list.push_back(works[k].start);
          if (works[k].to == e)
            list.push_back(works[k].done);
        }
      if (e < entries.size())
        list.push_back(entries[e]);
    }
    return list;
  }

  const Problem &problem;
  const std::vector<ValueId> &home;
  const bool overtakes;
  std::vector<Execution> entries;
  std::vector<size_t> indexOf; // Per entry: in the list.
  std::vector<Work> works;
  std::vector<size_t> order;        // The works by the places of their need.
  std::vector<int64_t> room, times; // Per place.
};

MovedPlan planOf(Solution solution, const Profile &profile) {
  return {std::move(solution), profile.makespan, profile.spacePeakBytes};
}

} // namespace

absl::StatusOr<MovedPlan>
tmc::planning::overlapNetwork(const Problem &problem, const Solution &solution,
                              int64_t liveBytes) {
  absl::StatusOr<Profile> profile = simulate(problem, solution);
  if (!profile.ok())
    return profile.status();
  Problem quick = problem;
  for (Recipe &r : quick.recipes)
    if (problem.isOnNetwork(r))
      r.cost = 0;
  absl::StatusOr<Timeline> timeline = timelineOf(quick, solution);
  if (!timeline.ok())
    return timeline.status();
  // The most bytes of all trips, and the times of a trip with carried values.
  std::vector<std::vector<int64_t>> live, begin;
  for (const std::vector<Execution> &list : solution.segments) {
    live.emplace_back(list.size(), 0);
    begin.emplace_back(list.size() + 1, 0);
  }
  for (size_t t = 0; t < profile->moments.size(); ++t) {
    const Profile::Moment &at = profile->moments[t];
    int64_t &most = live[size_t(at.segment)][size_t(at.index)];
    most = std::max(most, profile->liveBytes[t]);
    if (at.trip <= 1) // The second one, if there is one.
      begin[size_t(at.segment)][size_t(at.index)] = timeline->times[t].begin;
  }
  for (size_t s = 0; s < begin.size(); ++s)
    begin[s].back() = timeline->tripLengths[s].back();
  const std::vector<ValueId> home = homesOf(problem, solution);
  const int64_t limit =
      liveBytes < 0 ? std::numeric_limits<int64_t>::max() / 2 : liveBytes;
  MovedPlan best = planOf(solution, *profile);
  for (bool overtakes : {true, false}) {
    Solution overlapped = solution;
    for (size_t s = 0; s < live.size(); ++s)
      overlapped.segments[s] =
          SegmentOverlap(problem, solution.segments[s], home, overtakes)
              .run(live[s], begin[s], limit);
    takeOverwrites(problem, overlapped);
    absl::StatusOr<Profile> faster = simulate(problem, overlapped);
    if (!faster.ok())
      ++best.refused;
    else if (faster->makespan < best.makespan && faster->peakBytes <= limit) {
      const int64_t refused = best.refused;
      best = planOf(std::move(overlapped), *faster);
      best.refused = refused;
    }
  }
  return best;
}
