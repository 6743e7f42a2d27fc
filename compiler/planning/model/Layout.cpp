// Layout.cpp - lays out a solution's segments, trip by trip.

#include "compiler/planning/model/Checks.h"
#include "compiler/planning/model/Timeline.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace tmc::planning;

namespace {

absl::Status broken(const std::string &what) {
  return absl::FailedPreconditionError(what);
}

class Layout {
public:
  Layout(const Problem &problem, const Solution &solution);
  absl::StatusOr<Timeline> run();

  std::vector<ShownTrip> *trips = nullptr; // Those shown are added, if wanted.

private:
  void beginSegment(SegmentId s);
  void beginTrip(SegmentId s, int32_t trip);
  void carry(const std::vector<ValueId> &values, int32_t trip);
  absl::Status layTrip(SegmentId s, int32_t trip, int64_t times);
  absl::Status layEntry(SegmentId s, int32_t trip, int32_t index);
  void layDone(const Execution &entry);
  absl::Status layReads(const Recipe &recipe, SegmentId s, int32_t index);
  absl::Status layWrites(const Recipe &recipe, int32_t t);
  absl::Status keepWhatStays();
  absl::Status takeStorage();
  absl::Status takeHomes();
  void countSpaces();

  const Execution &executionAt(size_t t) const {
    const Profile::Moment &m = timeline.moments[t];
    return solution.segments[m.segment][m.index];
  }
  bool movesNothing(const Recipe &recipe) const {
    return problem.isCopy(recipe) && isNothing[recipe.reads[0]];
  }

  const Problem &problem;
  const Solution &solution;
  Timeline timeline;
  std::vector<ValueId> home;    // Home of each value's content.
  std::vector<int32_t> current; // Instance of each value.
  std::vector<int32_t> outside; // The same, before the segment.
  /// Distinguishes nothing (a first trip's) from a value that isn't made yet.
  std::vector<char> isNothing;
  std::vector<std::vector<ValueId>> carried; // Per segment.
  const std::vector<int32_t> lags;           // Per segment.
  std::vector<std::vector<int32_t>> ended;   // `current` after each trip.

  // State of the current trip.
  TripTimes clock;
  int32_t firstMoment = 0;
  std::vector<int32_t> doneAt;    // Per Start: the index of its Done.
  std::vector<int32_t> workStart; // By `work`; kNone: it moves nothing.
  std::vector<int32_t> inFlight;  // Per value: last moment of its work.
  std::vector<int32_t> makers;    // The current entry waits for them.
};

Layout::Layout(const Problem &problem, const Solution &solution)
    : problem(problem), solution(solution), home(homesOf(problem, solution)),
      current(problem.values.size(), kNone),
      isNothing(problem.values.size(), 0), carried(problem.segments.size()),
      lags(lagsOf(problem)), clock(problem.engines.size()),
      inFlight(problem.values.size(), kNone) {
  std::vector<SegmentId> madeIn(problem.values.size(), kNone);
  for (const Instruction &i : problem.instructions)
    for (ValueId v : problem.recipes[i.recipes.front()].writes)
      madeIn[problem.contentOf(v)] = i.segment;
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const Value &value = problem.values[v];
    if (value.kind == ValueKind::Carried)
      carried[madeIn[problem.contentOf(value.carriedFrom)]].push_back(
          ValueId(v));
    if (value.kind == ValueKind::Persistent && value.updates == kNone &&
        home[v] == ValueId(v))
      current[v] = timeline.addInitial(ValueId(v));
  }
}

absl::StatusOr<Timeline> Layout::run() {
  timeline.engineBusy.resize(problem.engines.size());
  timeline.tripLengths.resize(problem.segments.size());
  for (SegmentId s = 0; s < SegmentId(problem.segments.size()); ++s) {
    beginSegment(s);
    int32_t shown = shownTrips(problem, s);
    int64_t trips = problem.segments[s].trips;
    for (int32_t trip = 0; trip < shown; ++trip) {
      beginTrip(s, trip);
      // The middle trip stands for all trips that aren't shown.
      const int32_t lag = lags[size_t(s)];
      int64_t times = trip == lag && shown == 2 * lag + 1 ? trips - 2 * lag : 1;
      if (absl::Status status = layTrip(s, trip, times); !status.ok())
        return status;
    }
  }
  if (absl::Status status = keepWhatStays(); !status.ok())
    return status;
  timeline.finish();
  if (absl::Status status = takeStorage(); !status.ok())
    return status;
  countSpaces();
  return std::move(timeline);
}

void Layout::beginSegment(SegmentId s) {
  outside = current;
  ended.clear();
  const std::vector<Execution> &list = solution.segments[s];
  std::vector<int32_t> startOf;
  doneAt.assign(list.size(), kNone);
  for (size_t i = 0; i < list.size(); ++i) {
    doneAt[i] = int32_t(i);
    if (list[i].work == kNone)
      continue;
    startOf.resize(std::max(startOf.size(), size_t(list[i].work) + 1), kNone);
    if (list[i].phase == Phase::Start)
      startOf[list[i].work] = int32_t(i);
    else
      doneAt[startOf[list[i].work]] = int32_t(i);
  }
  workStart.assign(startOf.size(), kNone);
}

/// Carried values become the values that the trip before left. All other values
/// that the trip before wrote are forgotten (R7).
void Layout::beginTrip(SegmentId s, int32_t trip) {
  clock.clear();
  firstMoment = int32_t(timeline.size());
  if (trip > 0)
    ended.push_back(current);
  std::vector<int32_t> bindings;
  for (ValueId c : carried[s]) {
    const Value &value = problem.values[c];
    if (trip >= value.lag)
      bindings.push_back(ended[size_t(trip - value.lag)][value.carriedFrom]);
    else
      bindings.push_back(value.initial == kNone ? kNone
                                                : outside[value.initial]);
  }
  current = outside;
  std::fill(isNothing.begin(), isNothing.end(), 0);
  for (size_t i = 0; i < carried[s].size(); ++i) {
    ValueId c = carried[s][i];
    current[c] = bindings[i];
    isNothing[c] =
        trip < problem.values[c].lag && problem.values[c].initial == kNone;
  }
}

absl::Status Layout::layTrip(SegmentId s, int32_t trip, int64_t times) {
  for (int32_t i = 0; i < int32_t(solution.segments[s].size()); ++i)
    if (absl::Status status = layEntry(s, trip, i); !status.ok())
      return status;
  if (trips)
    trips->push_back({times, clock});
  clock.run();
  for (int32_t i = 0; i < int32_t(clock.times.size()); ++i) {
    const Execution &entry = solution.segments[s][i];
    const TimeSpan &time = clock.times[i];
    if (entry.phase != Phase::Done)
      timeline.engineBusy[problem.recipes[entry.recipe].engine] +=
          (time.end - time.begin) * times;
  }
  timeline.times.insert(timeline.times.end(), clock.times.begin(),
                        clock.times.end());
  timeline.makespan += clock.length * times;
  timeline.tripLengths[s].push_back(clock.length);
  return absl::OkStatus();
}

absl::Status Layout::layEntry(SegmentId s, int32_t trip, int32_t index) {
  const Execution &entry = solution.segments[s][index];
  const Recipe &recipe = problem.recipes[entry.recipe];
  int32_t t = timeline.addMoment(doneAt[index] - index);
  timeline.moments.push_back({s, trip, index});
  timeline.isIdle.push_back(0);
  if (entry.phase == Phase::Done) {
    layDone(entry);
    return absl::OkStatus();
  }
  if (absl::Status status = layReads(recipe, s, index); !status.ok())
    return status;
  bool nothing = movesNothing(recipe);
  bool idle = nothing && problem.isMove(recipe);
  timeline.isIdle[t] = idle;
  makers.clear();
  for (int32_t i : timeline.readsAt(t))
    if (i != kNone && timeline.instances[i].made > t)
      makers.push_back(timeline.instances[i].begin - firstMoment);
  clock.add({idle ? nullptr : &recipe, entry.phase}, makers);
  if (entry.phase == Phase::Start)
    workStart[entry.work] = idle ? kNone : t - firstMoment;
  if (nothing) {
    current[recipe.writes[0]] = kNone;
    isNothing[recipe.writes[0]] = 1;
    return absl::OkStatus();
  }
  return layWrites(recipe, t);
}

void Layout::layDone(const Execution &entry) {
  const Recipe &recipe = problem.recipes[entry.recipe];
  const int32_t start = workStart[entry.work];
  timeline.isIdle.back() = start == kNone;
  clock.add({start == kNone ? nullptr : &recipe, Phase::Done, start,
             problem.touchesDevice(recipe)},
            {});
}

absl::Status Layout::layReads(const Recipe &recipe, SegmentId s,
                              int32_t index) {
  int32_t t = int32_t(timeline.size()) - 1;
  for (ValueId v : recipe.reads) {
    if (current[v] == kNone && !isNothing[v])
      return broken(absl::StrCat("'", recipe.name, "' at position ", index,
                                 " of segment '", problem.segments[s].name,
                                 "' reads '", problem.values[v].name,
                                 "' before it is made"));
    if (current[v] != kNone && recipe.engine == EngineId(kComputeEngine) &&
        timeline.instances[current[v]].made >= t)
      return broken(absl::StrCat("'", recipe.name, "' at position ", index,
                                 " of segment '", problem.segments[s].name,
                                 "' reads '", problem.values[v].name,
                                 "' before the work that makes it is done"));
    timeline.read(current[v]);
  }
  return absl::OkStatus();
}

absl::Status Layout::layWrites(const Recipe &recipe, int32_t t) {
  for (ValueId v : recipe.writes) {
    if (inFlight[v] > t)
      return broken(absl::StrCat("'", recipe.name, "' writes '",
                                 problem.values[v].name,
                                 "' while other work reads or writes it"));
    current[v] = timeline.write(v);
    isNothing[v] = 0;
  }
  if (recipe.engine != EngineId(kComputeEngine))
    for (const std::vector<ValueId> *list : {&recipe.reads, &recipe.writes})
      for (ValueId v : *list)
        inFlight[v] = std::max(inFlight[v], timeline.endOf(t));
  return absl::OkStatus();
}

absl::Status Layout::keepWhatStays() {
  std::vector<char> isUpdated(problem.values.size(), 0);
  for (const Value &value : problem.values)
    if (value.updates != kNone)
      isUpdated[value.updates] = 1;
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const Value &main = problem.values[problem.contentOf(ValueId(v))];
    bool stays =
        home[v] == ValueId(v) &&
        (main.kind == ValueKind::Persistent ? !isUpdated[v] : main.liveOut);
    if (!stays)
      continue;
    if (current[v] != kNone)
      timeline.keepToEnd(current[v]);
    else
      return broken(absl::StrCat("'", problem.values[v].name,
                                 "' is a home, but nothing makes it"));
  }
  return absl::OkStatus();
}

/// Sets `storageOf` for taken overwrites and for new contents at home.
absl::Status Layout::takeStorage() {
  for (size_t t = 0; t < timeline.size(); ++t) {
    const Execution &e = executionAt(t);
    if (e.phase == Phase::Done)
      continue;
    const Recipe &recipe = problem.recipes[e.recipe];
    for (int32_t o : e.overwrites) {
      if (o < 0 || size_t(o) >= recipe.overwrites.size())
        return broken(absl::StrCat("'", recipe.name, "' takes overwrite ", o,
                                   " of ", recipe.overwrites.size()));
      const Overwrite &overwrite = recipe.overwrites[o];
      int32_t written = timeline.writtenAt(t, overwrite.written, recipe);
      if (written != kNone)
        timeline.instances[written].storageOf =
            timeline.readAt(t, overwrite.read, recipe);
    }
  }
  return takeHomes();
}

/// R14: checks writes of homes of persistent contents, and gives each its
/// place.
absl::Status Layout::takeHomes() {
  std::vector<int32_t> initial(problem.values.size(), kNone);
  for (int32_t i = 0; i < int32_t(timeline.instances.size()); ++i) {
    Instance &instance = timeline.instances[i];
    ValueId v = instance.value;
    const Value &value = problem.values[v];
    if (instance.begin < 0) {
      initial[v] = i;
      continue;
    }
    if (home[v] != v || value.kind != ValueKind::Persistent)
      continue;
    SegmentId s = timeline.moments[instance.begin].segment;
    if (value.updates == kNone || initial[v] != kNone ||
        problem.segments[s].trips > 1)
      return broken(absl::StrCat("'", value.name,
                                 "' is a home, but is written ",
                                 value.updates == kNone ? "anew" : "twice"));
    initial[v] = i;
    const Recipe &maker = problem.recipes[executionAt(instance.begin).recipe];
    int32_t was = initial[value.updates];
    std::span<const int32_t> reads = timeline.readsAt(instance.begin);
    if (std::find(reads.begin(), reads.end(), was) != reads.end())
      continue; // By an overwrite, which `simulate` checks.
    if (instance.storageOf != kNone)
      return broken(absl::StrCat("'", value.name, "' is a home, but '",
                                 maker.name, "' overwrites another value"));
    instance.storageOf = was;
    timeline.instances[was].last =
        std::max(timeline.instances[was].last, instance.made);
  }
  return absl::OkStatus();
}

void Layout::countSpaces() {
  timeline.spaces.resize(problem.spaces.size());
  for (SpaceId s = 0; s < SpaceId(problem.spaces.size()); ++s) {
    std::vector<int64_t> bytes;
    for (const Value &value : problem.values)
      bytes.push_back(value.space == s ? value.bytes : 0);
    SpaceUse &space = timeline.spaces[s];
    space.liveBytes = timeline.liveBytes(bytes);
    std::vector<int64_t> scratch(timeline.size() + 1, 0); // Differences first.
    for (size_t t = 0; t < timeline.size(); ++t) {
      const Execution &e = executionAt(t);
      const Recipe &recipe = problem.recipes[e.recipe];
      if (e.phase == Phase::Done || recipe.workspaceSpace != s ||
          timeline.isIdle[t])
        continue;
      scratch[t] += recipe.workspaceBytes;
      scratch[timeline.endOf(t) + 1] -= recipe.workspaceBytes;
    }
    int64_t scratchBytes = 0;
    for (size_t t = 0; t < timeline.size(); ++t) {
      scratchBytes += scratch[t];
      space.liveBytes[t] += scratchBytes;
      if (t == 0 || space.liveBytes[t] > space.peakBytes) {
        space.peakBytes = space.liveBytes[t];
        space.peakMoment = t;
      }
    }
  }
}

} // namespace

absl::StatusOr<Timeline> tmc::planning::timelineOf(const Problem &problem,
                                                   const Solution &solution) {
  if (absl::Status status = checkLists(problem, solution); !status.ok())
    return status;
  return Layout(problem, solution).run();
}

absl::StatusOr<std::vector<ShownTrip>>
tmc::planning::tripsOf(const Problem &problem, const Solution &solution) {
  if (absl::Status status = checkLists(problem, solution); !status.ok())
    return status;
  std::vector<ShownTrip> trips;
  Layout layout(problem, solution);
  layout.trips = &trips;
  if (absl::StatusOr<Timeline> laid = layout.run(); !laid.ok())
    return laid.status();
  return trips;
}
