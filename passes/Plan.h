// Plan.h - the plan pass with hooks, for callers that plan themselves or record
// the plan.

#ifndef TMC_PASSES_PLAN_H
#define TMC_PASSES_PLAN_H

#include "compiler/analysis/PlanRecord.h"
#include "compiler/analysis/StepProblem.h"
#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/driver/SpaceFit.h"
#include "passes/Offload.h"
#include "passes/OnTarget.h"

#include <functional>

namespace tmc {

struct PlanHooks {
  /// Replaces `planning::solve`. The answer is verified in the same way. Its
  /// `smallestFoundBytes` and `impossibleBelowBytes` are reported unchecked.
  std::function<absl::StatusOr<planning::Plan>(const planning::Problem &)>
      solve;
  /// Replaces `planning::fitSpaces` for a problem with moves.
  std::function<absl::StatusOr<planning::FittedSpaces>(
      const planning::Problem &, const planning::SpaceFitOptions &)>
      fit;
  /// Receives a plan before it is written into the step, or the smallest one
  /// before it is refused as too large. The problem is the solved one, which
  /// may have other trip counts than the stated one.
  std::function<void(const StepProblem &, const planning::Problem &,
                     const planning::Plan &)>
      observe;
};

/// Whether the problem overflows planning's checked sums, which happens only at
/// absurd sizes.
bool isTooLargeToPlan(const planning::Problem &problem);

/// A plan with moves, and its figures. Fails if the problem is malformed or an
/// answer is wrong; a plan over the budget is no failure: it isn't feasible.
struct MovedStep {
  planning::FittedSpaces fitted;
  PlanRecord record;
  planning::Plan plan; // The same plan, in the form for reports.
};
absl::StatusOr<MovedStep> planMoves(StepProblem &stated,
                                    const OffloadSpec &spec,
                                    const PerSpace<int64_t> &budgets,
                                    const Target &target,
                                    const PlanHooks &hooks);

/// `target` is the value of the option of that name.
std::unique_ptr<mlir::Pass> createPlan(PlanOptions options, PassTarget target,
                                       PlanHooks hooks);

} // namespace tmc

#endif // TMC_PASSES_PLAN_H
