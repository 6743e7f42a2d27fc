#include "driver/pipeline/CoarsePlan.h"

#include "compiler/planning/bound/Bound.h"
#include "compiler/planning/driver/MovesSearch.h"
#include "compiler/planning/model/Timeline.h"
#include "driver/pipeline/StateStep.h"
#include "driver/pipeline/StepForms.h"

#include "mlir/IR/Diagnostics.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tmc;

/// Divisor of the effort for a plan without moves.
static constexpr int64_t kEffortPart = 32;
/// Plans with moves are sought that are faster by this part of a step than the
/// plan without.
static constexpr double kWorthMoves = 0.005;

/// A plan that moves nothing counts as out of reach if even this part more of
/// the budget isn't enough for its coarse plan.
static constexpr int64_t kReachPart = 8;

/// A coarse plan by recomputation and order.
static absl::StatusOr<planning::Plan>
coarselyAlone(const planning::Problem &problem, const PlanRequest &request,
              int64_t budget, bool wantSmallest) {
  planning::SolveOptions how;
  how.budgetBytes = budget;
  how.order = planning::OrderMode::Free;
  how.coarse = true;
  how.wantBound = how.wantCases = false;
  how.wantSmallest = wantSmallest;
  how.effort = request.effort().part(kEffortPart);
  return planning::solve(problem, how);
}

bool tmc::isFarFromFitting(ModuleOp module, const PlanRequest &request) {
  const int64_t budget = request.budgets.device();
  if (budget < 0)
    return false;
  ScopedDiagnosticHandler silence(module.getContext(),
                                  [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> copy = module.clone();
  Expected<StepProblem> stated = stateStep(*copy, request);
  if (!stated)
    return false;
  const absl::StatusOr<planning::Plan> plan =
      coarselyAlone(stated->problem, request, budget + budget / kReachPart,
                    /*wantSmallest=*/false);
  return plan.ok() && !plan->feasible;
}

namespace {

class Planner {
public:
  Planner(const PlanRequest &request, double useless)
      : request(request), mayMove(!request.asked.offload.isNone()),
        useless(useless), budget(request.budgets) {
    if (budget.device() >= 0)
      budget.device() -= budget.device() / kPackingPart;
  }

  Expected<void> plan(ModuleOp module) {
    OwningOpRef<ModuleOp> copy = module.clone();
    Expected<StepProblem> stated = stateStep(*copy, request);
    if (!stated)
      return std::move(stated.failure());
    const planning::Problem &problem = stated->problem;
    absl::StatusOr<planning::Profile> base =
        planning::simulate(problem, planning::baseSolution(problem));
    if (!base.ok())
      return defect(base.status());
    best.baseSeconds = secondsOf(planning::baseCost(problem));
    best.baseBytes = base->peakBytes;
    best.neededBytes = base->peakBytes + problem.reservedBytes;
    // Each kernel runs once, unless the host runs it.
    if (best.baseSeconds < useless) {
      TMC_TRY(stay(problem));
    } else if (!mayMove) {
      best.impossibleBelowBytes = planning::impossibleBelow(problem);
      leaveOut(best.baseSeconds);
    }
    if (!mayMove || (best.fits && budget.device() < 0)) // Nothing needs to.
      return {};
    OwningOpRef<ModuleOp> peeled = module.clone();
    Expected<StepProblem> moved = stateWithMoves(*peeled, request, budget);
    if (!moved)
      return std::move(moved.failure());
    best.impossibleBelowBytes = planning::impossibleBelow(moved->problem);
    return move(*moved);
  }

  CoarsePlan best;

private:
  const PlanRequest &request;
  const bool mayMove;
  const double useless;
  PerSpace<int64_t> budget;

  static Failure defect(const absl::Status &status) {
    return Failure::defect("a step can't be planned coarsely: " +
                           status.ToString());
  }

  void take(double seconds, bool moves) {
    if (best.fits && best.seconds <= seconds)
      return;
    best.fits = true;
    best.seconds = seconds;
    best.moves = moves;
  }

  void leaveOut(double provenSeconds) {
    best.isLeftOut = true;
    best.provenSeconds = provenSeconds;
  }

  /// By recomputation and order.
  Expected<void> stay(const planning::Problem &problem) {
    absl::StatusOr<planning::Plan> plan =
        coarselyAlone(problem, request, budget.device(), !mayMove);
    if (!plan.ok())
      return defect(plan.status());
    if (!mayMove) {
      best.impossibleBelowBytes = plan->impossibleBelowBytes;
      if (!plan->peakBytes.empty()) // With networks there may be no plan.
        best.neededBytes = plan->peakBytes[0] + problem.reservedBytes;
    }
    if (!plan->feasible)
      return {};
    best.stayingSeconds = secondsOf(plan->cost);
    take(best.stayingSeconds, /*moves=*/false);
    return {};
  }

  /// No plan with moves is sought that takes this long.
  double uselessMoves() const {
    return best.fits ? std::min(useless, best.seconds * (1 - kWorthMoves))
                     : useless;
  }

  Expected<void> move(StepProblem &stated) {
    if (request.budgets.device() >= 0 &&
        request.budgets.device() < best.impossibleBelowBytes)
      return {};
    planning::SolveOptions how;
    how.coarse = true;
    how.effort = request.effort();
    if (const double most = uselessMoves(); std::isfinite(most))
      how.useless = int64_t(most * 1e12);
    absl::StatusOr<planning::Plan> plan =
        planning::solveMoves(stated.problem, how);
    if (!plan.ok())
      return defect(plan.status());
    if (plan->feasible)
      take(secondsOf(plan->cost), /*moves=*/true);
    else if (secondsOf(plan->certificate.provenCost) >= useless)
      leaveOut(secondsOf(plan->certificate.provenCost));
    return {};
  }
};

/// The better one of two forms' plans, and bounds of both.
CoarsePlan eitherOf(const CoarsePlan &a, const CoarsePlan &b) {
  CoarsePlan either = b.fits && (!a.fits || b.seconds < a.seconds) ? b : a;
  either.baseBytes = a.baseSeconds <= b.baseSeconds ? a.baseBytes : b.baseBytes;
  auto least = [&](auto CoarsePlan::*figure) {
    either.*figure = a.*figure < 0   ? b.*figure
                     : b.*figure < 0 ? a.*figure
                                     : std::min(a.*figure, b.*figure);
  };
  least(&CoarsePlan::stayingSeconds);
  least(&CoarsePlan::baseSeconds);
  least(&CoarsePlan::neededBytes);
  least(&CoarsePlan::impossibleBelowBytes);
  least(&CoarsePlan::provenSeconds);
  either.isLeftOut = a.isLeftOut && b.isLeftOut;
  return either;
}

} // namespace

Expected<CoarsePlan> tmc::planCoarsely(StepForm &form, StepForm &other,
                                       const PlanRequest &request,
                                       double useless) {
  for (StepForm *each : {&form, &other}) {
    if (!each->module)
      continue;
    Planner planner(request, useless);
    TMC_TRY(planner.plan(*each->module));
    each->coarse = planner.best;
  }
  return other.module ? eitherOf(*form.coarse, *other.coarse) : *form.coarse;
}
