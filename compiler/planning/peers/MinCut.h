// MinCut.h - what PyTorch does: a min cut between forward and backward, and a
// knapsack over what is expensive to recompute.
//
// AOTAutograd traces one joint graph and splits it: the forward part hands some
// of its values to the backward part, which computes whatever else it needs of
// the forward's from them. What to hand over is a minimum cut:
//
//                    bytes(v)
//   source --inf--> v.in --> v.out --inf--> in of each forward reader
//     if v is an               \--inf--> sink, if backward reads v
//     input, or banned
//
// A cut edge is a saved value, its weight what it takes. Fewest bytes alone
// would recompute everything, so expensive operations (matmul, convolution,
// attention) are *banned* from that; the rest is fused into its readers.
//
// `torch._functorch.config.activation_memory_budget` is a ratio r in [0, 1]
// between saving only the inputs (0) and what the cut with all bans saves (1).
// Below 1 a 0/1 knapsack keeps banned the operations that are worth most
// running time within r of these bytes, and the cut is recomputed without the
// others' bans. A value that isn't saved is computed once in the backward part,
// with all it needs, just before it is first read there, and held to its last
// read.
//
// Ours differs in three things:
//  - r says nothing of the peak, and a budget is bytes: the planner tries
//    ratios from 1 down to 0 and takes the cheapest plan whose peak fits, which
//    is more than a user of PyTorch does.
//  - A problem has no names of operations: expensive is what costs much for a
//  byte
//    read or written, compared with the lower quarter of the forward part's
//    operations, which are as fast as memory is. How much is tried, too: four
//    times, once, or anything at all.
//  - Fusion isn't modelled: its heuristics (weights by distance from the
//    backward part, bans of long fusible chains, of reductions) are left out.
//
// Source: torch/_functorch/partitioners.py of PyTorch 2.x, as documented and
// described in public; Chillee's "Min-cut optimal recomputation" (2022). The
// maximum flow is Dinic's (1970).
//
// Registered as planner `mincut`.

#ifndef TMC_COMPILER_PLANNING_PEERS_MINCUT_H
#define TMC_COMPILER_PLANNING_PEERS_MINCUT_H

#include "compiler/planning/peers/Planners.h"
#include "compiler/planning/search/LinearProblem.h"

namespace tmc::planning {

/// Which values of the forward stages [0, turn) a minimum cut saves, if those
/// `banned` can't be recomputed; by value, others are 0.
std::vector<char> minimumCut(const Problem &problem,
                             const LinearProblem &linear, int32_t turn,
                             const std::vector<char> &banned);

/// Which items to take: the most worth within `capacity`, sizes counted in
/// thousandths of it, rounded up. By density where there are many.
std::vector<char> knapsack(const std::vector<int64_t> &sizes,
                           const std::vector<int64_t> &worth, int64_t capacity);

absl::StatusOr<Solution> planMinCut(const Problem &problem,
                                    const PlanRequest &request);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_PEERS_MINCUT_H
