// OffloadRules.h - how others offload, as plans of the same problems.
//
// Their transfers are put in their places as ours are (`search/Moves.h`), so
// that what differs is the rule alone. The first and the third recompute
// nothing, the second each block; the others weigh recomputing against moving
// for what is alive where the step turns (`TurningGaps.h`). Each of those gets
// the bytes that it may hold; as much as leads to a list that fits.

#ifndef TMC_COMPILER_PLANNING_PEERS_OFFLOADRULES_H
#define TMC_COMPILER_PLANNING_PEERS_OFFLOADRULES_H

#include "compiler/planning/search/Moves.h"

namespace tmc::planning {

/// Every update that the host can run runs there, with its states and
/// parameters at home: gradients go there as they are made, parameters come
/// back. `liveBytes` and errors as of `placeMoves` and `project`.
/// Source: Ren et al., ZeRO-Offload (2021).
absl::StatusOr<MovedPlan> zeroOffload(const Problem &problem,
                                      int64_t liveBytes);

/// What is done by hand: updates and states as above, while what kernels read
/// of the parameters (their copies in 16 bits, where the step has such) stays
/// on the device; activations stay, too, but each block is recomputed from what
/// enters it. An update that only the device can run has its states fetched.
/// Source: ZeRO-Offload with activation checkpointing, as DeepSpeed offers it.
absl::StatusOr<MovedPlan> zeroOffloadBlocks(const Problem &problem,
                                            int64_t liveBytes);

/// What was made first leaves first, between its two uses that lie farthest
/// apart: as few values as lower the peak to `liveBytes`, or all. It is the
/// rule of hooks that save activations on the host until they are wanted.
/// Source: torch.autograd.graph.save_on_cpu, with a limit.
absl::StatusOr<MovedPlan> offloadOldest(const Problem &problem,
                                        int64_t liveBytes);

/// Of each tensor that waits for the backward part: keep it, run its kernel
/// again, or have it back from the host. A knapsack of bytes, in which what is
/// gone costs the lesser of its kernel and the link's time; at a price of the
/// link at which all that comes and goes hides behind the kernels.
/// Source: the memory policy of torchtitan's graph trainer (2026), and the
/// knapsack of PyTorch's `activation_memory_budget`.
absl::StatusOr<MovedPlan> offloadByKnapsack(const Problem &problem,
                                            int64_t liveBytes);

/// A dynamic program over the blocks of a chain, in their order: each block's
/// activations are kept, or moved, or a stretch of blocks is run again from
/// what leads into it, which is kept or moved. Its states are bytes held and
/// the link's time; a stretch counts all its activations while it is back.
/// Source: Beaumont, Eyraud-Dubois, Shilova, "Efficient Combination of
/// Rematerialization and Offloading for Training DNNs" (POFO, 2021), of which
/// it keeps the states and leaves out when a copy is under way.
absl::StatusOr<MovedPlan> offloadByChain(const Problem &problem,
                                         int64_t liveBytes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PEERS_OFFLOADRULES_H
