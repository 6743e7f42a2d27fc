// Baselines.h - what others do, on the same problem and under the same checker.
//
//   none     keeps everything.
//   sqrt     Chen et al. (2016): cut the order into segments of equal length
//            where few bytes cross, keep what crosses, recompute each segment
//            when its first value is needed again. The number of segments is
//            the best of all powers of the square root of two.
//   blocks   every-block checkpointing: cut where a block begins that the model
//            repeats (if none does: wherever the fewest bytes cross); keep what
//            enters each block, and all of the last part, the head and loss.
//   greedy   XLA's rematerialization: while the peak exceeds the budget, walk
//            forward; at each moment over it, give up the value that saves the
//            most bytes for its cost, and compute it again before its next use.
//
// PyTorch's min cut with a knapsack has its own header (`MinCut.h`), and so has
// Checkmate's MILP (`Milp.h`). Registered as planners of these names
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
