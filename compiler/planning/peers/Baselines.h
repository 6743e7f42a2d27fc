// Baselines.h - published planners, on the same problems and under the same
// checker.
//
//   none     keeps everything.
//   sqrt     Chen et al. (2016): cut the order into segments of equal length
//            where few bytes cross, keep the crossing values, recompute each
//            segment when its first value is needed again. Tries numbers of
//            segments that are powers of the square root of two.
//   blocks   every-block checkpointing: cut where the model's repeated blocks
//            begin (without repeats: where the fewest bytes cross); keep the
//            inputs of each block, and all of the last part, the head and loss.
//   greedy   XLA's rematerialization: while the peak exceeds the budget, walk
//            forward; at each moment above it, drop the value that saves the
//            most bytes for its cost, and recompute it before its next use.
//
// PyTorch's min cut with a knapsack has its own header (`MinCut.h`), and so has
// Checkmate's MILP (`Milp.h`). The planners are registered by these names
// (`Planners.h`).

#ifndef TMC_COMPILER_PLANNING_PEERS_BASELINES_H
#define TMC_COMPILER_PLANNING_PEERS_BASELINES_H

#include "compiler/planning/peers/Planners.h"

namespace tmc::planning {

absl::StatusOr<Solution> planSqrt(const Problem &problem,
                                  const PlanRequest &request);
absl::StatusOr<Solution> planBlocks(const Problem &problem,
                                    const PlanRequest &request);
absl::StatusOr<Solution> planGreedy(const Problem &problem,
                                    const PlanRequest &request);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PEERS_BASELINES_H
