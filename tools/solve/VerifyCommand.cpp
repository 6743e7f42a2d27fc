#include "tools/solve/Arguments.h"
#include "tools/solve/Commands.h"

#include "compiler/planning/laboratory/PlanFile.h"
#include "compiler/support/Escape.h"

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

namespace tmc::planning {

namespace {

/// The verdict as data; nothing is measured of lists that are wrong.
std::string describe(const Problem &problem, const PlanVerdict &verdict) {
  JsonWriter json;
  json.beginObject();
  json.member("schema_version", int64_t(1));
  json.member("valid", !verdict.defect);
  if (verdict.defect)
    json.member("defect", std::string_view(*verdict.defect));
  else
    json.nullMember("defect");
  if (verdict.measured) {
    json.member("makespan", verdict.measured->cost);
    json.key("peaks"); // For each space, including reserved bytes.
    json.beginArray();
    for (size_t s = 0; s < problem.spaces.size(); ++s)
      json.value(verdict.peakOf(problem, SpaceId(s)));
    json.endArray();
  } else {
    json.nullMember("makespan");
    json.nullMember("peaks");
  }
  json.endObject();
  return json.take();
}

/// Adds the moves that the plan says it was offered, and sets all budgets:
/// those of the flags, else the plan's, else the problem's own.
int prepare(const Arguments &args, const PlanFile &plan, Problem &problem) {
  std::optional<int64_t> budget;
  if (args.has("--budget"))
    if (int code = readBudget(args.get("--budget"), problem, budget.emplace()))
      return code;
  if (plan.offered) {
    if (!isOneSpace(problem))
      return fail(kInput, args.second + ": moves are 'offered', but " +
                              args.file + " has its own");
    if (absl::Status status = offerMoves(problem, plan.offered->options());
        !status.ok())
      return fail(kInput, args.file + ": " + std::string(status.message()));
  }
  if (plan.budgets.size() > problem.spaces.size())
    return fail(kInput, args.second + ": the plan states " +
                            std::to_string(plan.budgets.size()) +
                            " budgets, and the problem has " +
                            std::to_string(problem.spaces.size()) + " spaces");
  for (size_t s = 0; s < plan.budgets.size(); ++s)
    if (plan.budgets[s])
      problem.spaces[s].budgetBytes = *plan.budgets[s];
  if (budget)
    problem.spaces[0].budgetBytes = *budget;
  return setOtherBudgets(args, problem);
}

void printVerdict(const Problem &problem, const PlanFile &plan,
                  const PlanVerdict &verdict) {
  std::string text =
      "valid: makespan " + std::to_string(verdict.measured->cost);
  for (size_t s = 0; s < problem.spaces.size(); ++s) {
    const MemorySpace &space = problem.spaces[s];
    text += ", " + space.name + " " +
            std::to_string(verdict.peakOf(problem, SpaceId(s)));
    if (space.budgetBytes >= 0)
      text += " of " + std::to_string(space.budgetBytes);
    text += " bytes";
  }
  for (const StatedArena &arena : plan.arenas)
    text += ", arena of " + problem.spaces[arena.space].name + " with " +
            std::to_string(arena.buffers.size()) + " buffers";
  fprintf(stderr, "%s\n", visible(text).c_str());
}

} // namespace

int solveVerify(int argc, char **argv) {
  Arguments args = parseArguments(argc, argv,
                                  {{"--budget", true},
                                   {"--host-budget", true},
                                   {"--file-budget", true},
                                   {"--json", true}},
                                  "PLAN.json");
  if (!args.error.empty())
    return failUsage(args);
  Problem problem;
  bool isGraph = false;
  if (int code = readProblem(args.file, problem, isGraph))
    return code;
  std::string text;
  if (int code = readFile(args.second, text))
    return code;
  auto wrong = [&](const std::string &what) {
    return fail(kInput, args.second + ": " + what);
  };
  absl::StatusOr<PlanFile> plan = parsePlan(text);
  if (!plan.ok())
    return wrong(std::string(plan.status().message()));
  if (int code = prepare(args, *plan, problem))
    return code;
  absl::StatusOr<Solution> solution = solutionOf(*plan, problem, isGraph);
  if (!solution.ok())
    return wrong(std::string(solution.status().message()));
  const PlanVerdict verdict = judgePlan(*plan, problem, *solution);
  if (std::string path = args.get("--json"); !path.empty())
    if (int code = writeFile(path, describe(problem, verdict)))
      return code;
  if (verdict.isOverBudget)
    return fail(kBudget, args.second + ": " + *verdict.defect);
  if (verdict.defect)
    return wrong(*verdict.defect);
  printVerdict(problem, *plan, verdict);
  return kDone;
}

} // namespace tmc::planning
