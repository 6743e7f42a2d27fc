// Bound.h - a price per moment that proves what no plan can beat.

#ifndef TMC_COMPILER_PLANNING_BOUND_H
#define TMC_COMPILER_PLANNING_BOUND_H

#include "compiler/planning/Problem.h"

#include <utility>

namespace tmc::planning {

/// Integer prices over a denominator: `lambda[k]` is the price of one byte at
/// the moment where instruction k (in the program's order, segments end to
/// end) first runs, in cost units times `denominator`.
struct Certificate {
  int64_t budgetBytes = -1;
  std::vector<std::pair<int32_t, int64_t>> lambda; // Ascending moments.
  int64_t denominator = 1;
  /// What the prices prove: extra cost over `baseCost`, rounded up.
  int64_t extraCost = 0;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_H
