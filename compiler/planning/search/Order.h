// Order.h - orders of the instructions that hold fewer bytes.
//
// Reordering costs nothing: branches that are independent of each other can be
// run one after the other instead of side by side, and what frees bytes can be
// run before what takes them. An order must run makers before readers, readers
// of an old version before its update in place, and stay within its segment.
//
// `listSchedule` walks forward and always runs the ready instruction that
// leaves the fewest bytes alive. `reorder` anneals: it moves one instruction to
// another place between its predecessors and its successors; what is alive
// changes only between the two places, so a move costs as much as it is long.
// In the end what frees bytes goes to where it can first run, and what takes
// them to where it can last: an anneal leaves them anywhere.

#ifndef TMC_COMPILER_PLANNING_SEARCH_ORDER_H
#define TMC_COMPILER_PLANNING_SEARCH_ORDER_H

#include "compiler/planning/model/Random.h"
#include "compiler/planning/search/LinearProblem.h"

#include <functional>

namespace tmc::planning {

/// One permutation per segment, as `linearize` takes them.
using Orders = std::vector<std::vector<InstructionId>>;

Orders programOrders(const Problem &problem);

Orders listSchedule(const Problem &problem);

struct ReorderOptions {
  int64_t limitBytes = 0; // Of live bytes, persistent values left out.
  /// What a byte that is alive for a moment weighs beside one above the limit.
  /// Of orders that fit equally well the one that holds least leaves room to
  /// plan and to pack in; one that was only driven below the limit is full
  /// of values that wait for no reason, and its lives are in no way nested.
  double heldWeight = 0.01;
  int64_t work = 500'000'000;
  std::function<bool()> stop;
};

/// Changes `orders` to lessen the sum over all moments of the bytes above the
/// limit, and a little of all that are alive; returns the sum that is left.
int64_t reorder(const Problem &problem, Orders &orders, Random &random,
                const ReorderOptions &options, int64_t &work);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_ORDER_H
