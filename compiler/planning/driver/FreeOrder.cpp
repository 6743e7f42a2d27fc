#include "compiler/planning/driver/FreeOrder.h"

#include "compiler/planning/driver/Search.h"
#include "compiler/planning/model/Parallel.h"
#include "compiler/planning/search/Order.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

namespace {

/// Counted work of one anneal of an order: by stage of a small problem, by
/// stage of a large one, and the minimum.
constexpr int64_t kSmallOrderWork = 600'000, kLargeOrderWork = 20'000;
constexpr int64_t kLeastOrderWork = 1'000'000;
/// If only the smallest plan is sought, each order is annealed and planned with
/// this part of the work.
constexpr int64_t kImpossiblePart = 4;
constexpr int64_t kMostProofWork = 200'000'000;
constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

class FreeOrder {
public:
  FreeOrder(const Problem &problem, const SolveOptions &options,
            Clock::time_point start)
      : problem(problem), options(options), start(start),
        impossible(impossibleBelow(problem)) {}

  absl::StatusOr<Plan> run();

private:
  struct Candidate {
    Orders orders;
    int64_t excess; // Bytes over the limit if all is kept; kUnknown: not
                    // counted, above 0.
    std::optional<int64_t> cost = {}; // Cost of a plan that fits.
  };

  bool isPossible() const { return options.budgetBytes >= impossible; }
  void findOrders();
  absl::Status tryOrders();
  absl::Status planProgramOrder();
  absl::Status planBestOrders();
  void findSmallest();
  absl::StatusOr<Plan> planOrder(const Orders &orders, int64_t part) const;
  bool isBeaten() const;
  void keep(Plan plan);

  const Problem &problem;
  const SolveOptions &options;
  Clock::time_point start;
  int64_t impossible;
  int64_t amount = 0; // Counted work of one anneal of an order.
  std::vector<Candidate> candidates;
  std::optional<Plan> best;
  bool settled = false;
  std::optional<int64_t> smallest, programCost;
  int64_t work = 0;
  bool stoppedEarly = false;
};

void FreeOrder::findOrders() {
  LinearProblem linear = linearize(problem);
  int64_t n = int64_t(linear.stages.size());
  amount = std::max(
      (n <= int64_t(kSmallStages) ? kSmallOrderWork : kLargeOrderWork) * n,
      kLeastOrderWork);
  amount = int64_t(double(amount) * double(options.effort.percent) / 100);
  if (options.effort.mostWork > 0)
    amount = std::min(amount, options.effort.mostWork /
                                  rowOf(Strategy::ListOrder).divisor);
  if (!isPossible())
    amount = std::max(amount / kImpossiblePart, kLeastOrderWork);
  ReorderOptions reorders;
  reorders.limitBytes =
      options.budgetBytes - problem.reservedBytes - linear.constantBytes;
  reorders.work = amount;
  Random random(options.seed);
  // None of these shows which order recomputes least, so a small problem tries
  // more of them.
  for (bool held : {true, false}) {
    if (held && options.without.has(Strategy::HeldOrder))
      continue;
    for (bool listed : {false, true}) {
      if (listed && options.without.has(Strategy::ListOrder))
        continue;
      if ((!held && n > options.effort.fewInstructions) ||
          (!candidates.empty() && candidates.back().excess == 0))
        break;
      Orders orders = listed ? listSchedule(problem) : programOrders(problem);
      reorders.heldWeight = held ? ReorderOptions().heldWeight : 0;
      int64_t excess = reorder(problem, orders, random, reorders, work);
      candidates.push_back({std::move(orders), excess});
    }
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate &a, const Candidate &b) {
              return a.excess < b.excess;
            });
}

void FreeOrder::keep(Plan plan) {
  work += plan.stats.work;
  stoppedEarly |= plan.stats.stoppedEarly;
  // On a tie the later plan wins: it had more work, and has a better proof.
  if (!best || (plan.feasible ? !best->feasible || plan.cost <= best->cost
                              : !best->feasible &&
                                    plan.peakBytes[0] <= best->peakBytes[0]))
    best = std::move(plan);
}

absl::StatusOr<Plan> FreeOrder::planOrder(const Orders &orders,
                                          int64_t part) const {
  SolveOptions how = options;
  how.effort = options.effort.part(part);
  if (options.smallestWork > 0)
    how.smallestWork = std::max<int64_t>(1, options.smallestWork - work);
  how.wantFrontier = false;
  return solveFixed(inOrder(problem, orders), how, start);
}

/// Plans the new orders with an eighth of the work, to compare them. Does
/// nothing if only the smallest plan is sought.
absl::Status FreeOrder::tryOrders() {
  if (!options.effort.guardsProgramOrder && isPossible() &&
      (candidates.empty() || candidates.front().excess > 0) &&
      !options.without.has(Strategy::ProgramOrder))
    candidates.push_back({programOrders(problem), kUnknown});
  // If one order holds everything, the others can't be better.
  size_t tried = !isPossible()                    ? 0
                 : candidates.empty()             ? 0
                 : candidates.front().excess == 0 ? 1
                                                  : candidates.size();
  std::vector<absl::StatusOr<Plan>> firsts(tried, absl::UnknownError(""));
  inParallel(tried, [&](size_t i) {
    firsts[i] =
        planOrder(candidates[i].orders, rowOf(Strategy::ProgramOrder).divisor);
  });
  for (size_t i = 0; i < tried; ++i) {
    if (!firsts[i].ok())
      return firsts[i].status();
    if (firsts[i]->feasible)
      candidates[i].cost = firsts[i]->cost;
    keep(std::move(*firsts[i]));
  }
  settled = options.coarse && !options.effort.guardsProgramOrder && best &&
            best->feasible;
  return absl::OkStatus();
}

/// Whether a bound proves that no plan in the program's own order costs less
/// than the best.
bool FreeOrder::isBeaten() const {
  AscentOptions ascent;
  ascent.work = std::min(amount + kLeastOrderWork, kMostProofWork);
  ascent.knownExtraCost = best->cost - baseCost(problem);
  if (ascent.knownExtraCost <= 0)
    return true;
  const GapModel model(problem);
  const Prices prices =
      ascend(model, limitsOf(problem, options.budgetBytes), ascent);
  return certify(model, prices, options.budgetBytes).provenCost >= best->cost;
}

/// Other budgets lead to other orders: only the budget itself, and the smallest
/// budget of the program's own order, are sure to work again.
absl::Status FreeOrder::planProgramOrder() {
  if (best && best->feasible &&
      (!options.effort.guardsProgramOrder || isBeaten()))
    return absl::OkStatus();
  absl::StatusOr<Plan> plan = solveFixed(problem, options, start);
  if (!plan.ok())
    return plan.status();
  smallest = plan->smallestFoundBytes;
  if (plan->feasible)
    programCost = plan->cost;
  keep(std::move(*plan));
  return absl::OkStatus();
}

/// Plans orders in full, the cheapest first. Skips an order if its coarse plan
/// costs more than the best plan.
absl::Status FreeOrder::planBestOrders() {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate &a, const Candidate &b) {
                     return a.cost && (!b.cost || *a.cost < *b.cost);
                   });
  int planned = 0;
  for (const Candidate &candidate : candidates) {
    if (settled || candidate.excess == 0 ||
        (best->feasible && (!candidate.cost || *candidate.cost > best->cost ||
                            candidate.cost == programCost)))
      continue;
    if (!isPossible() && options.smallestWork > 0 &&
        work >= options.smallestWork) {
      stoppedEarly = true;
      break;
    }
    absl::StatusOr<Plan> plan =
        planOrder(candidate.orders,
                  isPossible() ? options.effort.orderDivisor : kImpossiblePart);
    if (!plan.ok())
      return plan.status();
    keep(std::move(*plan));
    if (++planned >= options.effort.orders && isPossible())
      break;
  }
  return absl::OkStatus();
}

void FreeOrder::findSmallest() {
  Search search(problem, options, programOrders(problem), start);
  int64_t basePeak =
      Schedule(search.linear, 0).peakBytes() + search.linear.constantBytes;
  search.findFrontier(basePeak);
  smallest =
      (search.frontier.empty() ? basePeak : search.frontier.back().peak) +
      problem.reservedBytes;
}

absl::StatusOr<Plan> FreeOrder::run() {
  findOrders();
  if (absl::Status status = tryOrders(); !status.ok())
    return status;
  if (absl::Status status = planProgramOrder(); !status.ok())
    return status;
  if (absl::Status status = planBestOrders(); !status.ok())
    return status;
  if (!smallest && options.wantFrontier)
    findSmallest();
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

} // namespace

absl::StatusOr<Plan> tmc::planning::solveFree(const Problem &problem,
                                              const SolveOptions &options,
                                              Clock::time_point start) {
  return FreeOrder(problem, options, start).run();
}
