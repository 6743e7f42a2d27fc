#include "compiler/planning/driver/Search.h"

#include "compiler/planning/search/Beam.h"
#include "compiler/planning/search/Checkpoint.h"
#include "compiler/planning/search/Construct.h"

using namespace tmc::planning;

/// Each limit gets this part of the work, and construction this many rounds.
static constexpr int64_t kLimitPart = 12;
static constexpr int kConstructRounds = 30;
/// The most limits tried; within 1/500 of the memory a smaller plan isn't worth
/// more work.
static constexpr int kMostLimits = 14;
static constexpr int64_t kNearPart = 500;
static constexpr double kTemperature = 0.3;

void Search::findFrontier(int64_t basePeak) {
  int64_t amount = budgetWork / kLimitPart;
  int64_t floor = impossible, ceiling = basePeak;
  Schedule schedule(linear, ceiling - linear.constantBytes);
  RematPlan best = rematPlanOf(linear, schedule);
  random = Random(options.seed + 1); // Independent of earlier searches.
  auto keep = [&](int64_t peak, const RematPlan &plan) {
    ceiling = peak;
    best = plan;
    best.feasible = true;
    frontier.push_back({peak, best});
  };
  RematPlan segments = checkpoint(linear, floor - linear.constantBytes);
  restore(linear, schedule, segments);
  if (int64_t peak = schedule.peakBytes() + linear.constantBytes;
      peak < ceiling)
    keep(peak, segments);
  // Halve the distance to the impossible limit; after a failure, raise the
  // floor.
  for (int i = 0; i < kMostLimits && !stopped(); ++i) {
    int64_t target = floor + (ceiling - floor) / 2;
    if (target >= ceiling || ceiling - floor <= ceiling / kNearPart)
      break;
    if (options.smallestWork > 0 && work >= options.smallestWork) {
      stoppedEarly = true;
      break;
    }
    schedule.setLimit(target - linear.constantBytes);
    ConstructOptions constructs;
    constructs.rounds = kConstructRounds;
    constructs.work = amount;
    constructs.stop = [this] { return stopped(); };
    RematPlan found = constructWithin(linear, target - linear.constantBytes,
                                      stagePrices({}), constructs, work);
    restore(linear, schedule, found.feasible ? found : best);
    if (!found.feasible && has(Strategy::Beam))
      findByBeam(schedule, target, {}, found, /*wantAny=*/true);
    if (!found.feasible)
      found = annealFor(schedule, amount, kTemperature);
    restore(linear, schedule, found);
    int64_t peak = schedule.peakBytes() + linear.constantBytes;
    if (!found.sequence.empty())
      peak = target;
    if (peak < ceiling)
      keep(peak, found);
    if (peak > target)
      floor = target;
  }
}
