#include "driver/pipeline/ShardHomes.h"

#include "dialects/train/Train.h"

#include <optional>

using namespace mlir;
using namespace tmc;

/// Kernels wait if they take this part of the step less than its plan.
static constexpr double kWaits = 0.01;
/// A coarse plan must save this part of the full one's time.
static constexpr double kWorthPlanning = 0.002;

/// Number of parameters that are shards.
static int64_t shardsIn(ModuleOp module) {
  int64_t shards = 0;
  for (auto step : module.getOps<train::StepOp>())
    for (unsigned i = 0; i < step.getNumArguments(); ++i)
      shards += train::roleOf(step, i) == train::Role::Param &&
                step.getArgAttr(i, train::TrainDialect::kWhole);
  return shards;
}

/// The form that keeps `whole` parameters whole, with its coarse plan.
static Expected<StepForm>
coarseForm(Candidate &candidate, const PlanRequest &request, int64_t whole) {
  StepForm form = anotherForm(candidate.unsharded);
  form.shardLevel = 3;
  form.wholeParams = whole;
  TMC_TRY(shapeForm(candidate, form));
  StepForm none;
  Expected<CoarsePlan> made = planCoarsely(form, none, request);
  if (!made)
    return std::move(made.failure());
  return form;
}

Expected<void> tmc::keepSomeWhole(Candidate &candidate,
                                  const PlanRequest &request) {
  const PlanFigures &known = candidate.form.figures;
  const double limit = known.stepSeconds() * (1 - kWorthPlanning);
  if (known.kernelSeconds() >= known.stepSeconds() * (1 - kWaits))
    return {};
  std::optional<StepForm> best;
  int64_t all = 2; // Parameters that are shards or may be; known later.
  for (int64_t whole = 1; whole < all; whole *= 2) {
    request.say("plan, " + std::to_string(whole) + " parameters whole ...");
    Expected<StepForm> form = coarseForm(candidate, request, whole);
    if (!form)
      return std::move(form.failure());
    all = whole + shardsIn(*form->module);
    if (!form->coarse->fits) // More of them need more bytes.
      break;
    if (form->coarse->seconds < (best ? best->coarse->seconds : limit))
      best = std::move(*form);
  }
  return best ? planInstead(candidate.form, std::move(*best), request)
              : Expected<void>();
}
