// Order.h - orders of the instructions that hold fewer bytes.
//
// Reordering costs nothing: independent branches can run one after the other
// instead of side by side, and instructions that free bytes can run before
// those that take them. An order must run makers before readers, readers of an
// old version before its update in place, and each instruction in its segment.
//
// `listSchedule` walks forward and always runs the ready instruction that
// leaves the fewest bytes alive. `reorder` anneals: a move takes one
// instruction to another place between its predecessors and its successors.
// Live bytes change only between the two places, so a move costs as much as it
// is long. At the end, instructions that free bytes go to their first possible
// place and those that take bytes to their last, because an anneal leaves them
// anywhere.

#ifndef TMC_COMPILER_PLANNING_SEARCH_ORDER_H
#define TMC_COMPILER_PLANNING_SEARCH_ORDER_H

#include "compiler/planning/model/Random.h"
#include "compiler/planning/search/LinearProblem.h"

#include <functional>

namespace tmc::planning {

Orders programOrders(const Problem &problem);

Orders listSchedule(const Problem &problem);

struct ReorderOptions {
  int64_t limitBytes = 0; // For live bytes without persistent values.
  /// Weight of a byte alive for a moment, relative to a byte above the limit.
  /// Among orders that fit equally well, the one that holds the fewest bytes
  /// leaves room for planning and packing. An order that was only driven below
  /// the limit holds values without need, and their lives aren't nested.
  double heldWeight = 0.01;
  int64_t work = 500'000'000;
  std::function<bool()> stop;
};

/// Changes `orders` to lower the sum over all moments of the bytes above the
/// limit, plus `heldWeight` times all live bytes. Returns the remaining bytes
/// above the limit. Adds the counted steps to `work`.
int64_t reorder(const Problem &problem, Orders &orders, Random &random,
                const ReorderOptions &options, int64_t &work);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_ORDER_H
