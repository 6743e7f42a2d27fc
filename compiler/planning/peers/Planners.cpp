#include "compiler/planning/peers/Planners.h"

#include "compiler/planning/peers/Baselines.h"

#include <algorithm>
#include <limits>

using namespace tmc::planning;

static std::vector<Planner> &registry() {
  static std::vector<Planner> all = {
      {"none", "keeps everything",
       [](const Problem &problem, const PlanRequest &)
           -> absl::StatusOr<Solution> { return baseSolution(problem); }},
      {"sqrt", "segments of equal length, each recomputed at once", planSqrt},
      {"blocks", "keeps only what leads from block to block", planBlocks},
      {"greedy", "most bytes per cost first, where the peak is", planGreedy},
  };
  return all;
}

void tmc::planning::registerPlanner(std::string name, std::string summary,
                                    PlannerFunction plan, bool takesMoves) {
  std::erase_if(registry(), [&](const Planner &p) { return p.name == name; });
  registry().push_back(
      {std::move(name), std::move(summary), std::move(plan), takesMoves});
}

const std::vector<Planner> &tmc::planning::planners() { return registry(); }

int64_t tmc::planning::liveLimit(const Problem &problem,
                                 const LinearProblem &linear,
                                 int64_t budgetBytes) {
  int64_t budget =
      budgetBytes < 0 ? std::numeric_limits<int64_t>::max() / 4 : budgetBytes;
  return budget - problem.reservedBytes - linear.constantBytes;
}
