// Search.h - the search for one order of the instructions.
//
// Starts (by price, by segments, by a beam) give a schedule; annealing walks
// lower its cost. The rows are those of `Strategies.h`; the sequence is fixed:
//
//     prices, segments, beam, lower-aim              the cheapest is the start
//     warm, cold, warm, ...                          until nothing is gained
//     more                                           far from the bound only
//
// `findFrontier` seeks plans for smaller and smaller limits.

#ifndef TMC_COMPILER_PLANNING_DRIVER_SEARCH_H
#define TMC_COMPILER_PLANNING_DRIVER_SEARCH_H

#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/search/Anneal.h"

#include <chrono>

namespace tmc::planning {

using Clock = std::chrono::steady_clock;

/// One call of `solve`, for one order of the instructions.
class Search {
public:
  Search(const Problem &problem, const SolveOptions &options,
         const Orders &orders, Clock::time_point start,
         bool holdsExpensive = false);

  /// The best plan found within `liveBytes`, persistent values included. The
  /// search starts from `known` if that is feasible. No plan costs less than
  /// `provenCost`.
  RematPlan plan(int64_t liveBytes, int64_t provenCost,
                 const std::vector<double> &prices, RematPlan known = {});

  /// The least cost of a plan that recomputes an expensive operation, if there
  /// is one: a loss over a large vocabulary can take a quarter of a step.
  std::optional<int64_t> expensiveCost() const;

  /// Plans for smaller and smaller limits, independent of the budget.
  void findFrontier(int64_t basePeak);

  /// Prices are per instruction; pseudo stages have none.
  std::vector<double> stagePrices(const std::vector<double> &prices) const;

  bool has(Strategy strategy) const {
    return !options.without.has(strategy) &&
           linear.stages.size() <= rowOf(strategy).mostStages;
  }
  /// The part of an order's work that a row gets.
  int64_t workOf(Strategy strategy) const {
    return budgetWork / rowOf(strategy).divisor;
  }
  bool stopped();

  struct FrontierPoint {
    int64_t peak;
    RematPlan plan;
  };
  LinearProblem linear;
  GapModel model;
  std::optional<Repeats> repeats;
  std::vector<FrontierPoint> frontier; // By descending peak.
  int64_t budgetWork;
  int64_t impossible; // No plan of this order has fewer live bytes.
  int64_t work = 0;
  bool timeLimitHit = false;
  bool stoppedEarly = false; // `findFrontier` ended early.

private:
  /// The best plan so far.
  struct Best {
    RematPlan plan;
    /// Returns whether `found` fits and costs less. An infeasible plan is
    /// replaced in any case.
    bool offer(RematPlan found) {
      bool better =
          found.feasible && (!plan.feasible || found.cost < plan.cost);
      if (better || !plan.feasible)
        plan = std::move(found);
      return better;
    }
  };

  bool isExpensive(const LinearOp &op) const {
    return tmc::planning::isExpensive(op.cost, linear.baseCost) &&
           op.firstStage <= op.lastStage;
  }
  static void forbidRecomputation(LinearOp &op) {
    op.firstStage = 0, op.lastStage = -1;
  }
  void holdExpensive();
  void addHeadroom(const std::vector<int64_t> &bytes);
  bool isSmall() const { return linear.stages.size() <= kSmallStages; }

  void findStarts(Schedule &schedule, int64_t liveBytes,
                  const std::vector<double> &prices, bool hasGiven, Best &best);
  void findByBeam(Schedule &schedule, int64_t liveBytes,
                  const std::vector<double> &prices, RematPlan &best,
                  bool wantAny = false);
  RematPlan constructFor(Schedule &schedule, int64_t amount,
                         const RematPlan &known);
  bool wantsChains(int64_t provenCost, const RematPlan &known) const;
  /// Walks with one of `chains` parts of the work. Returns the cost of the best
  /// plan before the last walks.
  int64_t walk(Schedule &schedule, int64_t provenCost,
               const std::optional<RematPlan> &given, int64_t chains,
               Best &best);
  void walkOn(Schedule &schedule, int64_t provenCost, int64_t earlier,
              int64_t chains, Best &best);
  RematPlan annealFor(Schedule &schedule, int64_t amount, double temperature,
                      double penaltyRamp = 0,
                      double firstPenalty = AnnealOptions().firstPenalty);

  const SolveOptions &options;
  Clock::time_point start;
  Random random;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_SEARCH_H
