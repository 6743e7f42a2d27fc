#include "compiler/planning/driver/MoveLevers.h"

#include <algorithm>
#include <utility>

using namespace tmc::planning;

namespace {

/// Kinds of contents.
enum Lever : uint8_t { Activations, Optimizer, Parameters };
/// A set of kinds, by bits.
using Kinds = uint8_t;
constexpr Kinds only(Lever kind) { return Kinds(1 << kind); }
constexpr Kinds kAllKinds =
    only(Activations) | only(Optimizer) | only(Parameters);

class Reckoning {
public:
  Reckoning(const Problem &problem, const Plan &plan, const Timeline &timeline)
      : problem(problem), solution(plan.solution), timeline(timeline) {
    sortContents();
    findVersions();
    findScratch();
  }

  /// The device's peak with the kinds of `back` on the device.
  int64_t peakWithout(Kinds back) const;
  /// The step's time then.
  absl::StatusOr<int64_t> timeWithout(Kinds back) const;

private:
  /// One content in all its forms, from its production on.
  struct Version {
    ValueId content;
    int32_t begin, last; // Moments, both included.
    int32_t made;        // The moment that ends its production.
    int32_t placeOf = kNone;
  };

  const Problem &problem;
  const Solution &solution;
  const Timeline &timeline;
  std::vector<Lever> leverOf; // For each content.
  std::vector<Version> versions;
  std::vector<int32_t> versionOf; // For each instance.
  std::vector<int64_t> scratch;   // On the device, for each moment.

  const Recipe &recipeAt(size_t t) const {
    const Profile::Moment &m = timeline.moments[t];
    return problem.recipes[solution.segments[m.segment][m.index].recipe];
  }
  bool isHostWork(const Recipe &recipe) const {
    return problem.isBeside(recipe) && !problem.isOnNetwork(recipe);
  }
  bool movesAway(const Recipe &recipe) const {
    return problem.isMove(recipe) && !problem.isGather(recipe);
  }
  Lever leverOfRecipe(const Recipe &recipe) const {
    return isHostWork(recipe) ? Optimizer
                              : leverOf[problem.contentOf(recipe.reads[0])];
  }

  void sortContents() {
    leverOf.assign(problem.values.size(), Activations);
    for (size_t v = 0; v < problem.values.size(); ++v)
      if (ValueClass of = problem.values[v].valueClass;
          of == ValueClass::Parameter)
        leverOf[v] = Parameters;
      else if (of == ValueClass::Optimizer)
        leverOf[v] = Optimizer;
    // Content that is away for an update on the host counts as the optimizer's.
    for (size_t t = 0; t < timeline.size(); ++t)
      if (isHostWork(recipeAt(t)))
        for (int32_t i : timeline.readsAt(t))
          if (i != kNone) {
            ValueId content = problem.contentOf(timeline.instances[i].value);
            if (leverOf[content] == Activations)
              leverOf[content] = Optimizer;
          }
  }

  void findVersions() {
    versionOf.assign(timeline.instances.size(), kNone);
    for (size_t i = 0; i < timeline.instances.size(); ++i) {
      const Instance &instance = timeline.instances[i];
      ValueId content = problem.contentOf(instance.value);
      int32_t &version = versionOf[i];
      if (instance.begin >= 0)
        version = sourceOf(instance, content);
      if (version == kNone) {
        version = int32_t(versions.size());
        versions.push_back(
            {content, instance.begin, instance.last, instance.made});
      }
      Version &its = versions[version];
      its.last = std::max(its.last, instance.last);
      if (instance.storageOf != kNone && its.begin == instance.begin &&
          versionOf[instance.storageOf] != version)
        its.placeOf = versionOf[instance.storageOf];
    }
  }

  /// The version that a move copies, or that the same kernel makes in another
  /// form; kNone: a new one.
  int32_t sourceOf(const Instance &instance, ValueId content) const {
    for (int32_t i : timeline.writesAt(instance.begin))
      if (versionOf[i] != kNone &&
          problem.contentOf(timeline.instances[i].value) == content)
        return versionOf[i];
    if (movesAway(recipeAt(instance.begin)))
      for (int32_t i : timeline.readsAt(instance.begin))
        if (i != kNone)
          return versionOf[i];
    return kNone;
  }

  void findScratch() {
    std::vector<int64_t> bytes;
    for (const Value &value : problem.values)
      bytes.push_back(value.space == 0 ? value.bytes : 0);
    std::vector<int64_t> live = timeline.liveBytes(bytes);
    scratch = timeline.spaces[kDeviceSpace].liveBytes;
    for (size_t t = 0; t < scratch.size(); ++t)
      scratch[t] -= live[t];
  }
};

int64_t Reckoning::peakWithout(Kinds back) const {
  size_t n = timeline.size();
  std::vector<int64_t> live(n + 2, 0); // Differences first.
  auto isBack = [&](ValueId content) {
    return (back & only(leverOf[content])) != 0;
  };
  auto add = [&](int32_t begin, int32_t last, int64_t bytes) {
    live[std::max(begin, 0)] += bytes;
    live[std::min<size_t>(size_t(last) + 1, n + 1)] -= bytes;
  };
  for (const Version &version : versions) {
    if (!isBack(version.content))
      continue;
    int64_t bytes = problem.values[version.content].bytes;
    add(version.begin, std::max(version.last, 0), bytes);
    if (version.placeOf == kNone)
      continue;
    const Version &before = versions[version.placeOf];
    if (isBack(before.content) && before.last <= version.made)
      add(version.begin, version.made,
          -std::min(bytes, problem.values[before.content].bytes));
  }
  for (size_t i = 0; i < timeline.instances.size(); ++i) {
    const Instance &instance = timeline.instances[i];
    const Value &value = problem.values[instance.value];
    if (value.space != 0 || isBack(problem.contentOf(instance.value)))
      continue;
    add(instance.begin, std::max(instance.last, 0), value.bytes);
    if (instance.storageOf == kNone)
      continue;
    int32_t of = instance.storageOf;
    ValueId before = timeline.instances[of].value;
    int32_t last = isBack(problem.contentOf(before))
                       ? versions[versionOf[of]].last
                       : timeline.instances[of].last;
    if (last <= instance.made)
      add(instance.begin, instance.made,
          -std::min(value.bytes, problem.values[before].bytes));
  }
  int64_t alive = 0, most = 0;
  for (size_t t = 0; t < n; ++t)
    most = std::max(most, (alive += live[t]) + scratch[t]);
  return most;
}

absl::StatusOr<int64_t> Reckoning::timeWithout(Kinds back) const {
  Problem priced = problem;
  for (Recipe &recipe : priced.recipes)
    if ((isHostWork(recipe) || movesAway(recipe)) &&
        (back & only(leverOfRecipe(recipe))))
      recipe.cost = 0;
  int64_t onDevice = 0; // Time of the host's updates, if on the device.
  const bool hasUpdates = back & only(Optimizer);
  for (size_t s = 0; hasUpdates && s < solution.segments.size(); ++s)
    for (const Execution &e : solution.segments[s]) {
      if (e.phase == Phase::Done || e.instruction == kNone ||
          !isHostWork(problem.recipes[e.recipe]))
        continue;
      int64_t least = -1;
      for (RecipeId r : problem.instructions[e.instruction].recipes)
        if (problem.recipes[r].engine == EngineId(kComputeEngine) &&
            (least < 0 || problem.recipes[r].cost < least))
          least = problem.recipes[r].cost;
      onDevice += std::max<int64_t>(least, 0) * problem.segments[s].trips;
    }
  absl::StatusOr<Timeline> timed = timelineOf(priced, solution);
  if (!timed.ok())
    return timed.status();
  return timed->makespan + onDevice;
}

} // namespace

absl::Status tmc::planning::addMoveLevers(const Problem &problem,
                                          const Plan &plan,
                                          const Timeline &timeline,
                                          Levers &levers) {
  levers.recomputedPeak = levers.planPeak;
  if (isOneSpace(problem)) {
    levers.recomputeCost = plan.cost - plan.baseCost;
    return absl::OkStatus();
  }
  Reckoning reckoning(problem, plan, timeline);
  levers.recomputedPeak = reckoning.peakWithout(kAllKinds);
  // Work of other engines spans several entries of the list: these bytes are
  // due to moves, not to recomputation.
  if (levers.orderPeak >= 0)
    levers.recomputedPeak = std::min(levers.recomputedPeak, levers.orderPeak);
  absl::StatusOr<int64_t> alone = reckoning.timeWithout(kAllKinds);
  if (!alone.ok())
    return alone.status();
  levers.recomputeCost = *alone - plan.baseCost;
  levers.movesCost = timeline.makespan - *alone;
  for (auto [kind, moved] : {std::pair(Activations, &levers.activations),
                             std::pair(Optimizer, &levers.optimizer),
                             std::pair(Parameters, &levers.parameters)}) {
    absl::StatusOr<int64_t> time = reckoning.timeWithout(only(kind));
    if (!time.ok())
      return time.status();
    moved->bytes = std::max<int64_t>(
        reckoning.peakWithout(only(kind)) - levers.planPeak, 0);
    moved->cost = timeline.makespan - *time;
  }
  return absl::OkStatus();
}
