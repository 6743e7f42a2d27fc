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

#ifndef TMC_COMPILER_PLANNING_BASELINES_H
#define TMC_COMPILER_PLANNING_BASELINES_H

#include "compiler/planning/Anneal.h"
#include "compiler/planning/Solve.h"

namespace tmc::planning {

/// The segments of `planSqrt` as a start for the search; the schedule of least
/// excess if none fits.
Plain checkpoint(const Flat &flat, int64_t limitBytes);
/// The same of `planBlocks`.
Plain checkpointBlocks(const Flat &flat, int64_t limitBytes);

/// The first stage after the forward part: where the most is alive.
int32_t turningStage(const Flat &flat);

/// What live bytes may reach, persistent values left out.
int64_t liveLimit(const Problem &problem, const SolveOptions &options,
                  const Flat &flat);

/// Erases recomputations that nobody reads.
void dropUseless(Schedule &schedule);

absl::StatusOr<Solution> planSqrt(const Problem &problem,
                                  const SolveOptions &options);
absl::StatusOr<Solution> planBlocks(const Problem &problem,
                                    const SolveOptions &options);
absl::StatusOr<Solution> planGreedy(const Problem &problem,
                                    const SolveOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BASELINES_H
