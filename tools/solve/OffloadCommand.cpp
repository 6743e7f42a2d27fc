#include "tools/solve/Arguments.h"
#include "tools/solve/Commands.h"

#include "compiler/planning/bound/BoundCheck.h"
#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/driver/PlanCache.h"
#include "compiler/planning/laboratory/Laboratory.h"
#include "compiler/planning/laboratory/PlanFile.h"
#include "compiler/support/Escape.h"

#include <array>
#include <cstdio>
#include <optional>
#include <string>

namespace tmc::planning {

namespace {

constexpr double kMiB = 1 << 20, kMilli = 1e9; // Of bytes, of picoseconds.

/// Counts of the moves and recomputations of a plan.
struct Counts {
  PerEngine<int64_t> moved;      // Bytes.
  int64_t onHost = 0, again = 0; // Instructions; kernels run again.

  Counts(const Problem &problem, const Solution &solution) {
    for (const std::vector<Execution> &list : solution.segments)
      for (const Execution &e : list) {
        const Recipe &r = problem.recipes[e.recipe];
        if (e.phase == Phase::Done)
          continue;
        if (problem.isMove(r) || problem.isOnNetwork(r))
          for (ValueId w : r.writes)
            moved[problem.engines[r.engine].kind] += problem.values[w].bytes;
        else if (problem.isBeside(r))
          ++onHost;
        else if (e.instruction == kNone)
          ++again;
      }
  }
};

std::string describe(const Problem &problem, const Plan &plan, int64_t base,
                     int64_t bound,
                     const std::optional<OfferedMoves> &offered) {
  JsonWriter json;
  json.beginObject();
  json.member("schema_version", int64_t(1));
  json.member("feasible", plan.feasible);
  json.key("budgets"); // For each space; null: no limit.
  json.beginArray();
  for (const MemorySpace &space : problem.spaces)
    if (space.budgetBytes >= 0)
      json.value(space.budgetBytes);
    else
      json.null();
  json.endArray();
  if (offered)
    writeOffered(json, *offered);
  else
    json.nullMember("offered");
  json.member("base_makespan", base);
  json.member("lower_bound", bound);
  json.member("lower_bound_scope", "fixed-order");
  json.member("void_cases_values", fetchableValues(problem));
  json.member("optimal", plan.stats.exact); // False: that isn't proved.
  json.member("lists_refused", plan.stats.refused);
  json.member("seconds", plan.stats.seconds);
  if (plan.feasible) {
    json.member("makespan", plan.cost);
    json.key("peaks"); // For each space, including reserved bytes.
    json.beginArray();
    for (size_t s = 0; s < plan.peakBytes.size(); ++s)
      json.value(plan.peakBytes[s] + problem.reservedOf(SpaceId(s)));
    json.endArray();
    writeLists(json, problem, plan.solution, /*isGraph=*/false);
  }
  json.endObject();
  return json.take();
}

int64_t bandwidth(Arguments &args, const char *flag, int64_t otherwise) {
  int64_t number = 0;
  if (!args.has(flag))
    return otherwise;
  if (!parseInteger(args.get(flag), 1, number) ||
      number > OfferedMoves::kMostBandwidth)
    args.wrong(std::string(flag) + " wants whole GB/s up to 10000, not '" +
               args.get(flag) + "'");
  return number;
}

/// The index in `names` of the value of `flag`; 0 without the flag.
template <size_t N>
size_t choice(Arguments &args, const char *flag,
              const std::array<const char *, N> &names) {
  if (!args.has(flag))
    return 0;
  const std::string text = args.get(flag);
  std::string list;
  for (size_t i = 0; i < N; ++i) {
    if (text == names[i])
      return i;
    list += (i == 0 ? "" : i + 1 < N ? ", " : " or ") + std::string(names[i]);
  }
  args.wrong(std::string(flag) + " wants " + list + ", not '" + text + "'");
  return 0;
}

/// The planner of the flag; empty: our own search.
std::string choosePlanner(Arguments &args) {
  const std::string name = args.get("--planner");
  if (args.has("--planner") && !isPlanner(name))
    args.wrong("there is no planner '" + name + "'; there are " +
               plannerNames());
  return name;
}

/// Reports why a planner has no answer. A problem that is too large for an
/// exact planner is unsupported, and a wrong answer is the planner's fault. A
/// rule finds none where a move that it needs isn't offered.
int failPlanner(const std::string &file, const Problem &problem,
                const absl::Status &status) {
  if (absl::IsNotFound(status)) {
    note(std::string(status.message()));
    return fail(kBudget, "no plan fits " +
                             std::to_string(problem.spaces[0].budgetBytes) +
                             " bytes");
  }
  const int code =
      absl::IsUnimplemented(status) || absl::IsResourceExhausted(status)
          ? kUnsupported
      : absl::IsUnavailable(status) ? kWorld
      : absl::IsInternal(status)    ? kDefect
                                    : kInput;
  return fail(code, file + ": " + std::string(status.message()));
}

/// Sweeps the device's budget in equal steps up to the problem's budget: prints
/// one line each with its bytes, the plan's time and the proved bound, in
/// picoseconds.
int sweepDevice(const std::string &file, const Problem &problem, int64_t steps,
                SolveOptions options, const std::string &planner) {
  options.wantSmallest = false;
  PlanCache cache(problem,
                  std::vector<int64_t>(problem.spaces.size(), kArenaAlignment),
                  options, planner);
  bool fits = false;
  for (int64_t i = 1; i <= steps; ++i) {
    const int64_t budget =
        int64_t(__int128(problem.spaces[0].budgetBytes) * i / steps);
    absl::StatusOr<const Plan *> found = cache.fit(budget);
    if (!found.ok())
      return failPlanner(file, problem, found.status());
    fits = *found;
    if (fits)
      printf("%lld %lld %lld\n", (long long)budget, (long long)(*found)->cost,
             (long long)(*found)->certificate.provenCost);
    else
      printf("%lld none\n", (long long)budget);
  }
  return fits ? kDone : kBudget;
}

/// Reads the flags, except budgets, which are parts of the problem's bytes.
void readFlags(Arguments &args, OfferedMoves &moves, SolveOptions &options,
               std::string &planner, int64_t &steps) {
  moves.bandwidth = bandwidth(args, "--bandwidth", moves.bandwidth);
  moves.hostBandwidth =
      bandwidth(args, "--host-bandwidth", moves.hostBandwidth);
  moves.memoryBandwidth = bandwidth(args, "--memory-bandwidth", 0);
  moves.fileBandwidth = bandwidth(args, "--file-bandwidth", 0);
  moves.fileWriteBandwidth =
      bandwidth(args, "--file-write-bandwidth", moves.fileBandwidth);
  int64_t seed = 1;
  if (args.has("--seed") && !parseInteger(args.get("--seed"), 0, seed))
    args.wrong("--seed wants a whole number, not '" + args.get("--seed") + "'");
  options.seed = uint64_t(seed);
  options.coarse = args.has("--coarse");
  options.exact = planExactly;
  addWithout(args, options);
  constexpr int64_t kMostSteps = 10'000;
  if (args.has("--sweep") &&
      (!parseInteger(args.get("--sweep"), 1, steps) || steps > kMostSteps))
    args.wrong("--sweep wants a number of budgets up to 10000, not '" +
               args.get("--sweep") + "'");
  moves.moveClass = choice(args, "--move", OfferedMoves::kClasses);
  planner = choosePlanner(args);
  if (args.error.empty() && !args.has("--budget"))
    args.wrong("no --budget given");
  if (args.has("--file-write-bandwidth") && !args.has("--file-bandwidth"))
    args.wrong("--file-write-bandwidth wants --file-bandwidth");
}

/// Sets the problem's budgets; a problem of one space gets moves.
int stateSpaces(const Arguments &args, std::optional<OfferedMoves> &moves,
                Problem &problem) {
  if (int code = readBudget(args.get("--budget"), problem,
                            problem.spaces[0].budgetBytes))
    return code;
  if (!isOneSpace(problem)) {
    moves.reset();
  } else {
    if (args.has("--file-budget") && !args.has("--file-bandwidth"))
      return fail(kUsage, "--file-budget wants a file: --file-bandwidth");
    if (absl::Status status = offerMoves(problem, moves->options());
        !status.ok())
      return fail(kUnsupported,
                  args.file + ": " + std::string(status.message()));
  }
  return setOtherBudgets(args, problem);
}

/// Checks a plan and its bound by the code that shares nothing with the search.
int checkPlan(const std::string &file, const Problem &problem,
              const Plan &plan) {
  absl::StatusOr<int64_t> bound =
      checkBound(provenProblem(problem, plan), plan.certificate);
  if (!bound.ok())
    return fail(kDefect, std::string(bound.status().message()));
  if (*bound != plan.certificate.provenCost)
    return fail(kDefect, file + ": the bound isn't what its checker says");
  if (plan.feasible) {
    if (auto fault = verifyPlan(problem, plan, problem.spaces[0].budgetBytes))
      return fail(kDefect, "the plan is wrong: " + *fault);
  }
  return kDone;
}

/// Prints the plan's time, its bytes and its moves.
void printPlan(const Problem &problem, const Plan &plan, int64_t baseMakespan) {
  const Counts counts(problem, plan.solution);
  fprintf(stderr,
          "%.2f ms, %+.2f %% of the step that moves nothing; %.2f %% "
          "above what is proved\n",
          double(plan.cost) / kMilli,
          percent(plan.cost - baseMakespan, baseMakespan),
          percent(plan.cost - plan.certificate.provenCost,
                  plan.certificate.provenCost));
  for (size_t s = 0; s < plan.peakBytes.size(); ++s)
    fprintf(stderr, "%-8s %.1f MiB\n", visible(problem.spaces[s].name).c_str(),
            double(plan.peakBytes[s] + problem.reservedOf(SpaceId(s))) / kMiB);
  for (const EngineInfo &engine : kEngines)
    if (counts.moved[engine.kind] > 0)
      fprintf(stderr, "%-10s %.1f MiB %s\n", visible(engine.name).c_str(),
              double(counts.moved[engine.kind]) / kMiB,
              visible(engine.work).c_str());
  fprintf(
      stderr, "%lld updates on the host; %lld kernels again; %.2f seconds\n",
      (long long)counts.onHost, (long long)counts.again, plan.stats.seconds);
  if (plan.stats.exact)
    fprintf(stderr, "no plan in this order of kernels is faster\n");
}

} // namespace

int solveOffload(int argc, char **argv) {
  Arguments args = parseArguments(argc, argv,
                                  {{"--budget", true},
                                   {"--host-budget", true},
                                   {"--bandwidth", true},
                                   {"--host-bandwidth", true},
                                   {"--memory-bandwidth", true},
                                   {"--file-bandwidth", true},
                                   {"--file-write-bandwidth", true},
                                   {"--file-budget", true},
                                   {"--move", true},
                                   {"--planner", true},
                                   {"--coarse", false},
                                   {"--sweep", true},
                                   {"--without", true},
                                   {"--seed", true},
                                   {"--json", true}});
  std::optional<OfferedMoves> moves = OfferedMoves();
  SolveOptions options;
  std::string planner;
  int64_t steps = 0;
  readFlags(args, *moves, options, planner, steps);
  if (!args.error.empty())
    return failUsage(args);
  Problem problem;
  bool isGraph = false;
  if (int code = readProblem(args.file, problem, isGraph))
    return code;
  if (int code = stateSpaces(args, moves, problem))
    return code;
  if (steps > 0)
    return sweepDevice(args.file, problem, steps, options, planner);
  options.budgetBytes = problem.spaces[0].budgetBytes;
  absl::StatusOr<Plan> plan = planBy(planner, problem, options);
  if (!plan.ok())
    return failPlanner(args.file, problem, plan.status());
  if (plan->feasible &&
      (planner == kExactPlanner || plan->cost == plan->certificate.provenCost))
    plan->stats.exact = true;
  absl::StatusOr<Profile> base = simulate(problem, baseSolution(problem));
  if (!base.ok())
    return fail(kDefect,
                args.file + ": " + std::string(base.status().message()));
  if (int code = checkPlan(args.file, problem, *plan))
    return code;
  if (plan->stats.refused)
    note(std::to_string(plan->stats.refused) +
         (plan->stats.refused > 1 ? " lists" : " list") +
         " came out wrong and were left out");
  if (std::string path = args.get("--json"); !path.empty())
    if (int code =
            writeFile(path, describe(problem, *plan, base->makespan,
                                     plan->certificate.provenCost, moves)))
      return code;
  if (!plan->feasible) {
    note(plan->stats.exact ? "no plan in this order of kernels fits"
                           : "no plan was found in " +
                                 std::to_string(plan->stats.tried) + " tries");
    return fail(kBudget, "no plan fits " +
                             std::to_string(problem.spaces[0].budgetBytes) +
                             " bytes");
  }
  printPlan(problem, *plan, base->makespan);
  return kDone;
}

} // namespace tmc::planning
