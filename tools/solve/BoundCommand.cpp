#include "tools/solve/Arguments.h"
#include "tools/solve/Commands.h"

#include "compiler/planning/bound/BoundCheck.h"
#include "compiler/planning/laboratory/Text.h"

#include <chrono>
#include <cstdio>
#include <string>

namespace tmc::planning {

namespace {

std::string describe(const Problem &problem, const Certificate &proof,
                     int64_t load) {
  JsonWriter json;
  json.beginObject();
  json.member("schema_version", int64_t(1));
  json.member("budget", problem.spaces[0].budgetBytes);
  json.member("lower_bound", proof.provenCost);
  json.member("scope", "fixed-order");
  json.member("base_load", load);
  json.member("denominator", proof.denominator);
  json.key("borders"); // Instructions that begin a stretch in a segment.
  json.beginArray();
  for (InstructionId border : proof.borders)
    json.value(int64_t(border));
  json.endArray();
  json.key("weights"); // For each stretch, of each engine.
  json.beginArray();
  for (const std::vector<int64_t> &row : proof.weights) {
    json.beginArray();
    for (int64_t weight : row)
      json.value(weight);
    json.endArray();
  }
  json.endArray();
  json.key("prices"); // instruction, space, price of a byte
  json.beginArray();
  for (const Certificate::Price &price : proof.prices) {
    json.beginArray();
    json.value(int64_t(price.moment));
    json.value(int64_t(price.space));
    json.value(price.price);
    json.endArray();
  }
  json.endArray();
  json.member("void_cases_values", fetchableValues(problem));
  json.endObject();
  return json.take();
}

} // namespace

int solveBound(int argc, char **argv) {
  Arguments args = parseArguments(
      argc, argv, {{"--budget", true}, {"--effort", true}, {"--json", true}});
  constexpr int64_t kMostEffort = 100'000;
  int64_t effort = 100;
  if (args.has("--effort") &&
      (!parseInteger(args.get("--effort"), 0, effort) || effort > kMostEffort))
    args.wrong("--effort wants a percentage, not '" + args.get("--effort") +
               "'");
  if (!args.error.empty())
    return failUsage(args);
  Problem problem;
  bool isGraph = false;
  if (int code = readProblem(args.file, problem, isGraph))
    return code;
  if (args.has("--budget"))
    if (int code = readBudget(args.get("--budget"), problem,
                              problem.spaces[0].budgetBytes))
      return code;
  auto begin = std::chrono::steady_clock::now();
  AscentOptions options;
  options.steps = options.steps * effort / 100;
  options.work = options.work * effort / 100;
  const Certificate proof = prove(problem, options);
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  absl::StatusOr<int64_t> judged = checkBound(problem, proof);
  absl::StatusOr<int64_t> load = checkBound(problem, plainCertificate(problem));
  for (const absl::Status &status : {judged.status(), load.status()})
    if (!status.ok())
      return fail(status.code() == absl::StatusCode::kUnimplemented
                      ? kUnsupported
                      : kDefect,
                  args.file + ": " + std::string(status.message()));
  if (proof.provenCost != *judged) {
    note("the input '" + args.file + "' reproduces it");
    return fail(kDefect, "the bound is " + std::to_string(proof.provenCost) +
                             ", but the checker finds " +
                             std::to_string(*judged));
  }
  if (std::string path = args.get("--json"); !path.empty())
    if (int code = writeFile(path, describe(problem, proof, *load)))
      return code;
  fprintf(stderr,
          "no plan is faster than %lld, %.4f%% above the load of compute "
          "alone; checked; %.2f seconds\n",
          (long long)proof.provenCost, percent(proof.provenCost - *load, *load),
          seconds.count());
  if (int64_t values = fetchableValues(problem))
    fprintf(stderr,
            "%lld values may be fetched: the rows about them of the bound by "
            "cases are void\n",
            (long long)values);
  return kDone;
}

} // namespace tmc::planning
