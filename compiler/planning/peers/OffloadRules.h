// OffloadRules.h - published offloading rules, as plans of the same problems.
//
// `moves/Moves.h` places their transfers as it does for our own plans, so only
// the rule differs. The first and the third recompute nothing, the second each
// block; the last two weigh recomputing against moving for values alive at the
// turn of the step (`TurningGaps.h`). Those two get the largest number of held
// bytes that leads to a list that fits.

#ifndef TMC_COMPILER_PLANNING_PEERS_OFFLOADRULES_H
#define TMC_COMPILER_PLANNING_PEERS_OFFLOADRULES_H

#include "compiler/planning/moves/Moves.h"

namespace tmc::planning {

/// Runs every update on the host that the host can run, with its states and
/// parameters at home there: gradients go there as they are made, parameters
/// come back. `liveBytes` and errors as for `placeMoves` and `project`.
/// Source: Ren et al., ZeRO-Offload (2021).
absl::StatusOr<MovedPlan> zeroOffload(const Problem &problem,
                                      int64_t liveBytes);

/// The usual manual setup: updates and states as above. Parameters that kernels
/// read (their 16-bit copies, if the step has them) stay on the device.
/// Activations stay too, but each block is recomputed from its inputs. An
/// update that only the device can run has its states fetched.
/// Source: ZeRO-Offload with activation checkpointing, as DeepSpeed offers it.
absl::StatusOr<MovedPlan> zeroOffloadBlocks(const Problem &problem,
                                            int64_t liveBytes);

/// Offloads the oldest values first, between their two uses that lie farthest
/// apart: as few values as lower the peak to `liveBytes`, or all. Hooks that
/// save activations on the host until they are wanted follow this rule.
/// Source: torch.autograd.graph.save_on_cpu, with a limit.
absl::StatusOr<MovedPlan> offloadOldest(const Problem &problem,
                                        int64_t liveBytes);

/// Decides for each tensor that waits for the backward part: keep it, run its
/// kernel again, or fetch it from the host. A knapsack of bytes, in which a
/// tensor that isn't kept costs the lesser of its kernel and its link time; the
/// link's price is such that all transfers hide behind the kernels.
/// Source: the memory policy of torchtitan's graph trainer (2026), and the
/// knapsack of PyTorch's `activation_memory_budget`.
absl::StatusOr<MovedPlan> offloadByKnapsack(const Problem &problem,
                                            int64_t liveBytes);

/// A dynamic program over the blocks of a chain, in their order: each block's
/// activations are kept or moved, or a stretch of blocks is recomputed from its
/// inputs, which are kept or moved. The states are held bytes and link time; a
/// stretch counts all of its activations while it is recomputed.
/// Source: Beaumont, Eyraud-Dubois, Shilova, "Efficient Combination of
/// Rematerialization and Offloading for Training DNNs" (POFO, 2021): its
/// states, without the times at which copies are in flight.
absl::StatusOr<MovedPlan> offloadByChain(const Problem &problem,
                                         int64_t liveBytes);

/// One rule. Those that start our own search are never faster than it.
struct OffloadRule {
  const char *name, *summary;
  decltype(zeroOffload) *plan;
  bool startsSearch = true, takesLong = false, movesUpdates = false;
};
/// The cheapest first.
inline constexpr OffloadRule kOffloadRules[] = {
    {"oldest-first", "moves the oldest activations, as many as needed",
     offloadOldest},
    {"zero-offload", "every update on the host", zeroOffload, true, false,
     true},
    {"zero-offload-blocks", "the same, and recomputes each block",
     zeroOffloadBlocks, false, false, true},
    {"knapsack", "keeps, recomputes or moves each activation, by a knapsack",
     offloadByKnapsack},
    {"chain", "the same for stretches of a chain, by a dynamic program",
     offloadByChain, true, true}};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PEERS_OFFLOADRULES_H
