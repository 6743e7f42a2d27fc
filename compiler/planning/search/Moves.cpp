#include "compiler/planning/search/Moves.h"

#include "compiler/planning/search/FileMoves.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

using namespace tmc::planning;

namespace {

using Kind = Projection::Kind;

/// The planned list, and the transfers that it asks for.
class Placer {
public:
  Placer(const Problem &whole, const SpaceChoice &choice,
         const Projection &projection, const Solution &solution)
      : whole(whole), choice(choice), projection(projection) {
    for (const std::vector<Execution> &list : solution.segments) {
      if (!ends.empty())
        planned.push_back({}); // The place at the end of a segment.
      planned.insert(planned.end(), list.begin(), list.end());
      ends.push_back(planned.size());
    }
  }

  /// `isEager`: fetches start as soon as there is room.
  absl::StatusOr<MovedPlan> run(const Solution &solution, int64_t liveBytes,
                                bool isEager) {
    this->isEager = isEager;
    absl::StatusOr<Profile> profile = simulate(projection.problem, solution);
    if (!profile.ok())
      return profile.status();
    // Of all trips that a segment shows, the most.
    live.assign(planned.size(), 0);
    for (size_t t = 0; t < profile->moments.size(); ++t) {
      const Profile::Moment &at = profile->moments[t];
      int64_t &most = live[beginOf(size_t(at.segment)) + size_t(at.index)];
      most = std::max(most, profile->liveBytes[t]);
    }
    limit = liveBytes < 0 ? std::numeric_limits<int64_t>::max() : liveBytes;
    nominalTimes();
    findTransfers();
    absl::StatusOr<MovedPlan> best = absl::InternalError("no round");
    constexpr int kRounds = 4; // More were seen to change nothing.
    for (int round = 0; round < kRounds; ++round) {
      place();
      absl::StatusOr<MovedPlan> made = build();
      if (!made.ok())
        return made.status();
      bool better = !best.ok() || made->makespan < best->makespan;
      if (!better)
        break;
      best = std::move(made);
      takeTimes(best->solution);
    }
    return best;
  }

private:
  /// One run of a move or of work on the host. Its Start stands before entry
  /// `start` of the planned list, its Done before entry `done`.
  struct Transfer {
    Kind kind;
    RecipeId recipe;
    InstructionId instruction = kNone;
    ValueId value = kNone; // Of the device.
    /// Stash: the first entry behind its maker, and the one until which the
    /// value is there anyway. Fetch: `first` is where the plan has it.
    size_t first = 0, last = 0;
    size_t start = 0, done = 0;
    size_t begin = 0, end = 0; // Of its segment.
    ValueId copy = kNone;      // The projection's value.
    /// A stash of what work overwrites on the host is done when that starts.
    size_t latest = std::numeric_limits<size_t>::max();
  };

  /// Segments stand one behind the other. A transfer begins and ends in one:
  /// between two places of `planned`, the end of the segment's list the last.
  size_t beginOf(size_t segment) const {
    return segment ? ends[segment - 1] + 1 : 0;
  }
  size_t segmentOf(size_t place) const {
    return size_t(std::lower_bound(ends.begin(), ends.end(), place) -
                  ends.begin());
  }
  size_t endOf(size_t place) const { return ends[segmentOf(place)]; }
  bool isEntry(size_t e) const {
    return e < planned.size() && planned[e].recipe != kNone;
  }
  const Projection::Origin &originOf(size_t e) const {
    return projection.origins[planned[e].recipe];
  }
  bool isKernel(size_t e) const {
    return isEntry(e) && originOf(e).kind == Kind::Kernel;
  }
  const Recipe &recipeOf(size_t e) const {
    return projection.problem.recipes[planned[e].recipe];
  }

  //===--------------------------------------------------------------------===//
  // What is to be moved
  //===--------------------------------------------------------------------===//

  /// An entry of the planned list that reads or writes a value.
  struct Touch {
    size_t entry;
    bool reads, writes;
  };

  void indexTouches() {
    touches.resize(projection.values.size());
    for (size_t e = 0; e < planned.size(); ++e) {
      if (!isEntry(e))
        continue;
      for (ValueId v : recipeOf(e).reads)
        touches[v].push_back({e, true, false});
      for (ValueId v : recipeOf(e).writes)
        touches[v].push_back({e, false, true});
    }
  }
  const std::vector<Touch> &touchesOf(const Transfer &t) const {
    return touches[t.copy];
  }
  /// The first that is at `e` or behind it.
  static size_t touchAt(const std::vector<Touch> &list, size_t e) {
    return size_t(std::lower_bound(list.begin(), list.end(), e,
                                   [](const Touch &touch, size_t entry) {
                                     return touch.entry < entry;
                                   }) -
                  list.begin());
  }

  /// The first entry after `e` that reads what `e` writes; none if nobody does
  /// or it is written again before. What goes home is read by the step's end.
  std::optional<size_t> readerOf(size_t e, ValueId v) const {
    const std::vector<Touch> &list = touches[v];
    if (size_t i = touchAt(list, e + 1); i < list.size())
      return list[i].reads ? std::optional(list[i].entry) : std::nullopt;
    if (projection.problem.values[v].kind == ValueKind::Persistent)
      return planned.size();
    return std::nullopt;
  }
  /// The entry behind the last that reads the instance which the stash reads.
  size_t lastUse(const Transfer &t) const {
    const std::vector<Touch> &list = touchesOf(t);
    size_t last = t.first;
    for (size_t i = touchAt(list, t.first); i < list.size() && list[i].reads;
         ++i)
      last = list[i].entry + 1;
    return last;
  }
  /// The first entry behind the stash's start that writes the value anew.
  size_t nextWrite(const Transfer &t) const {
    const std::vector<Touch> &list = touchesOf(t);
    for (size_t i = touchAt(list, t.first); i < list.size(); ++i)
      if (list[i].writes)
        return list[i].entry;
    return planned.size();
  }
  /// The first entry behind the last use of the instance before a fetch's.
  size_t readBefore(const Transfer &t) const {
    const std::vector<Touch> &list = touchesOf(t);
    const size_t i = touchAt(list, t.first);
    return i ? list[i - 1].entry + 1 : 0;
  }

  void findTransfers() {
    indexTouches();
    std::vector<size_t> madeAt(projection.values.size(), 0);
    std::map<ValueId, size_t> stashOf; // Of device values, into `stashes`.
    for (size_t e = 0; e < planned.size(); ++e) {
      if (!isEntry(e))
        continue;
      const size_t begin = beginOf(segmentOf(e)), end = endOf(e);
      const Projection::Origin &origin = originOf(e);
      const Recipe &r = recipeOf(e);
      if (origin.kind == Kind::Stash) {
        ValueId v = r.reads[0];
        stashOf[v] = stashes.size();
        stashes.push_back({origin.kind, origin.recipe, kNone,
                           projection.values[v], std::max(madeAt[v] + 1, e), e,
                           0, 0, begin, end, v});
      } else if (origin.kind == Kind::Work) {
        works.push_back({origin.kind, origin.recipe, origin.instruction, kNone,
                         e + 1, e + 1, e + 1, end, begin, end});
      } else if (origin.kind == Kind::Fetch) {
        ValueId v = r.writes[0];
        std::optional<size_t> reader = readerOf(e, v);
        if (!reader)
          continue;
        if (origin.stash != kNone && !stashOf.count(v)) {
          const size_t maker = touches[v].front().entry;
          stashOf[v] = stashes.size();
          stashes.push_back({Kind::Stash, origin.stash, kNone,
                             projection.values[v], maker + 1, e, 0, 0,
                             beginOf(segmentOf(maker)), endOf(maker), v});
        }
        fetches.push_back({origin.kind, origin.recipe, kNone,
                           projection.values[v], e, 0, e,
                           std::min(*reader, end), begin, end, v});
      }
      for (ValueId v : r.writes)
        madeAt[v] = e;
    }
    // A stash reads the instance that is there first: until it dies.
    for (Transfer &t : stashes)
      t.last = std::min(t.end, std::max(t.first, lastUse(t)));
    endBeforeOverwrites();
    startLent();
    std::stable_sort(
        stashes.begin(), stashes.end(),
        [](const Transfer &a, const Transfer &b) { return a.first < b.first; });
    std::stable_sort(
        fetches.begin(), fetches.end(),
        [](const Transfer &a, const Transfer &b) { return a.done < b.done; });
  }

  /// A fetch from a home is done when work that overwrites the home starts.
  void endBeforeOverwrites() {
    std::map<ValueId, size_t> overwrittenAt; // Entries, of main forms.
    for (const Transfer &t : works)
      for (ValueId v : whole.recipes[t.recipe].writes)
        if (ValueId old = whole.values[v].updates; old != kNone)
          overwrittenAt[whole.contentOf(old)] = t.start - 1;
    for (Transfer &t : fetches)
      if (auto it = overwrittenAt.find(whole.contentOf(t.value));
          it != overwrittenAt.end() && t.first <= it->second)
        t.done = std::min(t.done, it->second);
  }

  /// What is at home on the device and updated on the host has to be there
  /// when the work starts, and may go as soon as the segment begins. It goes so
  /// late that the link has time for it and for as many bytes of gradients.
  void startLent() {
    std::map<ValueId, size_t> placeOf; // Of works, by what they overwrite.
    for (const Transfer &t : works)
      for (const Overwrite &o : whole.recipes[t.recipe].overwrites)
        if (o.must)
          placeOf[whole.contentOf(o.read)] = t.start;
    int64_t next = std::numeric_limits<int64_t>::max();
    for (size_t i = stashes.size(); i-- > 0;) {
      Transfer &t = stashes[i];
      auto work = placeOf.find(whole.contentOf(t.value));
      if (work == placeOf.end() ||
          whole.values[t.value].kind != ValueKind::Persistent)
        continue;
      t.latest = work->second;
      next = std::min(next, begin[work->second]) -
             2 * whole.recipes[t.recipe].cost;
      const size_t at = entryAt(std::max<int64_t>(next, 0));
      t.first = std::clamp(at > 0 ? at - 1 : 0, t.begin, t.first);
    }
  }

  //===--------------------------------------------------------------------===//
  // Where it should be
  //===--------------------------------------------------------------------===//

  void nominalTimes() {
    begin.assign(planned.size() + 1, 0);
    for (size_t e = 0; e < planned.size(); ++e)
      begin[e + 1] = begin[e] + (isKernel(e) ? recipeOf(e).cost : int64_t(0));
  }

  /// When kernels run in a list that was built of this plan (R12).
  void takeTimes(const Solution &solution) {
    std::vector<int64_t> free(whole.engines.size(), 0),
        made(whole.values.size(), 0);
    int64_t compute = 0;
    for (size_t s = 0; s < ends.size(); ++s) {
      takeTimes(solution.segments[s], beginOf(s), ends[s], free, made, compute);
      // At the border of a trip every engine is idle.
      compute = std::max(compute, *std::max_element(free.begin(), free.end()));
      std::fill(free.begin(), free.end(), compute);
    }
  }
  void takeTimes(const std::vector<Execution> &list, size_t e, size_t end,
                 std::vector<int64_t> &free, std::vector<int64_t> &made,
                 int64_t &compute) {
    std::map<int32_t, int64_t> endTimes;
    int64_t done = compute;
    auto reach = [&](size_t entry) {
      for (; e <= entry; ++e)
        begin[e] = compute;
    };
    for (const Execution &x : list) {
      const Recipe &r = whole.recipes[x.recipe];
      if (x.phase == Phase::Whole) {
        while (e < end && !isKernel(e))
          begin[e++] = compute;
        reach(e);
        compute += r.cost;
      } else if (x.phase == Phase::Start) {
        int64_t from = std::max({free[r.engine], compute, done});
        for (ValueId v : r.reads)
          from = std::max(from, made[v]);
        endTimes[x.work] = free[r.engine] = from + r.cost;
        for (ValueId v : r.writes)
          made[v] = from + r.cost;
      } else {
        done = std::max(done, endTimes[x.work]);
        if (whole.touchesDevice(r))
          compute = std::max(compute, done);
      }
    }
    reach(end);
  }

  /// The first entry that begins at `time` or later.
  size_t entryAt(int64_t time) const {
    return size_t(std::lower_bound(begin.begin(), begin.end(), time) -
                  begin.begin());
  }

  void take(size_t from, size_t to, int64_t bytes) {
    for (size_t e = from; e < to; ++e)
      room[e] -= bytes;
  }

  void place() {
    room.resize(live.size());
    for (size_t e = 0; e < live.size(); ++e)
      room[e] = limit - live[e];
    placeStashes();
    placeFetches();
  }

  void placeStashes() {
    // Each begins as soon as its value is made and the link is free.
    std::vector<size_t> wanted(stashes.size());
    int64_t free = 0;
    for (size_t i = 0; i < stashes.size(); ++i) {
      Transfer &t = stashes[i];
      t.start = t.first;
      free = std::max(free, begin[t.first]) + whole.recipes[t.recipe].cost;
      wanted[i] = std::min(entryAt(free), t.end);
    }
    std::map<ValueId, size_t> fetched; // Where a value comes back first.
    for (const Transfer &t : fetches)
      if (auto [it, isNew] = fetched.try_emplace(t.value, t.first); !isNew)
        it->second = std::min(it->second, t.first);
    // The last first: one that must end early makes those before it do so.
    size_t latest = planned.size();
    for (size_t i = stashes.size(); i-- > 0;) {
      Transfer &t = stashes[i];
      size_t end = std::min({wanted[i], latest, nextWrite(t), t.latest});
      if (auto it = fetched.find(t.value); it != fetched.end())
        end = std::min(end, it->second);
      end = std::max(end, t.first);
      int64_t bytes = whole.values[t.value].bytes;
      size_t done = std::min(t.last, end);
      while (done < end && done < room.size() && room[done] >= bytes)
        ++done;
      if (done > t.last)
        take(t.last, done, bytes);
      t.done = done;
      latest = std::min(latest, done);
    }
    for (size_t i = 1; i < stashes.size(); ++i) // Its own start is the least.
      stashes[i].done =
          std::max({stashes[i].done, stashes[i].start, stashes[i - 1].done});
  }

  void placeFetches() {
    // Each ends when it is wanted, or when the next one has to begin.
    std::vector<size_t> wanted(fetches.size());
    int64_t next = std::numeric_limits<int64_t>::max();
    for (size_t i = fetches.size(); i-- > 0;) {
      const Transfer &t = fetches[i];
      int64_t end = std::min(next, begin[t.done]);
      next = end - whole.recipes[t.recipe].cost;
      // Before the last entry that has begun by then.
      size_t at = entryAt(next);
      if (at > 0 && (at >= begin.size() || begin[at] > next))
        --at;
      wanted[i] = next < 0 || isEager ? 0 : at;
    }
    std::map<ValueId, size_t> stashed; // Since when it is elsewhere.
    for (const Transfer &t : stashes)
      stashed[t.value] = t.done;
    for (const Transfer &t : works) // They are waited for.
      for (ValueId v : whole.recipes[t.recipe].writes)
        stashed[whole.contentOf(v)] = t.start;
    size_t earliest = 0;
    for (size_t i = 0; i < fetches.size(); ++i) {
      Transfer &t = fetches[i];
      const size_t latest = std::min(t.first, t.done);
      size_t least = std::max({earliest, readBefore(t), t.begin});
      if (auto it = stashed.find(t.value); it != stashed.end())
        least = std::max(least, it->second);
      least = std::max(least, wanted[i]);
      int64_t bytes = whole.values[t.value].bytes;
      size_t start = latest;
      while (start > least && start > 0 && room[start - 1] >= bytes)
        --start;
      if (start < latest)
        take(start, latest, bytes);
      t.start = std::max(start, std::min(earliest, t.done));
      earliest = std::max(earliest, t.start);
    }
  }

  //===--------------------------------------------------------------------===//
  // The list
  //===--------------------------------------------------------------------===//

  absl::StatusOr<MovedPlan> build() {
    MovedPlan made;
    made.solution.homes = choice.homes;
    made.solution.segments.resize(ends.size());
    size_t segment = 0;
    std::vector<int32_t> numbers(ends.size(), 0);
    std::vector<std::vector<std::pair<int, Execution>>> before(planned.size() +
                                                               1);
    auto add = [&](const Transfer &t, int startRank, int doneRank) {
      const int32_t work = numbers[segmentOf(t.end)]++;
      before[t.start].push_back(
          {startRank, {t.recipe, t.instruction, {}, Phase::Start, work}});
      before[t.done].push_back(
          {doneRank, {t.recipe, t.instruction, {}, Phase::Done, work}});
    };
    // What ends makes room before what begins; a queue keeps its order.
    for (const Transfer &t : stashes)
      add(t, 0, 1);
    for (const Transfer &t : works)
      add(t, 2, 5);
    for (const Transfer &t : fetches)
      add(t, 3, 4);
    for (size_t e = 0; e <= planned.size(); ++e) {
      std::stable_sort(
          before[e].begin(), before[e].end(),
          [](const auto &a, const auto &b) { return a.first < b.first; });
      std::vector<Execution> &list = made.solution.segments[segment];
      for (auto &[rank, execution] : before[e])
        list.push_back(std::move(execution));
      if (e == ends[segment])
        ++segment;
      if (e < planned.size() && isKernel(e)) {
        const Projection::Origin &origin = originOf(e);
        bool isOwn = planned[e].instruction != kNone;
        list.push_back({origin.recipe, isOwn ? origin.instruction : kNone, {}});
      }
    }
    takeOverwrites(whole, made.solution);
    absl::StatusOr<Profile> profile = simulate(whole, made.solution);
    if (!profile.ok())
      return profile.status();
    made.makespan = profile->makespan;
    made.peakBytes = profile->spacePeakBytes;
    return made;
  }

  const Problem &whole;
  const SpaceChoice &choice;
  const Projection &projection;
  std::vector<Execution> planned; // All segments'.
  std::vector<size_t> ends;       // Of segments.
  std::vector<Transfer> stashes, fetches, works;
  std::vector<std::vector<Touch>> touches; // Of projected values, in order.
  std::vector<int64_t> live, room, begin;
  int64_t limit = 0;
  bool isEager = false;
};

/// Within the budgets of all spaces but the device's.
bool fitsBeside(const Problem &problem, const MovedPlan &plan) {
  for (size_t s = 1; s < problem.spaces.size(); ++s)
    if (int64_t budget = problem.spaces[s].budgetBytes;
        budget >= 0 &&
        plan.peakBytes[s] + problem.reservedOf(SpaceId(s)) > budget)
      return false;
  return true;
}

} // namespace

absl::StatusOr<MovedPlan>
tmc::planning::placeMoves(const Problem &problem, const SpaceChoice &choice,
                          const Projection &projection, const Solution &planned,
                          int64_t liveBytes) {
  auto place = [&](bool isEager) -> absl::StatusOr<MovedPlan> {
    absl::StatusOr<MovedPlan> moved =
        Placer(problem, choice, projection, planned)
            .run(planned, liveBytes, isEager);
    return moved.ok() ? moveToFile(problem, std::move(*moved)) : moved;
  };
  absl::StatusOr<MovedPlan> moved = place(false);
  if (!moved.ok() || fitsBeside(problem, *moved))
    return moved;
  // What has been fetched early leaves room on the host.
  absl::StatusOr<MovedPlan> eager = place(true);
  return eager.ok() && fitsBeside(problem, *eager) ? eager : moved;
}
