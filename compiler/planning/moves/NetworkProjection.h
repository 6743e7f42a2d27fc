// NetworkProjection.h - a problem with networks, seen without them.
//
// Once the home of each content is chosen, whole or as a shard, the work of the
// networks is kernels of compute (R18): an exchange reads and makes values like
// any kernel, and a gather makes one value from another.
//
//     whole problem                       projection
//     w, w@shard, at home as a shard      w@shard, which stays; w, a temporary
//     gather: w@shard -> w                a kernel that may run again
//     update: G w@shard -> w'@shard       in place
//
//     w, w@shard, at home whole           w, which stays
//     update: G w -> w'@shard             w'@shard, a temporary
//     gather: w'@shard -> w'              a kernel after it, in w's place
//
// Every search for plans with recomputation and moves then applies as it is. It
// weighs a kept w against a second gather, as FSDP's `reshard_after_forward`
// does for a whole model. `placeNetwork` (Overlap.h) lets the work run beside
// the kernels afterwards.
//
// A network works beside compute, so a kernel that only stands for it costs
// less: nothing if it runs once, and a price for each second if it may run
// again. A gather stands before the first reader of each segment; in the next
// segment the value is another one, as in Projection.h.

#ifndef TMC_COMPILER_PLANNING_MOVES_NETWORKPROJECTION_H
#define TMC_COMPILER_PLANNING_MOVES_NETWORKPROJECTION_H

#include "compiler/planning/model/Problem.h"

namespace tmc::planning {

/// A persistent content of the step's begin that may be at home as a shard.
struct ShardableContent {
  ValueId whole = kNone; // Its main form.
  ValueId shard = kNone; // A persistent form that a gather reads.
};
/// In the order of values.
std::vector<ShardableContent> shardableContents(const Problem &problem);

struct NetworkProjection {
  struct Origin {
    RecipeId recipe = kNone;           // In the whole problem.
    InstructionId instruction = kNone; // kNone: a gather that was added.
  };
  Problem problem;             // Without engines of kind Network.
  std::vector<Origin> origins; // Per recipe of `problem`.
  std::vector<ValueId> values; // Per value: the whole problem's.
  std::vector<ValueId> homes;  // Shards at home, as `Solution::homes`.
};

/// `isShard`: per value of the whole problem, of main forms. `price`: the cost
/// of a second of a network whose work may run again, in seconds of compute.
/// NotFound: a form that is read can't be made with these homes.
absl::StatusOr<NetworkProjection>
projectNetwork(const Problem &problem, const std::vector<char> &isShard,
               double price);

/// The plan of the whole problem; each Done of a network stands right after its
/// Start.
Solution restoreNetwork(const Problem &problem,
                        const NetworkProjection &projection,
                        const Solution &planned);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_NETWORKPROJECTION_H
