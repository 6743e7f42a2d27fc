#include "compiler/pipeline/CoarsePlan.h"

#include "compiler/analysis/StepProblem.h"
#include "compiler/planning/model/Timeline.h"
#include "passes/Passes.h"
#include "passes/Plan.h"

#include <algorithm>

using namespace mlir;
using namespace tmc;

/// Work of a plan that moves nothing, as a part of a plan's.
static constexpr int64_t kEffortPart = 32;
/// A plan without moves that costs less than this part of a step more than its
/// kernels needs none.
static constexpr double kWorthMoves = 0.005;

static double secondsOf(int64_t picoseconds) {
  return double(picoseconds) * 1e-12;
}

namespace {

class Planner {
public:
  Planner(const PlanRequest &request, const OffloadSpec &spec)
      : request(request), spec(spec), budget(request.budgets) {
    if (budget.device >= 0)
      budget.device -= budget.device / kPackingPart;
  }

  Expected<bool> plan(ModuleOp module) {
    OwningOpRef<ModuleOp> copy = module.clone();
    Expected<StepProblem> stated = state(*copy);
    if (!stated)
      return std::move(stated.failure());
    if (Expected<bool> done = stay(stated->problem); !done)
      return done;
    if (spec.isNone() || !wantsMoves())
      return true;
    OwningOpRef<ModuleOp> peeled = module.clone();
    if (Expected<bool> done =
            request.runPasses(*peeled, Phase::Shape,
                              [](OpPassManager &pm) {
                                pm.addNestedPass<train::StepOp>(createPeel());
                              });
        !done)
      return done;
    Expected<StepProblem> moved = state(*peeled);
    if (!moved)
      return std::move(moved.failure());
    return move(*moved);
  }

  CoarsePlan best;

private:
  const PlanRequest &request;
  const OffloadSpec &spec;
  SpaceBudgets budget;

  static Failure defect(const absl::Status &status) {
    return Failure::defect("a step can't be planned coarsely: " +
                           status.ToString());
  }

  Expected<StepProblem> state(ModuleOp module) {
    for (auto step : module.getOps<train::StepOp>()) {
      sinkUpdates(step);
      FailureOr<StepProblem> stated =
          buildProblem(step, request.device, Recipes::Parts);
      if (failed(stated))
        break;
      if (isTooLargeToPlan(stated->problem))
        return Failure::unsupported("the step is too large to plan");
      if (absl::Status status = planning::check(stated->problem); !status.ok())
        return defect(status);
      return std::move(*stated);
    }
    return Failure::defect("the planning problem can't be stated");
  }

  void take(double seconds, bool moves) {
    if (best.fits && best.seconds <= seconds)
      return;
    best.fits = true;
    best.seconds = seconds;
    best.moves = moves;
  }

  static void lower(int64_t &least, int64_t bytes) {
    least = least < 0 ? bytes : std::min(least, bytes);
  }

  /// By recomputation and order.
  Expected<bool> stay(const planning::Problem &problem) {
    double base = secondsOf(planning::baseCost(problem));
    best.baseSeconds =
        best.baseSeconds < 0 ? base : std::min(best.baseSeconds, base);
    planning::SolveOptions how;
    how.budgetBytes = budget.device;
    how.order = planning::OrderMode::Free;
    how.coarse = true;
    how.wantBound = how.wantCases = false;
    how.wantSmallest = spec.isNone();
    how.effort = planning::Effort::interactive().part(kEffortPart);
    absl::StatusOr<planning::Plan> plan = planning::solve(problem, how);
    if (!plan.ok())
      return defect(plan.status());
    if (spec.isNone()) {
      lower(best.impossibleBelowBytes, plan->impossibleBelowBytes);
      lower(best.neededBytes, plan->peakBytes + problem.reservedBytes);
    } else {
      absl::StatusOr<planning::Profile> profile =
          planning::simulate(problem, planning::baseSolution(problem));
      if (!profile.ok())
        return defect(profile.status());
      lower(best.neededBytes, profile->peakBytes + problem.reservedBytes);
    }
    if (!plan->feasible)
      return true;
    double seconds = secondsOf(plan->cost);
    best.stayingSeconds = best.stayingSeconds < 0
                              ? seconds
                              : std::min(best.stayingSeconds, seconds);
    take(seconds, /*moves=*/false);
    return true;
  }

  bool wantsMoves() const {
    return !best.fits || best.seconds > best.baseSeconds * (1 + kWorthMoves);
  }

  Expected<bool> move(StepProblem &stated) {
    if (absl::Status status = offerMoves(stated, spec, request.device, budget);
        !status.ok())
      return defect(status);
    lower(best.impossibleBelowBytes, planning::impossibleBelow(stated.problem));
    planning::SpaceSearchOptions how;
    how.coarse = true;
    absl::StatusOr<planning::SpacePlan> plan =
        planning::solveSpaces(stated.problem, how);
    if (!plan.ok())
      return defect(plan.status());
    if (plan->feasible)
      take(secondsOf(plan->makespan), /*moves=*/true);
    return true;
  }
};

} // namespace

Expected<CoarsePlan> tmc::planCoarsely(const StepForm &form,
                                       const StepForm &other,
                                       const PlanRequest &request) {
  llvm::Expected<OffloadSpec> spec = OffloadSpec::parse(request.asked.offload);
  if (!spec)
    return Failure::usage(llvm::toString(spec.takeError()));
  Planner planner(request, *spec);
  for (const StepForm *each : {&form, &other})
    if (ModuleOp module = each->module ? *each->module : ModuleOp())
      if (Expected<bool> done = planner.plan(module); !done)
        return std::move(done.failure());
  return planner.best;
}
