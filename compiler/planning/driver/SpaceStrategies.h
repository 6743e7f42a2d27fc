// SpaceStrategies.h - what the search for moves tries, and how much of it.
//
// The same for all sizes of effort: `Effort` says what a device's plan gets,
// `Amounts` which part of that each choice gets, and how many choices there
// are. Constants were set by hand on the steps of bench/planning/offload.md.

#ifndef TMC_COMPILER_PLANNING_DRIVER_SPACESTRATEGIES_H
#define TMC_COMPILER_PLANNING_DRIVER_SPACESTRATEGIES_H

#include "compiler/planning/driver/SpaceSearch.h"
#include "compiler/planning/peers/OffloadRules.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace tmc::planning {

/// Whose rules are tried, the cheapest first.
inline constexpr std::pair<SpacePlanner, decltype(zeroOffload) *> kRules[] = {
    {SpacePlanner::OldestFirst, offloadOldest},
    {SpacePlanner::ZeroOffload, zeroOffload},
    {SpacePlanner::ZeroOffloadBlocks, zeroOffloadBlocks},
    {SpacePlanner::Knapsack, offloadByKnapsack},
    {SpacePlanner::Chain, offloadByChain}};

/// How a device's plan is sought: a price of a link's second, bytes kept free,
/// in largest transfers, and whether walks polish what prices construct. Where
/// links are cheap they only scatter what comes and goes.
struct Knobs {
  double price;
  int64_t pieces;
  bool walks;
};
/// Cheap links with room for what is under way, and expensive ones with none.
inline constexpr Knobs kTwo[] = {{0.02, 2, false}, {0.5, 0, true}};
inline constexpr Knobs kAll[] = {
    {0.02, 2, false}, {0.02, 0, false}, {0.02, 5, false}, {0.5, 2, false},
    {0.02, 2, true},  {0.5, 0, true},   {0.5, 2, true},   {0.5, 5, true},
    {2.0, 0, true},   {2.0, 2, true},   {8.0, 0, true},   {8.0, 2, true}};

/// Far from what is proved, where what prices construct rarely fits.
inline constexpr Knobs kFar[] = {{0.5, 2, true},  {0.5, 0, true},
                                 {0.02, 0, true}, {2.0, 0, true},
                                 {2.0, 2, true},  {8.0, 0, true}};

/// Without walks, prices get so many times the part of the work.
inline constexpr int64_t kPricesShare = 4;

/// How much is tried. Parts are those of the effort that a device's plan gets.
struct Amounts {
  int64_t boundSteps;
  std::span<const Knobs> knobs; // Of the best modes; kTwo of each.
  /// Around the best of them the price is halved and doubled while that helps,
  /// so often at most.
  int refinements;
  int64_t modesPart, knobsPart, alonePart;
  size_t rankedModes; // Planned of each ranking.
  /// By a single knob from the best of them on: plans times values at most.
  int64_t stepValues;
};
inline constexpr Amounts kFull = {100, kAll, 3, 64, 16, 1, 5, 350'000};
inline constexpr Amounts kCoarse = {10, {}, 0, 256, 256, 64, 1, 30'000};
/// From the best modes on, stretches of updates change, so many at the finest;
/// of these changes so many are planned, those that promise most.
inline constexpr size_t kStretches = 16, kFarStretches = 64, kNeighbours = 8;

/// Parts of the budget that stay free while modes are ranked, none at first.
inline constexpr int64_t kFreeParts[] = {0, 32, 16, 8, 5};

/// Plans that are this part above what is proved are far from it: they are
/// worth every row, and steps down to one update.
inline constexpr int64_t kFarPart = 10;
/// Coarsely, plans that are this part above it are near enough.
inline constexpr int64_t kNearPart = 33;

/// Coarsely, as long as nothing fits, plans of the device get so many times
/// their part of the work: where a budget presses, that finds what fits, and to
/// fail by all rows takes longer.
inline constexpr int64_t kPressedShare = 4;

/// As long as nothing fits, what comes over the device's budget by less than
/// this part of it is planned once more with that much kept free.
inline constexpr int64_t kLittleOverPart = 32;

/// Parts of the device's budget that smaller forms of a plan leave free, as
/// packing may lose that much.
inline constexpr int64_t kSpareParts[] = {64, 32, 16};

/// Problems of up to so many instructions are planned exactly, by so many
/// states at most: a quarter of a second, 80 MB.
inline constexpr size_t kOptimumInstructions = 12, kOptimumStates = 50'000;

/// What would gain less than this part of the step isn't sought.
inline constexpr int64_t kWorthPart = 2000;
/// Devices of up to so many kernels are planned with every row, of fewer where
/// less effort than usual is asked for, by `leastPercent`.
inline constexpr size_t kFewKernels = 400;

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_SPACESTRATEGIES_H
