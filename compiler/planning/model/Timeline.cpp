#include "compiler/planning/model/Timeline.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace tmc::planning;

void Timeline::reserve(size_t moments, size_t references) {
  refs.reserve(references);
  refBegin.reserve(moments + 1);
  readEnd.reserve(moments);
}

int32_t Timeline::addMoment() {
  refBegin.push_back(int32_t(refs.size()));
  readEnd.push_back(int32_t(refs.size()));
  return int32_t(size()) - 1;
}

void Timeline::read(int32_t instance) {
  if (instance != kNone)
    instances[instance].last = int32_t(size()) - 1;
  refs.push_back(instance);
  ++readEnd.back();
}

int32_t Timeline::write(ValueId value) {
  int32_t t = int32_t(size()) - 1;
  refs.push_back(int32_t(instances.size()));
  instances.push_back({value, t, t, kNone, t});
  return refs.back();
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
  for (size_t i = 0; i < recipe.reads.size(); ++i)
    if (recipe.reads[i] == value)
      return readsAt(t)[i];
  return kNone;
}

int32_t Timeline::writtenAt(size_t t, ValueId value,
                            const Recipe &recipe) const {
  for (size_t i = 0; i < recipe.writes.size(); ++i)
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
    if (i.storageOf != kNone) { // Both count at the moment of the hand-over.
      int64_t shared =
          std::min(bytes, bytesOfValue[instances[i.storageOf].value]);
      live[i.begin] -= shared;
      live[i.begin + 1] += shared;
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

std::vector<int32_t> tmc::planning::latestInstances(const Timeline &timeline,
                                                    size_t numValues) {
  std::vector<int32_t> latest(numValues, kNone);
  for (size_t i = 0; i < timeline.instances.size(); ++i)
    latest[timeline.instances[i].value] = int32_t(i);
  return latest;
}

namespace {

absl::Status broken(const std::string &what) {
  return absl::FailedPreconditionError(what);
}

/// Each instruction once in its own segment, by a recipe of its own.
absl::Status checkLists(const Problem &problem, const Solution &solution) {
  if (solution.segments.size() != problem.segments.size())
    return broken(absl::StrCat("the solution has ", solution.segments.size(),
                               " segments of ", problem.segments.size()));
  std::vector<char> ran(problem.instructions.size(), 0);
  for (size_t s = 0; s < solution.segments.size(); ++s)
    for (const Execution &e : solution.segments[s]) {
      if (e.recipe < 0 || size_t(e.recipe) >= problem.recipes.size())
        return broken(absl::StrCat("the solution runs recipe ", e.recipe,
                                   " of ", problem.recipes.size()));
      const Recipe &recipe = problem.recipes[e.recipe];
      if (recipe.segment != kNone && size_t(recipe.segment) != s)
        return broken(absl::StrCat("'", recipe.name,
                                   "' may not run in segment '",
                                   problem.segments[s].name, "'"));
      if (e.instruction == kNone) {
        if (!recipe.recomputable)
          return broken(absl::StrCat("'", recipe.name,
                                     "' runs again, but isn't recomputable"));
        for (ValueId w : recipe.writes)
          if (problem.values[w].pinned)
            return broken(absl::StrCat("'", recipe.name, "' recomputes '",
                                       problem.values[w].name,
                                       "', which is pinned"));
        continue;
      }
      if (e.instruction != recipe.instruction)
        return broken(absl::StrCat(
            "'", recipe.name, "' runs for an instruction that isn't its own"));
      const Instruction &instruction = problem.instructions[e.instruction];
      if (size_t(instruction.segment) != s)
        return broken(absl::StrCat(
            "instruction '", instruction.name, "' runs in segment '",
            problem.segments[s].name, "', not in its own"));
      if (ran[e.instruction]++)
        return broken(
            absl::StrCat("instruction '", instruction.name, "' runs twice"));
    }
  for (size_t i = 0; i < ran.size(); ++i)
    if (!ran[i])
      return broken(absl::StrCat("instruction '", problem.instructions[i].name,
                                 "' doesn't run"));
  return absl::OkStatus();
}

/// Lays the segments of a solution out, trip by trip.
class Layout {
public:
  Layout(const Problem &problem, const Solution &solution)
      : problem(problem), solution(solution),
        current(problem.values.size(), kNone),
        isNothing(problem.values.size(), 0), own(problem.segments.size()),
        carried(problem.segments.size()) {
    std::vector<SegmentId> home(problem.values.size(), kNone);
    for (const Instruction &i : problem.instructions)
      for (ValueId v : problem.recipes[i.recipes.front()].writes) {
        own[i.segment].push_back(v);
        home[v] = i.segment;
      }
    for (size_t v = 0; v < problem.values.size(); ++v) {
      const Value &value = problem.values[v];
      if (value.kind == ValueKind::Carried)
        carried[home[value.carriedFrom]].push_back(ValueId(v));
      if (value.kind == ValueKind::Persistent && value.updates == kNone)
        current[v] = timeline.addInitial(ValueId(v));
    }
  }

  absl::StatusOr<Timeline> run() {
    for (size_t s = 0; s < problem.segments.size(); ++s)
      for (int32_t trip = 0; trip < shownTrips(s); ++trip) {
        beginTrip(s, trip);
        for (size_t index = 0; index < solution.segments[s].size(); ++index)
          if (absl::Status status = layExecution(s, trip, index); !status.ok())
            return status;
      }
    keepWhatStays();
    timeline.finish();
    if (absl::Status status = takeStorage(); !status.ok())
      return status;
    countEngines();
    countSpaces();
    return std::move(timeline);
  }

private:
  int32_t shownTrips(size_t s) const {
    return problem.segments[s].trips > 1 ? 3 : 1;
  }

  /// Carried values become what the trip before left; all else that the
  /// segment writes is forgotten.
  void beginTrip(size_t s, int32_t trip) {
    std::vector<int32_t> bindings;
    for (ValueId c : carried[s]) {
      ValueId from =
          trip ? problem.values[c].carriedFrom : problem.values[c].initial;
      bindings.push_back(from == kNone ? kNone : current[from]);
      isNothing[c] = from == kNone;
    }
    for (ValueId v : own[s])
      current[v] = kNone;
    for (size_t i = 0; i < carried[s].size(); ++i)
      current[carried[s][i]] = bindings[i];
  }

  absl::Status layExecution(size_t s, int32_t trip, size_t index) {
    const Recipe &recipe = problem.recipes[solution.segments[s][index].recipe];
    timeline.addMoment();
    timeline.moments.push_back({SegmentId(s), trip, int32_t(index)});
    for (ValueId v : recipe.reads) {
      if (current[v] == kNone && !isNothing[v])
        return broken(absl::StrCat("'", recipe.name, "' at position ", index,
                                   " of segment '", problem.segments[s].name,
                                   "' reads '", problem.values[v].name,
                                   "' before it is made"));
      timeline.read(current[v]);
    }
    for (ValueId v : recipe.writes)
      current[v] = timeline.write(v);
    return absl::OkStatus();
  }

  void keepWhatStays() {
    std::vector<char> isUpdated(problem.values.size(), 0);
    for (const Value &value : problem.values)
      if (value.updates != kNone)
        isUpdated[value.updates] = 1;
    for (size_t v = 0; v < problem.values.size(); ++v) {
      const Value &value = problem.values[v];
      bool stays =
          value.kind == ValueKind::Persistent ? !isUpdated[v] : value.liveOut;
      if (stays && current[v] != kNone)
        timeline.keepToEnd(current[v]);
    }
  }

  const Execution &executionAt(size_t t) const {
    const Profile::Moment &m = timeline.moments[t];
    return solution.segments[m.segment][m.index];
  }

  /// Overwrites that are taken: an instance in the place of another.
  absl::Status takeStorage() {
    for (size_t t = 0; t < timeline.size(); ++t) {
      const Execution &e = executionAt(t);
      const Recipe &recipe = problem.recipes[e.recipe];
      for (int32_t o : e.overwrites) {
        if (o < 0 || size_t(o) >= recipe.overwrites.size())
          return broken(absl::StrCat("'", recipe.name, "' takes overwrite ", o,
                                     " of ", recipe.overwrites.size()));
        const Overwrite &overwrite = recipe.overwrites[o];
        timeline.instances[timeline.writtenAt(t, overwrite.written, recipe)]
            .storageOf = timeline.readAt(t, overwrite.read, recipe);
      }
    }
    return absl::OkStatus();
  }

  void countEngines() {
    timeline.engines.resize(std::max<size_t>(problem.engines.size(), 1));
    for (size_t s = 0; s < solution.segments.size(); ++s)
      for (const Execution &e : solution.segments[s])
        timeline.engines[kComputeEngine].busy +=
            problem.recipes[e.recipe].cost * problem.segments[s].trips;
  }

  void countSpaces() {
    std::vector<int64_t> bytes;
    for (const Value &value : problem.values)
      bytes.push_back(value.bytes);
    timeline.spaces.resize(std::max<size_t>(problem.spaces.size(), 1));
    for (SpaceUse &other : timeline.spaces)
      other.liveBytes.assign(timeline.size(), 0);
    SpaceUse &space = timeline.spaces[kDeviceSpace];
    space.liveBytes = timeline.liveBytes(bytes);
    for (size_t t = 0; t < timeline.size(); ++t) {
      space.liveBytes[t] +=
          problem.recipes[executionAt(t).recipe].workspaceBytes;
      if (t == 0 || space.liveBytes[t] > space.peakBytes) {
        space.peakBytes = space.liveBytes[t];
        space.peakMoment = t;
      }
    }
  }

  const Problem &problem;
  const Solution &solution;
  Timeline timeline;
  std::vector<int32_t> current; // Instance of each value.
  /// A carried value that is nothing differs from one that isn't made yet.
  std::vector<char> isNothing;
  std::vector<std::vector<ValueId>> own, carried; // Of each segment.
};

} // namespace

absl::StatusOr<Timeline> tmc::planning::timelineOf(const Problem &problem,
                                                   const Solution &solution) {
  if (absl::Status status = checkLists(problem, solution); !status.ok())
    return status;
  return Layout(problem, solution).run();
}
