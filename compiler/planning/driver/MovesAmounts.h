// MovesAmounts.h - the choices of the search for moves, and their amounts.
//
// They are the same for all sizes of effort: `Effort` gives the work of a
// device's plan, `Amounts` the part of it for each choice, and the number of
// choices. Constants were set by hand on the steps of
// bench/planning/offload.md.

#ifndef TMC_COMPILER_PLANNING_DRIVER_MOVESAMOUNTS_H
#define TMC_COMPILER_PLANNING_DRIVER_MOVESAMOUNTS_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace tmc::planning {

/// Parameters of a device's plan: a price of a link's second, bytes kept free
/// (in largest transfers), and whether walks improve the plan that prices
/// construct. If links are cheap, walks only scatter the moves.
struct Knobs {
  double price;
  int64_t pieces;
  bool walks;
};
/// Cheap links with room for transfers in progress, and expensive links
/// without.
inline constexpr Knobs kTwo[] = {{0.02, 2, false}, {0.5, 0, true}};
inline constexpr Knobs kAll[] = {
    {0.02, 2, false}, {0.02, 0, false}, {0.02, 5, false}, {0.5, 2, false},
    {0.02, 2, true},  {0.5, 0, true},   {0.5, 2, true},   {0.5, 5, true},
    {2.0, 0, true},   {2.0, 2, true},   {8.0, 0, true},   {8.0, 2, true}};

/// A price that fills a host without room is sought from the better one of
/// these.
inline constexpr Knobs kNearFull[] = {{0.5, 2, false}, {0.5, 0, true}};

/// Far from the bound, where the plan constructed by prices rarely fits.
inline constexpr Knobs kFar[] = {{0.5, 2, true},  {0.5, 0, true},
                                 {0.02, 0, true}, {2.0, 0, true},
                                 {2.0, 2, true},  {8.0, 0, true}};

/// Without walks, the work of prices is multiplied by this.
inline constexpr int64_t kPricesShare = 4;

/// The amount of work. Parts are those of the effort of a device's plan.
struct Amounts {
  int64_t boundSteps;           // For the bound that guides the search.
  std::span<const Knobs> knobs; // For the best modes; each mode gets kTwo.
  /// Around the best knob the price is halved and doubled while that helps, at
  /// most this often.
  int refinements;
  int64_t modesPart, knobsPart, alonePart;
  size_t rankedModes; // The number planned of each ranking.
  /// The limit on plans times values in a search with a single knob.
  int64_t stepValues;
  /// Simulations of a plan with fewer moves.
  int64_t dropTrials;
};
inline constexpr Amounts kFull = {500, kAll, 3, 64, 16, 1, 5, 350'000, 40};
inline constexpr Amounts kCoarse = {60, {}, 0, 256, 256, 64, 1, 30'000, 0};
/// The search changes stretches of updates in the best modes, at most this many
/// at the finest; it plans the most promising of these changes, at most
/// kNeighbours.
inline constexpr size_t kStretches = 16, kFarStretches = 64, kNeighbours = 8;

/// Parts of the budget that stay free in the ranking of modes, none at first.
inline constexpr int64_t kFreeParts[] = {0, 32, 16, 8, 5};

/// Plans at least this part above the bound are far from it: they are worth
/// every row, and stretches down to one update.
inline constexpr int64_t kFarPart = 20;
/// Plans at least this part above the bound are worth more work on the bound.
inline constexpr int64_t kUnprovenPart = 100;
/// In a coarse search, plans at most this part above the bound are near enough.
inline constexpr int64_t kNearPart = 33;

/// In a coarse search, as long as nothing fits, plans of the device get this
/// many times their part of the work: with a tight budget more work finds a
/// plan that fits, and a failure of all rows takes longer.
inline constexpr int64_t kPressedShare = 4;

/// Parts of the device's budget that smaller forms of a plan leave free, since
/// packing may lose that much.
inline constexpr int64_t kSpareParts[] = {64, 32, 16};

/// A plan may take 1/kLeanPart longer to take less beside the device: a larger
/// budget must not cost more time than that. Up to
/// kLeanStretches stretches of updates are tried there, as often as
/// 1/kLeanShare of `stepValues` permits.
inline constexpr int64_t kLeanPart = 2000, kLeanShare = 4;
inline constexpr size_t kLeanStretches = 16;

/// Problems of up to this many instructions are planned exactly, where the
/// caller can.
inline constexpr size_t kExactInstructions = 12;

/// A gain below this part of the step isn't sought.
inline constexpr int64_t kWorthPart = 2000;
/// Steps of up to this many instructions are planned with every row; the number
/// shrinks with `leastPercent` if less effort than usual is requested.
inline constexpr size_t kFewKernels = 400;
/// Steps of more instructions are planned with fewer knobs and without a second
/// pass: a part of the work rarely ends in a plan that fits. Once there is a
/// plan, kMostVain choices in a row without one end the search. A plan's moves
/// are taken out in 1/kManyShare of the usual trials.
inline constexpr size_t kManyKernels = 100'000;
inline constexpr int kMostVain = 4;
inline constexpr int64_t kManyShare = 5;

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_MOVESAMOUNTS_H
