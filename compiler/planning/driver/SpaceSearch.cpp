#include "compiler/planning/driver/SpaceSearch.h"

#include "compiler/planning/peers/OffloadRules.h"
#include "compiler/planning/search/Moves.h"
#include "compiler/planning/search/UpdateGroups.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <span>

using namespace tmc::planning;

namespace {

class SpaceSearch {
public:
  SpaceSearch(const Problem &problem, const SpaceSearchOptions &options)
      : problem(problem), options(options) {}

  absl::StatusOr<SpacePlan> run() {
    auto start = std::chrono::steady_clock::now();
    if (absl::Status status = check(problem); !status.ok())
      return status;
    groups = findUpdateGroups(problem);
    using P = SpacePlanner;
    const P planner = options.planner;
    absl::Status status = absl::OkStatus();
    if (planner == P::Search || planner == P::ZeroOffload)
      status.Update(tryRule(zeroOffload));
    if (planner == P::Search || planner == P::OldestFirst)
      status.Update(tryRule(offloadOldest));
    if (planner == P::Search)
      status.Update(tryModes());
    if (planner == P::Search || planner == P::Recompute)
      status.Update(recompute());
    if (!status.ok())
      return status;
    best.tried = tried;
    std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - start;
    best.seconds = taken.count();
    return std::move(best);
  }

private:
  bool fits(const std::vector<int64_t> &peaks) const {
    for (size_t s = 0; s < peaks.size(); ++s)
      if (int64_t budget = problem.spaces[s].budgetBytes;
          budget >= 0 && peaks[s] + problem.reservedOf(SpaceId(s)) > budget)
        return false;
    return true;
  }

  /// One plan of the device and its moves. Its makespan, or none.
  absl::StatusOr<int64_t> evaluate(const UpdateModes &modes, double price,
                                   int64_t keptFree, int64_t part) {
    constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
    const SpaceChoice choice = choiceOf(problem, groups, modes);
    absl::StatusOr<Projection> projection = project(problem, choice, price);
    if (absl::IsFailedPrecondition(projection.status()))
      return kNone; // Nothing moves what would have to.
    if (!projection.ok())
      return projection.status();
    const int64_t budget = problem.spaces[0].budgetBytes;
    SolveOptions how;
    how.seed = options.seed;
    how.effort = options.effort.part(part);
    how.budgetBytes = budget < 0 ? -1 : std::max<int64_t>(0, budget - keptFree);
    how.wantBound = how.wantCases = false;
    ++tried;
    absl::StatusOr<Plan> plan = solve(projection->problem, how);
    if (!plan.ok())
      return plan.status();
    absl::StatusOr<MovedPlan> moved =
        placeMoves(problem, choice, *projection, plan->solution,
                   budget < 0 ? -1 : budget - problem.reservedBytes);
    if (!moved.ok())
      return moved.status();
    const int64_t makespan = moved->makespan;
    return offer(*moved) ? makespan : kNone;
  }

  /// Takes what a plan holds if it fits and is the quickest so far. Whether it
  /// fits.
  bool offer(MovedPlan &plan) {
    if (!fits(plan.peakBytes))
      return false;
    if (!best.feasible || plan.makespan < best.makespan) {
      best.solution = std::move(plan.solution);
      best.feasible = true;
      best.makespan = plan.makespan;
      best.peakBytes = std::move(plan.peakBytes);
    }
    return true;
  }

  /// What the rule of others comes to.
  absl::Status tryRule(decltype(zeroOffload) &rule) {
    const int64_t budget = problem.spaces[0].budgetBytes;
    absl::StatusOr<MovedPlan> made = rule(
        problem,
        budget < 0 ? -1 : std::max<int64_t>(0, budget - problem.reservedBytes));
    if (absl::IsFailedPrecondition(made.status()))
      return absl::OkStatus(); // Nothing moves what would have to.
    if (!made.ok())
      return made.status();
    offer(*made);
    return absl::OkStatus();
  }

  /// By recomputing alone, with all of the effort.
  absl::Status recompute() {
    return evaluate({}, std::numeric_limits<double>::infinity(), 0, 1).status();
  }

  /// A price of a link's second, and bytes kept free, in largest transfers.
  struct Knobs {
    double price;
    int64_t pieces;
  };
  /// Cheap links with room for what is under way, and dear ones with none.
  static constexpr Knobs kTwo[] = {{0.02, 2}, {0.5, 0}};
  static constexpr Knobs kAll[] = {{0.02, 2}, {0.02, 0}, {0.02, 5}, {0.5, 0},
                                   {0.5, 2},  {0.5, 5},  {2.0, 0},  {2.0, 2},
                                   {8.0, 0},  {8.0, 2}};
  /// Around the best of these the price is halved and doubled while that helps,
  /// so often at most.
  static constexpr int kRefinements = 3;

  /// The best of some knobs.
  absl::StatusOr<int64_t> tryKnobs(const UpdateModes &modes,
                                   std::span<const Knobs> knobs, int64_t part) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const Knobs &k : knobs) {
      absl::StatusOr<int64_t> made =
          evaluate(modes, k.price, k.pieces * largestMove, part);
      if (!made.ok())
        return made.status();
      least = std::min(least, *made);
    }
    return least;
  }

  absl::Status tryAllKnobs(const UpdateModes &modes, int64_t part) {
    int64_t least = std::numeric_limits<int64_t>::max();
    Knobs at = kAll[0];
    auto attempt = [&](const Knobs &knobs) -> absl::StatusOr<bool> {
      absl::StatusOr<int64_t> made = tryKnobs(modes, {&knobs, 1}, part);
      if (!made.ok())
        return made.status();
      const bool gains = *made < least;
      if (gains)
        least = *made, at = knobs;
      return gains;
    };
    for (const Knobs &knobs : kAll)
      if (absl::StatusOr<bool> made = attempt(knobs); !made.ok())
        return made.status();
    for (double factor : {0.5, 2.0})
      for (int i = 0; i < kRefinements; ++i) {
        absl::StatusOr<bool> gains = attempt({at.price * factor, at.pieces});
        if (!gains.ok())
          return gains.status();
        if (!*gains)
          break;
      }
    return absl::OkStatus();
  }

  absl::Status tryModes() {
    for (const Recipe &r : problem.recipes)
      if (problem.isMove(r))
        largestMove = std::max(largestMove, problem.values[r.writes[0]].bytes);
    constexpr int64_t kCoarse = 64, kFine = 16; // Parts of the effort.
    std::map<UpdateModes, int64_t> known;
    auto at = [&](UpdateModes modes) -> absl::StatusOr<int64_t> {
      auto [it, isNew] = known.try_emplace(modes, 0);
      if (!isNew)
        return it->second;
      absl::StatusOr<int64_t> made = tryKnobs(modes, kTwo, kCoarse);
      if (made.ok())
        it->second = *made;
      return made;
    };
    const int64_t n = int64_t(groups.all.size());
    const int64_t most = std::min(n, int64_t(groups.hostable));
    UpdateModes now;
    absl::StatusOr<int64_t> least = at(now);
    if (!least.ok())
      return least.status();
    // More of one, less of one, or one in the place of another.
    constexpr int kSteps[][3] = {{1, 0, 0},  {0, 1, 0},  {0, 0, 1},
                                 {0, 1, 1},  {-1, 0, 0}, {0, -1, 0},
                                 {0, 0, -1}, {1, -1, 0}, {-1, 1, 1}};
    for (int64_t size = n; size > 0; size /= 2) {
      for (bool gains = true; gains;) {
        gains = false;
        for (auto &step : kSteps) {
          const int64_t hosted = std::clamp<int64_t>(
              int64_t(now.hosted) + step[0] * size, 0, most);
          auto rest = [&](size_t count, int direction) {
            return size_t(std::clamp<int64_t>(int64_t(count) + direction * size,
                                              0, n - hosted));
          };
          const UpdateModes modes{size_t(hosted), rest(now.paged, step[1]),
                                  rest(now.streamed, step[2])};
          absl::StatusOr<int64_t> made = at(modes);
          if (!made.ok())
            return made.status();
          if (*made < *least)
            least = *made, now = modes, gains = true;
        }
      }
    }
    absl::Status status = tryAllKnobs(now, kFine);
    if (now != UpdateModes())
      status.Update(tryAllKnobs({}, kFine)); // Activations alone.
    return status;
  }

  const Problem &problem;
  const SpaceSearchOptions &options;
  UpdateGroups groups;
  SpacePlan best;
  int64_t largestMove = 0; // Bytes.
  int64_t tried = 0;
};

} // namespace

absl::StatusOr<SpacePlan>
tmc::planning::solveSpaces(const Problem &problem,
                           const SpaceSearchOptions &options) {
  return SpaceSearch(problem, options).run();
}
