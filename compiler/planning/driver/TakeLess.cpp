#include "compiler/planning/driver/TakeLess.h"

#include "compiler/planning/driver/MovesAmounts.h"
#include "compiler/planning/moves/ModeLoads.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace tmc::planning {

Taken takenBy(const Problem &problem, const Solution &solution,
              const std::vector<int64_t> &peakBytes) {
  Taken out;
  for (size_t s = 1; s < peakBytes.size(); ++s)
    out.bytes += peakBytes[s];
  for (size_t s = 0; s < solution.segments.size(); ++s)
    for (const Execution &e : solution.segments[s]) {
      if (e.phase != Phase::Start)
        continue;
      const Recipe &recipe = problem.recipes[e.recipe];
      if (problem.isOnNetwork(recipe))
        continue;
      int64_t made = 0;
      for (ValueId w : recipe.writes)
        made += problem.values[w].bytes;
      if (problem.isMove(recipe)) {
        out.movedBytes += made * problem.segments[s].trips;
      } else {
        ++out.updates;
        out.smallUpdates += made < kSmallUpdate;
      }
    }
  return out;
}

namespace {

class Dropping {
public:
  Dropping(const Problem &problem, int64_t liveBytes, int64_t mostCost,
           int64_t trials, MovedPlan &plan)
      : problem(problem), liveBytes(liveBytes), mostCost(mostCost),
        trials(trials), plan(plan) {}

  void run() {
    std::map<ValueId, int64_t> bytes;
    std::set<ValueId> comeBack;
    for (size_t s = 0; s < plan.solution.segments.size(); ++s)
      for (const Execution &e : plan.solution.segments[s])
        if (const ValueId c = contentOf(e); c != kNone) {
          const ValueId made = problem.recipes[e.recipe].writes[0];
          bytes[c] += problem.values[made].bytes * problem.segments[s].trips;
          if (problem.isFetch(problem.recipes[e.recipe]))
            comeBack.insert(c);
        }
    std::vector<ValueId> all(comeBack.begin(), comeBack.end());
    std::stable_sort(all.begin(), all.end(),
                     [&](ValueId a, ValueId b) { return bytes[a] > bytes[b]; });
    drop(all, 0, all.size());
  }

private:
  /// The content that an entry moves, if no home of it is elsewhere; or kNone.
  ValueId contentOf(const Execution &e) const {
    const Recipe &recipe = problem.recipes[e.recipe];
    if (!problem.isMove(recipe) || problem.isGather(recipe))
      return kNone;
    const ValueId c = problem.contentOf(recipe.writes[0]);
    return problem.values[c].kind == ValueKind::Temporary ? c : kNone;
  }

  /// Takes out the moves of all contents in [begin, end), or of parts of them.
  void drop(const std::vector<ValueId> &all, size_t begin, size_t end) {
    if (begin == end || trials-- <= 0)
      return;
    const std::set<ValueId> out(all.begin() + begin, all.begin() + end);
    Solution less = plan.solution;
    for (std::vector<Execution> &list : less.segments) {
      std::erase_if(
          list, [&](const Execution &e) { return out.count(contentOf(e)); });
      // A number of work is below the number of entries.
      std::map<int32_t, int32_t> works;
      for (Execution &e : list)
        if (e.work != kNone)
          e.work = works.try_emplace(e.work, works.size()).first->second;
    }
    absl::StatusOr<Profile> made = simulate(problem, less);
    if (made.ok() && made->makespan <= mostCost &&
        (liveBytes < 0 || made->spacePeakBytes[0] <= liveBytes)) {
      plan.solution = std::move(less);
      plan.makespan = made->makespan;
      plan.peakBytes = made->spacePeakBytes;
      return;
    }
    if (end - begin == 1)
      return;
    const size_t middle = begin + (end - begin) / 2;
    drop(all, begin, middle);
    drop(all, middle, end);
  }

  const Problem &problem;
  const int64_t liveBytes, mostCost;
  int64_t trials;
  MovedPlan &plan;
};

} // namespace

void dropMoves(const Problem &problem, int64_t liveBytes, int64_t mostCost,
               int64_t mostTrials, MovedPlan &plan) {
  Dropping(problem, liveBytes, mostCost, mostTrials, plan).run();
}

void offerLeanerModes(const Problem &problem, const UpdateGroups &groups,
                      const UpdateModes &best,
                      const std::function<void(const UpdateModes &)> &offer) {
  const ModeLoads loads(problem, groups);
  auto attempt = [&](const UpdateModes &modes) {
    if (loads.of(modes).fits)
      offer(modes);
  };
  UpdateModes modes = plainModes(groups);
  const bool isOfRule = best == modes;
  attempt(modes);
  if (isOfRule)
    attempt(modesOf(groups, groups.hostable, 0, 0));
  modes = best;
  for (size_t i = 0; i < groups.all.size(); ++i) {
    int64_t bytes = 0;
    for (const auto *list : {&groups.all[i].states, &groups.all[i].shared})
      for (ValueId v : *list)
        bytes += problem.values[v].bytes;
    if (bytes < kSmallUpdate)
      modes[i] = GroupMode::Device;
  }
  attempt(modes);
  for (size_t count = 2; count <= kLeanStretches; count *= 2)
    for (auto [first, last] : loads.stretches(count)) {
      modes = best;
      std::fill(modes.begin() + first, modes.begin() + last, GroupMode::Device);
      if (modes != best)
        attempt(modes);
    }
}

} // namespace tmc::planning
