#include "compiler/planning/driver/MovesFit.h"

#include "compiler/planning/driver/MovesSearch.h"
#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/pack/Buffers.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

using namespace tmc::planning;

namespace {

/// Plans that are tried, each with a budget reduced by the last packing's loss.
constexpr int kAttempts = 5;
/// Other ways to pack an arena that is too large.
constexpr PackOptions kPackings[] = {
    {.seed = 1}, {.seed = 2, .effort = 400}, {.seed = 3, .effort = 1600}};
/// A smaller plan that fits and takes less than this part longer is good
/// enough: no other is sought.
constexpr int64_t kAlikePart = 500;
/// A plan that fits is the next search's start if it takes less than this part
/// longer than the one that nearly fits. A search that has a plan looks less
/// thoroughly for others that fit, so a much slower start would be its answer.
constexpr int64_t kNearPart = 10;
/// Bisections for the smallest budget.
constexpr int kBisections = 5;
/// Bisections that are repeated with all effort if little effort finds no plan:
/// each such failure takes as long as planning.
constexpr int kThoroughBisections = 2;

class MovesFit {
public:
  MovesFit(const Problem &wanted, const MovesFinder &finder,
           std::span<const int64_t> alignments)
      : wanted(wanted), finder(finder), alignments(alignments) {}

  absl::StatusOr<Plan> run() {
    Problem tight = wanted;
    SolveOptions how = finder.options;
    Plan plan, lesser; // `lesser` fits, if it is feasible.
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      std::vector<MovedPlan> smaller;
      absl::StatusOr<Plan> found = find(tight, how, smaller);
      if (!found.ok())
        return found;
      plan = *std::move(found);
      if (!plan.feasible)
        break;
      pack(plan, kPackings);
      if (narrow(plan, tight))
        return plan;
      if (std::optional<Plan> fits = packSmaller(plan, smaller, tight);
          fits && (!lesser.feasible || fits->cost < lesser.cost))
        lesser = *std::move(fits);
      if (!lesser.feasible)
        continue;
      if (lesser.cost - plan.cost <= plan.cost / kAlikePart)
        break;
      if (lesser.cost - plan.cost <= plan.cost / kNearPart)
        how.start = &lesser.solution;
    }
    if (lesser.feasible)
      return lesser;
    plan.feasible = false;
    return plan;
  }

private:
  absl::StatusOr<Plan> find(const Problem &tight, const SolveOptions &how,
                            std::vector<MovedPlan> &smaller) const {
    if (finder.planner.empty())
      return solveMoves(tight, how, &smaller);
    SolveOptions within = how;
    within.budgetBytes = tight.spaces[0].budgetBytes;
    return planBy(finder.planner, tight, within);
  }

  int64_t overBy(const Plan &plan, size_t s) const {
    const int64_t budget = wanted.spaces[s].budgetBytes;
    return budget < 0
               ? 0
               : plan.arenas[s].bytes + wanted.reservedOf(SpaceId(s)) - budget;
  }

  /// Whether all arenas fit. Reduces the budget of `tight` by each arena's
  /// loss.
  bool narrow(const Plan &plan, Problem &tight) const {
    bool fits = true;
    for (size_t s = 0; s < wanted.spaces.size(); ++s)
      if (const int64_t over = overBy(plan, s); over > 0) {
        fits = false;
        int64_t &budget = tight.spaces[s].budgetBytes;
        budget = std::max<int64_t>(0, budget - over);
      }
    return fits;
  }

  /// The fastest of a search's smaller plans whose arenas fit, among those that
  /// leave free the bytes that packing of the best one lost. Each is packed
  /// once.
  std::optional<Plan> packSmaller(const Plan &best,
                                  const std::vector<MovedPlan> &smaller,
                                  const Problem &tight) const {
    for (const MovedPlan &each : smaller) {
      if (!fitsBudgets(tight, each.peakBytes))
        continue;
      Plan plan = best;
      plan.solution = each.solution;
      plan.cost = each.makespan;
      plan.peakBytes = each.peakBytes;
      pack(plan, std::span(kPackings).first(1));
      Problem unused = tight;
      if (narrow(plan, unused))
        return plan;
    }
    return std::nullopt;
  }

  void pack(Plan &plan, std::span<const PackOptions> packings) const {
    plan.arenas.assign(wanted.spaces.size(), {});
    for (size_t s = 0; s < plan.arenas.size(); ++s) {
      PlannedArena &arena = plan.arenas[s];
      ArenaProblem buffers =
          arenaOf(wanted, plan.solution, alignments[s], SpaceId(s));
      arena.livePeakBytes = tmc::planning::peakBytes(buffers);
      arena.bytes = std::numeric_limits<int64_t>::max();
      for (const PackOptions &how : packings) {
        const int64_t bytes = packSorted(buffers, how).arenaBytes;
        if (bytes < arena.bytes)
          arena.bytes = bytes, arena.packing = how;
        if (overBy(plan, s) <= 0)
          break;
      }
    }
  }

  const Problem &wanted;
  const MovesFinder &finder;
  std::span<const int64_t> alignments;
};

} // namespace

absl::StatusOr<Plan>
tmc::planning::fitMoves(const Problem &problem, const MovesFinder &finder,
                        std::span<const int64_t> alignments) {
  return MovesFit(problem, finder, alignments).run();
}

absl::StatusOr<Plan> tmc::planning::smallestByMoves(
    const Problem &problem, const MovesFinder &finder,
    std::span<const int64_t> alignments, int64_t low, int64_t high) {
  Problem tight = problem;
  MovesFinder coarsely = finder;
  coarsely.options.coarse = true;
  coarsely.options.start = nullptr;
  auto budgetOf = [&](const Plan &plan) {
    return plan.arenaBytes() + problem.reservedBytes;
  };
  Plan least;
  if (high < 0) {
    tight.spaces[0].budgetBytes = -1;
    absl::StatusOr<Plan> most = fitMoves(tight, coarsely, alignments);
    if (!most.ok() || !most->feasible) // The other spaces are too small.
      return most;
    high = budgetOf(*most);
    least = *std::move(most);
  }
  int thorough = 0;
  for (int i = 0; i < kBisections && low < high; ++i) {
    tight.spaces[0].budgetBytes = low + (high - low) / 2;
    absl::StatusOr<Plan> half = fitMoves(tight, coarsely, alignments);
    if (half.ok() && !half->feasible && thorough++ < kThoroughBisections)
      half = fitMoves(tight, finder, alignments);
    if (!half.ok())
      return half;
    if (half->feasible) {
      high = budgetOf(*half);
      least = *std::move(half);
    } else {
      low = tight.spaces[0].budgetBytes;
    }
  }
  return least;
}
