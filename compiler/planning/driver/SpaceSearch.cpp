#include "compiler/planning/driver/SpaceSearch.h"

#include "compiler/planning/search/Moves.h"

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
    findGroups();
    if (absl::Status status = tryModes(); !status.ok())
      return status;
    best.tried = tried;
    std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - start;
    best.seconds = taken.count();
    return std::move(best);
  }

private:
  /// Contents that can be at home on the host: those of an instruction that
  /// updates them, or one that nothing updates.
  struct Group {
    InstructionId instruction = kNone;
    int32_t variant = kNone; // By which the host runs it.
    size_t ready = 0; // Place of the last instruction that makes what it reads.
    /// Forms on the host: of what the instruction alone reads, and of what
    /// others read as well.
    std::vector<ValueId> states, shared;
    bool isHosted() const { return variant != kNone; }
  };
  /// Of the groups in their order, the first so many are the host's; of those
  /// behind them, so many have their states on the host, and so many what they
  /// share.
  struct Modes {
    size_t hosted = 0, paged = 0, streamed = 0;
    auto operator<=>(const Modes &) const = default;
  };

  void findGroups() {
    std::vector<ValueId> onHost(problem.values.size(), kNone);
    std::vector<char> isUpdated(problem.values.size(), 0);
    for (size_t v = 0; v < problem.values.size(); ++v) {
      const Value &value = problem.values[v];
      if (value.kind != ValueKind::Persistent)
        continue;
      if (value.formOf != kNone &&
          problem.spaces[value.space].kind == SpaceKind::Host)
        onHost[value.formOf] = ValueId(v);
      if (value.updates != kNone)
        isUpdated[problem.contentOf(value.updates)] = 1;
    }
    std::vector<int32_t> readers(problem.values.size(), 0);
    std::vector<size_t> madeAt(problem.values.size(), 0);
    std::vector<InstructionId> order;
    for (const Segment &segment : problem.segments)
      for (InstructionId i : segment.instructions) {
        order.push_back(i);
        for (ValueId v : firstRecipe(i).reads)
          ++readers[problem.contentOf(v)];
        for (ValueId v : firstRecipe(i).writes)
          madeAt[problem.contentOf(v)] = order.size();
      }
    for (InstructionId i : order) {
      Group group;
      group.instruction = i;
      for (ValueId v : firstRecipe(i).reads) {
        const ValueId main = problem.contentOf(v);
        group.ready = std::max(group.ready, madeAt[main]);
        if (onHost[main] != kNone && isUpdatedBy(main, firstRecipe(i)))
          (readers[main] > 1 ? group.shared : group.states)
              .push_back(onHost[main]);
      }
      const std::vector<RecipeId> &recipes = problem.instructions[i].recipes;
      for (size_t k = 0; k < recipes.size() && !group.isHosted(); ++k)
        if (problem.engines[problem.recipes[recipes[k]].engine].kind ==
            EngineKind::Host)
          group.variant = int32_t(k);
      if (group.isHosted() || !group.states.empty() || !group.shared.empty())
        groups.push_back(std::move(group));
    }
    for (size_t v = 0; v < problem.values.size(); ++v)
      if (onHost[v] != kNone && !isUpdated[v] &&
          problem.values[v].updates == kNone)
        groups.push_back({kNone, kNone, 0, {}, {onHost[v]}});
    // Those that the host can run, the first to be ready in front.
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Group &a, const Group &b) {
                       return a.isHosted() != b.isHosted() ? a.isHosted()
                                                           : a.ready < b.ready;
                     });
    hostable = size_t(std::count_if(groups.begin(), groups.end(),
                                    [](auto &g) { return g.isHosted(); }));
  }
  const Recipe &firstRecipe(InstructionId i) const {
    return problem.recipes[problem.instructions[i].recipes.front()];
  }
  bool isUpdatedBy(ValueId main, const Recipe &r) const {
    return std::any_of(r.writes.begin(), r.writes.end(), [&](ValueId w) {
      ValueId old = problem.values[w].updates;
      return old != kNone && problem.contentOf(old) == main;
    });
  }

  SpaceChoice choiceOf(const Modes &modes) const {
    SpaceChoice choice = plainChoice(problem);
    auto leave = [&](const std::vector<ValueId> &forms) {
      choice.homes.insert(choice.homes.end(), forms.begin(), forms.end());
    };
    for (size_t i = 0; i < groups.size(); ++i) {
      const bool isHosted = i < modes.hosted;
      if (isHosted)
        choice.variants[groups[i].instruction] = groups[i].variant;
      if (isHosted || i - modes.hosted < modes.paged)
        leave(groups[i].states);
      if (isHosted || i - modes.hosted < modes.streamed)
        leave(groups[i].shared);
    }
    return choice;
  }

  bool fits(const std::vector<int64_t> &peaks) const {
    for (size_t s = 0; s < peaks.size(); ++s)
      if (int64_t budget = problem.spaces[s].budgetBytes;
          budget >= 0 && peaks[s] + problem.reservedOf(SpaceId(s)) > budget)
        return false;
    return true;
  }

  /// One plan of the device and its moves. Its makespan, or none.
  absl::StatusOr<int64_t> evaluate(const Modes &modes, double price,
                                   int64_t keptFree, int64_t part) {
    constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
    const SpaceChoice choice = choiceOf(modes);
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
    const bool fit = fits(moved->peakBytes);
    if (fit && (!best.feasible || moved->makespan < best.makespan)) {
      best.solution = std::move(moved->solution);
      best.feasible = true;
      best.makespan = moved->makespan;
      best.peakBytes = std::move(moved->peakBytes);
    }
    return fit ? moved->makespan : kNone;
  }

  /// A price of a link's second, and bytes kept free, in largest transfers.
  struct Knobs {
    double price;
    int64_t pieces;
  };
  /// Cheap links with room for what is under way, and dear ones with none.
  static constexpr Knobs kTwo[] = {{0.02, 2}, {0.5, 0}};
  static constexpr Knobs kAll[] = {{0.02, 2}, {0.02, 0}, {0.02, 5}, {0.5, 0},
                                   {0.5, 2},  {0.5, 5},  {2.0, 0},  {2.0, 2}};

  /// The best of some knobs.
  absl::StatusOr<int64_t> tryKnobs(const Modes &modes,
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

  absl::Status tryModes() {
    for (const Recipe &r : problem.recipes)
      if (problem.isMove(r))
        largestMove = std::max(largestMove, problem.values[r.writes[0]].bytes);
    constexpr int64_t kCoarse = 64, kFine = 16; // Parts of the effort.
    std::map<Modes, int64_t> known;
    auto at = [&](Modes modes) -> absl::StatusOr<int64_t> {
      auto [it, isNew] = known.try_emplace(modes, 0);
      if (!isNew)
        return it->second;
      absl::StatusOr<int64_t> made = tryKnobs(modes, kTwo, kCoarse);
      if (made.ok())
        it->second = *made;
      return made;
    };
    const int64_t n = int64_t(groups.size());
    const int64_t most = std::min(n, int64_t(hostable));
    Modes now;
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
          const Modes modes{size_t(hosted), rest(now.paged, step[1]),
                            rest(now.streamed, step[2])};
          absl::StatusOr<int64_t> made = at(modes);
          if (!made.ok())
            return made.status();
          if (*made < *least)
            least = *made, now = modes, gains = true;
        }
      }
    }
    if (absl::Status status = tryKnobs(now, kAll, kFine).status(); !status.ok())
      return status;
    // By recomputing alone, with all of the effort.
    return evaluate({}, std::numeric_limits<double>::infinity(), 0, 1).status();
  }

  const Problem &problem;
  const SpaceSearchOptions &options;
  std::vector<Group> groups;
  size_t hostable = 0;
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
