// OptimumTest.cpp - the optimum of small problems against every list, against a
// machine that knows no lists, and its limits.

#include "compiler/planning/laboratory/Optimum.h"

#include "compiler/planning/laboratory/OptimumModel.h"
#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/model/Verify.h"

#include "test/unit/Rounds.h"
#include "test/unit/planning/NetworkBrute.h"
#include "test/unit/planning/SmallLoops.h"
#include "test/unit/planning/SmallSteps.h"
#include "test/unit/planning/SpaceBrute.h"
#include "test/unit/planning/SpaceMachine.h"
#include "test/unit/planning/SpaceOptimum.h"

#include <gtest/gtest.h>

#include <cstdio>

using namespace tmc::planning;

namespace {

int extrasOf(const Solution &solution) {
  int extras = 0;
  for (const std::vector<Execution> &list : solution.segments)
    for (const Execution &e : list)
      extras += e.instruction == kNone && e.phase != Phase::Done;
  return extras;
}

/// The verifier finds that it fits, and takes what it is said to.
void expectRight(const Problem &p, const OptimalPlan &plan) {
  absl::StatusOr<Claim> claim = measure(p, plan.solution);
  ASSERT_TRUE(claim.ok()) << claim.status().message() << printProblem(p);
  ASSERT_EQ(claim->cost, plan.makespan) << printProblem(p);
  std::vector<int64_t> peaks = {claim->peakBytes};
  peaks.insert(peaks.end(), claim->otherPeakBytes.begin(),
               claim->otherPeakBytes.end());
  for (size_t s = 0; s < peaks.size(); ++s)
    if (p.spaces[s].budgetBytes >= 0) {
      ASSERT_LE(peaks[s], p.spaces[s].budgetBytes) << printProblem(p);
    }
}

/// In budgets that a list meets, or almost: none is quicker than the optimum,
/// and one is as quick where that needs no more executions than lists have.
struct Tally {
  int64_t budgets = 0, met = 0;
  int64_t same = 0;   // As a list.
  int64_t slower = 0; // Than without the budget.

  void print() const {
    std::printf("  %lld budgets, %lld can be met, %lld only slower than "
                "without; %lld optima are among the lists\n",
                (long long)budgets, (long long)met, (long long)slower,
                (long long)same);
  }

  void add(Random &random, Problem p, int extras) {
    ASSERT_TRUE(check(p).ok()) << check(p).message() << printProblem(p);
    const std::vector<Plans::Plan> found = Plans(p, extras).all;
    ASSERT_FALSE(found.empty());
    int64_t any = found[0].makespan;
    for (const Plans::Plan &f : found)
      any = std::min(any, f.makespan);
    for (int trial = 0; trial < 3; ++trial) {
      const Plans::Plan *one = &found[random.below(uint32_t(found.size()))];
      for (int i = 0; i < 20 * trial; ++i)
        if (const Plans::Plan *next =
                &found[random.below(uint32_t(found.size()))];
            next->peaks[0] < one->peaks[0])
          one = next;
      for (size_t s = 0; s < p.spaces.size(); ++s)
        p.spaces[s].budgetBytes = s && random.chance(0.3) ? -1 : one->peaks[s];
      p.spaces[0].budgetBytes -= random.below(2);
      const std::optional<int64_t> best = bestList(p, found);
      absl::StatusOr<std::optional<OptimalPlan>> plan = planOptimum(p);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      ++budgets;
      ASSERT_TRUE(!best || *plan) << *best << printProblem(p);
      if (!*plan)
        continue;
      ++met;
      ASSERT_NO_FATAL_FAILURE(expectRight(p, **plan));
      slower += (*plan)->makespan > any;
      if (best) {
        ASSERT_LE((*plan)->makespan, *best) << printProblem(p);
      }
      if (extrasOf((*plan)->solution) > extras)
        continue;
      ASSERT_TRUE(best) << printProblem(p);
      ASSERT_EQ((*plan)->makespan, *best) << printProblem(p);
      ++same;
    }
  }
};

/// Another problem of the same shape: work that costs nothing, places of other
/// sizes, scratch, kernels that may run again, a loop of one trip.
void vary(Random &random, Problem &p) {
  for (Recipe &r : p.recipes) {
    const bool isInPlace =
        std::any_of(r.overwrites.begin(), r.overwrites.end(),
                    [](const Overwrite &o) { return o.must; });
    if (random.chance(0.1))
      r.cost = 0;
    if (random.chance(0.1)) {
      r.workspaceBytes = int64_t(1) + random.below(6);
      r.workspaceSpace = p.values[r.writes[0]].space == kDevice ? 0 : kHost;
    }
    if (!isInPlace && p.values[r.writes[0]].kind == ValueKind::Temporary &&
        random.chance(0.2))
      r.recomputable = true;
    if (r.overwrites.empty() && r.instruction != kNone && !r.reads.empty() &&
        random.chance(0.2))
      r.overwrites = {{r.reads[0], r.writes[0], false}};
  }
  for (Segment &s : p.segments)
    if (random.chance(0.3))
      s.trips = 1 + s.trips / 2;
    else if (random.chance(0.3))
      s.trips = 1;
}

} // namespace

/// The example of R12: a leaves while f2 runs, and f3 waits for that.
TEST(Optimum, MovesWhatHasNoRoom) {
  SpaceProblem w;
  w.p.addSegment("step");
  for (const char *v : {"a", "b", "c"})
    w.value(v);
  w.form("a@host", "a");
  w.value("d", 50);
  w.value("e", 50).liveOut = true;
  w.move("stash", "a", "a@host", kD2H);
  w.move("fetch", "a@host", "a", kH2D);
  w.p.addInstruction(0, w.recipe("f1", "", "a"));
  w.p.addInstruction(0, w.recipe("f2", "", "b"));
  w.p.addInstruction(0, w.recipe("f3", "b", "c"));
  w.p.addInstruction(0, w.recipe("g3", "c", "d"));
  w.p.addInstruction(0, w.recipe("g1", "a d", "e"));
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  auto makespanOf = [&](int64_t budget, OptimumLimits limits = {}) {
    w.p.spaces[0].budgetBytes = budget;
    absl::StatusOr<std::optional<OptimalPlan>> plan = planOptimum(w.p, limits);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    if (!plan.ok() || !*plan)
      return int64_t(-1);
    expectRight(w.p, **plan);
    return (*plan)->makespan;
  };
  EXPECT_EQ(makespanOf(300), 50);
  EXPECT_EQ(makespanOf(299), 60);
  EXPECT_EQ(makespanOf(249), 70); // Nor does a come back while g3 runs.
  EXPECT_EQ(makespanOf(199), -1); // f3 has b and c.
  // Only below the limit.
  EXPECT_EQ(makespanOf(299, {.below = 61}), 60);
  EXPECT_EQ(makespanOf(299, {.below = 60}), -1);
  // It says when it gives up.
  EXPECT_TRUE(
      absl::IsResourceExhausted(planOptimum(w.p, {.mostStates = 5}).status()));
  for (int i = 0; i < 64; ++i)
    w.form("a" + std::to_string(i), "a");
  EXPECT_TRUE(absl::IsUnimplemented(planOptimum(w.p).status()));
}

TEST(Optimum, IsTheBestOfEveryList) {
  Random random(11);
  Tally seen;
  for (int i = 0; i < 600; ++i) {
    Problem p = randomSpaces(random, i % 3).p;
    if (i % 2)
      vary(random, p);
    ASSERT_NO_FATAL_FAILURE(seen.add(random, std::move(p), i % 40 ? 2 : 3));
  }
  seen.print();
  EXPECT_GE(seen.same, seen.met * 9 / 10);
  EXPECT_GE(seen.slower, 100);
}

/// Gathers, exchanges and updates on shards.
TEST(Optimum, IsTheBestOfEveryListOnTheNetwork) {
  Random random(18);
  Tally seen;
  const int64_t problems = tmc::test::rounds(300, 2400);
  for (int64_t i = 0; i < problems; ++i) {
    Problem p = NetworkProblem(random, int(i % kNetworkKinds)).w.p;
    ASSERT_NO_FATAL_FAILURE(seen.add(random, std::move(p), 2));
  }
  seen.print();
  EXPECT_GE(seen.same, seen.met * 4 / 5);
  EXPECT_GE(seen.slower, problems / 6);
}

TEST(Optimum, IsTheBestOfEveryListOfLoops) {
  Random random(12);
  Tally seen;
  for (int i = 0; i < 180; ++i) {
    Problem p = SmallLoop(random, LoopKind(i % kLoopKinds)).w.p;
    if (i % 2)
      vary(random, p);
    ASSERT_NO_FATAL_FAILURE(seen.add(random, std::move(p), 2));
  }
  seen.print();
  EXPECT_GE(seen.same, seen.met * 4 / 5);
  EXPECT_GE(seen.slower, 100);
}

/// Steps of up to six kernels in two segments, with a host and a file, homes
/// anywhere and updates on either side: the machine finds the same time, and
/// none below, whatever the homes.
TEST(Optimum, IsThatOfTheMachineOnSmallSteps) {
  constexpr size_t kMostStates = 3'000;
  Random random(77);
  int64_t steps = 0, met = 0, slower = 0, open = 0, unknown = 0;
  while (steps < 1000) {
    Problem p = SmallStep(random).w.p;
    if (p.instructions.size() > size_t(steps % 20 ? 3 : 6))
      continue;
    const Profile base = *simulate(p, baseSolution(p));
    p.spaces[0].budgetBytes = base.peakBytes * (70 + random.below(46)) / 100;
    for (size_t s = 1; s < p.spaces.size(); ++s)
      if (random.chance(0.4))
        p.spaces[s].budgetBytes = 2 + int64_t(random.below(12));
    absl::StatusOr<std::optional<OptimalPlan>> plan =
        planOptimum(p, {.mostStates = kMostStates});
    if (absl::IsResourceExhausted(plan.status())) {
      ++open;
      continue;
    }
    ASSERT_TRUE(plan.ok()) << plan.status().message() << printProblem(p);
    ++steps;
    std::vector<ValueId> chosen;
    if (*plan) {
      ASSERT_NO_FATAL_FAILURE(expectRight(p, **plan));
      chosen = homesOf(p, (*plan)->solution);
      slower += (*plan)->makespan > base.makespan;
      ++met;
    }
    const int64_t most =
        *plan ? (*plan)->makespan : std::numeric_limits<int64_t>::max() / 4;
    std::vector<int64_t> budgets;
    for (const MemorySpace &space : p.spaces)
      budgets.push_back(space.budgetBytes);
    for (const Homes &homes : everyHomes(p, 1024)) {
      Solution named;
      named.homes = homes.chosen;
      const std::vector<ValueId> home = homesOf(p, named);
      const bool isChosen = home == chosen;
      SpaceMachine machine(p, home, budgets, most - !isChosen, kMostStates);
      const std::optional<SpaceMachine::Optimum> found = machine.run();
      unknown += machine.gaveUp;
      if (machine.gaveUp)
        continue;
      ASSERT_EQ(found.has_value(), isChosen) << printProblem(p);
      if (found) {
        ASSERT_EQ(found->makespan, most) << printProblem(p);
      }
    }
  }
  std::printf("  %lld steps, %lld can be met, %lld only slower than without; "
              "%lld others took too long; %lld choices of homes unknown\n",
              (long long)steps, (long long)met, (long long)slower,
              (long long)open, (long long)unknown);
  EXPECT_GE(met, 300);
  EXPECT_GE(slower, 100);
  EXPECT_LE(open, 100);
}
