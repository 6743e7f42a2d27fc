// Solve.h - the entry point of planning: a problem and a budget in, a checked
// plan with its proof out.
//
// The caller's loop, which ends because the budget only shrinks:
//
//     plan = solve(problem, {.budgetBytes = B})
//     lower the plan to buffers, packArena (Arena.h)
//     while the arena exceeds B: solve again with B less the excess

#ifndef TMC_COMPILER_PLANNING_DRIVER_SOLVE_H
#define TMC_COMPILER_PLANNING_DRIVER_SOLVE_H

#include "compiler/planning/bound/Branch.h"
#include "compiler/planning/bound/SpaceBound.h"
#include "compiler/planning/driver/Strategies.h"
#include "compiler/planning/model/Problem.h"

#include <algorithm>

namespace tmc::planning {

enum class OrderMode : uint8_t {
  Fixed, // First executions keep the program's order.
  Free,  // Any order that the data allows.
};

/// A policy for expensive operations, as a loss over a large vocabulary.
enum class Expensive : uint8_t {
  HeldFirst, // Plans are sought first that don't recompute them.
  Held,      // They aren't recomputed.
  Free,      // They may be recomputed.
};

struct SolveOptions {
  /// Bytes that live values and `reservedBytes` may take; -1: no limit.
  int64_t budgetBytes = -1;
  OrderMode order = OrderMode::Fixed;
  uint64_t seed = 1;
  /// The amount of work (`Strategies.h`).
  Effort effort = Effort::interactive();
  /// Strategies that are left out, by name.
  Without without = {};
  /// Upper limit on the counted work of a search for the smallest plan, over
  /// all orders; if it ends the search, `Stats::stoppedEarly` is set. 0: none.
  int64_t smallestWork = 0;
  /// A time limit, 0: none. If it ends a search, `Stats::timeLimitHit` is set
  /// and the answer may differ from run to run.
  double timeLimitSeconds = 0;
  /// An initial plan, which may exceed the budget: a plan for a little more
  /// memory shortens the search for one with less. Null: none.
  const Solution *start = nullptr;
  /// For each instruction, bytes that stay free below the limit during its
  /// first execution, because a packing exceeded the budget there. Empty: none.
  /// Bounds and claims of infeasibility ignore it.
  std::vector<int64_t> headroom = {};
  Expensive expensive = Expensive::HeldFirst;
  /// With a free order: choose an order by an eighth of the work, and stop if
  /// it has a plan.
  bool coarse = false;
  /// Look for prices that prove a lower bound as well.
  bool wantBound = true;
  /// Look for a proof by cases, if that is affordable and proves more.
  bool wantCases = true;
  /// Look for the smallest budget with a plan even when this one has a plan.
  bool wantFrontier = false;
  /// Look for the smallest budget if this one has no plan.
  bool wantSmallest = true;
};

struct Stats {
  int64_t work = 0; // Units counted.
  int64_t recomputedExecutions = 0;
  int64_t repeatedInstructions = 0; // Isomorphic to another one (`Repeats.h`).
  double seconds = 0;
  bool timeLimitHit = false;
  /// `SolveOptions::smallestWork` ended the search for the smallest plan.
  bool stoppedEarly = false;
};

struct Plan {
  Solution solution;
  /// False: no plan within the budget was found, and `solution` is the known
  /// one with the smallest peak.
  bool feasible = false;
  int64_t peakBytes = 0; // Live peak, without reserved bytes.
  int64_t cost = 0;
  int64_t baseCost = 0;
  /// Budgets, reserved bytes included: the smallest known to work with the
  /// other options unchanged (the given one, if it works and nothing smaller is
  /// known), and the one below which no plan exists.
  int64_t smallestFoundBytes = 0;
  int64_t impossibleBelowBytes = 0;
  /// The order of first executions; the program's own unless free.
  std::vector<std::vector<InstructionId>> orders;
  /// Bounds `cost` from below over all plans with this order (`Bound.h`);
  /// empty when not asked for.
  Certificate certificate;
  /// A second bound over the same plans, where it is affordable and proves more
  /// than the prices do (`Branch.h`).
  std::optional<BranchCertificate> cases;
  /// The bound on the makespan of a plan with moves. Empty otherwise.
  SpaceCertificate spaceProof;
  Stats stats;

  /// The best bound: every plan with this order costs at least `baseCost` plus
  /// this.
  int64_t provenExtraCost() const {
    return cases ? std::max(cases->extraCost, certificate.extraCost)
                 : certificate.extraCost;
  }

  double overheadPct() const {
    return baseCost > 0 ? 100.0 * double(cost - baseCost) / double(baseCost)
                        : 0;
  }
};

/// Whether one operation takes at least 1/25 of the step.
inline bool isExpensive(int64_t cost, int64_t baseCost) {
  return cost >= baseCost / 25;
}

/// Whether `solution` recomputes an expensive operation.
bool recomputesExpensive(const Problem &problem, const Solution &solution);

/// An Unimplemented error if the problem has more than one space, one engine
/// and R1 to R8, which are the limits of the planners.
absl::Status plansOneSpace(const Problem &problem);

/// The best plan found within the counted work. An error: the problem is
/// malformed. An infeasible answer is no error: see `Plan::feasible`.
absl::StatusOr<Plan> solve(const Problem &problem, const SolveOptions &options);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_SOLVE_H
