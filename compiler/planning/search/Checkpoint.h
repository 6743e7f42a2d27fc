// Checkpoint.h - schedules of the classic kind: what leads from one part of the
// forward stages to the next is held, all else is recomputed part by part.
//
// They are starts for the search, and as planners of their own they are
// baselines (`peers/Baselines.h`).

#ifndef TMC_COMPILER_PLANNING_SEARCH_CHECKPOINT_H
#define TMC_COMPILER_PLANNING_SEARCH_CHECKPOINT_H

#include "compiler/planning/search/Anneal.h"

namespace tmc::planning {

/// Segments of equal length, cut where few bytes cross; their number is the
/// best of all powers of the square root of two. The schedule of least excess
/// if none fits.
/// Source: Chen et al., "Training deep nets with sublinear memory cost" (2016).
RematPlan checkpoint(const LinearProblem &linear, int64_t limitBytes);

/// Segments that begin where a block does that the model repeats (if none does:
/// wherever the fewest bytes cross); the last one is held whole.
RematPlan checkpointBlocks(const LinearProblem &linear, int64_t limitBytes);

/// The same in each segment that has such blocks, by itself: the trips of
/// micro-batches, and the last one that is peeled off. Where several cuts cross
/// as few bytes, the first.
RematPlan checkpointBlocksOfSegments(const LinearProblem &linear,
                                     int64_t limitBytes);

/// Stages of the forward part where blocks begin that the model repeats, or, if
/// none does, wherever the fewest bytes cross; ascending, 0 left out.
std::vector<int32_t> blockStarts(const LinearProblem &linear);

/// The first stage after the forward part: where the most is alive.
int32_t turningStage(const LinearProblem &linear);

/// Erases recomputations whose results aren't read.
void dropUseless(Schedule &schedule);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_CHECKPOINT_H
