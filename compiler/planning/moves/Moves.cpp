#include "compiler/planning/moves/Moves.h"

#include "compiler/planning/moves/FileMoves.h"
#include "compiler/planning/moves/Transfers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

using namespace tmc::planning;

namespace {

using Kind = Projection::Kind;

/// The planned list and the transfers that it needs.
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
    absl::StatusOr<Profile> profile = simulate(projection.problem, solution);
    if (!profile.ok())
      return profile.status();
    // The maximum over all trips that a segment shows.
    std::vector<int64_t> live(planned.size(), 0);
    for (size_t t = 0; t < profile->moments.size(); ++t) {
      const Profile::Moment &at = profile->moments[t];
      int64_t &most = live[beginOf(size_t(at.segment)) + size_t(at.index)];
      most = std::max(most, profile->liveBytes[t]);
    }
    std::vector<TransferSegment> segments;
    for (size_t s = 0; s < ends.size(); ++s)
      segments.push_back({ends[s], whole.segments[s].trips});
    std::vector<const Recipe *> kernels(planned.size(), nullptr);
    for (size_t e = 0; e < planned.size(); ++e)
      if (isKernel(e))
        kernels[e] = &recipeOf(e);
    Transfers transfers(
        whole, std::move(segments), std::move(kernels), std::move(live),
        liveBytes < 0 ? std::numeric_limits<int64_t>::max() : liveBytes);
    findTransfers(transfers);
    transfers.place(isEager);
    return build(transfers);
  }

private:
  /// Segments stand one after another. A transfer begins and ends in one
  /// segment, between two places of `planned`; the last is the end of its list.
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
  // Transfers
  //===--------------------------------------------------------------------===//

  /// A value fetched in several segments is a projected value in each of them;
  /// here it is one. Otherwise an entry of a later segment, inserted for a
  /// kernel of an earlier one, would write beside the segment's own.
  size_t keyOf(ValueId v) const {
    return projection.values[v] == kNone ? whole.values.size() + size_t(v)
                                         : size_t(projection.values[v]);
  }
  size_t keys() const { return whole.values.size() + projection.values.size(); }

  /// An entry of the planned list that reads or writes a value.
  struct Touch {
    size_t entry;
    bool reads, writes;
  };

  void indexTouches() {
    touches.resize(keys());
    for (size_t e = 0; e < planned.size(); ++e) {
      if (!isEntry(e))
        continue;
      for (ValueId v : recipeOf(e).reads)
        touches[keyOf(v)].push_back({e, true, false});
      for (ValueId v : recipeOf(e).writes)
        touches[keyOf(v)].push_back({e, false, true});
    }
  }
  /// Index of the first touch at `e` or after it.
  static size_t touchAt(const std::vector<Touch> &list, size_t e) {
    return size_t(std::lower_bound(list.begin(), list.end(), e,
                                   [](const Touch &touch, size_t entry) {
                                     return touch.entry < entry;
                                   }) -
                  list.begin());
  }

  /// The first entry after `e` that reads the instance written by `e`; none if
  /// no entry does or the value is written again first. The step's end reads
  /// values that go home.
  std::optional<size_t> readerOf(size_t e, ValueId v) const {
    const std::vector<Touch> &list = touches[keyOf(v)];
    if (size_t i = touchAt(list, e + 1); i < list.size())
      return list[i].reads ? std::optional(list[i].entry) : std::nullopt;
    if (projection.problem.values[v].kind == ValueKind::Persistent)
      return planned.size();
    return std::nullopt;
  }
  /// The place after the last read of the instance of `v` that is there at `e`,
  /// and the first place from there on that writes `v` anew.
  std::pair<size_t, size_t> lifeFrom(size_t e, ValueId v) const {
    const std::vector<Touch> &list = touches[keyOf(v)];
    size_t i = touchAt(list, e), last = e;
    for (; i < list.size() && list[i].reads; ++i)
      last = list[i].entry + 1;
    return {last, i < list.size() ? list[i].entry : planned.size()};
  }
  /// The first place after the last use of the instance before `e`'s.
  size_t readBefore(size_t e, ValueId v) const {
    const std::vector<Touch> &list = touches[keyOf(v)];
    const size_t i = touchAt(list, e);
    return i ? list[i - 1].entry + 1 : 0;
  }
  bool isPersistent(ValueId v) const {
    return projection.problem.values[v].kind == ValueKind::Persistent;
  }

  void findTransfers(Transfers &t) {
    indexTouches();
    findWorks(t);
    std::vector<size_t> madeAt(keys(), 0);
    hasStash.assign(keys(), 0);
    for (size_t e = 0; e < planned.size(); ++e) {
      if (!isEntry(e))
        continue;
      const Projection::Origin &origin = originOf(e);
      const Recipe &r = recipeOf(e);
      if (origin.kind == Kind::Stash) {
        const ValueId v = r.reads[0];
        addStash(t, origin.recipe, v, std::max(madeAt[keyOf(v)] + 1, e), e);
      } else if (origin.kind == Kind::Fetch) {
        const ValueId v = r.writes[0];
        if (std::optional<size_t> reader = readerOf(e, v)) {
          if (origin.stash != kNone && !hasStash[keyOf(v)]) {
            const size_t maker = touches[keyOf(v)].front().entry;
            addStash(t, origin.stash, v, maker + 1, maker);
          }
          addFetch(t, origin.recipe, v, e, *reader);
        }
      }
      for (ValueId v : r.writes)
        madeAt[keyOf(v)] = e;
    }
    endBeforeOverwrites(t);
    std::stable_sort(
        t.stashes.begin(), t.stashes.end(),
        [](const Transfer &a, const Transfer &b) { return a.first < b.first; });
    std::stable_sort(
        t.fetches.begin(), t.fetches.end(),
        [](const Transfer &a, const Transfer &b) { return a.done < b.done; });
  }

  Transfer transfer(RecipeId recipe, ValueId v, size_t place) const {
    Transfer made;
    made.recipe = recipe;
    made.value = projection.values[v];
    made.bytes = whole.values[made.value].bytes;
    made.begin = beginOf(segmentOf(place)), made.end = endOf(place);
    return made;
  }

  void findWorks(Transfers &t) {
    workOn.assign(whole.values.size(), kNone), workOf = workOn;
    for (size_t e = 0; e < planned.size(); ++e)
      if (isEntry(e) && originOf(e).kind == Kind::Work) {
        Transfer work;
        work.recipe = originOf(e).recipe;
        work.instruction = originOf(e).instruction;
        work.first = e + 1;
        work.begin = beginOf(segmentOf(e)), work.end = work.last = endOf(e);
        for (ValueId v : whole.recipes[work.recipe].reads)
          if (ValueId main = whole.contentOf(v); workOn[main] == kNone)
            workOn[main] = int32_t(t.works.size());
        for (ValueId v : whole.recipes[work.recipe].writes)
          workOf[whole.contentOf(v)] = int32_t(t.works.size());
        t.works.push_back(work);
      }
  }

  void addStash(Transfers &t, RecipeId recipe, ValueId v, size_t first,
                size_t place) {
    hasStash[keyOf(v)] = 1;
    Transfer stash = transfer(recipe, v, place);
    stash.work = workOn[stash.value];
    stash.isIdle = stash.work != kNone && isPersistent(v);
    // A value that is there at the step's begin may be copied at any time.
    const std::vector<Touch> &uses = touches[keyOf(v)];
    if (stash.isIdle && (uses.empty() || !uses.front().writes))
      first = stash.begin;
    stash.first = std::min(first, stash.end);
    const auto [last, next] = lifeFrom(stash.first, v);
    // The stash reads the instance at `first`, so it ends before that dies.
    stash.last = std::min(stash.end, std::max(stash.first, last));
    stash.nextWrite = next;
    t.stashes.push_back(stash);
  }

  void addFetch(Transfers &t, RecipeId recipe, ValueId v, size_t e,
                size_t reader) {
    Transfer fetch = transfer(recipe, v, e);
    fetch.first = e;
    fetch.last = readBefore(e, v);
    fetch.done = std::min(reader, fetch.end);
    fetch.work = workOf[fetch.value];
    fetch.isIdle =
        fetch.work != kNone && isPersistent(v) && reader >= fetch.end;
    if (fetch.work != kNone && !fetch.isIdle) {
      // The plan has it right after its work, which may start later.
      fetch.first = fetch.done;
      size_t &last = t.works[fetch.work].last;
      last = std::min(last, fetch.done);
    }
    t.fetches.push_back(fetch);
  }

  /// A fetch from a home is done before work that overwrites the home starts.
  void endBeforeOverwrites(Transfers &t) const {
    std::map<ValueId, size_t> overwrittenAt; // Entries, per main form.
    for (const Transfer &work : t.works)
      for (ValueId v : whole.recipes[work.recipe].writes)
        if (ValueId old = whole.values[v].updates; old != kNone)
          overwrittenAt[whole.contentOf(old)] = work.first - 1;
    for (Transfer &fetch : t.fetches)
      if (auto it = overwrittenAt.find(whole.contentOf(fetch.value));
          it != overwrittenAt.end() && fetch.first <= it->second)
        fetch.done = std::min(fetch.done, it->second);
  }

  //===--------------------------------------------------------------------===//
  // The list
  //===--------------------------------------------------------------------===//

  absl::StatusOr<MovedPlan> build(const Transfers &transfers) {
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
    // Ends come before starts, to free room; each queue keeps its order.
    for (const Transfer &t : transfers.stashes)
      add(t, 0, 1);
    for (const Transfer &t : transfers.works)
      add(t, 2, 5);
    for (const Transfer &t : transfers.fetches)
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
  std::vector<Execution> planned;          // For all segments.
  std::vector<size_t> ends;                // Per segment.
  std::vector<std::vector<Touch>> touches; // By `keyOf`, in order.
  std::vector<char> hasStash;              // By `keyOf`.
  /// Per content: the first work that reads a form, and the work that writes
  /// one.
  std::vector<int32_t> workOn, workOf;
};

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
  if (!moved.ok() || fitsBudgets(problem, moved->peakBytes, 1))
    return moved;
  // Early fetches leave room on the host.
  absl::StatusOr<MovedPlan> eager = place(true);
  return eager.ok() && fitsBudgets(problem, eager->peakBytes, 1) ? eager
                                                                 : moved;
}
