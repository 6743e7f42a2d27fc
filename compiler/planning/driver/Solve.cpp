#include "compiler/planning/driver/Solve.h"

#include "compiler/planning/driver/FreeOrder.h"
#include "compiler/planning/driver/MovesSearch.h"
#include "compiler/planning/driver/Search.h"
#include "compiler/planning/model/Verify.h"
#include "compiler/planning/search/Beam.h"
#include "compiler/planning/search/Order.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace tmc::planning;

namespace {

/// The part of an order's work that the ascent of prices may take.
constexpr int64_t kAscentPart = 10;
constexpr int64_t kMostAscentWork = 200'000'000, kLeastAscentWork = 1'000'000;
/// Work by stage for the tree of cases, beside its part of the work.
constexpr int64_t kCasesWorkPerStage = 8000;
constexpr int64_t kMostCasesWork = 400'000'000, kMostCasesWorkPerStage = 15'000;
/// With a limit on work, the part of it that cases may take.
constexpr int64_t kCasesPart = 4;
/// Few moments prove nearly as much as many, and prices converge sooner.
constexpr int64_t kManyMomentsStages = 3000;
constexpr int32_t kManyMoments = 8, kFewMoments = 4;

/// Plans one problem in its program's order.
class FixedOrder {
public:
  FixedOrder(const Problem &problem, const SolveOptions &options,
             Clock::time_point start)
      : problem(problem), options(options), start(start),
        plan(withOrders(problem)),
        limit(options.budgetBytes < 0
                  ? std::numeric_limits<int64_t>::max() / 4
                  : options.budgetBytes - problem.reservedBytes),
        search(problem, options, plan.orders, start),
        schedule(search.linear, limit - search.linear.constantBytes) {}

  absl::StatusOr<Plan> run();

private:
  static Plan withOrders(const Problem &problem) {
    Plan plan;
    plan.baseCost = baseCost(problem);
    plan.orders = programOrders(problem);
    return plan;
  }
  bool isPossible() const { return limit >= search.impossible; }
  bool wantsBound() const {
    return options.wantBound && options.budgetBytes >= 0;
  }
  AscentOptions ascent() const {
    AscentOptions how;
    how.work = std::min(search.budgetWork / kAscentPart + kLeastAscentWork,
                        kMostAscentWork);
    return how;
  }
  RematPlan findPlan();
  void findCases(int64_t cost);
  absl::Status measurePlan(int64_t smallest);

  const Problem &problem;
  const SolveOptions &options;
  Clock::time_point start;
  Plan plan;
  int64_t limit;
  Search search;
  Schedule schedule;
  std::vector<double> prices;
};

/// The best plan of `search`. A walk that once recomputes something expensive
/// rarely gets away from it, since much else would have to change as well. So
/// plans without that are sought first, and are the answer if they cost less
/// than the expensive operation.
RematPlan FixedOrder::findPlan() {
  RematPlan known;
  int64_t proven = plan.provenExtraCost();
  std::optional<int64_t> expensive = search.expensiveCost();
  bool holds = options.expensive == Expensive::Held ||
               (options.expensive == Expensive::HeldFirst &&
                !options.without.has(Strategy::HoldExpensive));
  if (expensive && holds) {
    Search lean(problem, options, plan.orders, start, /*holdsExpensive=*/true);
    known = lean.plan(limit, proven, prices);
    search.work += lean.work;
    if (options.expensive == Expensive::Held ||
        (known.feasible && known.cost <= *expensive))
      return known;
  }
  return search.plan(limit, proven, prices, std::move(known));
}

absl::StatusOr<Plan> FixedOrder::run() {
  int64_t basePeak = schedule.peakBytes() + search.linear.constantBytes;
  plan.impossibleBelowBytes = search.impossible + problem.reservedBytes;
  plan.certificate.budgetBytes = options.budgetBytes;
  if (wantsBound()) {
    Prices found = ascend(search.model, {limit}, ascent());
    plan.certificate = certify(search.model, found, options.budgetBytes);
    prices = std::move(found.prices[0]);
  }
  if (options.wantFrontier)
    search.findFrontier(basePeak);
  RematPlan best = rematPlanOf(search.linear, schedule);
  absl::StatusOr<Claim> base = measure(problem, baseSolution(problem));
  if (base.ok() && base->peakBytes <= limit && options.headroom.empty())
    best.feasible = true; // Folded loops may look larger than they are.
  else if (isPossible())
    best = findPlan();
  if (!best.feasible && search.frontier.empty() && options.wantSmallest)
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
  if (wantsBound() && isPossible() && options.wantCases &&
      !options.without.has(Strategy::Cases) && best.feasible &&
      best.cost > plan.provenExtraCost())
    findCases(best.cost);
  if (absl::Status status = measurePlan(smallest); !status.ok())
    return status;
  return std::move(plan);
}

/// Seeks a bound by cases if a plan costs more than the prices prove.
void FixedOrder::findCases(int64_t cost) {
  if (search.stopped())
    return;
  BranchOptions branches;
  branches.knownExtraCost = cost;
  int64_t n = int64_t(search.linear.stages.size());
  branches.moments = n <= kManyMomentsStages ? kManyMoments : kFewMoments;
  branches.work =
      std::min(search.workOf(Strategy::Cases) + kCasesWorkPerStage * n,
               std::max(kMostCasesWork, kMostCasesWorkPerStage * n));
  if (options.effort.mostWork > 0)
    branches.work =
        std::min(branches.work, options.effort.mostWork / kCasesPart);
  BranchCertificate found =
      branch(search.model, prices, options.budgetBytes, branches);
  if (found.extraCost > plan.provenExtraCost())
    plan.cases = std::move(found);
}

/// Fills in the verifier's measurements and the statistics.
absl::Status FixedOrder::measurePlan(int64_t smallest) {
  absl::StatusOr<Claim> claim = measure(problem, plan.solution);
  if (!claim.ok())
    return absl::InternalError(
        absl::StrCat("planned a wrong schedule: ", claim.status().message()));
  plan.peakBytes = {claim->peakBytes};
  plan.cost = claim->cost;
  plan.feasible = plan.peakBytes[0] <= limit &&
                  (options.expensive != Expensive::Held ||
                   !recomputesExpensive(problem, plan.solution));
  if (plan.feasible && options.budgetBytes >= 0)
    smallest = std::min(smallest, limit);
  plan.smallestFoundBytes = smallest + problem.reservedBytes;
  plan.stats.work = search.work;
  plan.stats.timeLimitHit = search.timeLimitHit;
  plan.stats.stoppedEarly = search.stoppedEarly;
  if (search.repeats)
    plan.stats.repeatedInstructions = search.repeats->count();
  plan.stats.seconds =
      std::chrono::duration<double>(Clock::now() - start).count();
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<Plan> tmc::planning::solveFixed(const Problem &problem,
                                               const SolveOptions &options,
                                               Clock::time_point start) {
  return FixedOrder(problem, options, start).run();
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
  if (!isOneSpace(problem)) {
    Problem within = problem;
    within.spaces[0].budgetBytes = options.budgetBytes;
    return solveMoves(within, options);
  }
  Clock::time_point start = Clock::now();
  if (absl::Status status = check(problem); !status.ok())
    return status;
  if (options.order == OrderMode::Fixed || options.budgetBytes < 0)
    return solveFixed(problem, options, start);
  return solveFree(problem, options, start);
}
