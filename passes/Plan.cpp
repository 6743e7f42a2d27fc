// Plan.cpp - -tmc-plan: order the step and recompute until it fits its budget.

#include "passes/Plan.h"
#include "passes/Offload.h"
#include "passes/OnTarget.h"
#include "passes/PlanRemarks.h"

#include "compiler/analysis/PlanRecord.h"
#include "compiler/analysis/StepUpdates.h"
#include "compiler/analysis/StepWork.h"
#include "compiler/analysis/Storage.h"
#include "compiler/planning/driver/GatherUpdates.h"
#include "compiler/planning/driver/PlanCache.h"
#include "dialects/interfaces/Fault.h"
#include "dialects/train/Train.h"
#include "runtime/kernels/Optimizer.h"

#include "llvm/Support/Format.h"

#include <map>

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

/// The number of each recipe's kind: updates of one kind can share a
/// launch on cuda. They have the same kernel class, types, scalar operands and
/// shared parameters. kNone: the recipe isn't such an update.
std::vector<int32_t> updateKinds(const StepProblem &stated) {
  std::map<std::string, int32_t> kinds;
  std::vector<int32_t> kindOf(stated.kernelOf.size(), planning::kNone);
  for (auto [recipe, kernel] : llvm::enumerate(stated.kernelOf)) {
    if (!kernel.op || !kernel.op->hasTrait<train::UpdateRule>())
      continue;
    SmallVector<MemRefType> layouts;
    std::string kind;
    llvm::raw_string_ostream os(kind);
    for (Value operand : kernel.op->getOperands()) {
      layouts.push_back(contiguous(operand.getType()));
      if (layouts.back().getRank() == 0)
        os << storageRoot(operand).getAsOpaquePointer() << " ";
    }
    const KernelCall call =
        cast<KernelOpInterface>(kernel.op).getKernel(layouts, Backend::Cuda);
    if (!call.isJoinable)
      continue;
    os << call.symbol;
    for (auto &[name, value] : call.params)
      if (!isOwnOfUpdate(name))
        os << " " << value;
    kindOf[recipe] =
        kinds.try_emplace(kind, int32_t(kinds.size())).first->second;
  }
  return kindOf;
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
    PlanRecord record;
    record.reservedBytes = problem.reservedBytes;
    record.unconstrainedCostPs = planning::baseCost(problem);
    if (device->backend == Backend::Cuda)
      record.unfoldedBiases = unfoldedBiases(getOperation());
    if (absl::StatusOr<planning::Profile> unconstrained =
            planning::simulate(problem, planning::baseSolution(problem));
        unconstrained.ok())
      record.unconstrainedBytes = unconstrained->peakBytes;
    if (!spec->isNone())
      if (absl::Status status = offerMoves(*stated, *spec, *device, budgets());
          !status.ok())
        return defect(status.ToString());

    std::vector<int64_t> alignments;
    for (const planning::MemorySpace &space : problem.spaces)
      alignments.push_back(alignmentOf(space.kind, device->arenaAlignment));
    absl::StatusOr<planning::Plan> plan = hooks.solve
                                              ? hooks.solve(problem, alignments)
                                              : solve(problem, alignments);
    if (!plan.ok()) {
      if (!absl::IsFailedPrecondition(plan.status()) &&
          !absl::IsUnavailable(plan.status()))
        return defect(plan.status().ToString());
      // An external planner failed.
      emitFault(getOperation().getLoc(), FailureKind::Input)
          << std::string(plan.status().message());
      return signalPassFailure();
    }
    if (!plan->feasible)
      return reportOverBudget(*stated, *plan);
    if (device->backend == Backend::Cuda)
      planning::gatherUpdates(problem, *plan, updateKinds(*stated),
                              alignments[0], budget);
    if (std::optional<std::string> wrong =
            planning::verifyPlan(problem, *plan, budget))
      return defect(*wrong);
    if (absl::Status status = writeDown(problem, *plan, alignments[0], record);
        !status.ok())
      return defect(status.ToString());
    if (hooks.observe)
      hooks.observe(*stated, *plan);
    emitPlanRemarks(getOperation(), *stated, problem, *plan);
    if (failed(applySolution(getOperation(), *stated, plan->solution)))
      signalPassFailure();
  }

private:
  PassTarget given;
  PlanHooks hooks;

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

  /// Our own search. A plan with moves has arenas; without a plan, the smallest
  /// budget that works is sought.
  absl::StatusOr<planning::Plan> solve(const planning::Problem &problem,
                                       const std::vector<int64_t> &alignments) {
    planning::SolveOptions options;
    options.budgetBytes = budget;
    options.order = planning::OrderMode::Free;
    options.wantBound = options.wantFrontier = !quick;
    options.effort.percent = effort;
    if (planning::isOneSpace(problem))
      return planning::solve(problem, options);
    planning::PlanCache cache(problem, alignments, options);
    absl::StatusOr<const planning::Plan *> found = cache.fit(budget);
    if (!found.ok())
      return found.status();
    planning::Plan plan;
    if (*found)
      plan = **found;
    else if (absl::StatusOr<const planning::Plan *> least = cache.smallest();
             least.ok() && *least)
      plan.smallestFoundBytes = (*least)->arenaBytes() + problem.reservedBytes;
    plan.impossibleBelowBytes = cache.impossibleBelowBytes();
    return plan;
  }

  /// Writes the plan's figures for reports and tests.
  absl::Status writeDown(const planning::Problem &problem,
                         const planning::Plan &plan, int64_t alignment,
                         PlanRecord record) {
    absl::StatusOr<planning::Profile> profile =
        planning::simulate(problem, plan.solution);
    if (!profile.ok())
      return profile.status();
    // A loop's body is laid out once, for all of its trips.
    record.livePeakBytes.device() = planning::peakBytes(
        planning::arenaOf(problem, plan.solution, alignment));
    for (size_t s = 1; s < plan.arenas.size(); ++s)
      record.livePeakBytes[problem.spaces[s].kind] =
          plan.arenas[s].livePeakBytes;
    record.peakByClass =
        profile->peakBytes == record.livePeakBytes.device()
            ? profile->peakByClass
            : planning::layoutPeakByClass(problem, plan.solution);
    record.costPs = plan.cost;
    record.recomputedOps =
        planning::recomputedExecutions(problem, plan.solution);
    if (!quick) {
      record.smallestFoundBytes = plan.smallestFoundBytes;
      record.impossibleBelowBytes = plan.impossibleBelowBytes;
      record.loadPs = planning::loadOf(problem);
      record.boundPs = plan.provenCost();
    }
    if (!planning::isOneSpace(problem))
      countMoves(problem, plan.solution, *profile, record);
    record.attachTo(getOperation());
    return absl::OkStatus();
  }

  /// Counts the moved bytes and the work of the engines.
  static void countMoves(const planning::Problem &problem,
                         const planning::Solution &solution,
                         const planning::Profile &profile, PlanRecord &record) {
    for (auto [engine, bytes] : record.movedBytes)
      bytes = engine.copies && problem.spaces.size() > 1 ? 0 : -1;
    for (size_t s = 0; s < solution.segments.size(); ++s)
      for (const planning::Execution &e : solution.segments[s]) {
        const planning::Recipe &r = problem.recipes[e.recipe];
        if (e.phase == planning::Phase::Done)
          continue;
        const int64_t trips = problem.segments[s].trips;
        if (problem.isMove(r) || problem.isOnNetwork(r))
          for (planning::ValueId w : r.writes) {
            int64_t &moved = record.movedBytes[problem.engines[r.engine].kind];
            moved =
                std::max<int64_t>(moved, 0) + problem.values[w].bytes * trips;
          }
        if (r.busShare > 0)
          record.hostMemoryPs = std::max<int64_t>(record.hostMemoryPs, 0) +
                                int64_t(__int128(r.cost) * r.busShare * trips /
                                        planning::kWholeBus);
      }
    for (size_t e = 0; e < problem.engines.size(); ++e) {
      int64_t &busy = record.busyPs[problem.engines[e].kind];
      busy = std::max<int64_t>(busy, 0) + profile.engineBusy[e];
    }
  }

  /// "needs 12.50 MiB, 2.50 MiB over the budget of 10.00 MiB"; without a plan
  /// "no plan was found within ...".
  void reportOverBudget(const StepProblem &stated, const planning::Plan &plan) {
    const planning::Problem &problem = stated.problem;
    if (hooks.observe && !plan.solution.segments.empty())
      hooks.observe(stated, plan);
    PlanRecord record;
    record.reservedBytes = problem.reservedBytes;
    record.smallestFoundBytes = plan.smallestFoundBytes;
    record.impossibleBelowBytes = plan.impossibleBelowBytes;
    record.attachTo(getOperation());
    InFlightDiagnostic diag =
        emitFault(getOperation().getLoc(), FailureKind::OverBudget);
    if (plan.peakBytes.empty()) {
      diag << "no plan was found within the budget of " << inMiB(budget);
      for (auto [space, bytes] : budgets())
        if (!onDevice(space.kind) && space.hasAddresses && bytes >= 0)
          diag << " and " << inMiB(bytes) << " of " << space.name << " memory";
    } else {
      const int64_t needs = plan.peakBytes[0] + problem.reservedBytes;
      diag << "needs " << inMiB(needs) << ", " << inMiB(needs - budget)
           << " over the budget of " << inMiB(budget);
      notePeak(stated, plan, diag);
    }
    diag.attachNote() << "the smallest budget for which a plan is known is "
                      << textOf(plan.smallestFoundBytes)
                      << "; none can exist below "
                      << textOf(plan.impossibleBelowBytes);
    signalPassFailure();
  }

  static std::string textOf(int64_t bytes) {
    return bytes < 0 ? "unknown"
                     : inMiB(bytes) + " (" + std::to_string(bytes) + " bytes)";
  }

  void notePeak(const StepProblem &stated, const planning::Plan &plan,
                InFlightDiagnostic &diag) {
    absl::StatusOr<planning::Profile> profile =
        planning::simulate(stated.problem, plan.solution);
    if (!profile.ok())
      return;
    planning::Profile::Moment at = profile->moments[profile->peakMoment];
    int32_t recipe = plan.solution.segments[at.segment][at.index].recipe;
    Operation *op = stated.kernelOf[recipe].op;
    diag.attachNote(op ? op->getLoc() : getOperation().getLoc())
        << "the peak is at " << stated.problem.recipes[recipe].name;
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
