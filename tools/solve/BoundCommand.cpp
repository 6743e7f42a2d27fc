#include "tools/solve/Arguments.h"
#include "tools/solve/Commands.h"

#include "compiler/planning/bound/AnyOrderCheck.h"
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
  json.member("lower_bound_scope", "fixed-order");
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

std::string describe(const Problem &problem, const AnyOrderCertificate &proof,
                     int64_t load) {
  JsonWriter json;
  json.beginObject();
  json.member("schema_version", int64_t(1));
  json.member("budget", problem.spaces[0].budgetBytes);
  json.member("lower_bound", proof.provenCost);
  json.member("lower_bound_scope", "any-order");
  json.member("base_load", load);
  json.member("denominator", proof.denominator);
  json.key("prices"); // instruction, price of a byte
  json.beginArray();
  for (const AnyOrderCertificate::Price &price : proof.prices) {
    json.beginArray();
    json.value(int64_t(price.moment));
    json.value(price.price);
    json.endArray();
  }
  json.endArray();
  json.key("chains"); // value, then the instructions that cut its gaps
  json.beginArray();
  for (const AnyOrderCertificate::Chain &chain : proof.chains) {
    json.beginArray();
    json.value(int64_t(chain.value));
    for (InstructionId reader : chain.readers)
      json.value(int64_t(reader));
    json.endArray();
  }
  json.endArray();
  json.key(
      "input_moments"); // instruction, price of a byte; value, input, price
  json.beginArray();
  for (const AnyOrderCertificate::InputMoment &at : proof.inputMoments) {
    json.beginArray();
    json.value(int64_t(at.moment));
    json.value(at.price);
    for (const AnyOrderCertificate::Input &row : at.inputs) {
      json.beginArray();
      json.value(int64_t(row.value));
      json.value(int64_t(row.input));
      json.value(row.price);
      json.endArray();
    }
    json.endArray();
  }
  json.endArray();
  json.endObject();
  return json.take();
}

/// A bound, and the verdict of its checker.
struct Judged {
  int64_t claimed = 0;
  absl::StatusOr<int64_t> proven = 0;
  std::string json;
};

absl::StatusOr<Judged> boundInOrder(const Problem &problem, int64_t effort,
                                    int64_t load) {
  AscentOptions options;
  options.steps = options.steps * effort / 100;
  options.work = options.work * effort / 100;
  const Certificate proof = prove(problem, options);
  return Judged{proof.provenCost, checkBound(problem, proof),
                describe(problem, proof, load)};
}

absl::StatusOr<Judged> boundInAnyOrder(const Problem &problem, int64_t effort,
                                       int64_t load) {
  AnyOrderOptions options;
  options.work = options.work * effort / 100;
  options.inputWork = options.inputWork * effort / 100;
  absl::StatusOr<AnyOrderCertificate> proof = proveAnyOrder(problem, options);
  if (!proof.ok())
    return proof.status();
  return Judged{proof->provenCost, checkAnyOrderBound(problem, *proof),
                describe(problem, *proof, load)};
}

} // namespace

int solveBound(int argc, char **argv) {
  Arguments args = parseArguments(argc, argv,
                                  {{"--budget", true},
                                   {"--effort", true},
                                   {"--json", true},
                                   {"--order", true}});
  constexpr int64_t kMostEffort = 100'000;
  int64_t effort = 100;
  if (args.has("--effort") &&
      (!parseInteger(args.get("--effort"), 0, effort) || effort > kMostEffort))
    args.wrong("--effort wants a percentage, not '" + args.get("--effort") +
               "'");
  const std::string order = args.get("--order", "fixed");
  if (order != "fixed" && order != "free")
    args.wrong("--order wants fixed or free, not '" + order + "'");
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
  const bool isFree = order == "free";
  auto begin = std::chrono::steady_clock::now();
  absl::StatusOr<int64_t> load = checkBound(problem, plainCertificate(problem));
  if (!load.ok())
    return fail(kDefect,
                args.file + ": " + std::string(load.status().message()));
  absl::StatusOr<Judged> bound =
      (isFree ? boundInAnyOrder : boundInOrder)(problem, effort, *load);
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  for (const absl::Status &status :
       {bound.status(), bound.ok() ? bound->proven.status() : bound.status()})
    if (!status.ok())
      return fail(status.code() == absl::StatusCode::kUnimplemented
                      ? kUnsupported
                      : kDefect,
                  args.file + ": " + std::string(status.message()));
  if (bound->claimed != *bound->proven) {
    note("the input '" + args.file + "' reproduces it");
    return fail(kDefect, "the bound is " + std::to_string(bound->claimed) +
                             ", but the checker finds " +
                             std::to_string(*bound->proven));
  }
  if (std::string path = args.get("--json"); !path.empty())
    if (int code = writeFile(path, bound->json))
      return code;
  if (isFree)
    fprintf(stderr, "in any order ");
  fprintf(stderr,
          "no plan is faster than %lld, %.4f%% above the load of compute "
          "alone; checked; %.2f seconds\n",
          (long long)bound->claimed, percent(bound->claimed - *load, *load),
          seconds.count());
  if (int64_t values = isFree ? 0 : fetchableValues(problem))
    fprintf(stderr,
            "%lld values may be fetched: the rows about them of the bound by "
            "cases are void\n",
            (long long)values);
  return kDone;
}

} // namespace tmc::planning
