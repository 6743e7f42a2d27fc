#include "compiler/planning/driver/PlanBy.h"

#include "compiler/planning/model/Verify.h"
#include "compiler/planning/moves/NetworkProjection.h"
#include "compiler/planning/moves/Overlap.h"
#include "compiler/planning/peers/External.h"
#include "compiler/planning/peers/OffloadRules.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <limits>

using namespace tmc::planning;

static constexpr std::string_view kOurs = "tmc", kAlone = "recompute",
                                  kProgram = "exec:";

std::vector<std::pair<std::string, std::string>>
tmc::planning::plannerSummaries() {
  std::vector<std::pair<std::string, std::string>> all = {
      {std::string(kOurs),
       "annealing over recomputations and moves, with a certificate"},
      {std::string(kAlone), "the same without moves"}};
  for (const OffloadRule &rule : kOffloadRules)
    all.push_back({rule.name, rule.summary});
  for (const Planner &p : planners())
    all.push_back({p.name, p.summary});
  return all;
}

bool tmc::planning::isPlanner(std::string_view name) {
  return name.starts_with(kProgram) ||
         std::ranges::any_of(plannerSummaries(),
                             [&](const auto &p) { return p.first == name; });
}

std::string tmc::planning::plannerNames() {
  std::string names;
  for (const auto &[name, summary] : plannerSummaries())
    names += name + ", ";
  return names + std::string(kProgram) + "COMMAND";
}

namespace {

/// The answer of a planner that gives a plain list, not measured yet.
absl::StatusOr<Solution> answerOf(std::string_view name, const Problem &problem,
                                  const PlanRequest &request,
                                  const std::string &problemFile) {
  absl::StatusOr<Solution> answer = absl::NotFoundError(
      absl::StrCat("there is no planner '", std::string(name), "'"));
  if (name.starts_with(kProgram))
    answer = planByProgram(std::string(name.substr(kProgram.size())), problem,
                           request, problemFile);
  for (const Planner &p : planners())
    if (p.name == name)
      answer = p.plan(problem, request);
  if (answer.ok())
    takeOverwrites(problem, *answer);
  return answer;
}

absl::Status isWrong(std::string_view name, const absl::Status &why) {
  return absl::FailedPreconditionError(
      absl::StrCat("the answer of planner '", std::string(name),
                   "' is wrong: ", why.message()));
}

/// The answer to the problem as the device sees it, as one to the whole.
absl::StatusOr<Solution> answerOnDevice(std::string_view name,
                                        const Problem &problem,
                                        const PlanRequest &request) {
  const SpaceChoice choice = plainChoice(problem);
  absl::StatusOr<Projection> seen =
      project(problem, choice, std::numeric_limits<double>::infinity());
  if (!seen.ok())
    return seen.status();
  absl::StatusOr<Solution> answer = answerOf(name, seen->problem, request, {});
  if (!answer.ok())
    return answer;
  if (absl::Status status = measure(seen->problem, *answer).status();
      !status.ok())
    return isWrong(name, status);
  absl::StatusOr<MovedPlan> whole =
      placeMoves(problem, choice, *seen, *answer, /*liveBytes=*/-1);
  if (!whole.ok())
    return whole.status();
  return std::move(whole->solution);
}

absl::StatusOr<Solution> solutionBy(std::string_view name,
                                    const Problem &problem,
                                    const PlanRequest &request,
                                    const std::string &problemFile);

/// The answer with all contents at home whole, the network's work beside it.
absl::StatusOr<Solution> answerWithoutNetwork(std::string_view name,
                                              const Problem &problem,
                                              const PlanRequest &request,
                                              const std::string &problemFile) {
  absl::StatusOr<NetworkProjection> seen = projectNetwork(
      problem, std::vector<char>(problem.values.size(), 0), /*price=*/1);
  if (!seen.ok())
    return seen.status();
  absl::StatusOr<Solution> answer =
      solutionBy(name, seen->problem, request, problemFile);
  if (!answer.ok())
    return answer;
  if (absl::Status status = measure(seen->problem, *answer).status();
      !status.ok())
    return isWrong(name, status);
  absl::StatusOr<MovedPlan> whole = overlapNetwork(
      problem, restoreNetwork(problem, *seen, *answer), problem.liveLimitOf(0));
  if (!whole.ok())
    return whole.status();
  return std::move(whole->solution);
}

absl::StatusOr<Solution> solutionBy(std::string_view name,
                                    const Problem &problem,
                                    const PlanRequest &request,
                                    const std::string &problemFile) {
  if (isOneSpace(problem) || name.starts_with(kProgram))
    return answerOf(name, problem, request, problemFile);
  for (const Planner &p : planners())
    if (p.name == name && p.takesMoves)
      return answerOf(name, problem, request, problemFile);
  if (hasNetwork(problem))
    return answerWithoutNetwork(name, problem, request, problemFile);
  for (const OffloadRule &rule : kOffloadRules)
    if (rule.name == name) {
      absl::StatusOr<MovedPlan> moved =
          rule.plan(problem, problem.liveLimitOf(0));
      if (!moved.ok())
        return moved.status();
      return std::move(moved->solution);
    }
  return answerOnDevice(name, problem, request);
}

/// Bounds for a plan of one space, in its order.
void boundOnDevice(const Problem &problem, const SolveOptions &options,
                   Plan &plan) {
  plan.impossibleBelowBytes =
      impossibleBelowInOrder(GapModel(problem, plan.orders));
  plan.smallestFoundBytes = plan.peakBytes[0] + problem.reservedBytes;
  plan.certificate.budgetBytes = options.budgetBytes;
}

/// Bounds for a plan with moves or networks.
void boundMoves(const Problem &problem, Plan &plan) {
  plan.impossibleBelowBytes = impossibleBelow(problem);
  plan.certificate = prove(provenProblem(problem, plan));
}

} // namespace

absl::StatusOr<Plan> tmc::planning::planBy(std::string_view name,
                                           const Problem &problem,
                                           const SolveOptions &options,
                                           const std::string &problemFile) {
  if (name.empty() || name == kOurs)
    return solve(problem, options);
  if (name == kAlone) {
    SolveOptions alone = options;
    for (Strategy row :
         {Strategy::Rules, Strategy::Modes, Strategy::LoopChoices})
      alone.without.add(row);
    return solve(problem, alone);
  }
  if (hasLag(problem))
    return absl::UnimplementedError("no plans of values that lag (R19)");
  auto start = std::chrono::steady_clock::now();
  if (absl::Status status = check(problem); !status.ok())
    return status;
  Problem within = problem;
  within.spaces[0].budgetBytes = options.budgetBytes;
  absl::StatusOr<Solution> answer =
      solutionBy(name, within,
                 {options.budgetBytes, int64_t(options.effort.percent),
                  options.timeLimitSeconds},
                 problemFile);
  if (!answer.ok())
    return answer.status();
  Plan plan;
  plan.solution = std::move(*answer);
  absl::StatusOr<Claim> claim = measure(problem, plan.solution);
  if (!claim.ok())
    return isWrong(name, claim.status());
  plan.baseCost = baseCost(problem);
  plan.peakBytes = {claim->peakBytes};
  plan.peakBytes.insert(plan.peakBytes.end(), claim->otherPeakBytes.begin(),
                        claim->otherPeakBytes.end());
  plan.cost = claim->cost;
  plan.feasible = fitsBudgets(within, plan.peakBytes);
  plan.orders = firstExecutions(plan.solution);
  if (isOneSpace(problem))
    boundOnDevice(problem, options, plan);
  else
    boundMoves(within, plan);
  plan.stats.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return plan;
}
