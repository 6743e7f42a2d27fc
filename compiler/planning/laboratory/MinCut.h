// MinCut.h - PyTorch's method: a min cut between forward and backward, and a
// knapsack of expensive values.
//
// AOTAutograd traces one joint graph and splits it: the forward part passes
// some of its values to the backward part, which recomputes all other forward
// values that it needs from them. A minimum cut chooses the passed values:
//
//                    bytes(v)
//   source --inf--> v.in --> v.out --inf--> in of each forward reader
//     if v is an               \--inf--> sink, if backward reads v
//     input, or banned
//
// A cut edge is a saved value; its weight is the value's bytes. Fewest bytes
// alone would recompute everything, so expensive operations (matmul,
// convolution, attention) are *banned* from recomputation; the others are fused
// into their readers.
//
// `torch._functorch.config.activation_memory_budget` is a ratio r in [0, 1]
// between saving only the inputs (0) and saving the values of the cut with all
// bans (1). Below 1, a 0/1 knapsack keeps those bans that avoid the most
// running time within r of these bytes, and the cut is computed again without
// the other bans. A value that isn't saved is recomputed once in the backward
// part, with all of its missing inputs, just before its first read there, and
// held to its last read.
//
// This planner differs in three points:
//  - r doesn't bound the peak, and a budget is bytes: the planner tries ratios
//    from 1 down to 0 and takes the cheapest plan whose peak fits. A user of
//    PyTorch must do that by hand.
//  - A problem has no names of operations: an operation is expensive if its
//    cost per byte read or written is above a multiple of the lower quartile
//    of the forward part, whose operations run at memory bandwidth. Three
//    multiples are tried: 4, 1 and 0.
//  - Fusion isn't modelled: its heuristics (weights by distance from the
//    backward part, bans of long fusible chains, of reductions) are left out.
//
// Source: torch/_functorch/partitioners.py of PyTorch 2.x, as documented and
// described in public; Chillee's "Min-cut optimal recomputation" (2022). The
// maximum flow is Dinic's (1970).
//
// Registered as planner `mincut`.

#ifndef TMC_COMPILER_PLANNING_LABORATORY_MINCUT_H
#define TMC_COMPILER_PLANNING_LABORATORY_MINCUT_H

#include "compiler/planning/peers/Planners.h"
#include "compiler/planning/search/LinearProblem.h"

namespace tmc::planning {

/// Values of the forward stages [0, turn) that a minimum cut saves, if the
/// `banned` values can't be recomputed. One flag per value; 0 for values made
/// elsewhere.
std::vector<char> minimumCut(const Problem &problem,
                             const LinearProblem &linear, int32_t turn,
                             const std::vector<char> &banned);

/// Items of the largest total worth within `capacity`; sizes are rounded up to
/// thousandths of it. With many items: greedy by worth per size.
std::vector<char> knapsack(const std::vector<int64_t> &sizes,
                           const std::vector<int64_t> &worth, int64_t capacity);

absl::StatusOr<Solution> planMinCut(const Problem &problem,
                                    const PlanRequest &request);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_LABORATORY_MINCUT_H
