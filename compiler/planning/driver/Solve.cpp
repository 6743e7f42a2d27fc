#include "compiler/planning/driver/Solve.h"

#include "compiler/planning/model/Parallel.h"
#include "compiler/planning/model/Verify.h"
#include "compiler/planning/search/Beam.h"
#include "compiler/planning/search/Checkpoint.h"
#include "compiler/planning/search/Construct.h"
#include "compiler/planning/search/Order.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

using namespace tmc::planning;

namespace {

using Clock = std::chrono::steady_clock;

/// Whether somebody waits: a compiler's user.
bool isHurried(const SolveOptions &options) { return options.maxWork > 0; }

/// Anneals of a problem that isn't small: the first gains most, and those of a
/// large one take long.
int roundsOf(size_t stages) {
  return stages <= 5000 ? 6 : stages <= 300'000 ? 3 : 2;
}

/// One call of `solve`, for one order of the instructions.
class Search {
public:
  Search(const Problem &problem, const SolveOptions &options,
         const std::vector<std::vector<InstructionId>> &orders,
         Clock::time_point start, bool holdsExpensive = false)
      : linear(linearize(problem, orders)), options(options), start(start),
        random(options.seed) {
    if (holdsExpensive)
      holdExpensive();
    relaxation = relax(problem, orders);
    int64_t n = int64_t(linear.stages.size());
    // Small problems are worth seconds if nobody waits, large ones a fixed time
    // per stage.
    int64_t small = std::min<int64_t>(5'500'000 * n, 6'000'000'000);
    int64_t middle = 4'000'000'000'000 / n;
    if (isHurried(options)) {
      small = std::min(
          small, std::clamp<int64_t>(600'000 * n, 120'000'000, 250'000'000));
      middle = std::min(middle, 60'000 * n);
    }
    budgetWork = n <= 1000 ? small : std::max(middle, 18'000 * n);
    budgetWork = int64_t(double(budgetWork) *
                         double(std::max<int64_t>(options.effort, 0)) / 100);
    if (options.maxWork > 0)
      budgetWork = std::min(budgetWork, options.maxWork);
    impossible = impossibleBelow(problem, relaxation) - problem.reservedBytes;
    spare(options.headroom);
    if (options.useRepeats)
      repeats.emplace(linear);
  }

  /// The best plan found within `liveBytes`, persistent values included, from
  /// `known` on if that is feasible.
  RematPlan plan(int64_t liveBytes, int64_t provenCost,
                 const std::vector<double> &prices, RematPlan known = {});

  /// The least that a plan costs which recomputes something expensive, if there
  /// is any: a loss over a large vocabulary can take a quarter of a step.
  std::optional<int64_t> expensiveCost() const;

  /// A bound by cases, where a plan costs more than the prices prove.
  void findCases(const Problem &problem, const SolveOptions &options,
                 int64_t cost, const std::vector<double> &prices, Plan &plan);

  /// Plans for smaller and smaller limits, whatever budget is asked for.
  void findFrontier(int64_t basePeak);

  bool stopped() {
    if (options.timeLimitSeconds > 0 &&
        std::chrono::duration<double>(Clock::now() - start).count() >
            options.timeLimitSeconds)
      timeLimitHit = true;
    return timeLimitHit;
  }

  struct FrontierPoint {
    int64_t peak;
    RematPlan plan;
  };
  LinearProblem linear;
  Relaxation relaxation;
  std::optional<Repeats> repeats;
  std::vector<FrontierPoint> frontier; // By descending peak.
  int64_t budgetWork;
  int64_t impossible;
  int64_t work = 0;
  bool timeLimitHit = false;
  bool stoppedEarly = false; // `findFrontier` was.

private:
  bool isExpensive(const LinearOp &op) const {
    return tmc::planning::isExpensive(op.cost, linear.baseCost) &&
           op.firstStage <= op.lastStage;
  }
  static void forbidRecomputation(LinearOp &op) {
    op.firstStage = 0, op.lastStage = -1;
  }
  void holdExpensive();
  void spare(const std::vector<int64_t> &bytes);
  std::vector<double> stagePrices(const std::vector<double> &prices) const;
  void findByBeam(Schedule &schedule, int64_t liveBytes,
                  const std::vector<double> &prices, RematPlan &best,
                  bool wantAny = false);
  RematPlan round(Schedule &schedule, int64_t amount, double temperature,
                  double penaltyRamp = 0) {
    AnnealOptions anneals;
    anneals.work = amount;
    anneals.startTemperature = temperature;
    anneals.penaltyRamp = penaltyRamp;
    if (repeats && repeats->count() > 0)
      anneals.repeats = &*repeats;
    anneals.stop = [this] { return stopped(); };
    int64_t before = schedule.work();
    RematPlan found = anneal(linear, schedule, random, anneals);
    work += schedule.work() - before;
    return found;
  }

  const SolveOptions &options;
  Clock::time_point start;
  Random random;
};

/// Makes first executions need so much more: operations of their own, which
/// never recompute.
void Search::spare(const std::vector<int64_t> &bytes) {
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

/// Nothing expensive is recomputed.
void Search::holdExpensive() {
  for (std::vector<OpId> &ops : linear.recomputes)
    std::erase_if(ops, [&](OpId o) { return isExpensive(linear.ops[o]); });
  for (LinearOp &op : linear.ops)
    if (isExpensive(op))
      forbidRecomputation(op);
}

RematPlan Search::plan(int64_t liveBytes, int64_t provenCost,
                       const std::vector<double> &prices, RematPlan known) {
  Schedule schedule(linear, liveBytes - linear.constantBytes);
  RematPlan best = rematPlanOf(linear, schedule);
  if (best.feasible)
    return best;
  if (known.feasible)
    best = std::move(known);
  for (const FrontierPoint &point : frontier)
    if (point.peak <= liveBytes &&
        (!best.feasible || point.plan.cost < best.cost))
      best = point.plan;
  auto keep = [&](RematPlan found) {
    bool better = found.feasible && (!best.feasible || found.cost < best.cost);
    if (better || !best.feasible)
      best = std::move(found);
    return better;
  };
  bool small = linear.stages.size() <= 2000;
  std::optional<RematPlan> given;
  if (options.start) {
    restore(linear, schedule, rematPlanOf(linear, *options.start));
    given = rematPlanOf(linear, schedule);
    keep(*given);
  }
  ConstructOptions constructs;
  constructs.work = budgetWork / 5;
  constructs.stop = [this] { return stopped(); };
  if (!given)
    keep(constructWithin(linear, liveBytes - linear.constantBytes,
                         stagePrices(prices), constructs, work));
  // Prices may find nothing at a tight limit, or less than equal segments do.
  if (linear.stages.size() <= 5000 ||
      (!best.feasible && linear.stages.size() <= 200'000))
    for (auto classic : {checkpoint, checkpointBlocks})
      keep(classic(linear, liveBytes - linear.constantBytes));
  if (!given && linear.stages.size() <= kMostBeamStages)
    findByBeam(schedule, liveBytes, prices, best);
  constructs.work = budgetWork / 30;
  for (int64_t tighter = 1; !given && small && tighter <= 6; ++tighter) {
    // Prices overshoot: aiming a little lower often lands better.
    int64_t aim = liveBytes - liveBytes / 200 * tighter - linear.constantBytes;
    keep(constructWithin(linear, aim, stagePrices(prices), constructs, work));
  }
  // Then warm the best plan up a little and cool it again, until that has
  // stopped to help; small problems are also cooled from above, which leads to
  // other plans altogether: several times where nobody waits.
  int lastFromAbove = !small ? -1 : isHurried(options) ? 1 : 5;
  int rounds = small ? 7 : roundsOf(linear.stages.size());
  int idle = 0;
  int patience = !small ? 3 : isHurried(options) ? 4 : 5;
  int64_t earlier = 0; // What `best` cost before the last rounds.
  for (int i = 0; i < rounds && idle < patience && !stopped(); ++i) {
    if (best.feasible && best.cost <= provenCost)
      break;
    bool fromAbove = i % 2 == 1 && i <= lastFromAbove;
    bool fromGiven = i == 0 && given;
    restore(linear, schedule,
            fromAbove   ? RematPlan{}
            : fromGiven ? *given
                        : best);
    // What doesn't fit yet needs long walks.
    int64_t share = fromGiven                     ? 8
                    : fromAbove || !best.feasible ? 4
                    : small                       ? 2
                                                  : 3;
    double temperature = fromAbove ? 1 : i % 3 == 0 ? 0.06 : 0.03;
    RematPlan found = round(schedule, budgetWork * share / (small ? 20 : 15),
                            temperature, small ? 0 : 400);
    idle = keep(std::move(found)) ? 0 : idle + 1;
    if (i == 1)
      earlier = best.cost;
  }
  // Near the smallest budgets plans go on to get better for long: who waits for
  // one waits a little longer, as long as that pays.
  constexpr int kMostExtra = 12, kMostBlind = 2;
  const int64_t far = linear.baseCost / 50, worth = linear.baseCost / 2000;
  for (int i = 0; small && isHurried(options) && i < kMostExtra; ++i) {
    bool pays = best.feasible ? best.cost - provenCost >= far &&
                                    earlier - best.cost >= worth
                              : i < kMostBlind;
    if (!pays || stopped())
      break;
    earlier = best.cost;
    restore(linear, schedule, best);
    keep(round(schedule, budgetWork / 2, 0.1));
  }
  return best;
}

/// Betters `best` by a beam; the first plan will do for `wantAny`.
void Search::findByBeam(Schedule &schedule, int64_t liveBytes,
                        const std::vector<double> &prices, RematPlan &best,
                        bool wantAny) {
  std::vector<double> known = prices;
  if (known.empty()) {
    DualOptions dual;
    dual.work = std::min<int64_t>(budgetWork / 20, 20'000'000);
    known = ascend(relaxation, liveBytes, dual);
  }
  BeamOptions beams;
  // Where nothing fits yet, this is what finds the most.
  beams.work = wantAny         ? budgetWork / 40
               : best.feasible ? std::min<int64_t>(budgetWork / 10, 150'000'000)
                               : std::min<int64_t>(budgetWork / 4, 400'000'000);
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

/// Prices are per instruction; pseudo stages have none.
std::vector<double>
Search::stagePrices(const std::vector<double> &prices) const {
  std::vector<double> out(linear.stages.size(), 0);
  size_t at = 0;
  for (size_t k = 0; k < out.size(); ++k)
    if (linear.stages[k].instruction != kNone && at < prices.size())
      out[k] = prices[at++];
  return out;
}

void Search::findCases(const Problem &problem, const SolveOptions &options,
                       int64_t cost, const std::vector<double> &prices,
                       Plan &plan) {
  if (stopped())
    return;
  BranchOptions branches;
  branches.knownExtraCost = cost;
  // Few moments prove nearly as much as many, and prices converge sooner.
  int64_t n = int64_t(linear.stages.size());
  branches.moments = n <= 3000 ? 8 : 4;
  branches.work = std::min(budgetWork / 10 + 8000 * n,
                           std::max<int64_t>(400'000'000, 15'000 * n));
  if (options.maxWork > 0)
    branches.work = std::min(branches.work, options.maxWork / 4);
  BranchCertificate found =
      branch(problem, relaxation, prices, options.budgetBytes, branches);
  if (found.extraCost > plan.certificate.extraCost)
    plan.cases = std::move(found);
}

void Search::findFrontier(int64_t basePeak) {
  int64_t amount = budgetWork / 12;
  int64_t floor = impossible, ceiling = basePeak;
  Schedule schedule(linear, ceiling - linear.constantBytes);
  RematPlan best = rematPlanOf(linear, schedule);
  random = Random(options.seed + 1); // Whatever came before.
  RematPlan segments = checkpoint(linear, floor - linear.constantBytes);
  restore(linear, schedule, segments);
  if (int64_t peak = schedule.peakBytes() + linear.constantBytes;
      peak < ceiling) {
    ceiling = peak;
    best = segments;
    best.feasible = true;
    frontier.push_back({peak, best});
  }
  // Halve the distance to what is impossible; where that fails, come back.
  for (int i = 0; i < 14 && !stopped(); ++i) {
    int64_t target = floor + (ceiling - floor) / 2;
    if (target >= ceiling || ceiling - floor <= ceiling / 500)
      break;
    if (options.smallestWork > 0 && work >= options.smallestWork) {
      stoppedEarly = true;
      break;
    }
    schedule.setLimit(target - linear.constantBytes);
    ConstructOptions constructs;
    constructs.rounds = 30;
    constructs.work = amount;
    constructs.stop = [this] { return stopped(); };
    RematPlan found = constructWithin(linear, target - linear.constantBytes,
                                      stagePrices({}), constructs, work);
    restore(linear, schedule, found.feasible ? found : best);
    if (!found.feasible && linear.stages.size() <= kMostBeamStages)
      findByBeam(schedule, target, {}, found, /*wantAny=*/true);
    if (!found.feasible)
      found = round(schedule, amount, 0.3);
    restore(linear, schedule, found);
    int64_t peak = schedule.peakBytes() + linear.constantBytes;
    if (!found.sequence.empty())
      peak = target;
    if (peak < ceiling) {
      ceiling = peak;
      best = found;
      best.feasible = true;
      frontier.push_back({peak, best});
    }
    if (peak > target)
      floor = target;
  }
}

} // namespace

/// The best plan of `search`. A walk that once recomputes something expensive
/// hardly gets away from it, for much else would have to change at the same
/// time: where somebody waits, plans that don't are sought first, and are the
/// answer if they cost less than that alone.
static RematPlan findPlan(const Problem &problem, const SolveOptions &options,
                          const std::vector<std::vector<InstructionId>> &orders,
                          Clock::time_point start, Search &search,
                          int64_t limitBytes, int64_t provenCost,
                          const std::vector<double> &prices) {
  RematPlan known;
  std::optional<int64_t> expensive = search.expensiveCost();
  bool keeps =
      options.expensive == Expensive::Held ||
      (options.expensive == Expensive::HeldFirst && isHurried(options));
  if (expensive && keeps) {
    Search lean(problem, options, orders, start, /*holdsExpensive=*/true);
    known = lean.plan(limitBytes, provenCost, prices);
    search.work += lean.work;
    if (options.expensive == Expensive::Held ||
        (known.feasible && known.cost <= *expensive))
      return known;
  }
  return search.plan(limitBytes, provenCost, prices, std::move(known));
}

/// The best plan for the program's own order.
static absl::StatusOr<Plan> solveFixed(const Problem &problem,
                                       const SolveOptions &options,
                                       Clock::time_point start) {
  Plan plan;
  plan.baseCost = baseCost(problem);
  for (const Segment &segment : problem.segments)
    plan.orders.push_back(segment.instructions);
  int64_t limit = options.budgetBytes < 0
                      ? std::numeric_limits<int64_t>::max() / 4
                      : options.budgetBytes - problem.reservedBytes;

  Search search(problem, options, plan.orders, start);
  Schedule schedule(search.linear, limit - search.linear.constantBytes);
  int64_t basePeak = schedule.peakBytes() + search.linear.constantBytes;
  plan.impossibleBelowBytes = search.impossible + problem.reservedBytes;
  std::vector<double> prices;
  plan.certificate.budgetBytes = options.budgetBytes;
  bool possible = limit >= search.impossible;
  if (options.wantBound && options.budgetBytes >= 0) {
    DualOptions dual;
    dual.work =
        std::min<int64_t>(search.budgetWork / 10 + 1'000'000, 200'000'000);
    prices = ascend(search.relaxation, limit, dual);
    plan.certificate =
        certify(problem, search.relaxation, prices, options.budgetBytes);
  }
  if (options.wantFrontier)
    search.findFrontier(basePeak);
  RematPlan best = rematPlanOf(search.linear, schedule);
  absl::StatusOr<Claim> base = measure(problem, baseSolution(problem));
  if (base.ok() && base->peakBytes <= limit && options.headroom.empty())
    best.feasible = true; // Folded loops may look larger than they are.
  else if (possible)
    best = findPlan(problem, options, plan.orders, start, search, limit,
                    plan.certificate.extraCost, prices);
  if (!best.feasible && search.frontier.empty())
    search.findFrontier(basePeak);
  int64_t smallest = basePeak;
  for (const Search::FrontierPoint &point : search.frontier)
    smallest = std::min(smallest, point.peak);
  if (!best.feasible)
    best = search.frontier.empty() ? RematPlan{} : search.frontier.back().plan;
  restore(search.linear, schedule, best);
  plan.solution = best.sequence.empty()
                      ? schedule.toSolution(problem)
                      : solutionOf(problem, search.linear, best);
  if (options.wantBound && options.budgetBytes >= 0 && possible &&
      best.cost > plan.certificate.extraCost) {
    // Again, now that a plan tells how far prices can go at most.
    DualOptions dual;
    dual.work =
        std::min<int64_t>(search.budgetWork / 10 + 1'000'000, 200'000'000);
    dual.knownExtraCost = best.cost;
    std::vector<double> better = ascend(search.relaxation, limit, dual);
    Certificate second =
        certify(problem, search.relaxation, better, options.budgetBytes);
    if (second.extraCost > plan.certificate.extraCost) {
      plan.certificate = std::move(second);
      prices = std::move(better);
    }
    if (options.wantCases && best.feasible &&
        best.cost > plan.certificate.extraCost)
      search.findCases(problem, options, best.cost, prices, plan);
  }

  absl::StatusOr<Claim> claim = measure(problem, plan.solution);
  if (!claim.ok())
    return absl::InternalError(
        absl::StrCat("planned a wrong schedule: ", claim.status().message()));
  plan.peakBytes = claim->peakBytes;
  plan.cost = claim->cost;
  plan.feasible =
      plan.peakBytes <= limit && (options.expensive != Expensive::Held ||
                                  !recomputesExpensive(problem, plan.solution));
  if (plan.feasible && options.budgetBytes >= 0)
    smallest = std::min(smallest, limit);
  plan.smallestFoundBytes = smallest + problem.reservedBytes;
  plan.stats.work = search.work;
  plan.stats.timeLimitHit = search.timeLimitHit;
  plan.stats.stoppedEarly = search.stoppedEarly;
  if (search.repeats)
    plan.stats.repeatedInstructions = search.repeats->count();
  for (const std::vector<Execution> &list : plan.solution.segments)
    for (const Execution &e : list)
      plan.stats.recomputedExecutions += e.instruction == kNone;
  plan.stats.seconds =
      std::chrono::duration<double>(Clock::now() - start).count();
  return plan;
}

/// Whether it is proved that a plan in the program's own order costs at least
/// `cost`.
static bool isBeaten(const Problem &problem, int64_t budgetBytes, int64_t cost,
                     int64_t work) {
  DualOptions dual;
  dual.work = std::min<int64_t>(work + 1'000'000, 200'000'000);
  dual.knownExtraCost = cost - baseCost(problem);
  if (dual.knownExtraCost <= 0)
    return true;
  Relaxation relaxation = relax(problem);
  std::vector<double> prices =
      ascend(relaxation, budgetBytes - problem.reservedBytes, dual);
  return certify(problem, relaxation, prices, budgetBytes).extraCost >=
         dual.knownExtraCost;
}

/// Reorders where that helps, and plans the orders found beside the program's
/// own. That one is planned exactly as if it were fixed, unless it is proved
/// that it can't win: so freedom never costs anything. Where somebody waits, it
/// is one of the orders to choose from.
static absl::StatusOr<Plan> solveFree(const Problem &problem,
                                      const SolveOptions &options,
                                      Clock::time_point start) {
  int64_t limit = options.budgetBytes - problem.reservedBytes;
  LinearProblem linear = linearize(problem);
  int64_t n = int64_t(linear.stages.size());
  int64_t amount =
      std::max<int64_t>(n <= 2000 ? 600'000 * n : 20'000 * n, 1'000'000);
  amount = int64_t(double(amount) * double(options.effort) / 100);
  if (options.maxWork > 0)
    amount = std::min(amount, options.maxWork / 16);
  ReorderOptions reorders;
  reorders.limitBytes = limit - linear.constantBytes;
  reorders.work = amount;
  Random random(options.seed);
  int64_t work = 0;
  constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
  struct Candidate {
    Orders orders;
    int64_t excess; // Of bytes, all kept; kUnknown: not counted, above 0.
    std::optional<int64_t> cost = {}; // Of a plan that fits.
  };
  std::vector<Candidate> candidates;
  // Which order recomputes least, none of these knows: a small problem is worth
  // more of them.
  bool hurried = isHurried(options);
  int64_t fewInstructions = hurried ? 600 : 2000;
  for (bool tidy : {true, false})
    for (Orders orders : {programOrders(problem), listSchedule(problem)}) {
      if ((!tidy && n > fewInstructions) ||
          (!candidates.empty() && candidates.back().excess == 0))
        break;
      reorders.heldWeight = tidy ? ReorderOptions().heldWeight : 0;
      int64_t excess = reorder(problem, orders, random, reorders, work);
      candidates.push_back({std::move(orders), excess});
    }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate &a, const Candidate &b) {
              return a.excess < b.excess;
            });
  std::optional<Plan> best;
  bool stoppedEarly = false;
  auto keep = [&](Plan plan) {
    work += plan.stats.work;
    stoppedEarly |= plan.stats.stoppedEarly;
    // What comes later has had more work, and is better proved.
    if (!best ||
        (plan.feasible ? !best->feasible || plan.cost <= best->cost
                       : !best->feasible && plan.peakBytes <= best->peakBytes))
      best = std::move(plan);
  };
  auto planOrders = [&](const Orders &orders, int64_t part) {
    Problem reordered = problem;
    for (size_t s = 0; s < reordered.segments.size(); ++s)
      reordered.segments[s].instructions = orders[s];
    SolveOptions how = options;
    how.effort = std::max<int64_t>(1, options.effort / part);
    if (options.maxWork > 0)
      how.maxWork = std::max<int64_t>(1, options.maxWork / part);
    if (options.smallestWork > 0)
      how.smallestWork = std::max<int64_t>(1, options.smallestWork - work);
    how.wantFrontier = false;
    return solveFixed(reordered, how, start);
  };

  // An eighth of the work tells which of the new orders are worth more, unless
  // only the smallest plan is asked for.
  int64_t impossible = impossibleBelowFreely(problem, relax(problem));
  bool possible = options.budgetBytes >= impossible;
  if (hurried && possible && candidates.front().excess > 0)
    candidates.push_back({programOrders(problem), kUnknown});
  // Nothing is left to win for others where one order holds everything.
  size_t tried = !possible                        ? 0
                 : candidates.front().excess == 0 ? 1
                                                  : candidates.size();
  std::vector<absl::StatusOr<Plan>> firsts(tried, absl::UnknownError(""));
  inParallel(tried, [&](size_t i) {
    firsts[i] = planOrders(candidates[i].orders, 8);
  });
  for (size_t i = 0; i < tried; ++i) {
    if (!firsts[i].ok())
      return firsts[i].status();
    if (firsts[i]->feasible)
      candidates[i].cost = firsts[i]->cost;
    keep(std::move(*firsts[i]));
  }
  // Other budgets lead to other orders: what surely works again is the budget
  // itself, and what the program's own order reaches.
  std::optional<int64_t> smallest, programCost;
  bool settled = options.coarse && hurried && best && best->feasible;
  if (!best || !best->feasible ||
      (!hurried &&
       !isBeaten(problem, options.budgetBytes, best->cost, amount))) {
    absl::StatusOr<Plan> plan = solveFixed(problem, options, start);
    if (!plan.ok())
      return plan.status();
    smallest = plan->smallestFoundBytes;
    if (plan->feasible)
      programCost = plan->cost;
    keep(std::move(*plan));
  }
  // The cheapest first: what that becomes, the others have to beat as they are.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate &a, const Candidate &b) {
                     return a.cost && (!b.cost || *a.cost < *b.cost);
                   });
  for (const Candidate &candidate : candidates) {
    if (settled || candidate.excess == 0 ||
        (best->feasible && (!candidate.cost || *candidate.cost > best->cost ||
                            candidate.cost == programCost)))
      continue;
    if (!possible && options.smallestWork > 0 && work >= options.smallestWork) {
      stoppedEarly = true;
      break;
    }
    int64_t part = !possible ? 4 : hurried ? 1 : 2;
    absl::StatusOr<Plan> plan = planOrders(candidate.orders, part);
    if (!plan.ok())
      return plan.status();
    keep(std::move(*plan));
    if (hurried && possible)
      break;
  }
  if (!smallest && options.wantFrontier) {
    Search search(problem, options, programOrders(problem), start);
    int64_t basePeak =
        Schedule(search.linear, 0).peakBytes() + search.linear.constantBytes;
    search.findFrontier(basePeak);
    smallest =
        (search.frontier.empty() ? basePeak : search.frontier.back().peak) +
        problem.reservedBytes;
  }
  if (best->feasible)
    smallest =
        std::min(smallest.value_or(options.budgetBytes), options.budgetBytes);
  best->stats.work = work;
  best->stats.stoppedEarly = stoppedEarly;
  best->smallestFoundBytes = smallest.value_or(best->smallestFoundBytes);
  best->impossibleBelowBytes = impossible;
  best->stats.seconds =
      std::chrono::duration<double>(Clock::now() - start).count();
  return std::move(*best);
}

bool tmc::planning::recomputesExpensive(const Problem &problem,
                                        const Solution &solution) {
  int64_t base = baseCost(problem);
  for (const std::vector<Execution> &list : solution.segments)
    for (const Execution &e : list)
      if (e.instruction == kNone &&
          isExpensive(problem.recipes[e.recipe].cost, base))
        return true;
  return false;
}

absl::StatusOr<Plan> tmc::planning::solve(const Problem &problem,
                                          const SolveOptions &options) {
  Clock::time_point start = Clock::now();
  if (absl::Status status = check(problem); !status.ok())
    return status;
  if (options.order == OrderMode::Fixed || options.budgetBytes < 0)
    return solveFixed(problem, options, start);
  return solveFree(problem, options, start);
}
