#include "compiler/planning/model/Timeline.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace tmc::planning;

namespace {

/// R4: every taken overwrite is of a dying instance and shares neither end with
/// another; every must is taken.
absl::Status checkOverwrites(const Problem &problem, const Solution &solution,
                             const Timeline &u) {
  for (size_t t = 0; t < u.size(); ++t) {
    const Execution &e =
        solution.segments[u.moments[t].segment][u.moments[t].index];
    const Recipe &recipe = problem.recipes[e.recipe];
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
      if (instance != kNone && !u.diesAt(instance, t))
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

/// What is alive at the peak, by class.
void countClasses(const Problem &problem, const Solution &solution,
                  const Timeline &timeline, Profile &profile) {
  int32_t peak = int32_t(profile.peakMoment);
  const Profile::Moment &m = profile.moments[peak];
  profile.peakByClass[size_t(ValueClass::Workspace)] +=
      problem.recipes[solution.segments[m.segment][m.index].recipe]
          .workspaceBytes;
  for (const Instance &i : timeline.instances) {
    if (i.begin > peak || i.last < peak)
      continue;
    int64_t bytes = problem.values[i.value].bytes;
    // The taker of a storage counts for what it has beyond the giver.
    if (i.storageOf != kNone && i.begin == peak)
      bytes -= std::min(
          bytes, problem.values[timeline.instances[i.storageOf].value].bytes);
    profile.peakByClass[size_t(problem.values[i.value].valueClass)] += bytes;
  }
}

absl::StatusOr<Timeline> checkedTimeline(const Problem &problem,
                                         const Solution &solution) {
  absl::StatusOr<Timeline> timeline = timelineOf(problem, solution);
  if (timeline.ok())
    if (absl::Status status = checkOverwrites(problem, solution, *timeline);
        !status.ok())
      return status;
  return timeline;
}

} // namespace

absl::StatusOr<Profile> tmc::planning::simulate(const Problem &problem,
                                                const Solution &solution) {
  absl::StatusOr<Timeline> timeline = checkedTimeline(problem, solution);
  if (!timeline.ok())
    return timeline.status();
  SpaceUse &device = timeline->spaces[kDeviceSpace];
  Profile profile;
  profile.moments = std::move(timeline->moments);
  profile.liveBytes = std::move(device.liveBytes);
  profile.peakBytes = device.peakBytes;
  profile.peakMoment = device.peakMoment;
  for (const SpaceUse &space : timeline->spaces)
    profile.spacePeakBytes.push_back(space.peakBytes);
  profile.makespan = timeline->engines[kComputeEngine].busy;
  if (!profile.moments.empty())
    countClasses(problem, solution, *timeline, profile);
  return profile;
}

absl::StatusOr<std::vector<Instance>>
tmc::planning::instancesOf(const Problem &problem, const Solution &solution) {
  absl::StatusOr<Timeline> timeline = checkedTimeline(problem, solution);
  if (!timeline.ok())
    return timeline.status();
  return std::move(timeline->instances);
}
