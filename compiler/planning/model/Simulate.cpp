#include "compiler/planning/model/Timeline.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace tmc::planning;

namespace {

/// R14: a content that takes an old home's place may begin there.
absl::Status checkHomes(const Problem &problem, const Timeline &u) {
  for (const Instance &i : u.instances) {
    if (i.begin < 0 || i.storageOf == kNone ||
        problem.values[i.value].kind != ValueKind::Persistent ||
        problem.values[i.value].updates != u.instances[i.storageOf].value)
      continue;
    if (!u.freesAt(i.storageOf, i.begin))
      return absl::FailedPreconditionError(absl::StrCat(
          "'", problem.values[i.value].name, "' is written at home while '",
          problem.values[u.instances[i.storageOf].value].name,
          "' is still read there"));
  }
  return absl::OkStatus();
}

/// R14: an execution that reads the old home writes the new one in its place.
absl::Status checkHomeOverwrite(const Problem &problem, const Timeline &u,
                                size_t t, const Recipe &recipe,
                                const std::vector<ValueId> &home) {
  for (size_t i = 0; i < u.writesAt(t).size(); ++i) {
    const Instance &is = u.instances[u.writesAt(t)[i]];
    const Value &value = problem.values[is.value];
    if (value.updates == kNone || home[is.value] != is.value)
      continue;
    bool reads = false;
    for (int32_t r : u.readsAt(t))
      reads |= r != kNone && u.instances[r].begin < 0 &&
               u.instances[r].value == value.updates && is.storageOf != r;
    if (reads)
      return absl::FailedPreconditionError(
          absl::StrCat("'", recipe.name, "' reads and writes the home of '",
                       value.name, "', but not in place"));
  }
  return absl::OkStatus();
}

/// R4 and R13: every taken overwrite is of an instance that isn't read later,
/// and shares neither end with another; every must is taken.
absl::Status checkOverwrites(const Problem &problem, const Solution &solution,
                             const Timeline &u) {
  const std::vector<ValueId> home = homesOf(problem, solution);
  for (size_t t = 0; t < u.size(); ++t) {
    const Execution &e =
        solution.segments[u.moments[t].segment][u.moments[t].index];
    if (e.phase == Phase::Done)
      continue;
    const Recipe &recipe = problem.recipes[e.recipe];
    if (absl::Status status = checkHomeOverwrite(problem, u, t, recipe, home);
        !status.ok())
      return status;
    std::vector<char> taken(recipe.overwrites.size(), 0);
    for (size_t i = 0; i < e.overwrites.size(); ++i) {
      const Overwrite &o = recipe.overwrites[e.overwrites[i]];
      taken[e.overwrites[i]] = 1;
      for (size_t j = 0; j < i; ++j) {
        const Overwrite &other = recipe.overwrites[e.overwrites[j]];
        if (other.read == o.read || other.written == o.written)
          return absl::FailedPreconditionError(absl::StrCat(
              "'", recipe.name, "' takes two overwrites of the same storage"));
      }
      int32_t instance = u.readAt(t, o.read, recipe);
      if (instance != kNone && !u.freesAt(instance, t))
        return absl::FailedPreconditionError(
            absl::StrCat("'", recipe.name, "' overwrites '",
                         problem.values[o.read].name, "', which is ",
                         u.instances[instance].last < int32_t(u.size())
                             ? "read later"
                             : "needed when the step ends"));
    }
    for (size_t o = 0; o < taken.size(); ++o)
      if (recipe.overwrites[o].must && !taken[o]) {
        const std::string &name =
            problem.values[recipe.overwrites[o].read].name;
        return absl::FailedPreconditionError(absl::StrCat(
            "'", recipe.name, "' must update '", name, "' in place, but '",
            name, "' is read later or the update isn't taken"));
      }
  }
  return absl::OkStatus();
}

/// Live bytes at the peak, by class.
void countClasses(const Problem &problem, const Solution &solution,
                  const Timeline &timeline, Profile &profile) {
  int32_t peak = int32_t(profile.peakMoment);
  for (int32_t t = 0; t <= peak; ++t) {
    const Profile::Moment &m = profile.moments[t];
    const Execution &e = solution.segments[m.segment][m.index];
    const Recipe &recipe = problem.recipes[e.recipe];
    if (timeline.endOf(t) >= peak && e.phase != Phase::Done &&
        recipe.workspaceSpace == SpaceId(kDeviceSpace) && !timeline.isIdle[t])
      profile.peakByClass[size_t(ValueClass::Workspace)] +=
          recipe.workspaceBytes;
  }
  for (const Instance &i : timeline.instances) {
    if (i.begin > peak || i.last < peak ||
        problem.values[i.value].space != SpaceId(kDeviceSpace))
      continue;
    int64_t bytes = problem.values[i.value].bytes;
    // An instance that takes storage counts for its bytes beyond the giver's.
    if (i.storageOf != kNone && i.made >= peak)
      bytes -= std::min(
          bytes, problem.values[timeline.instances[i.storageOf].value].bytes);
    profile.peakByClass[size_t(problem.values[i.value].valueClass)] += bytes;
  }
}

} // namespace

absl::StatusOr<Profile> tmc::planning::simulate(const Problem &problem,
                                                const Solution &solution) {
  absl::StatusOr<Timeline> timeline = timelineOf(problem, solution);
  if (!timeline.ok())
    return timeline.status();
  if (absl::Status status = checkOverwrites(problem, solution, *timeline);
      !status.ok())
    return status;
  if (absl::Status status = checkHomes(problem, *timeline); !status.ok())
    return status;
  SpaceUse &device = timeline->spaces[kDeviceSpace];
  Profile profile;
  profile.moments = std::move(timeline->moments);
  profile.liveBytes = std::move(device.liveBytes);
  profile.peakBytes = device.peakBytes;
  profile.peakMoment = device.peakMoment;
  for (const SpaceUse &space : timeline->spaces)
    profile.spacePeakBytes.push_back(space.peakBytes);
  profile.engineBusy = std::move(timeline->engineBusy);
  profile.makespan = timeline->makespan;
  if (!profile.moments.empty())
    countClasses(problem, solution, *timeline, profile);
  return profile;
}
