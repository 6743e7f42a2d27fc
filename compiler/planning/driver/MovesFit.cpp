#include "compiler/planning/driver/SpaceFit.h"

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
/// Bisections for the smallest budget.
constexpr int kBisections = 5;
/// Bisections that are repeated with all effort if little effort finds no plan:
/// each such failure takes as long as planning.
constexpr int kThoroughBisections = 2;

class SpaceFit {
public:
  SpaceFit(const Problem &problem, const SpaceFitOptions &options)
      : problem(problem), options(options) {}

  absl::StatusOr<FittedSpaces> run() {
    absl::StatusOr<FittedSpaces> found = fit(problem, options.search);
    if (!found.ok())
      return found;
    const int64_t impossible = impossibleBelow(problem);
    int64_t smallest = -1;
    using Smallest = SpaceFitOptions::Smallest;
    if (options.smallest == Smallest::Always ||
        (options.smallest == Smallest::WhereNoneFits &&
         !found->plan.feasible)) {
      if (found->plan.feasible)
        smallest = budgetOf(*found);
      absl::StatusOr<FittedSpaces> least = findSmallest(smallest, impossible);
      if (!least.ok())
        return least;
      if (least->plan.feasible)
        smallest = budgetOf(*least);
      if (!found->plan.feasible)
        if (absl::Status status = takeLesser(*least, *found); !status.ok())
          return status;
    }
    found->smallestFoundBytes = smallest;
    found->impossibleBelowBytes = impossible;
    return found;
  }

private:
  const Problem &problem;
  const SpaceFitOptions &options;

  /// The budget of the device with which a plan works.
  int64_t budgetOf(const FittedSpaces &fitted) const {
    return fitted.arenaBytes[0] + problem.reservedBytes;
  }

  absl::StatusOr<FittedSpaces> fit(const Problem &wanted,
                                   const SpaceSearchOptions &search) const {
    Problem tight = wanted;
    SpaceSearchOptions how = search;
    FittedSpaces fitted, lesser; // `lesser` fits, if it is feasible.
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      absl::StatusOr<SpacePlan> plan = solveSpaces(tight, how);
      if (!plan.ok())
        return plan.status();
      fitted.plan = std::move(*plan);
      if (!fitted.plan.feasible)
        break;
      pack(wanted, fitted, kPackings);
      if (narrow(wanted, fitted, tight))
        return fitted;
      if (std::optional<FittedSpaces> smaller =
              packSmaller(wanted, fitted.plan, tight);
          smaller && (!lesser.plan.feasible ||
                      smaller->plan.makespan < lesser.plan.makespan))
        lesser = *std::move(smaller);
      if (!lesser.plan.feasible)
        continue;
      const int64_t loses = lesser.plan.makespan - fitted.plan.makespan;
      if (loses <= fitted.plan.makespan / kAlikePart)
        break;
      how.known = &lesser.plan.solution;
    }
    if (lesser.plan.feasible)
      return lesser;
    fitted.plan.feasible = false;
    return fitted;
  }

  /// Whether all arenas fit. Reduces the budget of `tight` by each arena's
  /// loss.
  static bool narrow(const Problem &wanted, const FittedSpaces &fitted,
                     Problem &tight) {
    bool fits = true;
    for (size_t s = 0; s < wanted.spaces.size(); ++s) {
      int64_t over = overBy(wanted, fitted, SpaceId(s));
      if (over <= 0)
        continue;
      fits = false;
      tight.spaces[s].budgetBytes =
          std::max<int64_t>(0, tight.spaces[s].budgetBytes - over);
    }
    return fits;
  }

  /// The fastest of a search's smaller plans whose arenas fit, among those that
  /// leave free the bytes that packing of the best one lost. Each is packed
  /// once.
  std::optional<FittedSpaces> packSmaller(const Problem &wanted,
                                          const SpacePlan &plan,
                                          const Problem &tight) const {
    for (const MovedPlan &smaller : plan.smaller) {
      bool leavesEnough = true;
      for (size_t s = 0; s < tight.spaces.size(); ++s)
        leavesEnough &= tight.spaces[s].budgetBytes < 0 ||
                        smaller.peakBytes[s] + tight.reservedOf(SpaceId(s)) <=
                            tight.spaces[s].budgetBytes;
      if (!leavesEnough)
        continue;
      FittedSpaces fitted;
      fitted.plan = plan;
      fitted.plan.solution = smaller.solution;
      fitted.plan.makespan = smaller.makespan;
      fitted.plan.peakBytes = smaller.peakBytes;
      fitted.plan.smaller.clear();
      pack(wanted, fitted, std::span(kPackings).first(1));
      Problem unused = tight;
      if (narrow(wanted, fitted, unused))
        return fitted;
    }
    return std::nullopt;
  }

  static int64_t overBy(const Problem &wanted, const FittedSpaces &fitted,
                        SpaceId s) {
    int64_t budget = wanted.spaces[s].budgetBytes;
    return budget < 0 ? 0
                      : fitted.arenaBytes[s] + wanted.reservedOf(s) - budget;
  }

  void pack(const Problem &wanted, FittedSpaces &fitted,
            std::span<const PackOptions> packings) const {
    size_t n = wanted.spaces.size();
    fitted.layoutPeakBytes.assign(n, 0);
    fitted.arenaBytes.assign(n, 0);
    fitted.packing.assign(n, {});
    for (size_t s = 0; s < n; ++s) {
      ArenaProblem arena = arenaOf(wanted, fitted.plan.solution,
                                   options.alignments[s], SpaceId(s));
      fitted.layoutPeakBytes[s] = peakBytes(arena);
      fitted.arenaBytes[s] = std::numeric_limits<int64_t>::max();
      for (const PackOptions &how : packings) {
        int64_t bytes = packSorted(arena, how).arenaBytes;
        if (bytes < fitted.arenaBytes[s])
          fitted.arenaBytes[s] = bytes, fitted.packing[s] = how;
        if (overBy(wanted, fitted, SpaceId(s)) <= 0)
          break;
      }
    }
  }

  /// A plan of a smaller budget is valid for this one, too; a faster one is
  /// sought from it.
  absl::Status takeLesser(const FittedSpaces &least,
                          FittedSpaces &found) const {
    if (!least.plan.feasible || overBy(problem, least, 0) > 0)
      return absl::OkStatus();
    SpaceSearchOptions search = options.search;
    search.known = &least.plan.solution;
    absl::StatusOr<FittedSpaces> again = fit(problem, search);
    if (!again.ok())
      return again.status();
    found = again->plan.feasible ? *again : least;
    return absl::OkStatus();
  }

  /// The plan of the smallest budget that works, if one below `high` does (-1:
  /// any). Bisects between the proven bound `low` and `high`, or the need of a
  /// plan without a budget.
  absl::StatusOr<FittedSpaces> findSmallest(int64_t high, int64_t low) const {
    Problem tight = problem;
    SpaceSearchOptions search = options.search;
    search.coarse = true;
    search.known = nullptr;
    FittedSpaces least;
    if (high < 0) {
      tight.spaces[0].budgetBytes = -1;
      absl::StatusOr<FittedSpaces> most = fit(tight, search);
      if (!most.ok() || !most->plan.feasible) // The other spaces are too small.
        return most;
      high = budgetOf(*most);
      least = *std::move(most);
    }
    int thorough = 0;
    for (int i = 0; i < kBisections && low < high; ++i) {
      tight.spaces[0].budgetBytes = low + (high - low) / 2;
      absl::StatusOr<FittedSpaces> half = fit(tight, search);
      if (half.ok() && !half->plan.feasible && thorough++ < kThoroughBisections)
        half = fit(tight, options.search);
      if (!half.ok())
        return half;
      if (half->plan.feasible) {
        high = budgetOf(*half);
        least = *std::move(half);
      } else {
        low = tight.spaces[0].budgetBytes;
      }
    }
    return least;
  }
};

/// Bytes on the device while `r` runs, minus the most that overwriting saves.
int64_t footprint(const Problem &problem, const Recipe &r) {
  auto bytesOf = [&](ValueId v) {
    return problem.values[v].space == 0 ? problem.values[v].bytes : 0;
  };
  int64_t bytes = r.workspaceSpace == 0 ? r.workspaceBytes : 0;
  for (ValueId v : r.reads)
    bytes += problem.values[v].kind == ValueKind::Carried ? 0 : bytesOf(v);
  for (ValueId v : r.writes) {
    int64_t saved = 0;
    for (const Overwrite &o : r.overwrites)
      if (o.written == v && problem.values[o.read].kind != ValueKind::Carried)
        saved = std::max(saved, std::min(bytesOf(v), bytesOf(o.read)));
    bytes += bytesOf(v) - saved;
  }
  return bytes;
}

} // namespace

int64_t tmc::planning::impossibleBelow(const Problem &problem) {
  // Counts persistent values without a form in another space.
  std::vector<char> elsewhere(problem.values.size(), 0);
  for (const Value &value : problem.values)
    if (value.formOf != kNone && value.kind == ValueKind::Persistent)
      elsewhere[value.formOf] = 1;
  auto stays = [&](ValueId v) {
    const Value &value = problem.values[v];
    return value.space == 0 && value.kind == ValueKind::Persistent &&
           !elsewhere[v];
  };
  int64_t always = 0;
  for (ValueId v = 0; v < ValueId(problem.values.size()); ++v)
    if (stays(v) && problem.values[v].updates == kNone)
      always += problem.values[v].bytes;
  int64_t most = 0;
  for (const Instruction &instruction : problem.instructions) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (RecipeId id : instruction.recipes) {
      const Recipe &r = problem.recipes[id];
      int64_t counted = 0; // Already counted as staying.
      for (ValueId v : r.reads)
        if (stays(v) && problem.values[v].updates == kNone)
          counted += problem.values[v].bytes;
      least = std::min(least, footprint(problem, r) - counted);
    }
    most = std::max(most, least);
  }
  return problem.reservedBytes + always + most;
}

absl::StatusOr<FittedSpaces>
tmc::planning::fitSpaces(const Problem &problem,
                         const SpaceFitOptions &options) {
  return SpaceFit(problem, options).run();
}
