// Account.h - what a plan did with every value, and what that is worth.
//
// A plan is a list of executions. Its account says the same in the terms in
// which people ask: which value is held when, which gaps between two uses of it
// were bridged by holding it and which by recomputing it, what each of both
// costs, and what each lever took off the peak.
//
// Loops are folded to one trip: a row stands for an execution in every trip, an
// interval for the instance of a middle trip. What a value weighs in a gap
// follows from the prices of the plan's certificate (Bound.h; SpaceBound.h, of
// the device's bytes, where values move): the sum of the
// prices of the moments strictly inside, times its bytes. A gap that weighs
// more than it costs to break is one that the proof breaks, too.

#ifndef TMC_COMPILER_PLANNING_DRIVER_ACCOUNT_H
#define TMC_COMPILER_PLANNING_DRIVER_ACCOUNT_H

#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/model/Problem.h"
#include "compiler/planning/model/Timeline.h"

#include <algorithm>

namespace tmc::planning {

/// One entry of the solution's lists, segments end to end.
struct AccountRow {
  SegmentId segment = 0;
  RecipeId recipe = kNone;
  InstructionId instruction = kNone; // kNone: a recomputation.
  int64_t trips = 1;
  Phase phase = Phase::Whole;
  int64_t liveBytes =
      0; // Of the device, the most over the trips, reserved left out.
  double price = 0; // Of a byte here, in cost units; 0 where none is known.
  int32_t other = kNone; // The row of a Start's Done, of a Done's Start.
  /// When it runs, in each of the trips shown (`Timeline::times`).
  std::vector<TimeSpan> times;
  /// The same as `liveBytes` of the spaces beside the device.
  std::vector<int64_t> otherBytes;
};

/// The bytes of `value` from one execution that writes it on.
struct LiveInterval {
  ValueId value = kNone;
  int32_t begin = 0, end = 0; // Rows [begin, end).
  int32_t storageOf = kNone;  // The interval whose place it took over.
};

/// A span from a value's production, or a use of it, to its next use.
struct GapDecision {
  ValueId value = kNone;
  /// Rows of the two ends: of executions that belong to instructions.
  int32_t from = 0, to = 0;
  bool held = false;     // Else: recomputed inside, or moved.
  SpaceId space = 0;     // Where it waits if it is moved; 0: it isn't.
  bool overPeak = false; // The row of the peak lies strictly inside.
  /// By kernels it costs at least this to have the value again; -1: none can.
  int64_t leastCost = 0;
  /// To the host and back takes so much of the links; -1: it can't leave.
  int64_t moveCost = -1;
  /// What the recomputations of the value inside cost, or its moves, whose
  /// time is other engines'; and how long compute waits for those.
  int64_t paidCost = 0, waitedCost = 0;
  int64_t worth = -1; // Its bytes at the prices inside; -1: no prices.

  /// What it would take not to hold it; 0 where nothing is known.
  int64_t breakCost() const {
    return leastCost < 0  ? std::max<int64_t>(moveCost, 0)
           : moveCost < 0 ? leastCost
                          : std::min(leastCost, moveCost);
  }
};

/// Peaks, each with one lever more; in bytes, reserved left out. What moves
/// buy is in `MoveLevers.h`.
struct Levers {
  int64_t plainPeak = 0;   // The program's order, nothing in place.
  int64_t inPlacePeak = 0; // With results in the place of what they read last.
  int64_t lateUpdatePeak = 0;  // The plan's order, updates at the end.
  int64_t orderPeak = 0;       // The plan's order.
  int64_t recomputedPeak = 0;  // With recomputation, all on the device.
  int64_t activationsPeak = 0; // With what kernels make moved.
  int64_t optimizerPeak = 0;   // And states, and updates on the host.
  int64_t planPeak = 0;        // And parameters: the plan.
  /// Time over that without the lever: they add up to the plan's over the
  /// base.
  int64_t recomputeCost = 0, activationsCost = 0, optimizerCost = 0,
          parametersCost = 0;
};

struct Account {
  std::vector<AccountRow> rows;
  std::vector<LiveInterval> intervals; // In ascending order of `begin`.
  /// Of each segment, how long each of the trips shown takes.
  std::vector<std::vector<int64_t>> tripLengths;
  std::vector<GapDecision> gaps; // Of values that may be absent.
  int32_t peakRow = 0;
  int64_t peakBytes = 0;
  Levers levers;
};

/// The account of a plan that has passed the verifier.
absl::StatusOr<Account> account(const Problem &problem, const Plan &plan);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_ACCOUNT_H
