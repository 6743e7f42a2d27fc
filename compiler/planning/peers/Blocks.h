// Blocks.h - checkpoints at the repeated blocks of a model.
//
// Frameworks checkpoint each block of a model: they keep a block's input, and
// recompute the block from it. These schedules find the blocks by what repeats,
// and hand the parts to `search/Checkpoint.h`.

#ifndef TMC_COMPILER_PLANNING_PEERS_BLOCKS_H
#define TMC_COMPILER_PLANNING_PEERS_BLOCKS_H

#include "compiler/planning/search/Checkpoint.h"
#include "compiler/planning/search/RematPlan.h"

namespace tmc::planning {

/// Segments that begin at the model's repeated blocks (without repeats: where
/// the fewest bytes cross). The last segment is kept whole.
RematPlan checkpointBlocks(const LinearProblem &linear, int64_t limitBytes);

/// The same for each problem segment with repeated blocks, separately: the
/// trips of micro-batches, and the peeled last trip. If several cuts cross as
/// few bytes, the first one is taken.
RematPlan checkpointBlocksOfSegments(const LinearProblem &linear,
                                     int64_t limitBytes);

/// The inputs of each repeated block of a stretch's forward part, which ends at
/// `turn`; without repeats, none. An input that the others make is left out.
std::vector<std::vector<ValueId>> blockInputs(const LinearProblem &linear,
                                              Stretch of, int32_t turn);

/// Forward stages at which the model's repeated blocks begin, or, without
/// repeats, where the fewest bytes cross. Ascending, without 0.
std::vector<int32_t> blockStarts(const LinearProblem &linear);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PEERS_BLOCKS_H
