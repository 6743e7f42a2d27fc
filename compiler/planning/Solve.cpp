#include "compiler/planning/Solve.h"

#include "compiler/planning/Verify.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

using namespace tmc::planning;

absl::StatusOr<Plan> tmc::planning::solve(const Problem &problem,
                                          const SolveOptions &options) {
  auto start = std::chrono::steady_clock::now();
  if (absl::Status status = check(problem); !status.ok())
    return status;
  Plan plan;
  plan.solution = baseSolution(problem);
  plan.baseCost = baseCost(problem);
  int64_t limit = options.budgetBytes < 0
                      ? std::numeric_limits<int64_t>::max()
                      : options.budgetBytes - problem.reservedBytes;

  // While the peak exceeds the budget, recompute before its next read the
  // value at the peak that lowers what exceeds the budget most per cost.
  absl::StatusOr<Profile> profile = simulate(problem, plan.solution);
  for (int round = 0; profile.ok() && profile->peakBytes > limit && round < 400;
       ++round) {
    const Profile::Moment at = profile->moments[profile->peakMoment];
    std::optional<Solution> best;
    double bestScore = 0;
    std::vector<Execution> &list = plan.solution.segments[at.segment];
    for (size_t later = at.index + 1; later < list.size(); ++later)
      for (ValueId v : problem.recipes[list[later].recipe].reads)
        for (size_t r = 0; r < problem.recipes.size(); ++r) {
          const Recipe &recipe = problem.recipes[r];
          if (!recipe.recomputable || problem.values[v].pinned ||
              std::find(recipe.writes.begin(), recipe.writes.end(), v) ==
                  recipe.writes.end())
            continue;
          Solution trial = plan.solution;
          std::vector<Execution> &trialList = trial.segments[at.segment];
          trialList.insert(trialList.begin() + later, {RecipeId(r), kNone, {}});
          takeOverwrites(problem, trial);
          absl::StatusOr<Profile> now = simulate(problem, trial);
          if (!now.ok() || now->peakBytes > profile->peakBytes)
            continue;
          auto excess = [&](const Profile &p) {
            double sum = 0;
            for (int64_t live : p.liveBytes)
              sum += double(std::max<int64_t>(0, live - limit));
            return sum;
          };
          double score =
              (excess(*profile) - excess(*now)) / double(recipe.cost + 1);
          if (score > bestScore)
            best = std::move(trial), bestScore = score;
        }
    if (!best)
      break;
    plan.solution = std::move(*best);
    profile = simulate(problem, plan.solution);
  }

  absl::StatusOr<Claim> claim = measure(problem, plan.solution);
  if (!claim.ok())
    return absl::InternalError(
        absl::StrCat("planned a wrong schedule: ", claim.status().message()));
  plan.peakBytes = claim->peakBytes;
  plan.cost = claim->cost;
  plan.feasible = plan.peakBytes <= limit;
  plan.smallestFoundBytes = plan.peakBytes + problem.reservedBytes;
  plan.stats.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return plan;
}
