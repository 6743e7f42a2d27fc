// PlanMoves.cpp - plans whose values may leave the device.

#include "passes/Offload.h"
#include "passes/Plan.h"

#include "compiler/planning/model/Verify.h"

using namespace tmc;
using namespace tmc::planning;

namespace {

/// Counts the moved bytes and the recomputations of a plan.
void countMoves(const Problem &problem, const Solution &solution,
                PlanRecord &record) {
  record.recomputedOps = 0;
  for (auto [engine, bytes] : record.movedBytes)
    bytes = engine.copies ? 0 : -1;
  for (size_t s = 0; s < solution.segments.size(); ++s)
    for (const Execution &e : solution.segments[s]) {
      if (e.phase == Phase::Done)
        continue;
      const Recipe &r = problem.recipes[e.recipe];
      if (!problem.isMove(r)) {
        record.recomputedOps += e.instruction == kNone;
        continue;
      }
      record.movedBytes[problem.engines[r.engine].kind] +=
          problem.values[r.reads[0]].bytes * problem.segments[s].trips;
    }
}

/// Verifies a plan within its budgets.
absl::Status verifyFitted(const Problem &problem, const SpacePlan &plan) {
  Claim claim;
  claim.peakBytes = plan.peakBytes[0];
  claim.cost = plan.makespan;
  claim.budgetBytes = problem.spaces[0].budgetBytes;
  claim.otherPeakBytes.assign(plan.peakBytes.begin() + 1, plan.peakBytes.end());
  if (std::optional<std::string> wrong =
          verifySolution(problem, plan.solution, claim))
    return absl::InternalError(*wrong);
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<MovedStep> tmc::planMoves(StepProblem &stated,
                                         const OffloadSpec &spec,
                                         const PerSpace<int64_t> &budgets,
                                         const Target &target,
                                         const PlanHooks &hooks) {
  MovedStep moved;
  PlanRecord &record = moved.record;
  record.reservedBytes = stated.problem.reservedBytes;
  record.unconstrainedCostPs = baseCost(stated.problem);
  if (absl::StatusOr<Profile> unconstrained =
          simulate(stated.problem, baseSolution(stated.problem));
      unconstrained.ok())
    record.unconstrainedBytes = unconstrained->peakBytes;

  if (absl::Status status = offerMoves(stated, spec, target, budgets);
      !status.ok())
    return status;
  const Problem &problem = stated.problem;
  SpaceFitOptions how;
  for (SpaceId s = 0; s < SpaceId(problem.spaces.size()); ++s)
    how.alignments.push_back(
        alignmentOf(problem.spaces[s].kind, target.arenaAlignment));
  absl::StatusOr<FittedSpaces> fitted =
      hooks.fit ? hooks.fit(problem, how) : fitSpaces(problem, how);
  if (!fitted.ok())
    return fitted.status();
  record.smallestFoundBytes = fitted->smallestFoundBytes;
  record.impossibleBelowBytes = fitted->impossibleBelowBytes;
  moved.fitted = std::move(*fitted);
  const SpacePlan &plan = moved.fitted.plan;
  if (!plan.feasible)
    return moved;
  if (absl::Status status = verifyFitted(problem, plan); !status.ok())
    return status;
  absl::StatusOr<Profile> profile = simulate(problem, plan.solution);
  if (!profile.ok())
    return profile.status();
  const std::vector<int64_t> &peaks = moved.fitted.layoutPeakBytes;
  for (size_t s = 0; s < peaks.size(); ++s)
    record.livePeakBytes[problem.spaces[s].kind] = peaks[s];
  record.costPs = plan.makespan;
  record.boundPs = plan.provenMakespan;
  record.peakByClass = profile->peakBytes == peaks[0]
                           ? profile->peakByClass
                           : layoutPeakByClass(problem, plan.solution);
  countMoves(problem, plan.solution, record);
  for (size_t e = 0; e < problem.engines.size(); ++e) {
    int64_t &busy = record.busyPs[problem.engines[e].kind];
    busy = std::max<int64_t>(busy, 0) + profile->engineBusy[e];
  }

  moved.plan.solution = plan.solution;
  moved.plan.spaceProof = plan.proof;
  moved.plan.feasible = true;
  moved.plan.peakBytes = plan.peakBytes[0];
  moved.plan.cost = plan.makespan;
  moved.plan.baseCost = record.unconstrainedCostPs;
  moved.plan.smallestFoundBytes = record.smallestFoundBytes;
  moved.plan.impossibleBelowBytes = record.impossibleBelowBytes;
  return moved;
}
