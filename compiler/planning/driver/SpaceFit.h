// SpaceFit.h - plans with moves whose arenas fit.
//
// What a plan promises are live peaks, one for each space; what must fit the
// budgets are the arenas that its buffers are packed into. Where one doesn't,
// it is packed in other ways; then a smaller plan of the same search is, and
// where that is much slower another is sought that leaves the bytes free that
// the arena lost:
//
//     budget 600 MiB   plan 598, arena 606: packed by another seed, 603
//                      its smaller form, 589, arena 597: fits, 4 % slower
//                      plan for 597, arena 599: fits, 1 % slower
//
// A loop's body is laid out once, so what is alive in its first trip only has
// its place in all trips: `layoutPeakBytes` counts that.

#ifndef TMC_COMPILER_PLANNING_DRIVER_SPACEFIT_H
#define TMC_COMPILER_PLANNING_DRIVER_SPACEFIT_H

#include "compiler/planning/driver/SpaceSearch.h"
#include "compiler/planning/pack/Buffers.h"

namespace tmc::planning {

struct SpaceFitOptions {
  SpaceSearchOptions search = {};
  /// Of buffers in each space.
  std::vector<int64_t> alignments;
  /// When to look for the smallest budget of the device.
  enum class Smallest { Never, WhereNoneFits, Always };
  Smallest smallest = Smallest::WhereNoneFits;
};

struct FittedSpaces {
  /// `feasible` says that the arenas fit. If not, what was found last.
  SpacePlan plan;
  /// Of each space, reserved left out: what is alive at most as it is laid out,
  /// the arena, and how the arena was packed.
  std::vector<int64_t> layoutPeakBytes, arenaBytes;
  std::vector<PackOptions> packing;
  /// Budgets of the device, reserved included, with the budgets of the others
  /// as they are: the smallest that is known to work when given, -1 where none
  /// was found or sought, and the one below which no plan exists.
  int64_t smallestFoundBytes = -1, impossibleBelowBytes = 0;
};

/// The best plan found within the budgets in `problem.spaces`, with its arenas.
/// Errors: those of `solveSpaces`.
absl::StatusOr<FittedSpaces> fitSpaces(const Problem &problem,
                                       const SpaceFitOptions &options);

/// No plan has a device's budget below: what the largest instruction touches
/// there by its leanest variant, what can't be anywhere else, and what is
/// reserved.
int64_t impossibleBelow(const Problem &problem);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_SPACEFIT_H
