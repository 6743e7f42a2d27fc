// SolveMoves.cpp - the search that a problem of several engines takes.

#include "compiler/planning/driver/MovesSearch.h"
#include "compiler/planning/driver/NetworkSearch.h"

using namespace tmc::planning;

absl::StatusOr<Plan>
tmc::planning::solveMoves(const Problem &problem, const SolveOptions &options,
                          std::vector<MovedPlan> *smaller) {
  if (hasLag(problem))
    return absl::UnimplementedError("no plans of values that lag (R19)");
  if (hasNetwork(problem))
    return solveNetwork(problem, options, smaller);
  std::vector<MovedPlan> unused;
  return searchMoves(problem, options, smaller ? *smaller : unused);
}
