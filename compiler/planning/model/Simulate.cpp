#include "compiler/planning/model/Unroll.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace tmc::planning;

/// R4: every taken overwrite is of a dying instance and shares neither end with
/// another; every must is taken.
static absl::Status checkOverwrites(const Problem &problem,
                                    const Solution &solution,
                                    const Unrolled &u) {
  for (size_t t = 0; t < u.moments.size(); ++t) {
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
      int32_t instance = u.readInstance(recipe, t, o.read);
      if (instance != kNone && u.instances[instance].last != int32_t(t))
        return absl::FailedPreconditionError(
            absl::StrCat("'", recipe.name, "' overwrites '",
                         problem.values[o.read].name, "', which is ",
                         u.instances[instance].last < int32_t(u.moments.size())
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

absl::StatusOr<Profile> tmc::planning::simulate(const Problem &problem,
                                                const Solution &solution) {
  absl::StatusOr<Unrolled> unrolled = unroll(problem, solution);
  if (!unrolled.ok())
    return unrolled.status();
  if (absl::Status status = checkOverwrites(problem, solution, *unrolled);
      !status.ok())
    return status;
  const Unrolled &u = *unrolled;
  size_t n = u.moments.size();
  std::vector<int64_t> delta(n + 2, 0);
  for (const Instance &i : u.instances) {
    delta[std::max(i.begin, 0)] += problem.values[i.value].bytes;
    delta[std::min<size_t>(i.last + 1, n + 1)] -= problem.values[i.value].bytes;
    if (i.storageOf != kNone) { // Both count at the moment of the hand-over.
      int64_t shared =
          std::min(problem.values[i.value].bytes,
                   problem.values[u.instances[i.storageOf].value].bytes);
      delta[i.begin] -= shared;
      delta[i.begin + 1] += shared;
    }
  }
  Profile profile;
  profile.moments = u.moments;
  profile.liveBytes.resize(n);
  int64_t live = 0;
  for (size_t t = 0; t < n; ++t) {
    live += delta[t];
    const Profile::Moment &m = u.moments[t];
    int64_t workspace =
        problem.recipes[solution.segments[m.segment][m.index].recipe]
            .workspaceBytes;
    profile.liveBytes[t] = live + workspace;
    if (t == 0 || profile.liveBytes[t] > profile.peakBytes) {
      profile.peakBytes = profile.liveBytes[t];
      profile.peakMoment = t;
    }
  }
  if (n == 0)
    return profile;
  int32_t peak = int32_t(profile.peakMoment);
  const Profile::Moment &m = u.moments[peak];
  profile.peakByClass[size_t(ValueClass::Workspace)] +=
      problem.recipes[solution.segments[m.segment][m.index].recipe]
          .workspaceBytes;
  for (const Instance &i : u.instances) {
    if (i.begin > peak || i.last < peak)
      continue;
    int64_t bytes = problem.values[i.value].bytes;
    // The taker of a storage counts for what it has beyond the giver.
    if (i.storageOf != kNone && i.begin == peak)
      bytes -=
          std::min(bytes, problem.values[u.instances[i.storageOf].value].bytes);
    profile.peakByClass[size_t(problem.values[i.value].valueClass)] += bytes;
  }
  return profile;
}

absl::StatusOr<std::vector<Instance>>
tmc::planning::instancesOf(const Problem &problem, const Solution &solution) {
  absl::StatusOr<Unrolled> unrolled = unroll(problem, solution);
  if (!unrolled.ok())
    return unrolled.status();
  if (absl::Status status = checkOverwrites(problem, solution, *unrolled);
      !status.ok())
    return status;
  return std::move(unrolled->instances);
}
