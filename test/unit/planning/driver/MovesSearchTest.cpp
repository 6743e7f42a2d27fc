// Plans with moves against the optimum of small problems, and against what they
// may never lose to.

#include "compiler/planning/driver/MovesSearch.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/laboratory/GenerateStep.h"
#include "compiler/planning/laboratory/Graph.h"
#include "compiler/planning/model/OfferMoves.h"
#include "compiler/planning/model/ProblemFile.h"

#include "test/unit/planning/ExpectTrue.h"
#include "test/unit/planning/SpaceOptimum.h"
#include "test/unit/planning/SpaceProblem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

using namespace tmc::planning;

namespace {

/// How plans compare with the best lists of the program's kernels and two more:
/// those that the search finds alone, and the optimum's.
struct Comparison {
  int64_t instances = 0, found = 0, optimal = 0;
  int64_t slower = 0;       // Optima that cost more than without budgets.
  int64_t quicker = 0;      // Plans of more executions, quicker than all lists.
  std::vector<double> over; // Plans over optima, percent.

  /// Plans `w` in the budgets that a list meets, if there is one: of `draws`
  /// lists that of the fewest bytes on the device.
  void add(Random &random, SpaceProblem w, int draws = 1);
  void print();
};

void Comparison::add(Random &random, SpaceProblem w, int draws) {
  Problem &p = w.p;
  Plans plans(p, 2);
  if (plans.all.empty())
    return;
  auto draw = [&] {
    return &plans.all[random.below(uint32_t(plans.all.size()))];
  };
  const Plans::Plan *one = draw();
  for (int i = 1; i < draws; ++i)
    if (const Plans::Plan *next = draw(); next->peaks[0] < one->peaks[0])
      one = next;
  for (size_t s = 0; s < p.spaces.size(); ++s)
    p.spaces[s].budgetBytes = s && random.chance(0.4) ? -1 : one->peaks[s];
  std::optional<int64_t> optimum = optimumOf(p, plans);
  ASSERT_TRUE(optimum);
  ++instances;
  absl::StatusOr<Plan> exact = planWith("optimum", p);
  ASSERT_TRUE(exact.ok()) << exact.status().message() << printProblem(p);
  ASSERT_TRUE(exact->feasible) << printProblem(p);
  expectTrue(p, *exact);
  // Of loops only the lists are known.
  if (p.segments.size() > 1)
    ASSERT_LE(exact->cost, *optimum) << printProblem(p);
  else
    ASSERT_EQ(exact->cost, *optimum) << printProblem(p);
  absl::StatusOr<Plan> plan = solveMoves(p, {});
  ASSERT_TRUE(plan.ok()) << plan.status().message() << printProblem(p);
  slower += *optimum > simulate(p, baseSolution(p))->makespan;
  if (!plan->feasible || plan->cost > *optimum) {
    // What it misses is found in the end.
    absl::StatusOr<Plan> both = solveMoves(p, {.exact = planExactly});
    ASSERT_TRUE(both.ok() && both->feasible);
    ASSERT_EQ(both->cost, exact->cost);
    ASSERT_TRUE(both->stats.exact);
  }
  if (!plan->feasible)
    return;
  ++found;
  expectTrue(p, *plan);
  ASSERT_GE(plan->cost, plan->certificate.provenCost);
  ASSERT_LE(exact->cost, plan->cost);
  quicker += plan->cost < *optimum;
  optimal += plan->cost <= *optimum;
  over.push_back(100.0 * double(plan->cost - *optimum) / double(*optimum));
}

void Comparison::print() {
  std::sort(over.begin(), over.end());
  std::printf("  %lld instances (%lld can't be as quick as without budgets), "
              "%lld with a plan, %lld optimal (%lld quicker than all lists of "
              "two extras); median %.1f %%, worst %.1f %%\n",
              (long long)instances, (long long)slower, (long long)found,
              (long long)optimal, (long long)quicker, over[over.size() / 2],
              over.back());
}

} // namespace

TEST(SpaceSearch, IsNearTheOptimumOfSmallProblems) {
  Random random(57);
  Comparison seen;
  for (int i = 0; i < 2000; ++i)
    ASSERT_NO_FATAL_FAILURE(seen.add(random, randomSpaces(random, i % 2)));
  seen.print();
  EXPECT_EQ(seen.instances, 2000);
  EXPECT_EQ(seen.quicker, 0);
  EXPECT_GE(seen.slower, 50);
  EXPECT_GE(seen.found, seen.instances * 99 / 100);
  EXPECT_GE(seen.optimal, seen.instances * 99 / 100);
}

/// On shared memory plans are right, and no slower than the plan for engines of
/// half the speed, which never slow each other: two links with half of the
/// memory each, and updates with all of it, take twice as long at most.
TEST(SpaceSearch, SharesTheHostsMemory) {
  int64_t slowed = 0;
  for (double share : {1.0, 0.6, 0.35}) {
    StepOptions shape;
    shape.layers = 6;
    const Problem alone = [&] {
      Problem p = generateStep(shape);
      p.spaces[0].budgetBytes =
          int64_t(share * double(simulate(p, baseSolution(p))->peakBytes));
      return p;
    }();
    Problem shared = alone, halved = alone;
    for (Recipe &r : shared.recipes)
      r.busShare = shared.isMove(r)     ? kWholeBus / 2
                   : shared.isBeside(r) ? kWholeBus
                                        : 0;
    for (Recipe &r : halved.recipes)
      r.cost *= r.engine ? 2 : 1;
    SolveOptions options;
    options.effort = options.effort.part(32);
    options.without.add(Strategy::Leaner); // It may take longer.
    absl::StatusOr<Plan> plan = solveMoves(shared, options),
                         other = solveMoves(halved, options);
    ASSERT_TRUE(plan.ok() && other.ok());
    ASSERT_TRUE(plan->feasible && other->feasible);
    expectTrue(shared, *plan);
    EXPECT_GE(plan->cost, plan->certificate.provenCost);
    const int64_t there = simulate(shared, other->solution)->makespan;
    EXPECT_LE(there, other->cost);
    EXPECT_LE(plan->cost, there) << share;
    slowed += simulate(alone, plan->solution)->makespan < plan->cost;
    std::printf("  %.3f s, %.3f s of half speeds, %.3f s alone\n",
                double(plan->cost) * 1e-12, double(there) * 1e-12,
                double(simulate(alone, plan->solution)->makespan) * 1e-12);
  }
  EXPECT_GE(slowed, 2);
}

TEST(SpaceSearch, EndsAtAnError) {
  Random random(58);
  int64_t asked = 0;
  for (int i = 0; i < 50; ++i) {
    SpaceProblem w = randomSpaces(random, i % 2);
    w.p.spaces[0].budgetBytes =
        simulate(w.p, baseSolution(w.p))->peakBytes * 3 / 4;
    for (const absl::Status &status :
         {absl::InternalError("broken"), absl::UnimplementedError("")}) {
      bool isAsked = false;
      absl::StatusOr<Plan> plan =
          solveMoves(w.p, {.exact = [&](const Problem &, int64_t)
                               -> absl::StatusOr<std::optional<MovedPlan>> {
                       isAsked = true;
                       return status;
                     }});
      asked += isAsked;
      // The optimum may decline a problem.
      const bool fails = isAsked && !absl::IsUnimplemented(status);
      EXPECT_EQ(plan.status(), fails ? status : absl::OkStatus());
    }
  }
  EXPECT_GT(asked, 20);
}

TEST(SpaceSearch, AKnownPlanThatIsProvenIsWhole) {
  SpaceProblem w;
  w.p.spaces.resize(2);
  w.p.engines.resize(4);
  w.p.addSegment("step");
  w.value("a");
  w.form("a@host", "a");
  w.value("b", 1).liveOut = true;
  w.p.addInstruction(0, w.recipe("a", "", "a"));
  w.p.addInstruction(0, w.recipe("b", "a", "b"));
  w.move("puta", "a", "a@host", kD2H, 5);
  w.move("geta", "a@host", "a", kH2D, 5);
  const Solution known = baseSolution(w.p);
  SolveOptions options;
  options.start = &known;
  absl::StatusOr<Plan> plan = solveMoves(w.p, options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_TRUE(plan->feasible);
  EXPECT_EQ(plan->stats.tried, 0);
  EXPECT_EQ(plan->baseCost, baseCost(w.p));
  EXPECT_EQ(plan->cost, plan->baseCost);
  EXPECT_EQ(plan->orders, firstExecutions(known));
}

TEST(SpaceSearch, NeverLosesToRecomputingAloneNorToOtherRules) {
  constexpr const char *kRules[] = {"oldest-first", "knapsack", "chain"};
  int64_t plans = 0, alone = 0, won = 0, ruled[3] = {}, wonFrom[3] = {};
  int64_t tried = 0, triedCoarsely = 0, smaller = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    GenerateOptions shape;
    shape.nodes = 150;
    shape.seed = seed;
    const Problem one = *problemOf(generateGraph(shape));
    const Profile base = *simulate(one, baseSolution(one));
    // So many peaks a step go through the link.
    for (double speed : {0.25, 1.0, 4.0})
      for (double share : {0.8, 0.5}) {
        SCOPED_TRACE(std::to_string(seed) + ", " + std::to_string(speed) +
                     ", " + std::to_string(share));
        Problem p = one;
        MoveOptions moves;
        moves.leastBytes = 1;
        moves.toHost =
            moves.toDevice = {int64_t(speed * double(base.peakBytes) * 1e12 /
                                      double(base.makespan)),
                              /*latency=*/0};
        ASSERT_TRUE(offerMoves(p, moves).ok());
        p.spaces[0].budgetBytes = int64_t(double(base.peakBytes) * share);
        SolveOptions options;
        options.effort = options.effort.part(32);
        options.without.add(Strategy::Leaner); // It may take 0.5 % longer.
        std::vector<MovedPlan> smallerOnes;
        absl::StatusOr<Plan> plan = solveMoves(p, options, &smallerOnes);
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        SolveOptions how;
        how.budgetBytes = p.spaces[0].budgetBytes;
        how.effort = options.effort;
        how.wantBound = how.wantCases = false;
        absl::StatusOr<Plan> without = solve(one, how);
        ASSERT_TRUE(without.ok());
        plans += plan->feasible;
        alone += without->feasible;
        if (plan->feasible)
          expectTrue(p, *plan, smallerOnes);
        smaller += int64_t(smallerOnes.size());
        for (int k = 0; k < 3; ++k) {
          absl::StatusOr<Plan> rule = planWith(kRules[k], p, options);
          ASSERT_TRUE(rule.ok()) << rule.status().message();
          if (!rule->feasible)
            continue;
          expectTrue(p, *rule);
          ++ruled[k];
          ASSERT_TRUE(plan->feasible);
          EXPECT_LE(plan->cost, rule->cost);
          wonFrom[k] += plan->cost < rule->cost;
        }
        // Coarsely, too, and not much slower.
        SolveOptions coarsely = options;
        coarsely.coarse = true;
        absl::StatusOr<Plan> coarse = solveMoves(p, coarsely);
        ASSERT_TRUE(coarse.ok()) << coarse.status().message();
        EXPECT_EQ(coarse->feasible, plan->feasible);
        tried += plan->stats.tried, triedCoarsely += coarse->stats.tried;
        if (coarse->feasible) {
          expectTrue(p, *coarse);
          EXPECT_LE(double(coarse->cost), 1.03 * double(plan->cost));
        }
        if (!without->feasible)
          continue;
        ASSERT_TRUE(plan->feasible);
        EXPECT_LE(plan->cost, without->cost);
        won += plan->cost < without->cost;
      }
  }
  std::printf("  %lld plans, %lld by recomputing alone, of which moves make "
              "%lld quicker\n",
              (long long)plans, (long long)alone, (long long)won);
  for (int k = 0; k < 3; ++k)
    std::printf("  %lld by rule %d, of which the search has %lld quicker\n",
                (long long)ruled[k], k, (long long)wonFrom[k]);
  EXPECT_GE(won, 10);
  EXPECT_GE(smaller, 5);
  EXPECT_LT(triedCoarsely, tried / 3);
  for (int k = 0; k < 3; ++k) {
    EXPECT_GE(ruled[k], 10) << k;
    EXPECT_GE(wonFrom[k], 3) << k;
  }
}

/// The last of a chain needs all of it again: the list is written without
/// recursion.
TEST(SpaceSearch, KnapsackTakesLongChains) {
  constexpr int64_t kKernels = 200'000;
  SpaceProblem w;
  w.p.addSegment("step");
  w.p.values.reserve(kKernels + 8);
  auto kernel = [&](const char *name, std::vector<ValueId> reads,
                    ValueId made) {
    Recipe r;
    r.name = name;
    r.reads = std::move(reads);
    r.writes = {made};
    r.cost = 10;
    r.recomputable = true;
    w.p.addInstruction(0, r);
  };
  auto value = [&](int64_t bytes) {
    Value v;
    v.name = "v" + std::to_string(w.p.values.size());
    v.bytes = bytes;
    return w.p.addValue(v);
  };
  ValueId last = value(1);
  kernel("f", {}, last);
  for (int64_t i = 0; i < kKernels; ++i) {
    ValueId next = value(1);
    kernel("f", {last}, next);
    last = next;
  }
  // `last` waits while `big` is there, where the step turns.
  const ValueId middle = value(1), big = value(1000), end = value(1);
  kernel("use", {last}, middle);
  kernel("turn", {middle}, big);
  kernel("back", {big, last}, end);
  w.p.values[end].liveOut = true;
  w.p.spaces[0].budgetBytes = 1001; // Of 1002.
  absl::StatusOr<Plan> plan = planWith("knapsack", w.p);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
}

/// With budgets that nothing comes near, every update runs on the host.
TEST(SpaceSearch, NeverLosesToZeroOffload) {
  for (int64_t gigabytes : {6, 55}) {
    StepOptions shape;
    shape.layers = 4;
    shape.linkBandwidth = gigabytes * 1'000'000'000;
    Problem p = generateStep(shape);
    SolveOptions options;
    options.effort = options.effort.part(32);
    absl::StatusOr<Plan> plan = solveMoves(p, options);
    ASSERT_TRUE(plan.ok() && plan->feasible);
    absl::StatusOr<Plan> rule = planWith("zero-offload", p);
    ASSERT_TRUE(rule.ok() && rule->feasible);
    expectTrue(p, *rule);
    EXPECT_LE(plan->cost, rule->cost);
    EXPECT_LT(rule->peakBytes[0], simulate(p, baseSolution(p))->peakBytes);
    for (const Execution &e : rule->solution.segments[0])
      if (e.instruction != kNone &&
          p.instructions[e.instruction].recipes.size() > 1) {
        EXPECT_EQ(p.engines[p.recipes[e.recipe].engine].kind, EngineKind::Host)
            << p.recipes[e.recipe].name;
      }
  }
}

TEST(SpaceSearch, UsesWhatAStepMayMove) {
  for (int64_t gigabytes : {6, 25, 55}) {
    StepOptions shape;
    shape.layers = 6;
    shape.linkBandwidth = gigabytes * 1'000'000'000;
    Problem p = generateStep(shape);
    const Profile base = *simulate(p, baseSolution(p));
    int64_t before = 0;
    // A fifth is less than the parameters and moments take.
    for (double share : {1.0, 0.6, 0.2}) {
      SCOPED_TRACE(std::to_string(gigabytes) + " GB/s, " +
                   std::to_string(share));
      p.spaces[0].budgetBytes = int64_t(double(base.peakBytes) * share);
      absl::StatusOr<Plan> plan = solveMoves(p, {});
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      ASSERT_TRUE(plan->feasible);
      expectTrue(p, *plan);
      EXPECT_GE(plan->cost, before);
      before = plan->cost;
      if (share == 1.0) {
        EXPECT_LE(plan->cost, base.makespan);
      }
      // The host's bytes are a limit, too.
      Problem tight = p;
      tight.spaces[1].budgetBytes = plan->peakBytes[1] / 2;
      absl::StatusOr<Plan> less = solveMoves(tight, {});
      ASSERT_TRUE(less.ok());
      if (less->feasible)
        expectTrue(tight, *less);
    }
  }
}

/// Where the first pass leaves a plan far from what is proved, a second one, of
/// finer steps and with every strategy, finds a quicker one.
TEST(SpaceSearch, SecondPassImprovesWhatIsFar) {
  GenerateOptions shape;
  shape.nodes = 450; // No device of few kernels.
  const Problem one = *problemOf(generateGraph(shape));
  const Profile base = *simulate(one, baseSolution(one));
  for (double share : {0.45, 0.35}) {
    SCOPED_TRACE(share);
    Problem p = one;
    MoveOptions moves;
    moves.leastBytes = 1;
    moves.toHost = moves.toDevice = {
        int64_t(0.25 * double(base.peakBytes) * 1e12 / double(base.makespan)),
        /*latency=*/0};
    ASSERT_TRUE(offerMoves(p, moves).ok());
    p.spaces[0].budgetBytes = int64_t(double(base.peakBytes) * share);
    SolveOptions options;
    options.effort = options.effort.part(16);
    absl::StatusOr<Plan> both = solveMoves(p, options);
    options.without.add(Strategy::SecondPass);
    absl::StatusOr<Plan> first = solveMoves(p, options);
    ASSERT_TRUE(both.ok() && first.ok());
    ASSERT_TRUE(both->feasible && first->feasible);
    expectTrue(p, *both);
    EXPECT_GT(first->cost, first->certificate.provenCost / 10 * 11);
    EXPECT_GT(both->stats.tried, first->stats.tried);
    EXPECT_LT(both->cost, first->cost);
  }
}

/// Of problems with loops every list of up to two extra executions is known.
TEST(SpaceSearch, IsNearTheOptimumOfSmallLoops) {
  Random random(58);
  Comparison seen;
  for (int i = 0; i < 400; ++i)
    ASSERT_NO_FATAL_FAILURE(seen.add(random, randomSpaces(random, 2), 100));
  seen.print();
  EXPECT_EQ(seen.instances, 400);
  EXPECT_EQ(seen.optimal, seen.instances);
}

/// a, made before a loop that has no room for it, is needed behind the loop.
/// Its stash of 15 is longer than what is left of its segment: the border
/// waits.
///
///     list     f stash( )stash | 3 x g | fetch( )fetch h
///     compute  0-10 10-25        25-55   55-70        70-80
TEST(SpaceSearch, TransfersEndWithTheirSegments) {
  SpaceProblem w;
  SegmentId before = w.p.addSegment("before"), body = w.p.addSegment("body", 3),
            after = w.p.addSegment("after");
  w.value("a");
  w.form("a@host", "a");
  w.value("b");
  w.value("c", 10).liveOut = true;
  w.move("stash", "a", "a@host", kD2H);
  w.move("fetch", "a@host", "a", kH2D);
  w.p.addInstruction(before, w.recipe("f", "", "a"));
  w.p.addInstruction(body, w.recipe("g", "", "b"));
  w.p.addInstruction(after, w.recipe("h", "a", "c"));
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  w.p.spaces[0].budgetBytes = 150;
  absl::StatusOr<Plan> plan = solveMoves(w.p, {});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_TRUE(plan->feasible);
  expectTrue(w.p, *plan);
  EXPECT_EQ(plan->cost, 80);
  EXPECT_EQ(plan->peakBytes[0], 110);
}

/// A step of micro-batches: activations come and go in each trip, gradients are
/// summed on the device, updates run behind the loop.
TEST(SpaceSearch, PlansMicroBatches) {
  int64_t quicker = 0, hosted = 0;
  for (int64_t gigabytes : {6, 25}) {
    StepOptions shape;
    shape.layers = 6;
    shape.microBatches = 4;
    shape.linkBandwidth = gigabytes * 1'000'000'000;
    Problem p = generateStep(shape);
    const Profile base = *simulate(p, baseSolution(p));
    for (double share : {1.0, 0.7, 0.45}) {
      SCOPED_TRACE(std::to_string(gigabytes) + " GB/s, " +
                   std::to_string(share));
      p.spaces[0].budgetBytes = int64_t(double(base.peakBytes) * share);
      SolveOptions options;
      options.effort = options.effort.part(8);
      absl::StatusOr<Plan> plan = solveMoves(p, options);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      ASSERT_TRUE(plan->feasible);
      expectTrue(p, *plan);
      EXPECT_GE(plan->cost, plan->certificate.provenCost);
      for (const std::vector<Execution> &list : plan->solution.segments)
        for (const Execution &e : list)
          hosted +=
              p.engines[p.recipes[e.recipe].engine].kind == EngineKind::Host;
      absl::StatusOr<Plan> alone = planWith("recompute", p, options);
      ASSERT_TRUE(alone.ok()) << alone.status().message();
      if (!alone->feasible || plan->cost < alone->cost)
        ++quicker;
      else
        EXPECT_EQ(plan->cost, alone->cost);
    }
  }
  EXPECT_GE(quicker, 3);
  EXPECT_GE(hosted, 2);
}

/// No larger budget is slower, of the device or of the host, if each search
/// starts from the plan before.
TEST(SpaceSearch, SweepsAreMonotone) {
  StepOptions shape;
  shape.layers = 5;
  Problem p = generateStep(shape);
  const Profile base = *simulate(p, baseSolution(p));
  p.spaces[0].budgetBytes = base.peakBytes * 2 / 5;
  for (SpaceId space : {0, 1}) {
    const Sweep swept = sweep(p, space, base.peakBytes);
    EXPECT_GE(swept.found, 20);
    EXPECT_GE(swept.steps, 2);
  }
}

TEST(OfferMoves, LeavesTheStepAsItWas) {
  GenerateOptions shape;
  shape.nodes = 200;
  const Problem one = *problemOf(generateGraph(shape));
  Problem p = one;
  ASSERT_TRUE(offerMoves(p, {.leastBytes = 1}).ok());
  EXPECT_GT(p.recipes.size(), one.recipes.size());
  const Profile before = *simulate(one, baseSolution(one));
  const Profile after = *simulate(p, baseSolution(p));
  EXPECT_EQ(before.peakBytes, after.peakBytes);
  EXPECT_EQ(before.makespan, after.makespan);
  EXPECT_EQ(offerMoves(p, {}).code(), absl::StatusCode::kFailedPrecondition);
}

/// Moments may leave and parameters may not: the host runs updates all the
/// same where moments are eight times as large. A parameter goes there and its
/// new content comes back; between steps it is on the device.
TEST(OfferMoves, LendsParametersToUpdatesOnTheHost) {
  Problem p;
  const SegmentId step = p.addSegment("step");
  auto value = [&](const std::string &name, int64_t bytes, ValueClass is,
                   bool persists, ValueId updates = kNone) {
    Value v;
    v.name = name;
    v.bytes = bytes;
    v.valueClass = is;
    v.kind = persists ? ValueKind::Persistent : ValueKind::Temporary;
    v.updates = updates;
    return p.addValue(v);
  };
  auto kernel = [&](const std::string &name, std::vector<ValueId> reads,
                    std::vector<ValueId> writes,
                    std::vector<Overwrite> overwrites = {}) {
    Recipe r;
    r.name = name;
    r.reads = std::move(reads);
    r.writes = std::move(writes);
    r.cost = 100'000;
    r.overwrites = std::move(overwrites);
    p.addInstruction(step, std::move(r));
  };
  ValueId last = value("x", 10, ValueClass::Batch, true);
  std::vector<ValueId> weights, moments;
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i);
    weights.push_back(value("w" + number, 100, ValueClass::Parameter, true));
    moments.push_back(value("m" + number, 800, ValueClass::Optimizer, true));
    ValueId next = value("a" + number, 100, ValueClass::Activation, false);
    kernel("f" + number, {last, weights.back()}, {next});
    last = next;
  }
  std::vector<ValueId> gradients;
  for (int i = 4; i-- > 0;) {
    const std::string number = std::to_string(i);
    gradients.push_back(value("g" + number, 100, ValueClass::Gradient, false));
    ValueId next = value("d" + number, 100, ValueClass::Activation, false);
    kernel("b" + number, {last, weights[size_t(i)]}, {next, gradients.back()});
    last = next;
  }
  p.values[last].liveOut = true;
  for (int i = 4; i-- > 0;) {
    const std::string number = std::to_string(i);
    const ValueId w = weights[size_t(i)], m = moments[size_t(i)];
    const ValueId wNew =
        value("w" + number + "'", 100, ValueClass::Parameter, true, w);
    const ValueId mNew =
        value("m" + number + "'", 800, ValueClass::Optimizer, true, m);
    kernel("u" + number, {gradients[size_t(3 - i)], w, m}, {wNew, mNew},
           {{w, wNew, true}, {m, mNew, true}});
  }
  const int64_t peak = simulate(p, baseSolution(p))->peakBytes;
  MoveOptions moves;
  moves.leastBytes = 1;
  moves.activations = moves.parameters = false;
  moves.toHost = moves.toDevice = {1'000'000'000, 0}; // 1000 a byte.
  moves.update = {10'000'000'000, 0};
  ASSERT_TRUE(offerMoves(p, moves).ok());
  p.spaces[0].budgetBytes = peak - 3 * 800;
  absl::StatusOr<Plan> plan = solveMoves(p, {});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_TRUE(plan->feasible);
  expectTrue(p, *plan);
  int64_t onHost = 0, back = 0;
  for (const Execution &e : plan->solution.segments[0])
    if (e.phase == Phase::Start) {
      const Recipe &r = p.recipes[e.recipe];
      onHost += p.engines[r.engine].kind == EngineKind::Host;
      back += p.engines[r.engine].kind == EngineKind::HostToDevice &&
              p.values[r.writes[0]].valueClass == ValueClass::Parameter;
    }
  EXPECT_GE(onHost, 3);
  EXPECT_EQ(back, onHost);
  const std::vector<ValueId> home = homesOf(p, plan->solution);
  for (ValueId w : weights)
    EXPECT_EQ(p.values[home[w]].space, 0);
}
