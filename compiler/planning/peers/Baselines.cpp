#include "compiler/planning/peers/Baselines.h"

#include "compiler/planning/peers/Blocks.h"
#include "compiler/planning/search/Checkpoint.h"

#include <algorithm>

using namespace tmc::planning;

absl::StatusOr<Solution> tmc::planning::planSqrt(const Problem &problem,
                                                 const PlanRequest &request) {
  LinearProblem linear = linearize(problem);
  Schedule schedule(linear, liveLimit(problem, linear, request.budgetBytes));
  restore(linear, schedule, checkpoint(linear, schedule.limit()));
  return schedule.toSolution(problem);
}

absl::StatusOr<Solution> tmc::planning::planBlocks(const Problem &problem,
                                                   const PlanRequest &request) {
  LinearProblem linear = linearize(problem);
  Schedule schedule(linear, liveLimit(problem, linear, request.budgetBytes));
  restore(linear, schedule, checkpointBlocks(linear, schedule.limit()));
  return schedule.toSolution(problem);
}

absl::StatusOr<Solution> tmc::planning::planGreedy(const Problem &problem,
                                                   const PlanRequest &request) {
  LinearProblem linear = linearize(problem);
  Schedule schedule(linear, liveLimit(problem, linear, request.budgetBytes));
  for (int32_t k = 0;
       k < int32_t(linear.stages.size()) && schedule.excess() > 0; ++k) {
    for (int tries = 0;
         tries < 1000 && schedule.liveAtOwn(k) > schedule.limit(); ++tries) {
      double bestScore = 0;
      OpId bestOp = kNone;
      int32_t bestStage = 0;
      for (ValueId v = 0; v < ValueId(linear.bytes.size()); ++v) {
        if (linear.recomputes[v].empty() || linear.madeAt[v] >= k)
          continue;
        const std::vector<Key> &uses = schedule.lives().uses(v);
        auto next = std::lower_bound(uses.begin(), uses.end(), keyOf(k, 0));
        if (next == uses.end() || stageOf(*next) <= k)
          continue;
        OpId op = linear.recomputes[v].front();
        int32_t stage = stageOf(*next);
        if (!schedule.canInsert(op, stage))
          continue;
        double score =
            double(linear.bytes[v]) / double(linear.ops[op].cost + 1);
        if (score <= bestScore)
          continue;
        // XLA only requires that the operands are alive there anyway.
        bool there = true;
        for (ValueId u : linear.ops[op].reads) {
          int32_t i = schedule.lives().instanceBefore(
              u, keyOf(stage, linear.ops[op].rank));
          there &=
              i >= 0 && stageOf(schedule.lives().instances(u)[i].last) >= k;
        }
        if (there)
          bestScore = score, bestOp = op, bestStage = stage;
      }
      if (bestOp == kNone)
        break;
      schedule.insert(bestOp, bestStage);
    }
  }
  return schedule.toSolution(problem);
}
