#include "compiler/planning/search/RematPlan.h"

#include <algorithm>

using namespace tmc::planning;

static bool byStage(const Schedule::Clone &a, const Schedule::Clone &b) {
  return a.stage != b.stage ? a.stage < b.stage : a.op < b.op;
}

RematPlan tmc::planning::rematPlanOf(const LinearProblem &linear,
                                     const Schedule &schedule) {
  RematPlan plan;
  plan.clones = schedule.clones();
  plan.cost = schedule.cost();
  plan.feasible = schedule.excess() <= 0;
  for (int32_t k = 0; k < int32_t(linear.stages.size()); ++k)
    if (schedule.variantIndex(k))
      plan.variants.push_back({k, schedule.variantIndex(k)});
  return plan;
}

RematPlan tmc::planning::rematPlanOf(const LinearProblem &linear,
                                     const Solution &solution) {
  std::vector<int32_t> stageOf, lastOf(solution.segments.size(), -1);
  for (int32_t k = 0; k < int32_t(linear.stages.size()); ++k) {
    const LinearStage &stage = linear.stages[k];
    lastOf[stage.segment] = k;
    if (stage.instruction == kNone)
      continue;
    if (size_t(stage.instruction) >= stageOf.size())
      stageOf.resize(stage.instruction + 1, -1);
    stageOf[stage.instruction] = k;
  }
  RematPlan plan;
  for (size_t s = 0; s < solution.segments.size(); ++s) {
    size_t placed = plan.clones.size();
    auto place = [&](int32_t stage) {
      for (; placed < plan.clones.size(); ++placed)
        plan.clones[placed].stage = stage;
    };
    for (const Execution &e : solution.segments[s]) {
      if (e.instruction == kNone) { // Its operation is its recipe.
        plan.clones.push_back({e.recipe, kNone});
        continue;
      }
      int32_t stage = stageOf[e.instruction];
      place(stage);
      const std::vector<OpId> &variants = linear.stages[stage].variants;
      if (auto at = std::find_if(
              variants.begin(), variants.end(),
              [&](OpId o) { return linear.ops[o].recipe == e.recipe; });
          at != variants.begin())
        plan.variants.push_back({stage, int32_t(at - variants.begin())});
    }
    place(lastOf[s]);
  }
  // A stage runs each operation at most once; some plans run more (`Beam.h`).
  std::sort(plan.clones.begin(), plan.clones.end(), byStage);
  plan.clones.erase(std::unique(plan.clones.begin(), plan.clones.end()),
                    plan.clones.end());
  std::erase_if(plan.clones, [&](const Schedule::Clone &c) {
    const LinearOp &op = linear.ops[c.op];
    return !op.mayRecomputeAt(c.stage);
  });
  return plan;
}

void tmc::planning::restore(const LinearProblem &linear, Schedule &schedule,
                            const RematPlan &plan) {
  std::vector<Schedule::Clone> was = schedule.clones();
  std::vector<Schedule::Clone> is = plan.clones;
  std::sort(was.begin(), was.end(), byStage);
  std::sort(is.begin(), is.end(), byStage);
  std::vector<Schedule::Clone> gone, come;
  std::set_difference(was.begin(), was.end(), is.begin(), is.end(),
                      std::back_inserter(gone), byStage);
  std::set_difference(is.begin(), is.end(), was.begin(), was.end(),
                      std::back_inserter(come), byStage);
  for (const Schedule::Clone &c : gone)
    schedule.erase(c.op, c.stage);
  for (const Schedule::Clone &c : come)
    schedule.insert(c.op, c.stage);
  for (int32_t k = 0; k < int32_t(linear.stages.size()); ++k)
    if (schedule.variantIndex(k))
      schedule.switchVariant(k, 0);
  for (auto [stage, index] : plan.variants)
    schedule.switchVariant(stage, index);
}
