#include "tools/solve/Arguments.h"
#include "tools/solve/Commands.h"

#include "compiler/planning/bound/BoundCheck.h"
#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/laboratory/PlanFile.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace tmc::planning {

namespace {

/// Writes the tree of cases with its prices (`Branch.h`).
void describe(JsonWriter &json, const BranchCertificate &cases,
              int64_t baseCost) {
  auto pairs = [&](const char *name,
                   const std::vector<std::pair<int32_t, int64_t>> &list) {
    json.key(name);
    json.beginArray();
    for (auto [index, price] : list) {
      json.beginArray();
      json.value(int64_t(index));
      json.value(price);
      json.endArray();
    }
    json.endArray();
  };
  json.beginObject();
  json.member("kind", "cases");
  json.member("scope", "fixed-order");
  json.member("lower_bound_pct", percent(cases.extraCost, baseCost));
  json.member("denominator", cases.denominator);
  json.key("moments");
  json.beginArray();
  for (int32_t k : cases.moments)
    json.value(int64_t(k));
  json.endArray();
  json.key("rows"); // value, moment before its gap, moment number, input
  json.beginArray();
  for (const DependencyRow &row : cases.rows) {
    json.beginArray();
    for (int32_t x : {row.value, row.after, row.moment, row.read})
      json.value(int64_t(x));
    json.endArray();
  }
  json.endArray();
  json.key("nodes"); // Preorder: a split, its kept case, its broken one.
  json.beginArray();
  for (const BranchCertificate::Node &node : cases.nodes) {
    json.beginObject();
    if (node.value != kNone) {
      json.member("value", int64_t(node.value));
      json.member("after", int64_t(node.after));
    } else {
      pairs("lambda", node.lambda);
      pairs("mu", node.mu);
    }
    json.endObject();
  }
  json.endArray();
  json.endObject();
}

std::string describe(const Problem &problem, const Plan &plan,
                     const SolveOptions &options, bool isGraph) {
  JsonWriter json;
  json.beginObject();
  json.member("schema_version", int64_t(1));
  json.member("budget", options.budgetBytes);
  json.member("feasible", plan.feasible);
  if (plan.feasible) {
    json.member("peak", plan.peakBytes[0] + problem.reservedBytes);
    json.member("base_cost", plan.baseCost);
    json.member("cost", plan.cost);
    json.member("overhead_pct",
                percent(plan.cost - plan.baseCost, plan.baseCost));
  } else {
    json.nullMember("peak");
    json.member("base_cost", plan.baseCost);
    json.nullMember("cost");
    json.nullMember("overhead_pct");
  }
  const bool isProven = !plan.certificate.weights.empty();
  json.member("lower_bound_pct",
              isProven ? percent(plan.certificate.provenCost - plan.baseCost,
                                 plan.baseCost)
                       : 0);
  json.member("lower_bound_scope", "fixed-order");
  json.key("lambda"); // moment in the plan's order, price of a byte
  json.beginArray();
  std::vector<int64_t> momentOf(problem.instructions.size(), 0);
  int64_t moment = 0;
  for (const std::vector<InstructionId> &list : plan.orders)
    for (InstructionId i : list)
      momentOf[i] = moment++;
  for (const Certificate::Price &price : plan.certificate.prices) {
    json.beginArray();
    json.value(momentOf[price.moment]);
    json.value(price.price);
    json.endArray();
  }
  json.endArray();
  json.member("lambda_denominator", plan.certificate.denominator);
  json.key("other_bounds");
  json.beginArray();
  if (plan.cases)
    describe(json, *plan.cases, plan.baseCost);
  json.endArray();
  json.member("smallest_found_bytes", plan.smallestFoundBytes);
  json.member("impossible_below_bytes", plan.impossibleBelowBytes);
  json.member("frontier_ratio", plan.impossibleBelowBytes
                                    ? double(plan.smallestFoundBytes) /
                                          double(plan.impossibleBelowBytes)
                                    : 1.0);
  if (plan.feasible)
    writeLists(json, problem, plan.solution, isGraph);
  else
    json.nullMember("sequence");
  json.member("order", options.order == OrderMode::Free ? "free" : "fixed");
  json.key("first_executions");
  json.beginArray();
  for (const std::vector<InstructionId> &order : plan.orders)
    for (InstructionId i : order)
      json.value(int64_t(i));
  json.endArray();
  json.member("recomputed_ops", recomputedExecutions(problem, plan.solution));
  json.member("repeated_instructions", plan.stats.repeatedInstructions);
  json.member("work", plan.stats.work);
  json.member("time_limit_hit", plan.stats.timeLimitHit);
  json.member("seconds", plan.stats.seconds);
  json.endObject();
  return json.take();
}

std::string plannerOf(const Arguments &args) {
  return args.get("--planner", "tmc");
}
std::string orderOf(const Arguments &args) {
  return args.get("--order", "fixed");
}

/// Reads the options from the flags; reports errors in `args`.
SolveOptions readOptions(Arguments &args) {
  SolveOptions options;
  options.wantFrontier = args.has("--frontier");
  options.effort = Effort::thorough();
  int64_t seed = 1, percent = 100;
  if (args.error.empty() && !args.has("--budget"))
    args.wrong("no --budget given");
  if (args.has("--seed") && !parseInteger(args.get("--seed"), 0, seed))
    args.wrong("--seed wants a whole number, not '" + args.get("--seed") + "'");
  if (args.has("--effort") && !parseInteger(args.get("--effort"), 0, percent))
    args.wrong("--effort wants a percentage, not '" + args.get("--effort") +
               "'");
  options.effort.percent = double(percent);
  addWithout(args, options);
  if (std::string limit = args.get("--time-limit"); !limit.empty()) {
    char *end = nullptr;
    options.timeLimitSeconds = strtod(limit.c_str(), &end);
    if (*end || !(options.timeLimitSeconds > 0))
      args.wrong("--time-limit wants seconds, not '" + limit + "'");
  }
  std::string order = orderOf(args);
  if (order != "fixed" && order != "free")
    args.wrong("--order is fixed or free, not '" + order + "'");
  if (!isPlanner(plannerOf(args)))
    args.wrong("there is no planner '" + plannerOf(args) + "'; there are " +
               plannerNames());
  options.seed = uint64_t(seed);
  options.order = order == "free" ? OrderMode::Free : OrderMode::Fixed;
  return options;
}

} // namespace

int solveRemat(int argc, char **argv) {
  Arguments args = parseArguments(argc, argv,
                                  {{"--budget", true},
                                   {"--order", true},
                                   {"--seed", true},
                                   {"--effort", true},
                                   {"--time-limit", true},
                                   {"--planner", true},
                                   {"--json", true},
                                   {"--without", true},
                                   {"--frontier", false}});
  SolveOptions options = readOptions(args);
  if (!args.error.empty())
    return failUsage(args);
  std::string order = orderOf(args);

  Problem problem;
  bool isGraph = false;
  if (int code = readProblem(args.file, problem, isGraph))
    return code;
  if (int code = readBudget(args.get("--budget"), problem, options.budgetBytes))
    return code;

  if (absl::Status status = plansOneSpace(problem); !status.ok())
    return fail(kUnsupported, std::string(status.message()));
  absl::StatusOr<Plan> plan =
      planBy(plannerOf(args), problem, options, args.file);
  if (!plan.ok()) {
    int code = plan.status().code() == absl::StatusCode::kInternal ? kDefect
               : plan.status().code() == absl::StatusCode::kUnavailable ? kWorld
               : plan.status().code() == absl::StatusCode::kUnimplemented
                   ? kUnsupported
                   : kInput;
    if (code == kDefect)
      note("the input '" + args.file + "' reproduces it");
    return fail(code, std::string(plan.status().message()));
  }
  if (std::optional<std::string> defect =
          checkCertificate(problem, plan->certificate);
      defect && order == "fixed") {
    note("the input '" + args.file + "' reproduces it");
    return fail(kDefect, "the certificate is wrong: " + *defect);
  }
  if (plan->cases && order == "fixed")
    if (std::optional<std::string> defect =
            checkBranching(problem, *plan->cases)) {
      note("the input '" + args.file + "' reproduces it");
      return fail(kDefect, "the proof by cases is wrong: " + *defect);
    }
  std::string json = args.get("--json");
  if (!json.empty())
    if (int code = writeFile(json, describe(problem, *plan, options, isGraph)))
      return code;
  if (!plan->feasible) {
    fail(kBudget,
         "needs " + std::to_string(plan->smallestFoundBytes) + " bytes, " +
             std::to_string(plan->smallestFoundBytes - options.budgetBytes) +
             " over the budget of " + std::to_string(options.budgetBytes));
    note("the smallest budget with a known plan is " +
         std::to_string(plan->smallestFoundBytes) + " bytes; below " +
         std::to_string(plan->impossibleBelowBytes) + " there is none");
    return kBudget;
  }
  if (plan->stats.timeLimitHit)
    note("the time limit ended the search: another run may find another plan");
  const int64_t peak = plan->peakBytes[0] + problem.reservedBytes;
  if (json != "-")
    fprintf(stderr,
            "peak %lld of %lld bytes, overhead %.4f%%, at least %.4f%% (order "
            "%s), %lld recomputed, frontier ratio %.3f, %.2f s\n",
            (long long)peak, (long long)options.budgetBytes,
            plan->overheadPct(),
            percent(plan->provenExtraCost(), plan->baseCost), order.c_str(),
            (long long)recomputedExecutions(problem, plan->solution),
            plan->impossibleBelowBytes ? double(plan->smallestFoundBytes) /
                                             double(plan->impossibleBelowBytes)
                                       : 1.0,
            plan->stats.seconds);
  return kDone;
}

} // namespace tmc::planning
