// Plan.cpp - -tmc-plan: order the step and recompute until it fits its budget.

#include "passes/Plan.h"
#include "passes/OnTarget.h"
#include "passes/PlanRemarks.h"

#include "compiler/analysis/PlanRecord.h"
#include "compiler/analysis/StepUpdates.h"
#include "compiler/planning/model/Verify.h"
#include "dialects/interfaces/Fault.h"
#include "dialects/train/Train.h"

#include "llvm/Support/Format.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_PLAN
#include "passes/Passes.h.inc"

namespace {

std::string inMiB(int64_t bytes) {
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format("%.2f MiB", double(bytes) / (1 << 20));
  return text;
}

struct Plan : impl::PlanBase<Plan> {
  using PlanBase::PlanBase;
  Plan(PlanOptions options, PassTarget target, PlanHooks hooks)
      : PlanBase(std::move(options)), given(std::move(target)),
        hooks(std::move(hooks)) {}

  void runOnOperation() override {
    FailureOr<Target> device = given.of(getOperation(), target);
    if (failed(device))
      return signalPassFailure();
    sinkUpdates(getOperation());
    FailureOr<StepProblem> stated =
        buildProblem(getOperation(), *device, Recipes::Parts);
    if (failed(stated))
      return signalPassFailure();
    const planning::Problem &problem = stated->problem;
    if (isTooLargeToPlan(problem)) {
      emitFault(getOperation().getLoc(), FailureKind::Unsupported)
          << "the step is too large to plan: its kernels would take weeks, or "
             "its values over 2^61 bytes";
      return signalPassFailure();
    }
    if (absl::Status status = planning::check(problem); !status.ok())
      return defect(status.ToString());

    FailureOr<OffloadSpec> spec = offloadNamed(getOperation(), offload);
    if (failed(spec))
      return signalPassFailure();
    if (!spec->isNone())
      return planWithMoves(*stated, *spec, *device);
    planning::SolveOptions options;
    options.budgetBytes = budget;
    options.order = planning::OrderMode::Free;
    options.wantBound = options.wantFrontier = !quick;
    options.effort.percent = effort;
    absl::StatusOr<planning::Plan> plan =
        hooks.solve ? hooks.solve(problem) : planning::solve(problem, options);
    if (!plan.ok()) {
      if (!absl::IsFailedPrecondition(plan.status()) &&
          !absl::IsUnavailable(plan.status()))
        return defect(plan.status().ToString());
      // An external planner failed.
      emitFault(getOperation().getLoc(), FailureKind::Input)
          << std::string(plan.status().message());
      return signalPassFailure();
    }
    if (!plan->feasible) {
      if (hooks.observe)
        hooks.observe(*stated, problem, *plan);
      return reportOverBudget(*stated, *plan);
    }
    if (std::optional<std::string> wrong = planning::verifySolution(
            problem, plan->solution,
            {plan->peakBytes, plan->cost, int64_t(budget)}))
      return defect(*wrong);
    writeDown(*stated, *plan);
    if (hooks.observe)
      hooks.observe(*stated, problem, *plan);
    emitPlanRemarks(getOperation(), *stated, problem, *plan);
    if (failed(applySolution(getOperation(), *stated, plan->solution)))
      signalPassFailure();
  }

private:
  PassTarget given;
  PlanHooks hooks;

  void planWithMoves(StepProblem &stated, const OffloadSpec &spec,
                     const Target &device) {
    absl::StatusOr<MovedStep> moved =
        planMoves(stated, spec, budgets(), device, hooks);
    if (!moved.ok())
      return defect(moved.status().ToString());
    moved->record.attachTo(getOperation());
    if (!moved->fitted.plan.feasible)
      return reportSpacesOverBudget(stated, *moved);
    if (hooks.observe)
      hooks.observe(stated, stated.problem, moved->plan);
    if (failed(applySolution(getOperation(), stated, moved->plan.solution)))
      signalPassFailure();
  }

  /// The budget of each space, as options state them.
  PerSpace<int64_t> budgets() {
    PerSpace<int64_t> bytes;
    size_t next = 0;
    for (auto [space, its] : bytes) {
      if (onDevice(space.kind))
        its = budget;
      else if (next < beside.size())
        its = beside[next++];
      else
        its = space.hasAddresses ? -1 : 0;
    }
    return bytes;
  }

  void reportSpacesOverBudget(const StepProblem &stated,
                              const MovedStep &moved) {
    InFlightDiagnostic diag =
        emitFault(getOperation().getLoc(), FailureKind::OverBudget)
        << "no plan was found within the budget of " << inMiB(budget);
    for (auto [space, bytes] : budgets())
      if (!onDevice(space.kind) && space.hasAddresses && bytes >= 0)
        diag << " and " << inMiB(bytes) << " of " << space.name << " memory";
    int64_t smallest = moved.record.smallestFoundBytes;
    diag.attachNote() << "the smallest budget for which a plan is known is "
                      << (smallest < 0 ? std::string("unknown")
                                       : inMiB(smallest))
                      << "; none can exist below "
                      << inMiB(moved.record.impossibleBelowBytes) << " ("
                      << moved.record.impossibleBelowBytes << " bytes)";
    signalPassFailure();
  }

  /// Writes the plan's figures for reports and tests.
  void writeDown(const StepProblem &stated, const planning::Plan &plan) {
    const planning::Problem &problem = stated.problem;
    PlanRecord record;
    record.livePeakBytes.device() = plan.peakBytes;
    record.reservedBytes = problem.reservedBytes;
    record.costPs = planning::costOf(problem, plan.solution);
    record.unconstrainedCostPs = planning::baseCost(problem);
    if (absl::StatusOr<planning::Profile> unconstrained =
            planning::simulate(problem, planning::baseSolution(problem));
        unconstrained.ok())
      record.unconstrainedBytes = unconstrained->peakBytes;
    record.recomputedOps = plan.stats.recomputedExecutions;
    if (!quick) {
      record.smallestFoundBytes = plan.smallestFoundBytes;
      record.impossibleBelowBytes = plan.impossibleBelowBytes;
      record.boundPs = planning::baseCost(problem) + plan.provenExtraCost();
    }
    if (absl::StatusOr<planning::Profile> profile =
            planning::simulate(problem, plan.solution);
        profile.ok())
      record.peakByClass = profile->peakByClass;
    record.attachTo(getOperation());
  }

  void reportOverBudget(const StepProblem &stated, const planning::Plan &plan) {
    const planning::Problem &problem = stated.problem;
    PlanRecord record;
    record.smallestFoundBytes = plan.smallestFoundBytes;
    record.impossibleBelowBytes = plan.impossibleBelowBytes;
    record.attachTo(getOperation());
    int64_t needs = plan.peakBytes + problem.reservedBytes;
    InFlightDiagnostic diag =
        emitFault(getOperation().getLoc(), FailureKind::OverBudget)
        << "needs " << inMiB(needs) << ", " << inMiB(needs - budget)
        << " over the budget of " << inMiB(budget);
    absl::StatusOr<planning::Profile> profile =
        planning::simulate(problem, plan.solution);
    if (profile.ok()) {
      planning::Profile::Moment at = profile->moments[profile->peakMoment];
      int32_t recipe = plan.solution.segments[at.segment][at.index].recipe;
      Operation *op = stated.kernelOf[recipe].op;
      diag.attachNote(op ? op->getLoc() : getOperation().getLoc())
          << "the peak is at " << problem.recipes[recipe].name;
    }
    diag.attachNote() << "the smallest budget for which a plan is known is "
                      << inMiB(plan.smallestFoundBytes) << " ("
                      << plan.smallestFoundBytes
                      << " bytes); none can exist below "
                      << inMiB(plan.impossibleBelowBytes) << " ("
                      << plan.impossibleBelowBytes << " bytes)";
    signalPassFailure();
  }

  void defect(const std::string &message) {
    getOperation().emitError("a defect of the planner: ") << message;
    signalPassFailure();
  }
};

} // namespace

// 2^61 ps are 26 days.
bool isTooLargeToPlan(const planning::Problem &problem) {
  double cost = 0, bytes = 0, trips = 1;
  for (const planning::Segment &segment : problem.segments)
    trips = std::max(trips, double(segment.trips));
  for (const planning::Recipe &recipe : problem.recipes)
    cost += double(recipe.cost) * trips;
  for (const planning::Value &value : problem.values)
    bytes += double(value.bytes);
  return cost >= 0x1p61 || bytes >= 0x1p61;
}

std::unique_ptr<Pass> createPlan(PlanOptions options, PassTarget target,
                                 PlanHooks hooks) {
  return std::make_unique<Plan>(std::move(options), std::move(target),
                                std::move(hooks));
}
} // namespace tmc
