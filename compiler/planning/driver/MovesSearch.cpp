#include "compiler/planning/driver/MovesSearch.h"

#include "compiler/planning/driver/FreeOrder.h"
#include "compiler/planning/driver/HostRoom.h"
#include "compiler/planning/driver/MovesAmounts.h"
#include "compiler/planning/driver/OfferPlan.h"
#include "compiler/planning/driver/RefineKnobs.h"
#include "compiler/planning/driver/TakeLess.h"
#include "compiler/planning/moves/LoopChoices.h"
#include "compiler/planning/moves/ModeLoads.h"
#include "compiler/planning/moves/Moves.h"
#include "compiler/planning/moves/NetworkProjection.h"
#include "compiler/planning/moves/UpdateGroups.h"
#include "compiler/planning/search/Order.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <utility>

using namespace tmc::planning;

namespace {

constexpr int64_t kNoPlan = std::numeric_limits<int64_t>::max();

class MovesSearch {
public:
  MovesSearch(const Problem &problem, const SolveOptions &options,
              std::vector<MovedPlan> &smaller)
      : problem(problem), options(options), smaller(smaller),
        amounts(options.coarse ? kCoarse : kFull),
        isSmall(double(problem.instructions.size()) <=
                double(kFewKernels) * options.effort.leastPercent),
        isLarge(problem.instructions.size() > kManyKernels), host(problem) {}

  absl::StatusOr<Plan> run() {
    auto start = std::chrono::steady_clock::now();
    if (absl::Status status = check(problem); !status.ok())
      return status;
    best.baseCost = baseCost(problem);
    best.orders = programOrders(problem);
    best.certificate = prove(problem, {.steps = amounts.boundSteps});
    if (options.start)
      if (absl::Status status = offerKnown(problem, *options.start, best);
          !status.ok())
        return status;
    if (!canGain(0))
      return std::move(best);
    groups = findUpdateGroups(problem);
    bestModes = plainModes(groups);
    if (has(Strategy::Rules))
      failure.Update(offerRules(
          problem, options.coarse,
          [&](int64_t least) {
            return isLarge ? isWorth(least) : canGain(least);
          },
          best));
    if (has(Strategy::Modes))
      tryModes();
    if (has(Strategy::LoopChoices))
      tryLoopChoices();
    if (has(Strategy::Alone))
      recompute();
    if (has(Strategy::Leaner) && !options.coarse && best.feasible)
      takeLess();
    if (options.exact && canGain(0) &&
        problem.instructions.size() <= kExactInstructions)
      tryExact();
    if (!failure.ok())
      return failure;
    if (!options.coarse && isAbove(kUnprovenPart))
      if (Certificate more = prove(problem);
          more.provenCost > best.certificate.provenCost)
        best.certificate = std::move(more);
    best.stats.tried = tried;
    best.stats.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    return std::move(best);
  }

private:
  bool has(Strategy row) const { return !options.without.has(row); }

  /// True if plans that take `least` or longer may be faster than the best. A
  /// failure ends the search.
  bool canGain(int64_t least) const {
    if (!failure.ok())
      return false;
    const int64_t proven = std::max(least, best.certificate.provenCost);
    return proven < options.useless && (!best.feasible || best.cost > proven);
  }
  /// Whether they may be faster by at least 1/kWorthPart of the best plan.
  bool isWorth(int64_t least) const {
    return canGain(least + (best.feasible ? best.cost / kWorthPart : 0));
  }

  /// The result of one choice.
  struct Made {
    int64_t makespan = kNoPlan;
    bool isFinal = false; // Other knobs give the same result.
  };

  Made fail(const absl::Status &status) {
    failure.Update(status);
    return {kNoPlan, true};
  }

  /// One plan of the device and its moves.
  Made evaluate(const UpdateModes &modes, const Knobs &knobs, int64_t part) {
    const Made nothing{kNoPlan, true};
    // Recomputation alone is sought for any gain, however small.
    const bool isAlone = std::isinf(knobs.price);
    auto seeks = [&](int64_t least) {
      return mostCost >= 0 ? least <= mostCost
             : isAlone     ? canGain(least)
                           : isWorth(least);
    };
    if (!seeks(best.certificate.provenCost) ||
        (isLarge && !isThorough() && vain >= kMostVain))
      return nothing;
    SpaceChoice choice = choiceOf(problem, groups, modes);
    choice.loops = loops;
    host.limit(choice, knobs.price);
    absl::StatusOr<Projection> projection =
        project(problem, choice, knobs.price);
    if (absl::IsNotFound(projection.status()))
      return nothing; // A needed move isn't offered.
    if (!projection.ok())
      return fail(projection.status());
    if (!seeks(std::max(best.certificate.provenCost,
                        leastMakespan(problem, *projection))))
      return nothing;
    ++tried;
    absl::StatusOr<Plan> plan =
        solveFixed(projection->problem, deviceOptions(knobs, part),
                   std::chrono::steady_clock::now());
    if (!plan.ok())
      return fail(plan.status());
    vain = plan->feasible ? 0 : vain + 1;
    if (!plan->feasible && !isThorough()) {
      if (knobs.pieces == 0)
        return Made();
      return evaluate(modes, {knobs.price, 0, knobs.walks}, part);
    }
    absl::StatusOr<MovedPlan> moved = placeMoves(
        problem, choice, *projection, plan->solution, problem.liveLimitOf(0));
    if (isRefused(moved, best.stats.refused))
      return nothing;
    if (!moved.ok())
      return fail(moved.status());
    if (plan->feasible && host.isOver(moved->peakBytes, choice, knobs.price))
      return evaluate(modes, knobs, part); // With fewer moves.
    const int64_t makespan = moved->makespan;
    if (mostCost >= 0) {
      if (takeIfLess(*moved)) {
        bestModes = modes, bestKnobs = knobs;
        keepSmaller(choice, *projection, *plan);
      }
      return {makespan, plan->cost == plan->baseCost};
    }
    const bool gains = !best.feasible || makespan < best.cost;
    const bool isOffered = offerPlan(problem, *std::move(moved), best);
    if (gains && isOffered) {
      bestModes = modes, bestKnobs = knobs;
      isTightBeside = !choice.stays.empty();
      keepSmaller(choice, *projection, *plan);
    }
    return Made{isOffered ? makespan : kNoPlan,
                plan->feasible && plan->cost == plan->baseCost};
  }

  /// Whether a plan is sought with every row: for small problems, as long as
  /// nothing fits, and far from the bound.
  bool isThorough() const { return isSmall || isFar || !best.feasible; }

  /// True if the best plan is at least 1/part above the bound.
  bool isAbove(int64_t part) const {
    const int64_t proven = best.certificate.provenCost;
    return canGain(proven + proven / part);
  }

  SolveOptions deviceOptions(const Knobs &knobs, int64_t part) const {
    const int64_t keptFree = knobs.pieces * largestMove;
    const int64_t budget = problem.spaces[0].budgetBytes;
    if (options.coarse && !isSmall && !best.feasible)
      part = std::max<int64_t>(1, part / kPressedShare);
    SolveOptions how;
    how.seed = options.seed;
    how.effort = options.effort.part(
        knobs.walks ? part : std::max<int64_t>(1, part / kPricesShare));
    if (isLarge && std::isinf(knobs.price))
      how.effort.mostWork = 0; // Less than all of it finds nothing.
    how.budgetBytes = budget < 0 ? -1 : std::max<int64_t>(0, budget - keptFree);
    how.wantBound = how.wantCases = false;
    how.wantSmallest = isThorough() && (!isLarge || std::isinf(knobs.price));
    if (isFar && part == amounts.modesPart) // Modes are compared by one plan
                                            // each.
      how.expensive = Expensive::Free;
    auto leaveOut = [&](std::initializer_list<Strategy> rows) {
      for (Strategy row : rows)
        how.without.add(row);
    };
    if (!isThorough() && part > 1)
      leaveOut({Strategy::Segments, Strategy::LowerAim, Strategy::CopyMove});
    how.dropsNeedless = !isThorough() && !knobs.walks;
    if (how.dropsNeedless)
      leaveOut({Strategy::ColdWalk, Strategy::WarmWalk, Strategy::MoreWalks});
    return how;
  }

  /// Keeps smaller forms of a plan; one of them may be faster.
  void keepSmaller(const SpaceChoice &choice, const Projection &projection,
                   const Plan &plan) {
    const int64_t limit = problem.liveLimitOf(0);
    if (options.coarse || limit < 0 || !has(Strategy::SmallerForms))
      return;
    failure.Update(keepSmallerForms(problem, choice, projection, plan.solution,
                                    limit, smaller, best.stats.refused));
    if (!smaller.empty() && smaller.front().makespan < best.cost)
      offerPlan(problem, smaller.front(), best);
  }

  /// The fastest plan of all, if it is faster than the best so far and the
  /// problem isn't too large.
  void tryExact() {
    absl::StatusOr<std::optional<MovedPlan>> plan =
        options.exact(problem, std::min(options.useless,
                                        best.feasible ? best.cost : kNoPlan));
    if (absl::IsUnimplemented(plan.status()) ||
        absl::IsResourceExhausted(plan.status()))
      return;
    if (!plan.ok())
      fail(plan.status());
    else if (*plan && !offerPlan(problem, std::move(**plan), best))
      fail(absl::InternalError("the optimum isn't what it says"));
    best.stats.exact = plan.ok();
  }

  /// Plans recomputation alone, with all of the effort.
  void recompute() {
    evaluate(plainModes(groups),
             {std::numeric_limits<double>::infinity(), 0, true},
             amounts.alonePart);
  }

  /// The best time with the few knobs by which modes are compared.
  int64_t tryFew(const UpdateModes &modes) {
    int64_t least = kNoPlan;
    for (const Knobs &k : few) {
      const Made made = evaluate(modes, k, amounts.modesPart);
      least = std::min(least, made.makespan);
      if (made.isFinal)
        break;
    }
    return least;
  }

  void tryAllKnobs(const UpdateModes &modes) {
    const std::span<const Knobs> knobs = isFar ? kFar : amounts.knobs;
    int64_t least = kNoPlan;
    Knobs at = knobs[0];
    bool isFinal = false;
    auto attempt = [&](const Knobs &k) {
      const Made made = evaluate(modes, k, amounts.knobsPart);
      isFinal = made.isFinal;
      if (made.makespan >= least)
        return made.makespan == kNoPlan ? Trial::DoesNotFit
                                        : Trial::DoesNotGain;
      least = made.makespan, at = k;
      return Trial::Gains;
    };
    for (const Knobs &k : knobs) {
      attempt(k);
      // Even all rows, or most of the work, find no plan that fits.
      const bool isVain = (isFar && !groups.all.empty()) || isLarge;
      if (isFinal || (isVain && least == kNoPlan && k.pieces == 0))
        return;
    }
    if (!has(Strategy::Refine))
      return;
    refineKnobs(at, amounts.refinements, attempt);
    if (!host.isFull() || isLarge)
      return;
    // Near the price that fills the host, walks choose better than its rule.
    host.isOff = true;
    least = kNoPlan;
    for (const Knobs &k : kNearFull)
      attempt(k);
    if (least != kNoPlan) {
      refineKnobs(at, amounts.refinements, attempt);
      isTightBeside = false; // The second pass may use such plans, too.
    }
    host.isOff = false;
  }

  /// Tries all knobs with `modes`, and with the moves of activations alone.
  void tryKnobsOf(const UpdateModes &modes) {
    if (!has(Strategy::Knobs))
      return;
    tryAllKnobs(modes);
    if (modes != plainModes(groups))
      tryAllKnobs(plainModes(groups));
  }

  void tryModes() {
    for (const Recipe &r : problem.recipes)
      if (problem.isMove(r))
        largestMove = std::max(largestMove, problem.values[r.writes[0]].bytes);
    UpdateModes now = plainModes(groups);
    int64_t least = kNoPlan;
    ModeLoads loads(problem, groups);
    tryRanked(loads, now, least);
    moveTo(plainModes(groups), now, least);
    if (options.coarse) {
      if (!isAbove(kNearPart))
        return;
      few = {&bestKnobs, 1};
      moveOn(loads, now, least);
      return;
    }
    moveOn(loads, now, least);
    tryKnobsOf(now);
    // The bound doesn't count bytes beside the device: where they limit the
    // best plan, it is far from the bound.
    isFar = has(Strategy::SecondPass) && !options.coarse && !isSmall &&
            !isLarge && !isTightBeside && isAbove(kFarPart);
    if (isFar) {
      chooseOne(now, least);
      moveOn(loads, now, least);
      tryKnobsOf(now);
    }
  }

  /// Plans the modes that the sketch ranks first, with more and more of the
  /// budget kept free: plans need more bytes than the sketch estimates.
  void tryRanked(ModeLoads &loads, UpdateModes &now, int64_t &least) {
    const int64_t budget = problem.spaces[0].budgetBytes;
    for (int64_t part : kFreeParts) {
      loads.keepFree(part && budget > 0 ? budget / part : 0);
      bool isPromising = false;
      for (const ModeLoads::Candidate &candidate :
           loads.ranked(amounts.rankedModes)) {
        if (least != kNoPlan &&
            candidate.loads.estimate > least - least / kWorthPart)
          break;
        isPromising = true;
        moveTo(candidate.modes, now, least);
      }
      // With less of the budget the estimates are longer.
      if (isLarge && !isPromising)
        break;
    }
    loads.keepFree(0);
  }

  /// Plans the loop choices: values fetched in each trip, or held over all
  /// trips.
  void tryLoopChoices() {
    std::set<UpdateModes> modes = known;
    if (!isSmall)
      modes = best.feasible ? std::set{bestModes} : std::set<UpdateModes>();
    for (const LoopChoice &choice : loopChoices(problem)) {
      loops = choice;
      for (const UpdateModes &m : modes)
        tryFew(m);
    }
    loops = {};
  }

  /// Moves to `modes` if they give a step faster than `least`.
  bool moveTo(const UpdateModes &modes, UpdateModes &now, int64_t &least) {
    if (!known.insert(modes).second)
      return false;
    const int64_t made = tryFew(modes);
    const bool gains = made < least;
    if (gains)
      least = made, now = modes;
    return gains;
  }

  /// Keeps the one of the few knobs with which `now` is faster.
  void chooseOne(const UpdateModes &now, int64_t &least) {
    int64_t quickest = kNoPlan;
    for (const Knobs &k : kTwo)
      if (const Made made = evaluate(now, k, amounts.modesPart);
          made.makespan <= quickest)
        quickest = made.makespan, few = {&k, 1};
    least = std::min(least, quickest);
  }

  /// Improves `now` by changing stretches of groups, smaller and smaller; with
  /// a single knob up to a limit of plans.
  void moveOn(const ModeLoads &loads, UpdateModes &now, int64_t &least) {
    if (!has(Strategy::Stretches))
      return;
    const int64_t lastTried =
        few.size() > 1
            ? kNoPlan
            : tried + amounts.stepValues / int64_t(problem.values.size());
    const size_t finest = isFar ? kFarStretches : kStretches;
    for (size_t count = 2; count <= finest; count *= 2) {
      const auto stretches = loads.stretches(count);
      std::vector<ModeLoads::Candidate> next;
      for (auto [first, last] : stretches)
        for (size_t m = 0; m < kNumGroupModes; ++m) {
          UpdateModes modes = now;
          for (size_t i = first; i < last; ++i)
            modes[i] = possibleMode(groups.all[i], GroupMode(m));
          if (modes != now)
            next.push_back({loads.of(modes), std::move(modes)});
        }
      std::stable_sort(next.begin(), next.end(),
                       [](const auto &a, const auto &b) {
                         return a.loads.estimate < b.loads.estimate;
                       });
      next.resize(std::min(next.size(), size_t(kNeighbours)));
      for (const ModeLoads::Candidate &candidate : next) {
        if (tried > lastTried)
          return;
        if (moveTo(candidate.modes, now, least)) {
          count = 1; // Restart from the new modes.
          break;
        }
      }
    }
  }

  /// Seeks plans that are a little slower and take less beside the device: the
  /// best one without needless moves, then others with more updates there.
  void takeLess() {
    MovedPlan now{best.solution, best.cost, best.peakBytes};
    mostCost = best.cost;
    takeIfLess(now);
    mostCost = std::max(mostCost + best.cost / kLeanPart,
                        withoutSmallGain(best.cost, best.baseCost));
    const int64_t lastTried = tried + amounts.stepValues / kLeanShare /
                                          int64_t(problem.values.size());
    offerLeanerModes(problem, groups, bestModes, [&](const UpdateModes &modes) {
      if (tried < lastTried)
        tryFew(modes);
    });
    mostCost = -1;
  }

  /// Takes needless moves out of `plan`. Makes it the best one if it isn't
  /// slower than permitted, and takes less.
  bool takeIfLess(MovedPlan &plan) {
    if (plan.makespan > mostCost || !fitsBudgets(problem, plan.peakBytes))
      return false;
    const int64_t trials = amounts.dropTrials / (isLarge ? kManyShare : 1);
    dropMoves(problem, problem.liveLimitOf(0), mostCost, trials, plan);
    if (!(takenBy(problem, plan.solution, plan.peakBytes) <
          takenBy(problem, best.solution, best.peakBytes)))
      return false;
    best.feasible = false; // Its place is taken.
    smaller.clear();
    return offerPlan(problem, std::move(plan), best);
  }

  const Problem &problem;
  const SolveOptions &options;
  std::vector<MovedPlan> &smaller;
  const Amounts amounts;
  const bool isSmall, isLarge;
  UpdateGroups groups;
  Plan best;
  absl::Status failure;        // The first error of a choice.
  std::set<UpdateModes> known; // Modes that were tried.
  UpdateModes bestModes;       // For the best plan; plain ones for a rule's.
  Knobs bestKnobs = kTwo[1];   // For the best plan of the search itself.
  LoopChoice loops;            // For the choice in evaluation.
  HostRoom host;
  int vain = 0;            // Choices in a row that the device can't hold.
  int64_t largestMove = 0; // Bytes.
  int64_t tried = 0;
  int64_t mostCost = -1;      // A plan that takes less may cost this; -1: none.
  bool isFar = false;         // The best plan is far from the bound.
  bool isTightBeside = false; // The best plan's moves are limited by `host`.
  std::span<const Knobs> few = kTwo;
};

} // namespace

absl::StatusOr<Plan>
tmc::planning::searchMoves(const Problem &problem, const SolveOptions &options,
                           std::vector<MovedPlan> &smaller) {
  return MovesSearch(problem, options, smaller).run();
}
