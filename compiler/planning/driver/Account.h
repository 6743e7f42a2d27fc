// Account.h - what a plan did with every value, and what that is worth.
//
// A plan is a list of executions. Its account says the same in the terms in
// which people ask: which value is held when, which gaps between two uses of it
// were bridged by holding it and which by recomputing it, what each of both
// costs, and what each lever took off the peak.
//
// Loops are folded to one trip: a row stands for an execution in every trip, an
// interval for the instance of a middle trip. What a value weighs in a gap
// follows from the prices of the plan's certificate (Bound.h): the sum of the
// prices of the moments strictly inside, times its bytes. A gap that weighs
// more than it costs to break is one that the proof breaks, too.

#ifndef TMC_COMPILER_PLANNING_DRIVER_ACCOUNT_H
#define TMC_COMPILER_PLANNING_DRIVER_ACCOUNT_H

#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/model/Problem.h"

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
  bool held = false;     // Else: recomputed inside.
  bool overPeak = false; // The row of the peak lies strictly inside.
  int64_t leastCost = 0; // Breaking it costs at least this.
  int64_t paidCost = 0;  // What the recomputations of the value inside cost.
  int64_t worth = -1;    // Its bytes at the prices inside; -1: no prices.
};

/// Peaks, each with one lever more; in bytes, reserved left out.
struct Levers {
  int64_t plainPeak = 0;   // The program's order, nothing in place.
  int64_t inPlacePeak = 0; // With results in the place of what they read last.
  int64_t lateUpdatePeak = 0; // The plan's order, updates at the end.
  int64_t orderPeak = 0;      // The plan's order.
  int64_t planPeak = 0;       // With recomputation.
  int64_t recomputeCost = 0;  // Cost over the base.
};

struct Account {
  std::vector<AccountRow> rows;
  std::vector<LiveInterval> intervals; // In ascending order of `begin`.
  std::vector<GapDecision> gaps;       // Of values that could be recomputed.
  int32_t peakRow = 0;
  int64_t peakBytes = 0;
  Levers levers;
};

/// The account of a plan that has passed the verifier.
absl::StatusOr<Account> account(const Problem &problem, const Plan &plan);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_ACCOUNT_H
