#include "driver/pipeline/Sweep.h"

#include "driver/pipeline/LeverSpace.h"

#include "compiler/planning/driver/Proofs.h"

#include <cmath>

using namespace tmc;
using llvm::ArrayRef;

/// Effort of a plan of a sweep, in percent.
static constexpr int64_t kSweepEffort = 20;

/// Above this number of launches, only prices prove bounds.
static constexpr size_t kMostProved = 1000;

/// The plan as a point of a curve whose times are relative to `baseCost`.
static CurvePoint pointOf(const planning::Plan &fitted, int64_t budget,
                          int64_t reservedBytes, int64_t baseCost) {
  CurvePoint point;
  point.budgetBytes = budget;
  point.arenaBytes = fitted.arenaBytes() + reservedBytes;
  point.seconds = secondsOf(fitted.cost);
  point.overheadPct = 100.0 * double(fitted.cost - baseCost) /
                      double(std::max<int64_t>(baseCost, 1));
  for (const auto &list : fitted.solution.segments)
    for (const planning::Execution &e : list)
      point.recomputedOps += e.instruction == planning::kNone;
  return point;
}

/// The planned candidate as a point of a curve of levers and moves.
static CurvePoint pointOf(const Candidate &planned, int64_t budget) {
  const PlanFigures &figures = planned.form.figures;
  CurvePoint point;
  point.budgetBytes = budget;
  point.arenaBytes = figures.arenaBytes.device() + figures.record.reservedBytes;
  point.seconds = figures.stepSeconds();
  point.recomputedOps = figures.copies;
  const LeverSpace pulled = leverSpaceOf(
      planned.options, planned.forward.device, planned.forward.facts());
  point.levers =
      textOf(pulled.all().front()) + (figures.transfers > 0 ? ", offload" : "");
  return point;
}

/// The cost of the step without a budget, in its cheapest form.
static int64_t baseCostOf(ArrayRef<planning::PlanCache *> caches) {
  int64_t least = planning::baseCost(caches.front()->problem());
  for (planning::PlanCache *cache : caches.drop_front())
    least = std::min(least, planning::baseCost(cache->problem()));
  return least;
}

/// A curve without points, with the figures of a plan.
static Curve emptyCurve(const Forward &forward, const PlanFigures &plan) {
  Curve curve;
  curve.model = forward.model;
  curve.target = forward.device.name;
  curve.plan.arenaBytes = -1;
  if (plan.arenaBytes.device() >= 0) {
    curve.plan.arenaBytes =
        plan.arenaBytes.device() + plan.record.reservedBytes;
    curve.plan.budgetBytes = plan.budgetBytes.device() < 0
                                 ? curve.plan.arenaBytes
                                 : plan.budgetBytes.device();
    curve.plan.seconds = plan.stepSeconds();
    curve.plan.overheadPct = plan.overheadPct();
  }
  return curve;
}

Curve tmc::knownCurve(const Compiled &compiled) {
  Curve curve = emptyCurve(*compiled.forward, compiled.step().figures);
  curve.isSparse = true;
  std::vector<planning::PlanCache *> caches = compiled.candidate->caches();
  for (planning::PlanCache *cache : caches)
    for (const planning::Plan *plan : cache->frontier()) {
      int64_t reserved = cache->problem().reservedBytes;
      curve.points.push_back(pointOf(*plan, plan->arenaBytes() + reserved,
                                     reserved, baseCostOf(caches)));
    }
  if (caches.size() < 2)
    return curve;
  // With several forms, keeps points that cost less than all smaller ones.
  llvm::stable_sort(curve.points, [](const CurvePoint &a, const CurvePoint &b) {
    return std::pair(a.budgetBytes, a.seconds) <
           std::pair(b.budgetBytes, b.seconds);
  });
  double least = HUGE_VAL;
  llvm::erase_if(curve.points, [&](const CurvePoint &point) {
    bool isWorse = point.seconds >= least;
    least = std::min(least, point.seconds);
    return isWorse;
  });
  return curve;
}

/// The cheapest plan within `budget` in any cache, and its cache.
static std::pair<const planning::Plan *, const planning::Problem *>
cheapestWithin(ArrayRef<planning::PlanCache *> caches, int64_t budget) {
  std::pair<const planning::Plan *, const planning::Problem *> best;
  for (planning::PlanCache *cache : caches)
    if (const planning::Plan *found = cache->cheapestWithin(budget);
        found && (!best.first || found->cost < best.first->cost))
      best = {found, &cache->problem()};
  return best;
}

Curve tmc::sweep(const Compiled &compiled, int count) {
  Curve curve = emptyCurve(*compiled.forward, compiled.step().figures);
  std::vector<planning::PlanCache *> caches = compiled.candidate->caches();
  if (caches.empty())
    return curve;
  int64_t from = INT64_MAX, to = 0;
  for (planning::PlanCache *cache : caches) {
    cache->setEffort(kSweepEffort);
    auto smallest = cache->smallest();
    auto largest = cache->fit(-1);
    if (!smallest.ok() || !largest.ok() || !*largest)
      return curve;
    int64_t reserved = cache->problem().reservedBytes;
    from = std::min(from, (*smallest)->arenaBytes() + reserved);
    to = std::max(to, (*largest)->arenaBytes() + reserved);
  }
  std::vector<int64_t> budgets;
  for (int i = 0; i < count && (i == 0 || from < to); ++i)
    budgets.push_back(from + (to - from) * i / std::max(count - 1, 1));
  for (int64_t budget : budgets)
    for (planning::PlanCache *cache : caches)
      if (budget < to)
        if (auto found = cache->fit(budget); !found.ok())
          return curve;
  int64_t baseCost = baseCostOf(caches);
  for (int64_t budget : budgets) {
    auto [best, problem] = cheapestWithin(caches, budget);
    if (!best)
      continue;
    CurvePoint point = pointOf(*best, budget, problem->reservedBytes, baseCost);
    if (best->certificate.budgetBytes >= 0) {
      planning::Plan proved = *best;
      planning::recertify(*problem, proved, budget);
      if (problem->instructions.size() <= kMostProved)
        planning::proveByCases(*problem, proved, budget);
      point.lowerBoundPct =
          100.0 *
          double(proved.baseCost + proved.provenExtraCost() - baseCost) /
          double(std::max<int64_t>(baseCost, 1));
    }
    curve.points.push_back(point);
    if (best->cost <= baseCost)
      break; // More memory gives no faster plan.
  }
  return curve;
}

Expected<Curve> tmc::sweepLevers(const Forward &forward,
                                 const CompileOptions &options, int count) {
  LeverJob job(forward, options);
  job.asked.budgetBytes.device() = kNoLimit;
  Expected<LeverChoice> free = searchLevers(job, Keep::None);
  if (!free)
    return std::move(free.failure());
  Curve curve = emptyCurve(forward, PlanFigures());
  if (free->ranked.empty())
    return curve;
  const CoarsePlan &best = free->seen.at(free->ranked[0]);
  Expected<int64_t> impossible = impossibleBelow(job, *free);
  if (!impossible)
    return std::move(impossible.failure());
  const int64_t least = std::min(best.neededBytes, *impossible);
  // Coarse plans leave a part of a budget free for packing.
  const int64_t most = best.neededBytes + best.neededBytes / kPackingPart * 2;
  CompileOptions asked = options;
  for (int i = 0; i < count; ++i) {
    const int64_t budget = least + (most - least) / (count - 1) * i;
    asked.budgetBytes.device() = budget;
    PlannedCandidate made = planForward(forward, asked, Phase::Place);
    if (!made.done && made.done.failure().kind == FailureKind::OverBudget)
      continue;
    if (!made.done)
      return std::move(made.done.failure());
    curve.points.push_back(pointOf(*made.candidate, budget));
  }
  double quickest = HUGE_VAL;
  for (const CurvePoint &point : curve.points)
    quickest = std::min(quickest, point.seconds);
  for (CurvePoint &point : curve.points)
    point.overheadPct = 100 * (point.seconds / quickest - 1);
  return curve;
}
