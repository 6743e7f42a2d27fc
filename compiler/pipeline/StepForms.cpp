#include "compiler/pipeline/StepForms.h"

#include "compiler/analysis/StepProblem.h"
#include "compiler/analysis/StepUpdates.h"
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
        planning::SolveOptions{.order = planning::OrderMode::Free,
                               .effort = request.effort()},
        request.budgets.device);
    return; // There is one step.
  }
}

/// A form whose coarse plan is this part slower than the other's isn't quicker
/// in full: what coarse plans lose is much the same in both.
static constexpr double kCoarseIsClose = 0.01;

/// Whether no full plan of `form` is worth its time beside one of `other`.
static bool isWorse(const StepForm &form, const StepForm &other) {
  return form.coarse && other.coarse->fits &&
         (!form.coarse->fits ||
          form.coarse->seconds > other.coarse->seconds * (1 + kCoarseIsClose));
}

/// The least of two bounds or budgets, either of which may be unknown (-1).
static int64_t leastKnown(int64_t a, int64_t b) {
  return a < 0 ? b : b < 0 ? a : std::min(a, b);
}

/// Plans both forms; `form` becomes the one to run.
static Expected<bool> chooseForm(StepForm &form, StepForm &other,
                                 const PlanRequest &request) {
  auto isOver = [](Expected<bool> &done) {
    return !done && done.failure().kind == FailureKind::OverBudget;
  };
  if (request.asked.offload != "none" && !form.coarse)
    if (Expected<CoarsePlan> made = planCoarsely(form, other, request); !made)
      return std::move(made.failure());
  // What was said of the step before it had two forms holds for both.
  other.figures.lossChunk = form.figures.lossChunk;
  other.figures.tiles = form.figures.tiles;
  if (isWorse(form, other))
    std::swap(form, other);
  searchAhead(other, request);
  Expected<bool> first = planForm(form, request);
  if (!first && !isOver(first))
    return first;
  PlanFigures &figures = form.figures;
  if (first && isWorse(other, form)) {
    figures.impossibleBelowBytes = leastKnown(
        figures.impossibleBelowBytes, other.coarse->impossibleBelowBytes);
    return true;
  }
  PlanRequest second = request;
  second.isFittedOtherwise = bool(first);
  Expected<bool> next = planForm(other, second);
  if (!next && !isOver(next))
    return next;
  bool isNextBetter = bool(next);
  if (first && next)
    isNextBetter = other.figures.stepSeconds <= figures.stepSeconds;
  else if (!first && !next)
    isNextBetter =
        other.figures.smallestFoundBytes <= figures.smallestFoundBytes;
  if (isNextBetter)
    std::swap(form, other);
  if (other.figures.smallestFoundBytes >= 0 &&
      other.figures.smallestFoundBytes < figures.smallestFoundBytes) {
    figures.smallestFoundBytes = other.figures.smallestFoundBytes;
    figures.smallestStoppedEarly = other.figures.smallestStoppedEarly;
  }
  figures.impossibleBelowBytes = std::min(figures.impossibleBelowBytes,
                                          other.figures.impossibleBelowBytes);
  if (!first && !next)
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
  return done;
}
