// Verify.h - proves a solution right, or names its first defect.
//
// The verifier shares nothing with the planners or with `simulate`: it unrolls
// the loops itself and walks the executions backward with the set of values
// that later entries need, in 128-bit sums. It names the first defect, with
// numbers. Every answer of every planner, built-in or external, passes through
// it before it reaches the IR, in release builds too.

#ifndef TMC_COMPILER_PLANNING_MODEL_VERIFY_H
#define TMC_COMPILER_PLANNING_MODEL_VERIFY_H

#include "compiler/planning/model/Problem.h"

#include <optional>
#include <string>
#include <vector>

namespace tmc::planning {

/// A planner's claim about its solution.
struct Claim {
  int64_t peakBytes = 0;    // Live, reserved left out.
  int64_t cost = 0;         // The makespan.
  int64_t budgetBytes = -1; // Reserved included; -1: none.
  /// Peaks of the spaces from 1 on; their budgets are in the problem.
  std::vector<int64_t> otherPeakBytes = {};
};

/// The first defect of `solution` or of `claim`, or nothing. It begins with the
/// broken rule ("R13: ..."), "lists", "claim" or "budget".
std::optional<std::string> verifySolution(const Problem &problem,
                                          const Solution &solution,
                                          const Claim &claim);

/// The true claim for `solution` (budget left out), by the verifier's own
/// count; an error is the first defect.
absl::StatusOr<Claim> measure(const Problem &problem, const Solution &solution);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_VERIFY_H
