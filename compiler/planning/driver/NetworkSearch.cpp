#include "compiler/planning/driver/NetworkSearch.h"

#include "compiler/planning/bound/Bound.h"
#include "compiler/planning/driver/OfferPlan.h"
#include "compiler/planning/moves/DelayReaders.h"
#include "compiler/planning/moves/NetworkProjection.h"
#include "compiler/planning/moves/Overlap.h"
#include "compiler/planning/search/Order.h"

#include <algorithm>
#include <array>
#include <chrono>

using namespace tmc::planning;

namespace {

/// Prices of a network's second, in seconds of compute.
constexpr std::array kPrices = {0.3, 0.03, 2.0};
/// Bytes kept free, in sizes of the largest piece of work.
constexpr std::array<int64_t, 6> kPieces = {0, 1, 2, 4, 8, 16};
/// The last halving of stretches, and the plans of changed homes.
constexpr size_t kStretches = 8;
constexpr int kChanges = 24, kCoarseChanges = 4;
/// The part of the effort for each plan but the last.
constexpr int64_t kTrialPart = 8;

class NetworkSearch {
public:
  NetworkSearch(const Problem &problem, const SolveOptions &options,
                std::vector<MovedPlan> *smaller)
      : problem(problem), options(options), smaller(smaller),
        contents(shardableContents(problem)) {
    for (const Recipe &r : problem.recipes) {
      if (!problem.isOnNetwork(r))
        continue;
      repeats |= r.recomputable;
      int64_t bytes = r.workspaceBytes;
      for (ValueId w : r.writes)
        bytes += problem.values[w].bytes;
      largest = std::max(largest, bytes);
    }
  }

  absl::StatusOr<Plan> run() {
    if (absl::Status status = check(problem); !status.ok())
      return status;
    best.baseCost = baseCost(problem);
    best.orders = programOrders(problem);
    if (Problem later = inOrder(problem, delayReaders(problem));
        programOrders(later) != best.orders)
      delayed = std::move(later);
    if (options.start)
      if (absl::Status status = offerKnown(problem, *options.start, best);
          !status.ok())
        return status;
    chooseHomes();
    if (!failure.ok())
      return failure;
    proveOrder();
    best.stats.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    return std::move(best);
  }

private:
  /// Per content of `contents`: whether its home is the shard.
  using Homes = std::vector<char>;

  bool canGain() {
    const std::chrono::duration<double> passed =
        std::chrono::steady_clock::now() - start;
    if (options.timeLimitSeconds > 0 &&
        passed.count() > options.timeLimitSeconds)
      best.stats.timeLimitHit = true;
    return failure.ok() && !best.stats.timeLimitHit && load < options.useless &&
           (!best.feasible || best.cost > load);
  }

  /// The order, price and free bytes of a plan.
  struct Knobs {
    const Problem *ordered;
    double price = kPrices[0];
    int64_t pieces = 0;
  };

  void chooseHomes() {
    Homes now(contents.size(), 0);
    Knobs knobs{&problem};
    tryKnobs(now, knobs);
    if (!contents.empty()) {
      const Homes shards(contents.size(), 1);
      if (tryKnobs(shards, knobs))
        now = shards;
      changeHomes(now, knobs);
    }
    // The best choice once more, with all of the effort.
    if (canGain())
      evaluate(now, knobs, 1);
    if (best.feasible || contents.empty())
      return;
    now.assign(contents.size(), 1);
    const Problem *const later = delayed ? &*delayed : nullptr;
    for (const Problem *ordered : {&problem, later})
      if (ordered && canGain())
        evaluate(now, {ordered}, 1);
  }

  /// Changes stretches of homes while that helps.
  void changeHomes(Homes &now, Knobs &knobs) {
    int changes = options.coarse || !best.feasible ? kCoarseChanges : kChanges;
    for (size_t count = 2; count <= kStretches; count *= 2)
      for (size_t s = 0; s < count && count <= contents.size(); ++s) {
        Homes next = now;
        for (size_t i = contents.size() * s / count;
             i < contents.size() * (s + 1) / count; ++i)
          next[i] = !next[i];
        if (!canGain() || changes-- <= 0)
          return;
        const bool isLess =
            best.feasible ? gains([&] { evaluate(next, knobs, kTrialPart); })
                          : tryKnobs(next, knobs);
        if (isLess)
          now = next;
      }
  }

  /// True if `plan` finds a better plan than the best.
  template <typename Function> bool gains(Function &&plan) {
    const bool had = best.feasible;
    const int64_t before = best.cost;
    plan();
    return best.feasible && (!had || best.cost < before);
  }

  /// Plans these homes with all knobs that may matter; `knobs` are those of the
  /// best plan. Returns whether it is one of them.
  bool tryKnobs(const Homes &homes, Knobs &knobs) {
    return gains([&] {
      if (!delayed || !tryOrder(*delayed, homes, knobs))
        tryOrder(problem, homes, knobs);
    });
  }

  /// Returns whether bytes were no matter: another order gains nothing.
  bool tryOrder(const Problem &ordered, const Homes &homes, Knobs &knobs) {
    const bool isLimited = problem.spaces[0].budgetBytes >= 0;
    for (double price : kPrices) {
      for (int64_t pieces : kPieces) {
        if (!canGain())
          return true;
        const Knobs with{&ordered, price, pieces};
        Made made = Made::Nothing;
        if (gains([&] { made = evaluate(homes, with, kTrialPart); }))
          knobs = with;
        if (made == Made::Nothing && pieces == 0)
          return false; // No price makes room.
        if (made == Made::AtEase && pieces == kPieces.back())
          return true;
        if (made == Made::Nothing || !isLimited)
          break;
      }
      if (!isLimited)
        return true;
      if (!repeats || options.coarse)
        return false;
    }
    return false;
  }

  /// No plan; one; one that repeats nothing.
  enum class Made : uint8_t { Nothing, Some, AtEase };

  Made evaluate(const Homes &homes, const Knobs &knobs, int64_t part) {
    std::vector<char> isShard(problem.values.size(), 0);
    for (size_t i = 0; i < contents.size(); ++i)
      isShard[contents[i].whole] = homes[i];
    absl::StatusOr<NetworkProjection> projection =
        projectNetwork(*knobs.ordered, isShard, knobs.price);
    if (absl::IsNotFound(projection.status()))
      return Made::Nothing;
    if (!projection.ok())
      return fail(projection.status());
    ++best.stats.tried;
    absl::StatusOr<Plan> plan = solve(
        projection->problem, howTo(*projection, knobs.pieces * largest, part));
    if (!plan.ok())
      return fail(plan.status());
    best.stats.work += plan->stats.work;
    best.stats.timeLimitHit |= plan->stats.timeLimitHit;
    if (!plan->feasible)
      return Made::Nothing;
    absl::StatusOr<MovedPlan> moved = overlapNetwork(
        problem, restoreNetwork(problem, *projection, plan->solution),
        problem.liveLimitOf(0));
    if (isRefused(moved, best.stats.refused))
      return Made::Nothing;
    if (!moved.ok())
      return fail(moved.status());
    if (smaller && fitsBudgets(problem, moved->peakBytes))
      smaller->push_back(*moved);
    offerPlan(problem, *std::move(moved), best);
    return plan->cost == plan->baseCost ? Made::AtEase : Made::Some;
  }
  Made fail(const absl::Status &status) {
    failure.Update(status);
    return Made::Nothing;
  }

  SolveOptions howTo(const NetworkProjection &projection, int64_t freeBytes,
                     int64_t part) const {
    const int64_t budget = problem.spaces[0].budgetBytes;
    SolveOptions how = options;
    how.budgetBytes =
        budget < 0 ? -1 : std::max<int64_t>(0, budget - freeBytes);
    how.order = OrderMode::Fixed;
    how.start = nullptr;
    how.effort = options.effort.part(part);
    how.coarse |= part > 1 && problem.spaces.size() > 1;
    how.wantBound = how.wantCases = how.wantFrontier = how.wantSmallest = false;
    how.exact = nullptr;
    how.headroom.clear();
    if (options.headroom.empty())
      return how;
    for (const Instruction &i : projection.problem.instructions) {
      const InstructionId of =
          projection.origins[i.recipes.front()].instruction;
      how.headroom.push_back(of == kNone ? 0 : options.headroom[of]);
    }
    return how;
  }

  /// The bound is of the plan's order: kernels may wait for a network, and its
  /// work may start earlier.
  void proveOrder() {
    if (best.feasible)
      best.orders = firstExecutions(best.solution);
    best.certificate = prove(provenProblem(problem, best));
    if (!smaller || !best.feasible)
      return;
    // The fastest first, each with a smaller peak than those before it.
    std::stable_sort(smaller->begin(), smaller->end(),
                     [](const MovedPlan &a, const MovedPlan &b) {
                       return a.makespan < b.makespan;
                     });
    int64_t least = best.peakBytes[0], last = best.cost;
    std::erase_if(*smaller, [&](const MovedPlan &plan) {
      // The bound is of one order.
      if (plan.peakBytes[0] >= least || plan.makespan <= last ||
          firstExecutions(plan.solution) != best.orders)
        return true;
      least = plan.peakBytes[0], last = plan.makespan;
      return false;
    });
  }

  const Problem &problem;
  const SolveOptions &options;
  std::vector<MovedPlan> *const smaller;
  const std::vector<ShardableContent> contents;
  const std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  const int64_t load = loadOf(problem); // Compute's, in any order.
  std::optional<Problem> delayed;       // The other order, if there is one.
  bool repeats = false;                 // Some work of a network may run again.
  int64_t largest = 0; // Bytes of the largest results and scratch of one.
  Plan best;
  absl::Status failure; // The first error of a choice.
};

} // namespace

absl::StatusOr<Plan>
tmc::planning::solveNetwork(const Problem &problem, const SolveOptions &options,
                            std::vector<MovedPlan> *smaller) {
  return NetworkSearch(problem, options, smaller).run();
}
