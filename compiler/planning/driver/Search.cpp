#include "compiler/planning/driver/Search.h"

#include "compiler/planning/search/Beam.h"
#include "compiler/planning/search/Checkpoint.h"
#include "compiler/planning/search/Construct.h"

#include <algorithm>

using namespace tmc::planning;

namespace {

// Temperatures are in units of the mean cost of an operation.
constexpr double kColdTemperature = 1; // From nothing: any move is possible.
constexpr double kWarmTemperature = 0.06, kMildTemperature = 0.03;
constexpr double kMoreTemperature = 0.1;
/// Temperature of a walk that seeks any plan that fits, and its penalty: there
/// bytes count and time hardly does.
constexpr double kFrontierTemperature = 2, kFrontierPenalty = 100;
/// Every third walk is the warmer one.
constexpr int kWarmEvery = 3;
/// Growth of the penalty over a walk of a large problem.
constexpr double kLargePenaltyRamp = 400;

/// The most walks of a small problem, and of others by their size: the first
/// walk gains most, and walks of a large problem take long.
constexpr int kMostSmallWalks = 7, kIdleLargeWalks = 3;
int mostLargeWalks(size_t stages) {
  return stages <= 5000 ? 6 : stages <= 300'000 ? 3 : 2;
}
/// A walk gets a share of these parts of the work. A plan that doesn't fit yet
/// needs long walks.
constexpr int64_t kSmallParts = 20, kLargeParts = 15;
constexpr int64_t kGivenShare = 8, kColdShare = 4, kSmallShare = 2,
                  kLargeShare = 3;

/// Steps of random structure are walked this often, each time with a part of
/// the work. Source: RL_n1000 at 0.7 of its peak, six seeds.
constexpr int64_t kChains = 3;
/// Less than this part of its stages repeats another one.
constexpr int64_t kRandomPart = 10;

/// If nothing fits, segments are tried up to this number of stages.
constexpr size_t kMostStagesToFit = 200'000;
/// Each lower aim is lower than the one before by 1/200 of the limit.
constexpr int64_t kLowerAims = 6, kLowerAimStep = 200;

/// The beam's work: with a known plan, without one, and if any plan will do.
/// While nothing fits, the beam finds the most plans.
constexpr int64_t kMostBeamWork = 150'000'000;
constexpr int64_t kFittingBeamPart = 4, kMostFittingBeamWork = 400'000'000;
constexpr int64_t kAnyBeamPart = 40;
/// Work for the prices of a beam without given ones.
constexpr int64_t kBeamPricesPart = 20, kMostBeamPricesWork = 20'000'000;

/// If the best plan is more than 1/50 of the step above the bound, walks
/// continue while each gains 1/2000; without a plan that fits, two more.
constexpr int64_t kFarPart = 50, kWorthPart = 2000;
constexpr int kWalksWithoutPlan = 2;

/// The search for the smallest plan: each limit gets this part of the work, and
/// construction this many rounds.
constexpr int64_t kLimitPart = 12;
/// The least of it by stage, at full effort: orders of large steps get little.
constexpr int64_t kLimitWorkPerStage = 40'000;
constexpr int kConstructRounds = 30;
/// Near the smallest limits whole blocks return one after another.
constexpr Reach kFar[] = {{}, {60, 1000, 4}, {60, 1000, 16}};
/// A limit gets further walks while each halves the excess.
constexpr int kMostWalksToLimit = 4;
/// The most limits tried; within 1/500 of the memory a smaller plan isn't worth
/// more work.
constexpr int kMostLimits = 14;
constexpr int64_t kNearLimitPart = 500;

} // namespace

Search::Search(const Problem &problem, const SolveOptions &options,
               const Orders &orders, Clock::time_point start,
               bool holdsExpensive)
    : linear(linearize(problem, orders)), model(problem, orders),
      options(options), start(start), random(options.seed) {
  if (holdsExpensive)
    holdExpensive();
  budgetWork = options.effort.workOf(int64_t(linear.stages.size()));
  impossible = impossibleBelowInOrder(model) - problem.reservedBytes;
  addHeadroom(options.headroom);
  if (!options.without.has(Strategy::CopyMove))
    repeats.emplace(linear);
}

bool Search::stopped() {
  if (options.timeLimitSeconds > 0 &&
      std::chrono::duration<double>(Clock::now() - start).count() >
          options.timeLimitSeconds)
    timeLimitHit = true;
  return timeLimitHit;
}

/// Adds these bytes to first executions, as separate operations that never
/// recompute.
void Search::addHeadroom(const std::vector<int64_t> &bytes) {
  if (bytes.empty())
    return;
  for (LinearStage &stage : linear.stages)
    if (stage.instruction != kNone && bytes[stage.instruction] > 0)
      for (OpId &variant : stage.variants) {
        LinearOp op = linear.ops[variant];
        op.workspaceBytes += bytes[stage.instruction];
        forbidRecomputation(op);
        variant = OpId(linear.ops.size());
        linear.ops.push_back(std::move(op));
      }
}

std::optional<int64_t> Search::expensiveCost() const {
  std::optional<int64_t> least;
  for (const LinearOp &op : linear.ops)
    if (isExpensive(op))
      least = std::min(least.value_or(op.cost), op.cost);
  return least;
}

/// Forbids recomputation of expensive operations.
void Search::holdExpensive() {
  for (std::vector<OpId> &ops : linear.recomputes)
    std::erase_if(ops, [&](OpId o) { return isExpensive(linear.ops[o]); });
  for (LinearOp &op : linear.ops)
    if (isExpensive(op))
      forbidRecomputation(op);
}

std::vector<double>
Search::stagePrices(const std::vector<double> &prices) const {
  std::vector<double> out(linear.stages.size(), 0);
  size_t at = 0;
  for (size_t k = 0; k < out.size(); ++k)
    if (linear.stages[k].instruction != kNone && at < prices.size())
      out[k] = prices[at++];
  return out;
}

RematPlan Search::plan(int64_t liveBytes, int64_t provenCost,
                       const std::vector<double> &prices, RematPlan known) {
  Schedule schedule(linear, liveBytes - linear.constantBytes);
  Best best{rematPlanOf(linear, schedule)};
  if (best.plan.feasible)
    return std::move(best.plan);
  if (known.feasible)
    best.plan = std::move(known);
  for (const FrontierPoint &point : frontier)
    if (point.peak <= liveBytes &&
        (!best.plan.feasible || point.plan.cost < best.plan.cost))
      best.plan = point.plan;
  std::optional<RematPlan> given;
  if (options.start) {
    restore(linear, schedule, rematPlanOf(linear, *options.start));
    given = rematPlanOf(linear, schedule);
    best.offer(*given);
  }
  findStarts(schedule, liveBytes, prices, given.has_value(), best);
  if (best.plan.feasible && options.dropsNeedless) {
    restore(linear, schedule, best.plan);
    dropNeedless(linear, schedule);
    best.offer(rematPlanOf(linear, schedule));
  }
  const Best starts = best;
  const int64_t chains = wantsChains(provenCost, best.plan) ? kChains : 1;
  for (int64_t i = 0; i < chains; ++i) {
    Best own = starts;
    const int64_t earlier = walk(schedule, provenCost, given, chains, own);
    walkOn(schedule, provenCost, earlier, chains, own);
    best.offer(std::move(own.plan));
  }
  return std::move(best.plan);
}

/// In a step without layers the place in which a walk ends is chance, and more
/// work gains less than another walk. With a limit of work, walks are short.
bool Search::wantsChains(int64_t provenCost, const RematPlan &known) const {
  const int64_t stages = int64_t(linear.stages.size());
  const bool isRandom = repeats && repeats->count() < stages / kRandomPart;
  return isSmall() && isRandom && options.effort.mostWork == 0 &&
         known.cost - provenCost >= linear.baseCost / kFarPart;
}

/// Makes start schedules for walks; `best` keeps the best one.
void Search::findStarts(Schedule &schedule, int64_t liveBytes,
                        const std::vector<double> &prices, bool hasGiven,
                        Best &best) {
  int64_t limit = liveBytes - linear.constantBytes;
  ConstructOptions constructs;
  constructs.work = workOf(Strategy::Prices);
  constructs.stop = [this] { return stopped(); };
  if (!hasGiven && has(Strategy::Prices))
    best.offer(
        constructWithin(linear, limit, stagePrices(prices), constructs, work));
  // Prices may find no plan at a tight limit, or a worse one than equal
  // segments.
  bool skipsLarge =
      best.plan.feasible || linear.stages.size() > kMostStagesToFit;
  if (!options.without.has(Strategy::Segments) &&
      (!skipsLarge || has(Strategy::Segments)))
    best.offer(checkpoint(linear, limit));
  if (!hasGiven && has(Strategy::Beam))
    findByBeam(schedule, liveBytes, prices, best.plan);
  constructs.work = workOf(Strategy::LowerAim);
  for (int64_t i = 1; !hasGiven && has(Strategy::LowerAim) && i <= kLowerAims;
       ++i) {
    // Prices overshoot: a slightly lower limit often gives a better plan.
    int64_t aim =
        liveBytes - liveBytes / kLowerAimStep * i - linear.constantBytes;
    best.offer(
        constructWithin(linear, aim, stagePrices(prices), constructs, work));
  }
}

/// Anneals the best plan from a low temperature until that no longer helps.
/// Small problems also anneal from the empty plan at a high temperature, which
/// leads to different plans.
int64_t Search::walk(Schedule &schedule, int64_t provenCost,
                     const std::optional<RematPlan> &given, int64_t chains,
                     Best &best) {
  bool small = isSmall();
  int walks = small ? kMostSmallWalks : mostLargeWalks(linear.stages.size());
  int patience = small ? options.effort.idleWalks : kIdleLargeWalks;
  int idle = 0;
  int64_t earlier = 0;
  for (int i = 0; i < walks && idle < patience && !stopped(); ++i) {
    if (best.plan.feasible && best.plan.cost <= provenCost)
      break;
    bool cold = has(Strategy::ColdWalk) && i % 2 == 1 &&
                i / 2 < options.effort.coldWalks;
    bool fromGiven = i == 0 && given;
    if (!cold && !fromGiven && options.without.has(Strategy::WarmWalk))
      continue;
    restore(linear, schedule,
            cold        ? RematPlan{}
            : fromGiven ? *given
                        : best.plan);
    int64_t share = fromGiven                     ? kGivenShare
                    : cold || !best.plan.feasible ? kColdShare
                    : small                       ? kSmallShare
                                                  : kLargeShare;
    double temperature = cold                  ? kColdTemperature
                         : i % kWarmEvery == 0 ? kWarmTemperature
                                               : kMildTemperature;
    RematPlan found = annealFor(
        schedule,
        budgetWork * share / (small ? kSmallParts : kLargeParts) / chains,
        temperature, small ? 0 : kLargePenaltyRamp);
    idle = best.offer(std::move(found)) ? 0 : idle + 1;
    if (i == 1)
      earlier = best.plan.cost;
  }
  return earlier;
}

/// Near the smallest budgets plans improve for a long time: walks further while
/// that pays.
void Search::walkOn(Schedule &schedule, int64_t provenCost, int64_t earlier,
                    int64_t chains, Best &best) {
  const int64_t far = linear.baseCost / kFarPart;
  const int64_t worth = linear.baseCost / kWorthPart;
  for (int i = 0; has(Strategy::MoreWalks) && i < options.effort.moreWalks;
       ++i) {
    bool pays = best.plan.feasible ? best.plan.cost - provenCost >= far &&
                                         earlier - best.plan.cost >= worth
                                   : i < kWalksWithoutPlan;
    if (!pays || stopped())
      break;
    earlier = best.plan.cost;
    restore(linear, schedule, best.plan);
    best.offer(annealFor(schedule, workOf(Strategy::MoreWalks) / chains,
                         kMoreTemperature));
  }
}

RematPlan Search::annealFor(Schedule &schedule, int64_t amount,
                            double temperature, double penaltyRamp,
                            double firstPenalty) {
  AnnealOptions anneals;
  anneals.work = amount;
  anneals.startTemperature = temperature;
  anneals.penaltyRamp = penaltyRamp;
  anneals.firstPenalty = firstPenalty;
  anneals.switchesVariants = !options.without.has(Strategy::SwitchMove);
  if (repeats && repeats->count() > 0)
    anneals.repeats = &*repeats;
  anneals.stop = [this] { return stopped(); };
  int64_t before = schedule.work();
  RematPlan found = anneal(linear, schedule, random, anneals);
  work += schedule.work() - before;
  return found;
}

/// Improves `best` by a beam; with `wantAny`, stops at the first plan.
void Search::findByBeam(Schedule &schedule, int64_t liveBytes,
                        const std::vector<double> &prices, RematPlan &best,
                        bool wantAny) {
  std::vector<double> known = prices;
  if (known.empty()) {
    AscentOptions ascent;
    ascent.work = std::min(budgetWork / kBeamPricesPart, kMostBeamPricesWork);
    known = ascend(model, {liveBytes}, ascent).prices[0];
  }
  BeamOptions beams;
  beams.work = wantAny         ? budgetWork / kAnyBeamPart
               : best.feasible ? std::min(workOf(Strategy::Beam), kMostBeamWork)
                               : std::min(budgetWork / kFittingBeamPart,
                                          kMostFittingBeamWork);
  beams.wantAny = wantAny;
  beams.stop = [this] { return stopped(); };
  if (best.feasible)
    beams.costBelow = best.cost;
  RematPlan found = beam(linear, liveBytes - linear.constantBytes,
                         stagePrices(known), beams, work);
  if (found.feasible) {
    best = std::move(found);
    restore(linear, schedule, best);
    if (schedule.excess() <= 0 && schedule.cost() <= best.cost)
      best = rematPlanOf(linear, schedule);
  }
}

/// A plan within the schedule's limit by price, or else what is nearest to
/// fitting: the nearest one by price, or `known`.
RematPlan Search::constructFor(Schedule &schedule, int64_t amount,
                               const RematPlan &known) {
  restore(linear, schedule, known);
  RematPlan nearest = rematPlanOf(linear, schedule);
  int64_t excess = schedule.excess();
  ConstructOptions constructs;
  constructs.rounds = kConstructRounds;
  constructs.work = amount;
  constructs.stop = [this] { return stopped(); };
  for (const Reach &reach : kFar) {
    constructs.reach = reach;
    RematPlan found = constructWithin(linear, schedule.limit(), stagePrices({}),
                                      constructs, work);
    if (found.feasible)
      return found;
    restore(linear, schedule, found);
    if (schedule.excess() < excess) {
      excess = schedule.excess();
      nearest = std::move(found);
    }
  }
  return nearest;
}

void Search::findFrontier(int64_t basePeak) {
  int64_t amount =
      std::max(budgetWork / kLimitPart, int64_t(double(kLimitWorkPerStage) *
                                                double(linear.stages.size()) *
                                                options.effort.percent / 100));
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
  int64_t lowered = ceiling; // When the floor was lowered last.
  for (int i = 0; i < kMostLimits && !stopped(); ++i) {
    bool isNear = ceiling - floor <= ceiling / kNearLimitPart;
    if (isNear && !isSmall() && ceiling < lowered) {
      // A walk of a large step that failed had little work. From the plan that
      // is known now, it may succeed.
      lowered = ceiling;
      floor = impossible;
    }
    int64_t target = floor + (ceiling - floor) / 2;
    if (target >= ceiling || ceiling - floor <= ceiling / kNearLimitPart)
      break;
    if (options.smallestWork > 0 && work >= options.smallestWork) {
      stoppedEarly = true;
      break;
    }
    schedule.setLimit(target - linear.constantBytes);
    RematPlan found = constructFor(schedule, amount, best);
    restore(linear, schedule, found);
    if (!found.feasible && has(Strategy::Beam))
      findByBeam(schedule, target, {}, found, /*wantAny=*/true);
    for (int walks = 0; !found.feasible && walks < kMostWalksToLimit; ++walks) {
      int64_t before = schedule.excess();
      found = annealFor(schedule, amount, kFrontierTemperature,
                        /*penaltyRamp=*/1, kFrontierPenalty);
      restore(linear, schedule, found);
      if (schedule.excess() > before / 2)
        break;
    }
    int64_t peak = schedule.peakBytes() + linear.constantBytes;
    if (!found.sequence.empty())
      peak = target;
    if (peak < ceiling)
      keep(peak, found);
    if (peak > target)
      floor = target;
  }
}
