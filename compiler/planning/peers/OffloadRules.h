// OffloadRules.h - how others offload, as plans of the same problems.
//
// Both recompute nothing. Their transfers are put in their places as ours are
// (`search/Moves.h`), so that what differs is the rule alone.

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

/// What was made first leaves first, between its two uses that lie farthest
/// apart: as few values as lower the peak to `liveBytes`, or all. It is the
/// rule of hooks that save activations on the host until they are wanted.
/// Source: torch.autograd.graph.save_on_cpu, with a limit.
absl::StatusOr<MovedPlan> offloadOldest(const Problem &problem,
                                        int64_t liveBytes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PEERS_OFFLOADRULES_H
