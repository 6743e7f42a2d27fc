#include "tools/solve/Arguments.h"
#include "tools/solve/Commands.h"

#include "compiler/planning/laboratory/ArenaFile.h"
#include "compiler/planning/laboratory/Text.h"
#include "compiler/planning/pack/PackSearch.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace tmc::planning {

int solvePack(int argc, char **argv) {
  Arguments args = parseArguments(argc, argv,
                                  {{"--capacity", true},
                                   {"--seed", true},
                                   {"--effort", true},
                                   {"-o", true}});
  int64_t capacity = -1, seed = 1;
  PackOptions options;
  if (args.has("--seed") && !parseInteger(args.get("--seed"), 0, seed))
    args.wrong("--seed wants a whole number, not '" + args.get("--seed") + "'");
  if (args.has("--effort") &&
      !parseInteger(args.get("--effort"), 0, options.effort))
    args.wrong("--effort wants a percentage, not '" + args.get("--effort") +
               "'");
  if (args.has("--capacity")) {
    absl::StatusOr<int64_t> size = readBytes(args.get("--capacity"));
    if (size.ok())
      capacity = *size;
    else
      args.wrong("--capacity " + std::string(size.status().message()));
  }
  if (!args.error.empty())
    return failUsage(args);
  options.seed = uint64_t(seed);
  std::string text;
  if (int code = readFile(args.file, text))
    return code;
  absl::StatusOr<ArenaProblem> problem = parseArena(text);
  if (!problem.ok())
    return fail(kInput,
                args.file + ": " + std::string(problem.status().message()));
  problem->capacityBytes = capacity;
  Packing packing = packArena(*problem, options);
  if (std::optional<std::string> defect = verifyPacking(*problem, packing)) {
    note("the input '" + args.file + "' reproduces it");
    return fail(kDefect, "the packing is wrong: " + *defect);
  }
  int64_t peak = peakBytes(*problem);
  if (capacity >= 0 && packing.arenaBytes > capacity) {
    fail(kBudget, "needs " + std::to_string(packing.arenaBytes) + " bytes, " +
                      std::to_string(packing.arenaBytes - capacity) +
                      " over the capacity of " + std::to_string(capacity));
    note("the smallest capacity with a known packing is " +
         std::to_string(packing.arenaBytes) + " bytes; below " +
         std::to_string(peak) + " there is none");
    return kBudget;
  }
  if (args.has("-o"))
    if (int code = writeFile(args.get("-o"), printPacking(*problem, packing)))
      return code;
  fprintf(stderr, "%zu buffers in %lld bytes, live peak %lld (%.4f%% above)\n",
          problem->buffers.size(), (long long)packing.arenaBytes,
          (long long)peak, percent(packing.arenaBytes - peak, peak));
  return kDone;
}

} // namespace tmc::planning
