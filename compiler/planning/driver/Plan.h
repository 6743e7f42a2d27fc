// Plan.h - a plan: its lists, its bytes and time, its arenas, and its proof.
//
// Every planner of a step makes a `Plan`, with moves and without. The order in
// which its parts become known:
//
//     a search      solution, feasible, cost, peakBytes, orders
//     a bound       certificate, cases
//     a packing     arenas
//     a frontier    smallestFoundBytes, impossibleBelowBytes
//
// Bytes are without reserved ones, except for budgets. Costs are picoseconds,
// or the unit of the problem.

#ifndef TMC_COMPILER_PLANNING_DRIVER_PLAN_H
#define TMC_COMPILER_PLANNING_DRIVER_PLAN_H

#include "compiler/planning/bound/Branch.h"
#include "compiler/planning/model/Problem.h"
#include "compiler/planning/pack/Arena.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace tmc::planning {

/// The arena of one space.
struct PlannedArena {
  int64_t bytes = 0;
  /// The live peak of its layout. A loop's body is laid out once, so a value
  /// that is alive only in the first trip has its place in all trips.
  int64_t livePeakBytes = 0;
  PackOptions packing = {}; // The options that give this arena.
};

struct Plan {
  Solution solution;
  /// Within the budgets of all spaces; of a packed plan the arenas are. False:
  /// no such plan was found, and `solution` is the known one with the smallest
  /// peak, if any.
  bool feasible = false;
  int64_t cost = 0; // The makespan.
  int64_t baseCost = 0;
  std::vector<int64_t> peakBytes;   // Live, for each space.
  std::vector<PlannedArena> arenas; // For each space; empty: not packed.
  /// Budgets of the device: the smallest known to work with all else unchanged
  /// (the given one, if it works and nothing smaller is known), and the one
  /// below which no plan exists. -1: none was found or sought.
  int64_t smallestFoundBytes = -1, impossibleBelowBytes = 0;
  /// The order of first executions; the program's own unless free.
  Orders orders;

  /// Bounds `cost` from below over all plans with this order (`Bound.h`); empty
  /// where nothing was sought.
  Certificate certificate;
  /// A second bound over the same plans of one space, where it is affordable
  /// and proves more than the prices do (`Branch.h`).
  std::optional<BranchCertificate> cases;

  struct Stats {
    int64_t work = 0;                 // Units counted.
    int64_t repeatedInstructions = 0; // Isomorphic to another (`Repeats.h`).
    int64_t tried = 0;                // Plans of the device, with moves.
    int64_t refused = 0;              // Invalid lists that were left out.
    bool exact = false; // An exact search ended: no plan is faster.
    double seconds = 0;
    bool timeLimitHit = false;
    /// `SolveOptions::smallestWork` ended the search for the smallest plan.
    bool stoppedEarly = false;
  } stats;

  int64_t arenaBytes() const { return arenas[0].bytes; } // Of the device.
  /// Every plan that the proof is about costs at least `baseCost` plus this.
  int64_t provenExtraCost() const {
    int64_t extra =
        certificate.weights.empty() ? 0 : certificate.provenCost - baseCost;
    return cases ? std::max(cases->extraCost, extra) : extra;
  }
  int64_t provenCost() const { return baseCost + provenExtraCost(); }
  double overheadPct() const {
    return baseCost > 0 ? 100.0 * double(cost - baseCost) / double(baseCost)
                        : 0;
  }
};

/// The problem in the order that the plan's certificate is about: the plan's
/// own with one space or with networks, else the program's.
Problem provenProblem(const Problem &problem, const Plan &plan);

/// The first defect of the plan's list, bytes or cost, by the verifier; or
/// nothing. `budgetBytes`: of the device, reserved included; -1: none.
std::optional<std::string> verifyPlan(const Problem &problem, const Plan &plan,
                                      int64_t budgetBytes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_PLAN_H
