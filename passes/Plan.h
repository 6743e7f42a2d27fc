// Plan.h - the plan pass for a caller that has plans of its own, or that wants
// to know why.

#ifndef TMC_PASSES_PLAN_H
#define TMC_PASSES_PLAN_H

#include "compiler/analysis/PlanRecord.h"
#include "compiler/analysis/StepProblem.h"
#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/driver/SpaceFit.h"
#include "passes/Offload.h"
#include "passes/Passes.h"

#include <functional>

namespace tmc {

struct PlanHooks {
  /// Answers the problem in place of `planning::solve`. The answer is verified
  /// like any other. Its `smallestFoundBytes` and `impossibleBelowBytes` are
  /// reported as they are.
  std::function<absl::StatusOr<planning::Plan>(const planning::Problem &)>
      solve;
  /// Answers a problem with moves in place of `planning::fitSpaces`.
  std::function<absl::StatusOr<planning::FittedSpaces>(
      const planning::Problem &, const planning::SpaceFitOptions &)>
      fit;
  /// Sees a plan before it is written into the step, or the smallest one before
  /// it is found too large. The problem is the one that was solved, which may
  /// have other trip counts than the stated one.
  std::function<void(const StepProblem &, const planning::Problem &,
                     const planning::Plan &)>
      observe;
};

/// Whether planning's checked sums would refuse the problem, which only absurd
/// sizes reach.
bool isTooLargeToPlan(const planning::Problem &problem);

/// A plan with moves, and the figures that it promises. Fails where the problem
/// is malformed, or an answer is wrong; a plan over the budget isn't feasible.
struct MovedStep {
  planning::FittedSpaces fitted;
  PlanRecord record;
  planning::Plan plan; // The same, as reports know it.
};
absl::StatusOr<MovedStep> planMoves(StepProblem &stated,
                                    const OffloadSpec &spec,
                                    const SpaceBudgets &budgets,
                                    const Target &target,
                                    const PlanHooks &hooks);

/// `target` is the value of the option of that name.
std::unique_ptr<mlir::Pass> createPlan(PlanOptions options,
                                       const Target &target, PlanHooks hooks);

} // namespace tmc

#endif // TMC_PASSES_PLAN_H
