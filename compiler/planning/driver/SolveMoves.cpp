#include "compiler/planning/driver/MovesAmounts.h"
#include "compiler/planning/driver/MovesSearch.h"
#include "compiler/planning/driver/NetworkSearch.h"

using namespace tmc::planning;

/// The second budget of the device is smaller by this part.
static constexpr int64_t kNearbyPart = 16;

/// Replaces `best` by a faster plan for less memory of the device, which fits
/// as well. The bound stays that of the whole budget.
static absl::Status searchNearby(const Problem &problem,
                                 const SolveOptions &options, Plan &best,
                                 std::vector<MovedPlan> &smaller) {
  Problem near = problem;
  int64_t &budget = near.spaces[0].budgetBytes;
  budget -= budget / kNearbyPart;
  SolveOptions its = options;
  its.useless = best.cost;
  its.exact = nullptr;
  std::vector<MovedPlan> others;
  absl::StatusOr<Plan> found = searchMoves(near, its, others);
  if (!found.ok())
    return found.status();
  best.stats.tried += found->stats.tried;
  best.stats.seconds += found->stats.seconds;
  if (!found->feasible || found->cost >= best.cost)
    return absl::OkStatus();
  best.solution = std::move(found->solution);
  best.cost = found->cost;
  best.peakBytes = std::move(found->peakBytes);
  best.stats.exact = false;
  smaller = std::move(others);
  return absl::OkStatus();
}

absl::StatusOr<Plan>
tmc::planning::solveMoves(const Problem &problem, const SolveOptions &options,
                          std::vector<MovedPlan> *smaller) {
  if (hasLag(problem))
    return absl::UnimplementedError("no plans of values that lag (R19)");
  if (hasNetwork(problem))
    return solveNetwork(problem, options, smaller);
  std::vector<MovedPlan> unused;
  std::vector<MovedPlan> &others = smaller ? *smaller : unused;
  absl::StatusOr<Plan> best = searchMoves(problem, options, others);
  if (!best.ok() || !best->feasible || options.coarse ||
      options.without.has(Strategy::Nearby) ||
      problem.spaces[0].budgetBytes < 0)
    return best;
  const int64_t proven = best->certificate.provenCost;
  if (best->cost <= proven + proven / kUnprovenPart)
    return best;
  if (absl::Status status = searchNearby(problem, options, *best, others);
      !status.ok())
    return status;
  return best;
}
