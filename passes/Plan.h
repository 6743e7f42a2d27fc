// Plan.h - the plan pass with hooks, for callers that plan themselves or record
// the plan.

#ifndef TMC_PASSES_PLAN_H
#define TMC_PASSES_PLAN_H

#include "compiler/analysis/StepProblem.h"
#include "compiler/planning/driver/Plan.h"
#include "passes/OnTarget.h"
#include "passes/Passes.h"

#include <functional>

namespace tmc {

struct PlanHooks {
  /// Replaces the pass's own planner. `alignments`: of buffers in each space of
  /// the problem, in bytes. The answer is verified in the same way. Its
  /// `smallestFoundBytes` and `impossibleBelowBytes` are reported unchecked.
  std::function<absl::StatusOr<planning::Plan>(
      const planning::Problem &, const std::vector<int64_t> &alignments)>
      solve;
  /// Receives a plan before it is written into the step, or the smallest one
  /// before it is refused as too large.
  std::function<void(const StepProblem &, const planning::Plan &)> observe;
};

/// Whether the problem overflows planning's checked sums, which happens only at
/// absurd sizes.
bool isTooLargeToPlan(const planning::Problem &problem);

std::unique_ptr<mlir::Pass> createPlan(PlanOptions options, PassTarget target,
                                       PlanHooks hooks);

} // namespace tmc

#endif // TMC_PASSES_PLAN_H
