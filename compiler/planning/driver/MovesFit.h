// SpaceFit.h - plans with moves whose arenas fit.
//
// A plan gives a live peak for each space; the budgets limit the arenas into
// which its buffers are packed. If an arena doesn't fit, the plan is packed in
// other ways; then a smaller plan of the same search is packed. If that is much
// slower, another plan is sought that leaves free the bytes lost by packing:
//
//     budget 600 MiB   plan 598, arena 606: packed by another seed, 603
//                      its smaller form, 589, arena 597: fits, 4 % slower
//                      plan for 597, arena 599: fits, 1 % slower
//
// A loop's body is laid out once, so a value that is alive only in the first
// trip has its place in all trips: `layoutPeakBytes` counts that.

#ifndef TMC_COMPILER_PLANNING_DRIVER_SPACEFIT_H
#define TMC_COMPILER_PLANNING_DRIVER_SPACEFIT_H

#include "compiler/planning/driver/SpaceSearch.h"
#include "compiler/planning/pack/Buffers.h"

namespace tmc::planning {

struct SpaceFitOptions {
  SpaceSearchOptions search = {};
  /// Alignment of buffers in each space, in bytes.
  std::vector<int64_t> alignments;
  /// Condition for seeking the smallest budget of the device.
  enum class Smallest { Never, WhereNoneFits, Always };
  Smallest smallest = Smallest::WhereNoneFits;
};

struct FittedSpaces {
  /// `feasible`: the arenas fit. If not, the last plan found.
  SpacePlan plan;
  /// For each space, without reserved bytes: the live peak of the layout, the
  /// arena, and the options of its packing.
  std::vector<int64_t> layoutPeakBytes, arenaBytes;
  std::vector<PackOptions> packing;
  /// Budgets of the device, reserved bytes included, with the other budgets
  /// unchanged: the smallest known to work, -1 if none was found or sought, and
  /// the one below which no plan exists.
  int64_t smallestFoundBytes = -1, impossibleBelowBytes = 0;
};

/// The best plan found within the budgets in `problem.spaces`, with its arenas.
/// Errors: those of `solveSpaces`.
absl::StatusOr<FittedSpaces> fitSpaces(const Problem &problem,
                                       const SpaceFitOptions &options);

/// No plan has a smaller budget of the device: the bytes there of the largest
/// instruction in its smallest variant, the values that can't be in another
/// space, and the reserved bytes.
int64_t impossibleBelow(const Problem &problem);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_SPACEFIT_H
