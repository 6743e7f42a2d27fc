#include "driver/pipeline/StepForms.h"

#include "compiler/analysis/MemLiveness.h"
#include "compiler/analysis/PlanRecord.h"
#include "compiler/analysis/StepProblem.h"
#include "compiler/analysis/StepUpdates.h"
#include "compiler/planning/driver/Proofs.h"
#include "compiler/planning/driver/TakeLess.h"
#include "dialects/mem/Mem.h"
#include "driver/pipeline/CoarsePlan.h"
#include "driver/pipeline/StateStep.h"
#include "passes/Offload.h"
#include "passes/OnTarget.h"
#include "passes/Plan.h"

#include "llvm/Support/Path.h"

using namespace mlir;
using namespace tmc;

/// Plans that are tried if the arena is larger than the budget.
constexpr int kPlaceAttempts = 6;
/// With `--offload=auto`, moves must make the step faster by 1/kWorthMovesPart:
/// a larger budget, within which nothing needs to move, may cost that time.
constexpr int64_t kWorthMovesPart = 1000;

/// Below this percentage of the default work, moves are sought coarsely.
static constexpr int64_t kFineEffort = 50;

/// Fills the form's cache for the first time.
static absl::Status fillCache(StepForm &form, const planning::Problem &problem,
                              const std::vector<int64_t> &alignments,
                              const PlanRequest &request) {
  if (form.ahead.valid()) {
    absl::StatusOr<std::unique_ptr<planning::PlanCache>> filled =
        form.ahead.get();
    if (filled.ok())
      form.plans = std::move(*filled);
    return filled.status();
  }
  planning::SolveOptions options;
  options.order = planning::OrderMode::Free;
  options.effort = request.effort();
  if (!planning::isOneSpace(problem)) {
    options.wantSmallest = !request.isFittedOtherwise;
    if (request.asked.effort < kFineEffort) {
      options.coarse = true;
      options.without.add(planning::Strategy::SecondPass);
    }
  }
  form.plans = std::make_unique<planning::PlanCache>(
      problem, alignments, options, request.asked.planner);
  return form.plans->fit(request.budgets.device()).status();
}

/// The plan for the budget, from the cache; of infeasible ones the smallest.
/// With moves, a smaller budget is sought only where nothing fits.
static absl::StatusOr<planning::Plan>
choosePlan(StepForm &form, const planning::Problem &problem,
           const std::vector<int64_t> &alignments, const PlanRequest &request) {
  const int64_t budget = request.budgets.device();
  if (!form.plans) {
    if (absl::Status status = fillCache(form, problem, alignments, request);
        !status.ok())
      return status;
  } else if (!form.plans->cheapestWithin(budget)) {
    // The arena was larger than in the cache.
    absl::StatusOr<const planning::Plan *> found = form.plans->fit(
        budget - (form.chosen->arenaBytes() + problem.reservedBytes - budget));
    if (!found.ok())
      return found.status();
  }
  form.chosen = form.plans->cheapestWithin(budget);
  const bool moves = problem.spaces.size() > 1;
  const planning::Plan *least = nullptr;
  if (!moves || (!form.chosen && !request.isFittedOtherwise)) {
    absl::StatusOr<const planning::Plan *> smallest = form.plans->smallest();
    if (!smallest.ok())
      return smallest.status();
    least = *smallest;
  }
  planning::Plan answer;
  if (form.chosen || (least && !moves))
    answer = form.chosen ? *form.chosen : *least;
  answer.feasible = form.chosen;
  answer.smallestFoundBytes = -1;
  if (least)
    answer.smallestFoundBytes = least->arenaBytes() + problem.reservedBytes;
  // A smaller budget that worked works again; the arena of its plan may not.
  if (least && form.chosen && budget >= 0)
    answer.smallestFoundBytes = std::min(answer.smallestFoundBytes, budget);
  answer.impossibleBelowBytes = form.plans->impossibleBelowBytes();
  if (form.chosen || !moves)
    planning::recertify(problem, answer, budget);
  if (form.chosen && planning::isOneSpace(problem))
    planning::proveByCases(problem, answer, budget);
  return answer;
}

static void forgetPlans(StepForm &form) {
  form.plans.reset();
  form.chosen = nullptr;
}

/// Plans by the form's cache, lowers and places `module`, up to the requested
/// phase. `moves`: the values that may leave the device.
static Expected<void> planAndPlace(StepForm &form, ModuleOp module,
                                   const PlanRequest &request,
                                   const OffloadSpec &moves) {
  PlanHooks hooks;
  hooks.solve = [&](const planning::Problem &problem,
                    const std::vector<int64_t> &alignments) {
    return choosePlan(form, problem, alignments, request);
  };
  hooks.observe = [&](const StepProblem &stated, const planning::Plan &plan) {
    form.trace = planTraceOf(stated, stated.problem, plan);
  };
  Expected<void> done =
      request.runPasses(module, Phase::Plan, [&](OpPassManager &pm) {
        PlanOptions options;
        options.target = request.asked.target;
        options.offload = moves.text();
        options.budget = request.budgets.device();
        for (auto [space, bytes] : request.budgets)
          if (!onDevice(space.kind))
            options.beside.push_back(bytes);
        if (!moves.isNone())
          pm.addNestedPass<train::StepOp>(createPeel());
        pm.addNestedPass<train::StepOp>(
            createPlan(options, request.device, hooks));
      });
  if (done && request.last >= Phase::Lower)
    done = request.runPasses(module, Phase::Lower, [&](OpPassManager &pm) {
      pm.addPass(createLower({request.asked.target}, request.device));
    });
  if (done && request.last >= Phase::Place)
    done = request.runPasses(module, Phase::Place, [&](OpPassManager &pm) {
      const planning::PackOptions how = form.chosen->arenas[0].packing;
      const int64_t alignment = request.device.arenaAlignment;
      const int64_t budget = request.budgets.device();
      if (request.device.backend == Backend::Cuda)
        pm.addNestedPass<mem::ProgramOp>(createJoinUpdates(
            {alignment, how.effort, int64_t(how.seed),
             budget < 0 ? -1 : budget - request.device.reservedBytes}));
      pm.addNestedPass<mem::ProgramOp>(
          createPlace({alignment, how.effort, int64_t(how.seed)}));
      const Mesh &mesh = request.asked.mesh;
      if (!moves.isNone() || mesh.ranks() > 1)
        pm.addNestedPass<mem::ProgramOp>(createVerifySchedule());
      if (mesh.ranks() > 1)
        pm.addPass(createVerifyRanks({mesh.data, mesh.tensor, mesh.pipeline}));
    });
  return done;
}

/// Completes the figures and the trace of a form whose step is placed.
static void describe(StepForm &form, const PlanRequest &request) {
  ModuleOp module = *form.module;
  PlanFigures &plan = form.figures;
  PlanTrace &trace = form.trace;
  trace.model = llvm::sys::path::stem(request.asked.model).str();
  trace.target = request.device.name;
  trace.precision = request.asked.levers.name(kPrecision);
  trace.budgetBytes = plan.budgetBytes.device();
  placePlanTrace(trace, module);
  trace.stepSeconds = plan.stepSeconds();
  plan.microBatches = request.asked.levers.count(kMicroBatches);
  for (auto program : module.getOps<mem::ProgramOp>()) {
    for (auto [space, bytes] : plan.arenaBytes)
      bytes = program.arenaBytesIn(space.kind);
    plan.work = workOf(program, request.device.backend);
    plan.launches = plan.copies = plan.transfers = plan.hostUpdates = 0;
    program.walk([&](Operation *op) {
      auto launch = dyn_cast<mem::LaunchOp>(op);
      plan.launches += launch || isa<mem::FillOp>(op);
      plan.copies += launch && launch.getCallee() == "Copy";
      plan.hostUpdates += launch && mem::engineOf(launch) == EngineKind::Host;
      plan.transfers += isa<mem::CopyOp>(op);
    });
  }
}

/// Reduces each budget by the bytes that the program's arena is over the asked
/// one; false if no arena is over.
static bool tighten(PerSpace<int64_t> &budgets, const PerSpace<int64_t> &asked,
                    int64_t reserved, mem::ProgramOp program) {
  bool isOver = false;
  for (auto [space, budget] : budgets) {
    const int64_t most = asked[space.kind];
    const int64_t bytes = program.arenaBytesIn(space.kind) +
                          (onDevice(space.kind) ? reserved : 0);
    if (most < 0 || bytes <= most)
      continue;
    isOver = true;
    budget = std::max<int64_t>(0, budget - (bytes - most));
  }
  return isOver;
}

/// No flag gives the host's budget, and the target assumes it.
static bool isHostAssumed(const PlanRequest &request) {
  bool isGiven = false;
  for (auto [space, bytes] : request.asked.budgetBytes)
    isGiven |= !onDevice(space.kind) && space.hasAddresses && bytes.has_value();
  return request.device.isHostAssumed && !isGiven;
}

/// Plans with the values that may leave the device by `moves`. The cache packs
/// as the place phase does. If the two still differ, the place phase is right:
/// without moves another plan of the cache is tried, and with moves the search
/// gets smaller budgets.
static Expected<void> planWithin(StepForm &form, const PlanRequest &request,
                                 const OffloadSpec &moves) {
  const int64_t budget = request.budgets.device();
  const int64_t reserved = request.device.reservedBytes;
  PlanFigures &figures = form.figures;
  figures.budgetBytes.device() = budget;
  if (!moves.isNone()) {
    figures.budgetBytes = request.budgets;
    figures.isHostAssumed = isHostAssumed(request);
  }
  PlanRequest tighter = request;
  for (int attempt = 0; attempt < kPlaceAttempts; ++attempt) {
    request.say(moves.isNone() ? "plan ..." : "plan, with moves ...");
    OwningOpRef<ModuleOp> trial = form.module->clone();
    Expected<void> done = planAndPlace(form, *trial, tighter, moves);
    const PlanRecord record = PlanRecord::in(*trial).value_or(PlanRecord());
    figures.record = record;
    figures.smallestStoppedEarly =
        form.plans && form.plans->isSmallestStoppedEarly();
    if (!done) {
      // If a plan was found and failed later, the budget isn't the cause.
      if (record.impossibleBelowBytes >= 0 && !record.isPlanned())
        return overBudget(form, budget);
      return done;
    }
    bool isOver = false;
    for (auto program : trial->getOps<mem::ProgramOp>()) {
      if (moves.isNone()) {
        const int64_t arena = program.arenaBytesIn(kSpaces[0].kind);
        form.plans->correct(form.chosen, arena);
        isOver |= budget >= 0 && arena + reserved > budget;
      } else {
        isOver |= tighten(tighter.budgets, request.budgets, reserved, program);
      }
    }
    if (!isOver) {
      form.module = std::move(trial);
      describe(form, request);
      return {};
    }
    if (!moves.isNone())
      forgetPlans(form); // They are of other budgets.
  }
  return overBudget(form, budget);
}

static Expected<void> planOnDevice(StepForm &form, const PlanRequest &request) {
  return planWithin(form, request, OffloadSpec());
}

/// Nothing may leave the device. So the plan gets a bound for every order, too,
/// unless it only stands for a setting of the levers.
static Expected<void> planInPlace(StepForm &form, const PlanRequest &request) {
  OwningOpRef<ModuleOp> shaped;
  if (!request.isCandidate)
    shaped = form.module->clone();
  TMC_TRY(planOnDevice(form, request));
  if (!shaped)
    return {};
  Expected<int64_t> least = leastInAnyOrder(*shaped, request);
  if (!least)
    return std::move(least.failure());
  form.figures.anyOrderPs = *least;
  return {};
}

static Expected<void> planWithMoves(StepForm &form,
                                    const PlanRequest &request) {
  forgetPlans(form); // They move nothing.
  form.trace = {};
  form.figures.boundOrder = PlanFigures::BoundOrder::Program;
  return planWithin(form, request, request.asked.offload);
}

/// True if a step of `ps` is faster than the one of `plan`, which moves
/// nothing, by enough to move values with `--offload=auto`.
static bool isWorthMoves(int64_t ps, const PlanRecord &plan) {
  return planning::withoutSmallGain(ps, plan.unconstrainedCostPs) <
         plan.costPs - plan.costPs / kWorthMovesPart;
}

/// A plan of `form` moves nothing although its values may move. Its claims
/// become those of the problem with moves.
static void claimWithMoves(PlanFigures &figures, const PlanClaims &claims) {
  PlanRecord &record = figures.record;
  record.impossibleBelowBytes = claims.impossibleBelowBytes;
  record.smallestFoundBytes = -1; // None was sought with moves.
  figures.smallestStoppedEarly = false;
  // The plan's order isn't the program's: each order has its own bound.
  const int64_t own = record.boundPs < 0 ? record.costPs : record.boundPs;
  record.boundPs = std::min(own, claims.atLeastPs);
  record.loadPs = claims.loadPs;
  figures.boundOrder = PlanFigures::BoundOrder::Program;
}

/// Plans with moves if only that fits the budget, or if it is faster by
/// 1/kWorthMovesPart. The bound of the problem with moves tells cheaply if it
/// can be. Without a budget nothing needs to move.
static Expected<void> planAsNeeded(StepForm &form, const PlanRequest &request) {
  if (request.asked.planner.empty() &&
      isFarFromFitting(form.module.get(), request))
    return planWithMoves(form, request);
  OwningOpRef<ModuleOp> shaped = form.module->clone();
  Expected<void> alone = planOnDevice(form, request);
  if (!alone && alone.failure().kind == FailureKind::OverBudget)
    return planWithMoves(form, request);
  if (!alone)
    return alone;
  Expected<PlanClaims> claims =
      claimsOf(*shaped, request, Claims::BytesAndSeconds);
  if (!claims)
    return std::move(claims.failure());
  if (request.isCandidate || request.budgets.device() < 0 ||
      !isWorthMoves(claims->atLeastPs, form.figures.record)) {
    claimWithMoves(form.figures, *claims);
    return {};
  }
  OwningOpRef<ModuleOp> unmoved = std::move(form.module);
  PlanFigures figures = form.figures;
  PlanTrace trace = std::move(form.trace);
  std::unique_ptr<planning::PlanCache> plans = std::move(form.plans);
  const planning::Plan *chosen = form.chosen;
  form.module = shaped->clone();
  Expected<void> moved = planWithMoves(form, request);
  if (!moved && moved.failure().kind != FailureKind::OverBudget)
    return moved;
  if (moved && isWorthMoves(form.figures.record.costPs, figures.record))
    return moved;
  form.module = std::move(unmoved);
  form.figures = std::move(figures);
  form.trace = std::move(trace);
  form.plans = std::move(plans);
  form.chosen = chosen;
  claimWithMoves(form.figures, *claims);
  return {};
}

Expected<void> tmc::planForm(StepForm &form, const PlanRequest &request) {
  const OffloadSpec &spec = request.asked.offload;
  if (spec.isNone())
    return planInPlace(form, request);
  return spec.onlyIfNeeded ? planAsNeeded(form, request)
                           : planWithMoves(form, request);
}

Failure tmc::overBudget(const StepForm &form, int64_t budget) {
  const PlanFigures &plan = form.figures;
  const PlanTrace &trace = form.trace;
  auto text = [](int64_t bytes) {
    char buffer[64];
    snprintf(buffer, sizeof buffer, "%.2f MiB (%lld bytes)",
             double(bytes) / (1 << 20), (long long)bytes);
    return std::string(buffer);
  };
  Failure failure{FailureKind::OverBudget,
                  "the step doesn't fit the budget of " + text(budget),
                  {}};
  failure.numbers = {
      {"budget_bytes", budget},
      {"impossible_below_bytes", plan.record.impossibleBelowBytes}};
  if (plan.record.smallestFoundBytes >= 0)
    failure.numbers.emplace_back("smallest_found_bytes",
                                 plan.record.smallestFoundBytes);
  failure.notes.push_back(
      "the smallest budget for which a plan is known is " +
      (plan.record.smallestFoundBytes < 0
           ? "unknown"
           : text(plan.record.smallestFoundBytes)) +
      (plan.smallestStoppedEarly ? ", not searched to the end" : ""));
  failure.notes.push_back("no plan can exist below " +
                          text(plan.record.impossibleBelowBytes));
  for (auto [space, bytes] : plan.budgetBytes)
    if (plan.isBudgetAssumed(space.kind))
      failure.notes.push_back("the " + std::string(space.name) +
                              " is assumed to have " + readableBytes(bytes) +
                              " for the step; --host-budget SIZE says more");
  if (size_t(trace.peakLaunch) < trace.launches.size()) {
    const PlanTrace::Launch &peak = trace.launches[trace.peakLaunch];
    int64_t alive =
        llvm::count_if(trace.tensors, [&](const PlanTrace::Tensor &t) {
          return onDevice(trace.values[t.value].space) &&
                 t.begin <= trace.peakLaunch && trace.peakLaunch < t.end;
        });
    failure.notes.push_back(
        "the peak of that plan is at " + peak.name +
        (peak.where.empty() ? "" : " (" + peak.where + ")") + ", with " +
        std::to_string(alive) + " tensors alive");
  }
  return failure;
}

void tmc::measureUnsplit(StepForm &form, ModuleOp unsplit,
                         const Target &device) {
  PlanFigures &plan = form.figures;
  for (train::StepOp step : unsplit.getOps<train::StepOp>()) {
    sinkUpdates(step);
    FailureOr<StepProblem> stated = buildProblem(step, device);
    if (failed(stated))
      return;
    planning::Problem &problem = stated->problem;
    plan.unsplitSeconds = secondsOf(planning::baseCost(problem));
    for (planning::Recipe &recipe : problem.recipes)
      llvm::erase_if(recipe.overwrites, [](const auto &o) { return !o.must; });
    absl::StatusOr<planning::Profile> profile =
        planning::simulate(problem, planning::baseSolution(problem));
    if (profile.ok())
      plan.unsplitBytes = profile->peakBytes;
  }
}
