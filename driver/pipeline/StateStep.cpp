#include "driver/pipeline/StateStep.h"

#include "compiler/analysis/StepUpdates.h"
#include "compiler/planning/bound/AnyOrderCheck.h"
#include "compiler/planning/bound/Bound.h"
#include "compiler/planning/driver/MovesAmounts.h"
#include "driver/pipeline/StepForms.h"
#include "passes/Passes.h"
#include "passes/Plan.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tmc;

static Failure defect(const absl::Status &status) {
  return Failure::defect("a step's problem can't be stated: " +
                         status.ToString());
}

Expected<StepProblem> tmc::stateStep(ModuleOp module,
                                     const PlanRequest &request) {
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
  return Failure::defect("a module has no step that can be planned");
}

Expected<StepProblem> tmc::stateWithMoves(ModuleOp module,
                                          const PlanRequest &request,
                                          const PerSpace<int64_t> &budgets) {
  TMC_TRY(request.runPasses(module, Phase::Shape, [](OpPassManager &pm) {
    pm.addNestedPass<train::StepOp>(createPeel());
  }));
  Expected<StepProblem> stated = stateStep(module, request);
  if (!stated)
    return stated;
  if (absl::Status status =
          offerMoves(*stated, request.asked.offload, request.device, budgets);
      !status.ok())
    return defect(status);
  return stated;
}

static Expected<PlanClaims>
claimsWithMoves(ModuleOp module, const PlanRequest &request, Claims wanted) {
  Expected<StepProblem> stated =
      stateWithMoves(module, request, request.budgets);
  if (!stated)
    return std::move(stated.failure());
  const planning::Problem &problem = stated->problem;
  PlanClaims claims;
  claims.impossibleBelowBytes = planning::impossibleBelow(problem);
  if (wanted == Claims::Bytes)
    return claims;
  claims.loadPs = planning::loadOf(problem);
  claims.atLeastPs =
      planning::prove(problem, {.steps = planning::kFull.boundSteps})
          .provenCost;
  return claims;
}

Expected<PlanClaims> tmc::claimsOf(ModuleOp module, const PlanRequest &request,
                                   Claims wanted) {
  OwningOpRef<ModuleOp> copy = module.clone();
  PlanClaims claims;
  if (!request.asked.offload.isNone()) {
    Expected<PlanClaims> made = claimsWithMoves(*copy, request, wanted);
    if (!made)
      return made;
    claims = *made;
  } else {
    Expected<StepProblem> stated = stateStep(*copy, request);
    if (!stated)
      return std::move(stated.failure());
    const planning::Problem &problem = stated->problem;
    claims.impossibleBelowBytes = planning::impossibleBelow(problem);
    if (wanted == Claims::BytesAndSeconds) {
      claims.atLeastPs = planning::baseCost(problem);
      claims.loadPs = planning::loadOf(problem);
    }
  }
  const int64_t budget = request.budgets.device();
  if (wanted == Claims::BytesAndSeconds && budget >= 0 &&
      budget < claims.impossibleBelowBytes)
    claims.atLeastPs = claims.loadPs = std::numeric_limits<int64_t>::max();
  return claims;
}

Expected<int64_t> tmc::leastInAnyOrder(ModuleOp module,
                                       const PlanRequest &request) {
  OwningOpRef<ModuleOp> copy = module.clone();
  Expected<StepProblem> stated = stateStep(*copy, request);
  if (!stated)
    return std::move(stated.failure());
  planning::Problem &problem = stated->problem;
  if (planning::hasNetwork(problem))
    return -1;
  problem.spaces[0].budgetBytes = request.budgets.device();
  absl::StatusOr<planning::AnyOrderCertificate> proof =
      planning::proveAnyOrder(problem);
  if (!proof.ok())
    return defect(proof.status());
  absl::StatusOr<int64_t> proven =
      planning::checkAnyOrderBound(problem, *proof);
  if (!proven.ok())
    return defect(proven.status());
  return *proven;
}

Expected<int64_t> tmc::impossibleBelow(const StepForm &form,
                                       const StepForm &other,
                                       const PlanRequest &request) {
  Expected<PlanClaims> least = claimsOf(*form.module, request, Claims::Bytes);
  if (!least)
    return std::move(least.failure());
  if (!other.module)
    return least->impossibleBelowBytes;
  Expected<PlanClaims> more = claimsOf(*other.module, request, Claims::Bytes);
  if (!more)
    return std::move(more.failure());
  return std::min(least->impossibleBelowBytes, more->impossibleBelowBytes);
}
