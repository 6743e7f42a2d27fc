// Checkpoint.h - classic checkpointing: values that cross from one part of the
// forward stages to the next are kept; all others are recomputed part by part.
//
// These schedules are starts of the search. As planners of their own they are
// baselines (`peers/Baselines.h`).

#ifndef TMC_COMPILER_PLANNING_SEARCH_CHECKPOINT_H
#define TMC_COMPILER_PLANNING_SEARCH_CHECKPOINT_H

#include "compiler/planning/search/Anneal.h"

namespace tmc::planning {

/// Segments of equal length, cut where few bytes cross. Tries numbers of
/// segments that are powers of the square root of two and returns the cheapest
/// schedule that fits, or else the schedule of least excess.
/// Source: Chen et al., "Training deep nets with sublinear memory cost" (2016).
RematPlan checkpoint(const LinearProblem &linear, int64_t limitBytes);

/// Segments that begin at the model's repeated blocks (without repeats: where
/// the fewest bytes cross). The last segment is kept whole.
RematPlan checkpointBlocks(const LinearProblem &linear, int64_t limitBytes);

/// The same for each problem segment with repeated blocks, separately: the
/// trips of micro-batches, and the peeled last trip. If several cuts cross as
/// few bytes, the first one is taken.
RematPlan checkpointBlocksOfSegments(const LinearProblem &linear,
                                     int64_t limitBytes);

/// Forward stages at which the model's repeated blocks begin, or, without
/// repeats, where the fewest bytes cross. Ascending, without 0.
std::vector<int32_t> blockStarts(const LinearProblem &linear);

/// The first stage after the forward part: where the most bytes are alive.
int32_t turningStage(const LinearProblem &linear);

/// Erases recomputations whose results aren't read.
void dropUseless(Schedule &schedule);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_CHECKPOINT_H
