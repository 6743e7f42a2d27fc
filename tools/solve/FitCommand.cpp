#include "tools/solve/Arguments.h"
#include "tools/solve/Commands.h"

#include "compiler/planning/driver/PlanCache.h"
#include "compiler/planning/driver/Proofs.h"
#include "compiler/planning/laboratory/PlanFile.h"

#include <cstdio>
#include <string>

namespace tmc::planning {

/// Plans and packs as the compiler does: the arena must fit the budget.
int solveFit(int argc, char **argv) {
  Arguments args = parseArguments(argc, argv,
                                  {{"--budget", true},
                                   {"--seed", true},
                                   {"--without", true},
                                   {"--json", true}});
  SolveOptions options;
  options.order = OrderMode::Free;
  int64_t seed = 1;
  if (args.error.empty() && !args.has("--budget"))
    args.wrong("no --budget given");
  if (args.has("--seed") && !parseInteger(args.get("--seed"), 0, seed))
    args.wrong("--seed wants a whole number, not '" + args.get("--seed") + "'");
  addWithout(args, options);
  if (!args.error.empty())
    return failUsage(args);
  options.seed = uint64_t(seed);
  Problem problem;
  bool isGraph = false;
  if (int code = readProblem(args.file, problem, isGraph))
    return code;
  if (absl::Status status = plansOneSpace(problem); !status.ok())
    return fail(kUnsupported, args.file + ": " + std::string(status.message()));
  int64_t budget = -1;
  if (int code = readBudget(args.get("--budget"), problem, budget))
    return code;
  PlanCache cache(problem, {kArenaAlignment}, options);
  absl::StatusOr<const Plan *> found = cache.fit(budget);
  absl::StatusOr<const Plan *> smallest = cache.smallest();
  for (const absl::Status &status : {found.status(), smallest.status()})
    if (!status.ok())
      return fail(kInput, args.file + ": " + std::string(status.message()));
  const Plan *fitted = *found;
  int64_t least = (*smallest)->arenaBytes() + problem.reservedBytes;
  Plan proved = fitted ? *fitted : **smallest;
  recertify(problem, proved, budget);
  if (fitted)
    proveByCases(problem, proved, budget);
  JsonWriter json;
  json.beginObject();
  json.member("schema_version", int64_t(1));
  json.member("budget", budget);
  json.member("feasible", fitted != nullptr);
  json.member("arena_bytes", (fitted ? fitted->arenaBytes() : least) +
                                 (fitted ? problem.reservedBytes : 0));
  json.member("overhead_pct", proved.overheadPct());
  json.member("lower_bound_pct",
              percent(proved.provenExtraCost(), proved.baseCost));
  json.member("smallest_found_bytes", least);
  json.member("impossible_below_bytes", cache.impossibleBelowBytes());
  if (fitted) {
    const ArenaProblem arena =
        arenaOf(problem, fitted->solution, kArenaAlignment);
    json.member("peak", fitted->peakBytes[0] + problem.reservedBytes);
    json.member("cost", fitted->cost);
    writeLists(json, problem, fitted->solution, isGraph);
    writeArena(json, arena, packSorted(arena, fitted->arenas[0].packing));
  }
  json.endObject();
  if (std::string path = args.get("--json"); !path.empty())
    if (int code = writeFile(path, json.take()))
      return code;
  if (!fitted)
    return fail(kBudget, "needs " + std::to_string(least) + " bytes, " +
                             std::to_string(least - budget) +
                             " over the budget of " + std::to_string(budget));
  const int64_t arena = fitted->arenaBytes() + problem.reservedBytes;
  fprintf(stderr,
          "arena %lld of %lld bytes, overhead %.4f%%, at least %.4f%%\n",
          (long long)arena, (long long)budget, proved.overheadPct(),
          percent(proved.provenExtraCost(), proved.baseCost));
  return kDone;
}

} // namespace tmc::planning
