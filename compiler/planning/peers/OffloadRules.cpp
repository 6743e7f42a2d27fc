#include "compiler/planning/peers/OffloadRules.h"

#include "compiler/planning/moves/UpdateGroups.h"
#include "compiler/planning/peers/Blocks.h"
#include "compiler/planning/peers/Planners.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {

/// A value that may leave after the use at place `after` and must be back for
/// the use at `before`.
struct Candidate {
  RecipeId fetch; // In the projection.
  size_t made, after, before;
};

/// Candidates for all values with an optional fetch, in the order in which the
/// values are made.
std::vector<Candidate> candidatesOf(const Projection &projection) {
  const Problem &p = projection.problem;
  std::vector<std::vector<size_t>> touches(p.values.size());
  std::vector<size_t> segmentOf; // Per place: segments end to end.
  for (size_t s = 0; s < p.segments.size(); ++s)
    for (InstructionId i : p.segments[s].instructions) {
      const Recipe &r = p.recipes[p.instructions[i].recipes[0]];
      for (const std::vector<ValueId> *list : {&r.writes, &r.reads})
        for (ValueId v : *list)
          touches[v].push_back(segmentOf.size());
      segmentOf.push_back(s);
    }
  std::vector<Candidate> candidates;
  for (size_t r = 0; r < p.recipes.size(); ++r) {
    const Projection::Origin &origin = projection.origins[r];
    if (origin.kind != Projection::Kind::Fetch || origin.stash == kNone)
      continue;
    const std::vector<size_t> &at = touches[p.recipes[r].writes[0]];
    const RecipeId fetch = RecipeId(r);
    if (at.empty())
      continue;
    Candidate candidate{fetch, at.front(), 0, 0};
    for (size_t i = 1; i < at.size(); ++i)
      if (at[i] - at[i - 1] > candidate.before - candidate.after &&
          (p.recipes[fetch].segment == kNone ||
           size_t(p.recipes[fetch].segment) == segmentOf[at[i]]))
        candidate.after = at[i - 1], candidate.before = at[i];
    if (candidate.before > candidate.after + 1)
      candidates.push_back(candidate);
  }
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate &a, const Candidate &b) { return a.made < b.made; });
  return candidates;
}

/// The program's order with the first `count` candidates fetched back.
Solution listWith(const Problem &p, const std::vector<Candidate> &candidates,
                  size_t count) {
  std::vector<std::vector<RecipeId>> fetches(p.instructions.size());
  for (size_t i = 0; i < count; ++i)
    fetches[candidates[i].before].push_back(candidates[i].fetch);
  Solution solution;
  size_t place = 0;
  for (const Segment &segment : p.segments) {
    std::vector<Execution> &list = solution.segments.emplace_back();
    for (InstructionId i : segment.instructions) {
      for (RecipeId r : fetches[place++])
        list.push_back({r, kNone, {}});
      list.push_back({p.instructions[i].recipes[0], i, {}});
    }
  }
  takeOverwrites(p, solution);
  return solution;
}

} // namespace

absl::StatusOr<MovedPlan> tmc::planning::zeroOffload(const Problem &problem,
                                                     int64_t liveBytes) {
  const UpdateGroups groups = findUpdateGroups(problem);
  const SpaceChoice choice =
      choiceOf(problem, groups, modesOf(groups, groups.hostable, 0, 0));
  absl::StatusOr<Projection> projection = project(problem, choice, 1);
  if (!projection.ok())
    return projection.status();
  return placeMoves(problem, choice, *projection,
                    baseSolution(projection->problem), liveBytes);
}

absl::StatusOr<MovedPlan>
tmc::planning::zeroOffloadBlocks(const Problem &problem, int64_t liveBytes) {
  const UpdateGroups groups = findUpdateGroups(problem);
  UpdateModes modes = plainModes(groups);
  for (size_t i = 0; i < modes.size(); ++i)
    modes[i] = possibleMode(groups.all[i], groups.all[i].isHostable()
                                               ? GroupMode::Returned
                                               : GroupMode::Paged);
  const SpaceChoice choice = choiceOf(problem, groups, modes);
  // Activations are recomputed, never moved.
  absl::StatusOr<Projection> projection =
      project(problem, choice, std::numeric_limits<double>::infinity());
  if (!projection.ok())
    return projection.status();
  const LinearProblem linear = linearize(projection->problem);
  const int64_t limit = liveLimit(projection->problem, linear, -1);
  Schedule schedule(linear, limit);
  restore(linear, schedule, checkpointBlocksOfSegments(linear, limit));
  return placeMoves(problem, choice, *projection,
                    schedule.toSolution(projection->problem), liveBytes);
}

absl::StatusOr<MovedPlan> tmc::planning::offloadOldest(const Problem &problem,
                                                       int64_t liveBytes) {
  const SpaceChoice choice = plainChoice(problem);
  absl::StatusOr<Projection> projection = project(problem, choice, 1);
  if (!projection.ok())
    return projection.status();
  const std::vector<Candidate> candidates = candidatesOf(*projection);
  auto planOf = [&](size_t count) {
    return placeMoves(problem, choice, *projection,
                      listWith(projection->problem, candidates, count),
                      liveBytes);
  };
  // Finds the fewest by halving: more of them nearly always lower the peak. The
  // list's own peak gives the number; with moves it may need a few more.
  size_t low = 0, high = candidates.size();
  while (liveBytes >= 0 && low < high) {
    const size_t middle = low + (high - low) / 2;
    absl::StatusOr<Profile> profile = simulate(
        projection->problem, listWith(projection->problem, candidates, middle));
    if (!profile.ok())
      return profile.status();
    if (profile->peakBytes <= liveBytes)
      high = middle;
    else
      low = middle + 1;
  }
  absl::StatusOr<MovedPlan> best = planOf(low);
  auto fits = [&](const absl::StatusOr<MovedPlan> &plan) {
    return plan.ok() && (liveBytes < 0 || plan->peakBytes[0] <= liveBytes);
  };
  if (fits(best) || liveBytes < 0)
    return best;
  for (high = candidates.size(), low = std::min(low + 1, high); low < high;) {
    const size_t middle = low + (high - low) / 2;
    absl::StatusOr<MovedPlan> made = planOf(middle);
    if (fits(made)) {
      best = std::move(made);
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return fits(best) ? best : planOf(candidates.size());
}
