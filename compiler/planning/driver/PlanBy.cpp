#include "compiler/planning/driver/PlanBy.h"

#include "compiler/planning/model/Verify.h"
#include "compiler/planning/peers/External.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>

using namespace tmc::planning;

static constexpr std::string_view kOurs = "tmc", kProgram = "exec:";

std::vector<std::pair<std::string, std::string>>
tmc::planning::plannerSummaries() {
  std::vector<std::pair<std::string, std::string>> all = {
      {std::string(kOurs),
       "annealing over recomputations, with a certificate"}};
  for (const Planner &p : planners())
    all.push_back({p.name, p.summary});
  return all;
}

bool tmc::planning::isPlanner(std::string_view name) {
  return name == kOurs || name.starts_with(kProgram) ||
         std::ranges::any_of(planners(),
                             [&](const Planner &p) { return p.name == name; });
}

std::string tmc::planning::plannerNames() {
  std::string names;
  for (const auto &[name, summary] : plannerSummaries())
    names += name + ", ";
  return names + std::string(kProgram) + "COMMAND";
}

absl::StatusOr<Plan> tmc::planning::planBy(std::string_view name,
                                           const Problem &problem,
                                           const SolveOptions &options,
                                           const std::string &problemFile) {
  if (name.empty() || name == kOurs)
    return solve(problem, options);
  auto start = std::chrono::steady_clock::now();
  if (absl::Status status = check(problem); !status.ok())
    return status;
  if (absl::Status status = plansOneSpace(problem); !status.ok())
    return status;
  PlanRequest request{options.budgetBytes, int64_t(options.effort.percent),
                      options.timeLimitSeconds};
  absl::StatusOr<Solution> answer = absl::NotFoundError(
      absl::StrCat("there is no planner '", std::string(name), "'"));
  if (name.starts_with(kProgram))
    answer = planByProgram(std::string(name.substr(kProgram.size())), problem,
                           request, problemFile);
  for (const Planner &p : planners())
    if (p.name == name)
      answer = p.plan(problem, request);
  if (!answer.ok())
    return answer.status();
  Plan plan;
  plan.solution = std::move(*answer);
  takeOverwrites(problem, plan.solution);
  absl::StatusOr<Claim> claim = measure(problem, plan.solution);
  if (!claim.ok())
    return absl::FailedPreconditionError(
        absl::StrCat("the answer of planner '", std::string(name),
                     "' is wrong: ", claim.status().message()));
  plan.baseCost = baseCost(problem);
  plan.peakBytes = claim->peakBytes;
  plan.cost = claim->cost;
  plan.feasible = options.budgetBytes < 0 ||
                  plan.peakBytes <= options.budgetBytes - problem.reservedBytes;
  for (size_t s = 0; s < problem.segments.size(); ++s) {
    plan.orders.emplace_back();
    for (const Execution &e : plan.solution.segments[s]) {
      if (e.instruction != kNone)
        plan.orders[s].push_back(e.instruction);
      plan.stats.recomputedExecutions += e.instruction == kNone;
    }
  }
  Relaxation relaxation = relax(problem, plan.orders);
  plan.impossibleBelowBytes = impossibleBelow(problem, relaxation);
  plan.smallestFoundBytes = plan.peakBytes + problem.reservedBytes;
  plan.certificate.budgetBytes = options.budgetBytes;
  plan.stats.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return plan;
}
