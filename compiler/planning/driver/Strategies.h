// Strategies.h - the strategies of the planner, in one table, and their work.
//
// A portfolio finds a plan: orders of the instructions, starts for each order,
// walks from the best start, and, after packing, repairs. `kStrategies` has one
// row for each:
//
//     stage     rows                                  code
//     Order     list-order, held-order, ...           driver/FreeOrder.cpp
//     Start     prices, segments, beam, ...           driver/Search.cpp
//     Walk      cold, warm, more                      driver/Search.cpp
//     Move      copy, switch                          search/Anneal.cpp
//     Fit       second-walk, repack, repairs          driver/PlanCache.cpp
//     Bound     cases                                 driver/Solve.cpp
//     Moves     rules, modes, knobs, ...              driver/MovesSearch.cpp
//
// A row gives the largest size that it applies to, and its part of an order's
// counted work. `SolveOptions::without` leaves rows out by name;
// bench/planning/ablation.py uses that to measure the gain of each row.
//
// The compiler and `tmc-solve` differ only in *effort*: the counted steps of an
// order, and the repetitions of a row. Work is counted, not timed (one to two
// nanoseconds a step), so a plan is a function of the problem, the seed and the
// effort.
//
// Source of the constants: unless a line names one, a constant was set by hand
// on the instances of bench/planning/README.md.

#ifndef TMC_COMPILER_PLANNING_DRIVER_STRATEGIES_H
#define TMC_COMPILER_PLANNING_DRIVER_STRATEGIES_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace tmc::planning {

enum class Strategy : uint8_t {
  ListOrder,
  HeldOrder,
  ProgramOrder,
  HoldExpensive,
  Prices,
  Segments,
  Beam,
  LowerAim,
  ColdWalk,
  WarmWalk,
  MoreWalks,
  CopyMove,
  SwitchMove,
  SecondWalk,
  Repack,
  LocalRepair,
  GlobalRepair,
  Cases,
  Rules,
  Modes,
  Stretches,
  Knobs,
  Refine,
  SecondPass,
  LoopChoices,
  Alone,
  SmallerForms,
  Leaner,
};

struct StrategyRow {
  Strategy strategy;
  std::string_view name;  // For `tmc-solve --without`.
  std::string_view stage; // The stage of the portfolio; see above.
  size_t mostStages;      // Instructions up to which it applies.
  int64_t divisor;        // Its work is 1/divisor of an order's; 0: none.
  std::string_view what;
};

inline constexpr size_t kAnySize = std::numeric_limits<size_t>::max();
/// Small steps, of a few layers: every instruction can be tried many times.
inline constexpr size_t kSmallStages = 2000;

inline constexpr StrategyRow kStrategies[] = {
    {Strategy::ListOrder, "list-order", "Order", kAnySize, 16,
     "anneals from a list schedule as well"},
    {Strategy::HeldOrder, "held-order", "Order", kAnySize, 16,
     "orders that also hold few bytes below the limit"},
    {Strategy::ProgramOrder, "program-order", "Order", kAnySize, 8,
     "plans the program's own order beside the new ones"},
    {Strategy::HoldExpensive, "hold-expensive", "Start", kAnySize, 1,
     "first seeks plans that recompute nothing expensive"},
    {Strategy::Prices, "prices", "Start", kAnySize, 5,
     "one pass by price, in a subgradient loop"},
    {Strategy::Segments, "segments", "Start", 5000, 0,
     "checkpoints by segments of equal length"},
    {Strategy::Beam, "beam", "Start", 400, 10,
     "many states of memory side by side"},
    {Strategy::LowerAim, "lower-aim", "Start", kSmallStages, 30,
     "prices for limits up to 3 % lower"},
    {Strategy::ColdWalk, "cold", "Walk", kSmallStages, 5,
     "anneals from nothing, at a high temperature"},
    {Strategy::WarmWalk, "warm", "Walk", kAnySize, 10,
     "anneals the best plan, at a low temperature"},
    {Strategy::MoreWalks, "more", "Walk", kSmallStages, 2,
     "goes on far from the bound, while that pays"},
    {Strategy::CopyMove, "copy", "Move", kAnySize, 0,
     "copies between layers that repeat each other"},
    {Strategy::SwitchMove, "switch", "Move", kAnySize, 0,
     "runs an instruction by another variant"},
    {Strategy::SecondWalk, "second-walk", "Fit", kAnySize, 1,
     "two walks from the coarse plan instead of one"},
    {Strategy::Repack, "repack", "Fit", kAnySize, 0,
     "packs with other seeds before planning again"},
    {Strategy::LocalRepair, "local-repair", "Fit", kAnySize, 16,
     "plans again with headroom where buffers stick out"},
    {Strategy::GlobalRepair, "global-repair", "Fit", kAnySize, 16,
     "plans again for a smaller limit"},
    {Strategy::Cases, "cases", "Bound", kAnySize, 10, "a proof by cases"},
    {Strategy::Rules, "rules", "Moves", kAnySize, 0,
     "plans of published rules, as starts"},
    {Strategy::Modes, "modes", "Moves", kAnySize, 64,
     "sides of each update, the best by a sketch first"},
    {Strategy::Stretches, "stretches", "Moves", kAnySize, 64,
     "changes stretches of updates, by halving"},
    {Strategy::Knobs, "knobs", "Moves", kAnySize, 16,
     "all prices and free bytes for the best modes"},
    {Strategy::Refine, "refine", "Moves", kAnySize, 16,
     "halves and doubles the best price"},
    {Strategy::SecondPass, "second-pass", "Moves", kAnySize, 16,
     "searches once more far from the bound, with every row"},
    {Strategy::LoopChoices, "loop-choices", "Moves", kAnySize, 64,
     "fetches in each trip, or holds over all"},
    {Strategy::Alone, "alone", "Moves", kAnySize, 1,
     "plans recomputation without moves"},
    {Strategy::SmallerForms, "smaller-forms", "Moves", kAnySize, 0,
     "keeps slower forms with smaller peaks, for packing"},
    {Strategy::Leaner, "leaner", "Moves", kAnySize, 64,
     "takes less beside the device, for 0.05 % of the step"},
};

inline constexpr const StrategyRow &rowOf(Strategy strategy) {
  return kStrategies[size_t(strategy)];
}

/// A set of rows that are left out.
class Without {
public:
  void add(Strategy strategy) { bits |= uint32_t(1) << uint32_t(strategy); }
  bool has(Strategy strategy) const { return bits >> uint32_t(strategy) & 1; }

private:
  uint32_t bits = 0;
};

/// The amount of work; the set of rows doesn't depend on it.
struct Effort {
  /// Percent of the counted work; parts are at least `leastPercent`, which
  /// shrinks if less than the usual effort is requested.
  double percent = 100, leastPercent = 1;
  /// No order gets more counted work; 0: no limit.
  int64_t mostWork = 500'000'000;

  /// Counted work of an order of up to `kDenseStages` stages: by stage, and the
  /// least and the most for an order.
  int64_t workPerSmallStage = 600'000;
  int64_t leastSmallWork = 120'000'000;
  int64_t mostSmallWork = 250'000'000;
  /// The most for each stage of larger orders.
  int64_t workPerLargeStage = 60'000;

  /// Walks from the empty plan, and the number of walks in a row without a gain
  /// that ends the walks of a small problem.
  int coldWalks = 1;
  int idleWalks = 4;
  /// Further walks far from the bound, at most.
  int moreWalks = 12;
  /// Up to this number of instructions, orders are also sought by the excess
  /// alone.
  int64_t fewInstructions = 600;
  /// The most new orders that are planned, each with 1/orderDivisor of the
  /// work.
  int orders = 1;
  int64_t orderDivisor = 1;
  /// Plan the program's own order with all of the work as well, unless a bound
  /// proves that it can't win: then a free order never costs more than the
  /// fixed one.
  bool guardsProgramOrder = false;

  /// For a waiting user of the compiler: one to three seconds for a step of a
  /// thousand launches.
  static Effort interactive() { return {}; }
  /// For `tmc-solve`: seconds to minutes for an instance.
  static Effort thorough();

  /// Counted work of one order of `stages` stages.
  int64_t workOf(int64_t stages) const;
  /// The effort with this percentage of the work.
  Effort scaled(int64_t percent) const;
  /// The effort with 1/part of the work.
  Effort part(int64_t part) const;
};

/// More counted work by stage never pays for a small problem.
inline constexpr int64_t kMostWorkPerStage = 5'500'000;
/// Up to this number of stages, work grows with the size; beyond, it falls
/// until `kLeastWorkPerStage` is reached.
inline constexpr int64_t kDenseStages = 1000;
inline constexpr int64_t kWorkTimesStages = 4'000'000'000'000;
inline constexpr int64_t kLeastWorkPerStage = 18'000;

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_STRATEGIES_H
