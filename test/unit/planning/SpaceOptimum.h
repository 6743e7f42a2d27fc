// SpaceOptimum.h - the optimum of small problems with spaces, by trying all.

#ifndef TMC_TEST_UNIT_PLANNING_SPACEOPTIMUM_H
#define TMC_TEST_UNIT_PLANNING_SPACEOPTIMUM_H

#include "test/unit/planning/SpaceBrute.h"
#include "test/unit/planning/SpaceMachine.h"

#include <set>

namespace tmc::planning {

/// Every list of a problem that is right, with what it takes.
struct Plans {
  struct Plan {
    std::vector<ValueId> homes;
    std::vector<int64_t> peaks;
    int64_t makespan = 0;
  };
  std::vector<Plan> all;
  Plans(const Problem &p, int extras) {
    EveryList(p, extras, [&](const Solution &bare) {
      Solution s = bare;
      takeOverwrites(p, s);
      if (absl::StatusOr<Profile> profile = simulate(p, s); profile.ok())
        all.push_back(
            {homesOf(p, s), profile->spacePeakBytes, profile->makespan});
    }).run();
  }
};

/// The least makespan of the lists within the problem's budgets.
inline std::optional<int64_t> bestList(const Problem &p,
                                       const std::vector<Plans::Plan> &plans) {
  std::optional<int64_t> best;
  for (const Plans::Plan &plan : plans) {
    bool fits = true;
    for (size_t s = 0; s < p.spaces.size(); ++s)
      fits &= p.spaces[s].budgetBytes < 0 ||
              plan.peaks[s] <= p.spaces[s].budgetBytes;
    if (fits && (!best || plan.makespan < *best))
      best = plan.makespan;
  }
  return best;
}

/// The least makespan within the problem's budgets: of the lists, and, where
/// there is no loop, of any number of executions, whatever the homes.
inline std::optional<int64_t> optimumOf(const Problem &p, const Plans &plans) {
  std::optional<int64_t> best = bestList(p, plans.all);
  std::set<std::vector<ValueId>> homes;
  std::vector<int64_t> budgets;
  for (const MemorySpace &space : p.spaces)
    budgets.push_back(space.budgetBytes);
  for (const Plans::Plan &plan : plans.all)
    homes.insert(plan.homes);
  if (p.segments.size() == 1 && best)
    for (const std::vector<ValueId> &home : homes)
      if (auto found = SpaceMachine(p, home, budgets, *best).run())
        best = std::min(*best, found->makespan);
  return best;
}

} // namespace tmc::planning

#endif // TMC_TEST_UNIT_PLANNING_SPACEOPTIMUM_H
