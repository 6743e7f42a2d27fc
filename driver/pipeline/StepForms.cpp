#include "driver/pipeline/StepForms.h"

#include "compiler/planning/moves/DelayReaders.h"
#include "compiler/planning/moves/Overlap.h"
#include "driver/pipeline/StateStep.h"

#include "mlir/IR/Diagnostics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace tmc;

StepForm tmc::anotherForm(const StepForm &form) {
  StepForm other;
  other.module = form.module.get().clone();
  other.figures = form.figures;
  other.copies = form.copies;
  other.shardLevel = form.shardLevel;
  other.addsShards = form.addsShards;
  return other;
}

void tmc::searchAhead(StepForm &form, const PlanRequest &request) {
  if (!request.asked.offload.isNone())
    return;
  if (!request.asked.planner.empty())
    return; // An external planner may not support two runs at a time.
  // Planning the form reports errors.
  ScopedDiagnosticHandler silence(form.module->getContext(),
                                  [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> copy = form.module->clone();
  Expected<StepProblem> stated = stateStep(*copy, request);
  if (!stated)
    return;
  form.ahead = planning::planAhead(
      std::move(stated->problem),
      std::vector<int64_t>{request.device.arenaAlignment},
      planning::SolveOptions{.order = planning::OrderMode::Free,
                             .effort = request.effort()},
      request.budgets.device());
}

/// A form whose coarse plan is this part slower than the other's isn't faster
/// in full: coarse plans of both forms lose about the same.
static constexpr double kCoarseIsClose = 0.01;

/// Whether a full plan of `form` isn't worth its time, given the one of
/// `other`.
static bool isWorse(const StepForm &form, const StepForm &other) {
  return form.coarse && other.coarse->fits &&
         (!form.coarse->fits ||
          form.coarse->seconds > other.coarse->seconds * (1 + kCoarseIsClose));
}

/// With moves a full plan takes long. The other form isn't worth one if its
/// kernels take as long within this part of a step, and its copies are at most
/// this part of the device's budget: as for adapters.
static constexpr double kAlikeTime = 0.001;
static constexpr int64_t kFewCopiesPart = 64;

/// True if the forms hardly differ.
static bool areAlike(const StepForm &form, const StepForm &other,
                     const PlanRequest &request) {
  if (!form.coarse || !other.coarse)
    return false;
  const double seconds = form.coarse->baseSeconds;
  const int64_t copies =
      std::max(form.figures.keptCopyBytes, other.figures.keptCopyBytes);
  return copies <= request.budgets.device() / kFewCopiesPart &&
         std::abs(seconds - other.coarse->baseSeconds) <= seconds * kAlikeTime;
}

/// Whether `bytes` is known, and `other` is unknown or larger.
static bool isSmaller(int64_t bytes, int64_t other) {
  return bytes >= 0 && (other < 0 || bytes < other);
}

/// The claims of `form` become those of both forms. `isPlanned`: `other` has a
/// plan, so that its figures hold its bounds.
static Expected<void> claimForBoth(StepForm &form, const StepForm &other,
                                   bool isPlanned, const PlanRequest &request) {
  PlanClaims claims{other.figures.record.impossibleBelowBytes,
                    other.figures.record.boundPs, other.figures.record.loadPs};
  if (!isPlanned) {
    Expected<PlanClaims> made =
        claimsOf(*other.module, request, Claims::BytesAndSeconds);
    if (!made)
      return std::move(made.failure());
    claims = *made;
  }
  PlanRecord &record = form.figures.record;
  record.impossibleBelowBytes =
      std::min(record.impossibleBelowBytes, claims.impossibleBelowBytes);
  record.boundPs = std::min(record.boundPs, claims.atLeastPs);
  record.loadPs = std::min(record.loadPs, claims.loadPs);
  int64_t &least = form.figures.anyOrderPs;
  if (least < 0)
    return {};
  int64_t others = other.figures.anyOrderPs;
  if (!isPlanned) {
    Expected<int64_t> made = leastInAnyOrder(*other.module, request);
    if (!made)
      return std::move(made.failure());
    others = *made;
  }
  least = std::min(least, others);
  return {};
}

/// Plans both forms; `form` becomes the one to run.
static Expected<void> chooseForm(StepForm &form, StepForm &other,
                                 const PlanRequest &request) {
  auto isOver = [](Expected<void> &done) {
    return !done && done.failure().kind == FailureKind::OverBudget;
  };
  if (!request.asked.offload.isNone() && !form.coarse)
    if (Expected<CoarsePlan> made = planCoarsely(form, other, request); !made)
      return std::move(made.failure());
  if (isWorse(form, other))
    std::swap(form, other);
  searchAhead(other, request);
  Expected<void> first = planForm(form, request);
  if (!first && !isOver(first))
    return first;
  if (first && (isWorse(other, form) || areAlike(form, other, request)))
    return claimForBoth(form, other, /*isPlanned=*/false, request);
  PlanRequest second = request;
  second.isFittedOtherwise = bool(first);
  Expected<void> next = planForm(other, second);
  if (!next && !isOver(next))
    return next;
  PlanRecord &mine = form.figures.record, &others = other.figures.record;
  bool isNextBetter = bool(next);
  if (first && next)
    isNextBetter = others.costPs <= mine.costPs;
  else if (!first && !next)
    isNextBetter =
        isSmaller(others.smallestFoundBytes, mine.smallestFoundBytes);
  if (isNextBetter)
    std::swap(form, other);
  // The form to run may fit although no smaller budget was sought.
  const int64_t most = (first || next) && request.budgets.device() >= 0
                           ? request.budgets.device()
                           : std::numeric_limits<int64_t>::max();
  if (others.smallestFoundBytes <= most &&
      isSmaller(others.smallestFoundBytes, mine.smallestFoundBytes)) {
    mine.smallestFoundBytes = others.smallestFoundBytes;
    form.figures.smallestStoppedEarly = other.figures.smallestStoppedEarly;
  }
  TMC_TRY(
      claimForBoth(form, other, bool(isNextBetter ? first : next), request));
  if (!first && !next)
    return overBudget(form, request.budgets.device());
  return {};
}

namespace {
/// The plan that every plan of a step is compared with.
struct Reference {
  double seconds = -1;
  int64_t bytes = -1; // Without reserved bytes.
};
} // namespace

/// The plan of a problem without a budget: the program's own order or, of
/// several ranks, the one in which kernels hide the network.
static absl::StatusOr<Reference> planFreely(const planning::Problem &problem) {
  if (!planning::hasNetwork(problem)) {
    absl::StatusOr<planning::Profile> profile =
        planning::simulate(problem, planning::baseSolution(problem));
    if (!profile.ok())
      return profile.status();
    return Reference{secondsOf(planning::baseCost(problem)),
                     profile->peakBytes};
  }
  const planning::Problem delayed =
      planning::inOrder(problem, planning::delayReaders(problem));
  absl::StatusOr<planning::MovedPlan> plan =
      planning::overlapNetwork(problem, planning::baseSolution(delayed), -1);
  if (!plan.ok())
    return plan.status();
  return Reference{secondsOf(plan->makespan), plan->peakBytes[0]};
}

/// A form without a budget. Unknown if its problem can't be stated: planning
/// reports the reason.
static Reference referenceOf(const StepForm &form, const PlanRequest &request) {
  ScopedDiagnosticHandler silence(form.module.get().getContext(),
                                  [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> copy = form.module.get().clone();
  Expected<StepProblem> stated = stateStep(*copy, request);
  if (!stated)
    return {};
  absl::StatusOr<Reference> plan = planFreely(stated->problem);
  return plan.ok() ? *plan : Reference();
}

/// `figures` know the faster one of the plans without a budget.
static void takeReference(PlanFigures &figures, const Reference &plan) {
  if (plan.seconds < 0 || (figures.unconstrainedSeconds >= 0 &&
                           figures.unconstrainedSeconds <= plan.seconds))
    return;
  figures.unconstrainedSeconds = plan.seconds;
  figures.unconstrainedBytes = plan.bytes;
}

static double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

Expected<void> tmc::planForms(StepForm &form, StepForm &other,
                              const PlanRequest &request) {
  auto start = std::chrono::steady_clock::now();
  PlanFigures free;
  takeReference(free, referenceOf(form, request));
  if (other.module)
    takeReference(free, referenceOf(other, request));
  Expected<void> done =
      other.module ? chooseForm(form, other, request) : planForm(form, request);
  form.figures.unconstrainedSeconds = free.unconstrainedSeconds;
  form.figures.unconstrainedBytes = free.unconstrainedBytes;
  form.figures.planSeconds = secondsSince(start);
  return done;
}

Expected<void> tmc::planInstead(StepForm &best, StepForm form,
                                const PlanRequest &request) {
  auto start = std::chrono::steady_clock::now();
  const Reference free = referenceOf(form, request);
  PlanRequest second = request;
  second.isFittedOtherwise = true;
  Expected<void> done = planForm(form, second);
  if (!done && done.failure().kind != FailureKind::OverBudget)
    return done;
  PlanFigures &mine = form.figures, &known = best.figures;
  known.planSeconds += secondsSince(start);
  takeReference(known, free);
  if (!done || mine.record.costPs >= known.record.costPs)
    return claimForBoth(best, form, /*isPlanned=*/true, request);
  mine.planSeconds = known.planSeconds;
  mine.unconstrainedSeconds = known.unconstrainedSeconds;
  mine.unconstrainedBytes = known.unconstrainedBytes;
  if (isSmaller(known.record.smallestFoundBytes,
                mine.record.smallestFoundBytes)) {
    mine.record.smallestFoundBytes = known.record.smallestFoundBytes;
    mine.smallestStoppedEarly = known.smallestStoppedEarly;
  }
  std::swap(best, form);
  return claimForBoth(best, form, /*isPlanned=*/true, request);
}
