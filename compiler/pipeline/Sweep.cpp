#include "compiler/pipeline/Sweep.h"

using namespace tmc;

/// Percent of the work that a plan of its own is worth.
static constexpr int64_t kSweepEffort = 20;

/// Steps of more launches than this are proved by prices alone.
static constexpr size_t kMostProved = 1000;

static CurvePoint pointOf(const planning::FittedPlan &fitted, int64_t budget,
                          const planning::Problem &problem) {
  CurvePoint point;
  point.budgetBytes = budget;
  point.arenaBytes = fitted.arenaBytes + problem.reservedBytes;
  point.seconds = double(fitted.plan.cost) * 1e-12;
  point.overheadPct = fitted.plan.overheadPct();
  for (const auto &list : fitted.plan.solution.segments)
    for (const planning::Execution &e : list)
      point.recomputedOps += e.instruction == planning::kNone;
  return point;
}

/// A curve without points, with what the compilation itself has planned.
static Curve emptyCurve(Compilation &compilation) {
  Curve curve;
  curve.model = compilation.modelName();
  curve.target = compilation.target().name;
  curve.plan.arenaBytes = -1;
  const PlanFigures &plan = compilation.figures();
  if (plan.arenaBytes >= 0) {
    curve.plan.arenaBytes = plan.arenaBytes + plan.reservedBytes;
    curve.plan.budgetBytes =
        plan.budgetBytes < 0 ? curve.plan.arenaBytes : plan.budgetBytes;
    curve.plan.seconds = plan.stepSeconds;
    curve.plan.overheadPct = plan.overheadPct();
  }
  return curve;
}

Curve tmc::knownCurve(Compilation &compilation) {
  Curve curve = emptyCurve(compilation);
  curve.isSparse = true;
  if (planning::PlanCache *cache = compilation.cache())
    for (const planning::FittedPlan *plan : cache->frontier()) {
      int64_t budget = plan->arenaBytes + cache->problem().reservedBytes;
      curve.points.push_back(pointOf(*plan, budget, cache->problem()));
    }
  return curve;
}

Curve tmc::sweep(Compilation &compilation, int count) {
  Curve curve = emptyCurve(compilation);
  planning::PlanCache *cache = compilation.cache();
  if (!cache)
    return curve;
  const planning::Problem &problem = cache->problem();
  cache->setEffort(kSweepEffort);
  auto smallest = cache->smallest();
  auto largest = cache->fit(-1);
  if (!smallest.ok() || !largest.ok() || !*largest)
    return curve;
  int64_t from = (*smallest)->arenaBytes + problem.reservedBytes;
  int64_t to = (*largest)->arenaBytes + problem.reservedBytes;
  std::vector<int64_t> budgets;
  for (int i = 0; i < count && (i == 0 || from < to); ++i)
    budgets.push_back(from + (to - from) * i / std::max(count - 1, 1));
  for (int64_t budget : budgets)
    if (budget < to)
      if (auto found = cache->fit(budget); !found.ok())
        return curve;
  for (int64_t budget : budgets) {
    const planning::FittedPlan *best = cache->cheapestWithin(budget);
    if (!best)
      continue;
    CurvePoint point = pointOf(*best, budget, problem);
    if (best->plan.certificate.budgetBytes >= 0) {
      planning::Plan proved = best->plan;
      planning::recertify(problem, proved, budget);
      if (problem.instructions.size() <= kMostProved)
        planning::proveByCases(problem, proved, budget);
      point.lowerBoundPct = 100.0 * double(proved.provenExtraCost()) /
                            double(std::max<int64_t>(proved.baseCost, 1));
    }
    curve.points.push_back(point);
    if (best->plan.cost <= best->plan.baseCost)
      break; // More memory buys nothing more.
  }
  return curve;
}
