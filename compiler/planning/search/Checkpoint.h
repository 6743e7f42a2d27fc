// Checkpoint.h - classic checkpointing: values that cross from one part of the
// forward stages to the next are kept; all others are recomputed part by part.
//
// These schedules are starts of the search. As planners of their own they are
// baselines (`peers/Baselines.h`), like those with a part for each block of the
// model (`peers/Blocks.h`).

#ifndef TMC_COMPILER_PLANNING_SEARCH_CHECKPOINT_H
#define TMC_COMPILER_PLANNING_SEARCH_CHECKPOINT_H

#include "compiler/planning/search/Anneal.h"

namespace tmc::planning {

/// Segments of equal length, cut where few bytes cross. Tries numbers of
/// segments that are powers of the square root of two and returns the cheapest
/// schedule that fits, or else the schedule of least excess.
/// Source: Chen et al., "Training deep nets with sublinear memory cost" (2016).
RematPlan checkpoint(const LinearProblem &linear, int64_t limitBytes);

/// Stages that contain one forward part: all stages, or those of a segment.
struct Stretch {
  int32_t begin, end;
};

/// The stages of each segment.
std::vector<Stretch> segmentStretches(const LinearProblem &linear);

/// Bytes alive across the boundary before each stage if all values are kept.
std::vector<int64_t> crossing(const LinearProblem &linear);

/// The first stage after the forward part: where the most bytes are alive.
int32_t turningPoint(const std::vector<int64_t> &across, Stretch of);
int32_t turningPoint(const std::vector<int64_t> &across);

/// Keeps values that lead from one forward part to a later one. Other values
/// used beyond their own part are recomputed, one part at a time, where the
/// first value of that part is needed. With `blocks`, a value that leads on is
/// kept only if the other kept values can't make it, and the last part, whose
/// values are needed at once, is kept whole. `partOf` ends with the stretch's
/// forward part; stages before the stretch are in no part.
void addCheckpoints(const LinearProblem &linear,
                    const std::vector<int32_t> &partOf, Stretch of, bool blocks,
                    Schedule &schedule);

/// Erases recomputations whose results aren't read.
void dropUseless(Schedule &schedule);

/// Erases recomputations that the limit doesn't need, of a schedule that fits:
/// first those that save most for the bytes that they add to each moment of
/// their gap. Prices overshoot where recomputing is nearly free, as fetching is
/// to a plan with moves.
void dropNeedless(const LinearProblem &linear, Schedule &schedule);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_CHECKPOINT_H
