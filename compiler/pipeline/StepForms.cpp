#include "compiler/pipeline/StepForms.h"

#include "compiler/analysis/StepProblem.h"
#include "passes/Plan.h"

#include "mlir/IR/Diagnostics.h"

#include <algorithm>
#include <chrono>

using namespace mlir;
using namespace tmc;

void tmc::searchAhead(StepForm &form, const PlanRequest &request) {
  if (request.asked.offload != "none")
    return;
  if (!request.asked.planner.empty())
    return; // An external planner may not support two runs at a time.
  // Whatever is wrong is said when the form is planned.
  ScopedDiagnosticHandler silence(form.module->getContext(),
                                  [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> copy = form.module->clone();
  for (auto step : copy->getOps<train::StepOp>()) {
    sinkUpdates(step);
    FailureOr<StepProblem> stated =
        buildProblem(step, request.device, Recipes::Parts);
    if (failed(stated) || isTooLargeToPlan(stated->problem) ||
        !planning::check(stated->problem).ok())
      return;
    form.ahead = std::make_unique<planning::PlanAhead>(
        std::move(stated->problem), request.device.arenaAlignment,
        planning::SolveOptions{.order = planning::OrderMode::Free},
        request.budgets.device);
    return; // There is one step.
  }
}

/// Plans both forms; `form` becomes the one to run.
static Expected<bool> chooseForm(StepForm &form, StepForm &other,
                                 const PlanRequest &request) {
  auto isOver = [](Expected<bool> &done) {
    return !done && done.failure().kind == FailureKind::OverBudget;
  };
  searchAhead(other, request);
  Expected<bool> kept = planForm(form, request);
  if (!kept && !isOver(kept))
    return kept;
  // What was said of the step before it had two forms holds for both.
  other.figures.lossChunk = form.figures.lossChunk;
  std::swap(form, other);
  PlanRequest second = request;
  second.isFittedOtherwise = bool(kept);
  Expected<bool> cast = planForm(form, second);
  if (!cast && !isOver(cast))
    return cast;
  bool keeps = !cast;
  if (kept && cast)
    keeps = other.figures.stepSeconds < form.figures.stepSeconds;
  else if (!kept && !cast)
    keeps = other.figures.smallestFoundBytes < form.figures.smallestFoundBytes;
  if (keeps)
    std::swap(form, other);
  PlanFigures &figures = form.figures;
  if (other.figures.smallestFoundBytes >= 0 &&
      other.figures.smallestFoundBytes < figures.smallestFoundBytes) {
    figures.smallestFoundBytes = other.figures.smallestFoundBytes;
    figures.smallestStoppedEarly = other.figures.smallestStoppedEarly;
  }
  figures.impossibleBelowBytes = std::min(figures.impossibleBelowBytes,
                                          other.figures.impossibleBelowBytes);
  if (!kept && !cast)
    return overBudget(form, request.budgets.device);
  return true;
}

Expected<bool> tmc::planForms(StepForm &form, StepForm &other,
                              const PlanRequest &request) {
  auto start = std::chrono::steady_clock::now();
  Expected<bool> done =
      other.module ? chooseForm(form, other, request) : planForm(form, request);
  form.figures.planSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (done && request.asked.microBatches > 1)
    measureUnsplit(form, request);
  return done;
}
