// Account.h - the decisions of a plan for each value, and their costs.
//
// A plan is a list of executions. Its account lists the rows in which each
// value is held, the gaps between two uses that were bridged by holding the
// value or by recomputing it, the cost of both, and the bytes that each lever
// took off the peak.
//
// Loops are folded to one trip: a row stands for an execution in every trip, an
// interval for the instance of a middle trip. The worth of a value in a gap
// follows from the prices of the plan's certificate (Bound.h) for the device's
// bytes: the sum of the prices of the moments strictly inside the gap, times
// the value's bytes. If a gap is worth more than its break costs, the plan of
// the proof breaks it, too.

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
      0; // The most over the trips on the device, without reserved bytes.
  double price = 0; // The price of a byte here, in cost units; 0 if unknown.
  int32_t other = kNone; // The row of a Start's Done, of a Done's Start.
  /// Its time span, in each of the trips shown (`Timeline::times`).
  std::vector<TimeSpan> times;
  /// `liveBytes` of the other spaces.
  std::vector<int64_t> otherBytes;
};

/// The bytes of `value`, from one execution that writes it.
struct LiveInterval {
  ValueId value = kNone;
  int32_t begin = 0, end = 0; // Rows [begin, end).
  int32_t storageOf = kNone;  // The interval whose storage it reuses.
};

/// A span from a value's production, or a use of it, to its next use.
struct GapDecision {
  ValueId value = kNone;
  /// Rows of the two ends; both belong to instructions.
  int32_t from = 0, to = 0;
  bool held = false;     // False: recomputed inside, or moved.
  SpaceId space = 0;     // The space of a moved value; 0: it isn't moved.
  bool overPeak = false; // The row of the peak lies strictly inside.
  /// Least cost of recomputing the value by kernels; -1: not possible.
  int64_t leastCost = 0;
  /// Time of the links for a move to the host and back; -1: the value can't
  /// leave.
  int64_t moveCost = -1;
  /// The cost of recomputing the value inside the gap, or of its moves (time of
  /// other engines); and the time that compute waits for the moves.
  int64_t paidCost = 0, waitedCost = 0;
  int64_t worth = -1; // Its bytes times the prices inside; -1: no prices.

  /// The least cost of not holding the value; 0 if unknown.
  int64_t breakCost() const {
    return leastCost < 0  ? std::max<int64_t>(moveCost, 0)
           : moveCost < 0 ? leastCost
                          : std::min(leastCost, moveCost);
  }
};

/// The effect of the moves of one class of contents: the plan compared with the
/// same plan in which that class stays on the device. The classes don't add up:
/// two of them may be needed at one peak, or each at a peak of its own.
struct MovedClass {
  int64_t bytes = 0; // Off the device's peak.
  int64_t cost = 0;  // Added to the step's time.
};

/// Peaks, each with one lever more; in bytes, without reserved bytes.
/// `MoveLevers.h` computes the effect of moves.
struct Levers {
  int64_t plainPeak = 0;   // The program's order, nothing in place.
  int64_t inPlacePeak = 0; // Results may overwrite operands at their last read.
  int64_t lateUpdatePeak = 0; // The plan's order, updates at the end.
  int64_t orderPeak = 0;      // The plan's order.
  int64_t recomputedPeak = 0; // With recomputation, all on the device.
  int64_t planPeak = 0;       // With moves: the plan.
  /// The added time; the sum is the plan's time minus the base cost.
  int64_t recomputeCost = 0, movesCost = 0;
  MovedClass activations; // Results of kernels.
  MovedClass optimizer;   // States, and updates that run on the host.
  MovedClass parameters;
};

struct Account {
  std::vector<AccountRow> rows;
  std::vector<LiveInterval> intervals; // In ascending order of `begin`.
  /// For each segment, the length of each of the trips shown.
  std::vector<std::vector<int64_t>> tripLengths;
  std::vector<GapDecision> gaps; // Only of values that may be absent.
  int32_t peakRow = 0;
  int64_t peakBytes = 0;
  Levers levers;
};

/// The account of a plan that has passed the verifier.
absl::StatusOr<Account> account(const Problem &problem, const Plan &plan);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_ACCOUNT_H
