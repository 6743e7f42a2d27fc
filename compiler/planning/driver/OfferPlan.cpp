#include "compiler/planning/driver/OfferPlan.h"

#include "compiler/planning/driver/MovesAmounts.h"
#include "compiler/planning/peers/OffloadRules.h"

#include <algorithm>
#include <utility>

using namespace tmc::planning;

bool tmc::planning::isRefused(const absl::StatusOr<MovedPlan> &moved,
                              int64_t &refused) {
  if (moved.ok())
    refused += moved->refused;
  const bool isWrong = absl::IsFailedPrecondition(moved.status());
  refused += isWrong;
  return isWrong;
}

bool tmc::planning::offerPlan(const Problem &problem, MovedPlan plan,
                              Plan &best) {
  if (!fitsBudgets(problem, plan.peakBytes))
    return false;
  if (!best.feasible || plan.makespan < best.cost) {
    best.solution = std::move(plan.solution);
    best.feasible = true;
    best.cost = plan.makespan;
    best.peakBytes = std::move(plan.peakBytes);
  }
  return true;
}

absl::Status tmc::planning::offerKnown(const Problem &problem,
                                       const Solution &known, Plan &best) {
  absl::StatusOr<Profile> profile = simulate(problem, known);
  if (!profile.ok())
    return profile.status();
  offerPlan(problem, {known, profile->makespan, profile->spacePeakBytes}, best);
  return absl::OkStatus();
}

static void keep(MovedPlan plan, std::vector<MovedPlan> &kept) {
  auto isNoWorse = [](const MovedPlan &a, const MovedPlan &b) {
    return a.makespan <= b.makespan && a.peakBytes[0] <= b.peakBytes[0];
  };
  if (std::any_of(kept.begin(), kept.end(),
                  [&](const MovedPlan &k) { return isNoWorse(k, plan); }))
    return;
  std::erase_if(kept, [&](const MovedPlan &k) { return isNoWorse(plan, k); });
  auto at = std::upper_bound(kept.begin(), kept.end(), plan,
                             [](const MovedPlan &a, const MovedPlan &b) {
                               return a.makespan < b.makespan;
                             });
  kept.insert(at, std::move(plan));
}

absl::Status tmc::planning::keepSmallerForms(
    const Problem &problem, const SpaceChoice &choice,
    const Projection &projection, const Solution &planned, int64_t liveBytes,
    std::vector<MovedPlan> &kept, int64_t &refused) {
  for (int64_t part : kSpareParts) {
    absl::StatusOr<MovedPlan> smaller = placeMoves(
        problem, choice, projection, planned, liveBytes - liveBytes / part);
    if (isRefused(smaller, refused))
      continue;
    if (!smaller.ok())
      return smaller.status();
    if (fitsBudgets(problem, smaller->peakBytes))
      keep(*std::move(smaller), kept);
  }
  return absl::OkStatus();
}

absl::Status
tmc::planning::offerRules(const Problem &problem, bool isCoarse,
                          const std::function<bool(int64_t)> &mayGain,
                          Plan &best) {
  for (const OffloadRule &rule : kOffloadRules) {
    if (!rule.startsSearch || (isCoarse && rule.takesLong) ||
        !mayGain(rule.movesUpdates ? 0 : best.baseCost))
      continue;
    absl::StatusOr<MovedPlan> made = rule.plan(problem, problem.liveLimitOf(0));
    // A needed move isn't offered, or the list is invalid.
    if (absl::IsNotFound(made.status()) || isRefused(made, best.stats.refused))
      continue;
    if (!made.ok())
      return made.status();
    offerPlan(problem, *std::move(made), best);
  }
  return absl::OkStatus();
}
