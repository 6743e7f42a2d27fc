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

namespace {
/// Things that a rank keeps.
struct Kept {
  int64_t level, whole;
  bool addsShards;
};
} // namespace

/// The form of a rank that keeps `kept`, with its coarse plan.
static Expected<StepForm>
coarseForm(Candidate &candidate, const PlanRequest &request, const Kept &kept) {
  StepForm form = anotherForm(candidate.unsharded);
  form.shardLevel = kept.level;
  form.wholeParams = kept.whole;
  form.addsShards = kept.addsShards;
  TMC_TRY(shapeForm(candidate, form));
  StepForm none;
  Expected<CoarsePlan> made = planCoarsely(form, none, request);
  if (!made)
    return std::move(made.failure());
  return form;
}

bool tmc::mayAddShards(const Candidate &candidate) {
  return candidate.options.sums == RankSums::Auto &&
         candidate.options.levers.count(kMicroBatches) > 1;
}

Expected<void> tmc::tryOtherSums(Candidate &candidate,
                                 const PlanRequest &request) {
  if (candidate.options.shardLevel) // The two ends are all that there is.
    return {};
  const double limit =
      candidate.form.figures.stepSeconds() * (1 - kWorthPlanning);
  std::optional<StepForm> best;
  // The ends are whole sums with the first level, and shards with the last one.
  for (const Kept &kept : {Kept{3, 0, false}, Kept{2, 0, true}}) {
    request.say(std::string("plan, sums of ") +
                (kept.addsShards ? "shards" : "wholes") + " ...");
    Expected<StepForm> form = coarseForm(candidate, request, kept);
    if (!form)
      return std::move(form.failure());
    if (form->coarse->fits &&
        form->coarse->seconds < (best ? best->coarse->seconds : limit))
      best = std::move(*form);
  }
  return best ? planInstead(candidate.form, std::move(*best), request)
              : Expected<void>();
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
    Expected<StepForm> form =
        coarseForm(candidate, request, {3, whole, candidate.form.addsShards});
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
