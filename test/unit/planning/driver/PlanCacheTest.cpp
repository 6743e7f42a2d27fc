// PlanCacheTest.cpp - buffers need what the plan says, what a book calls its
// smallest plan works when its arena is the budget, and more memory never costs
// time.

#include "compiler/planning/driver/PlanCache.h"
#include "compiler/planning/bound/BoundCheck.h"
#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/driver/Proofs.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/model/Verify.h"
#include "test/unit/planning/RandomProblem.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

static SolveOptions quick() {
  SolveOptions options;
  options.order = OrderMode::Free;
  options.effort.mostWork = 200'000;
  return options;
}

TEST(Fit, BuffersNeedTheLivePeak) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    RandomShape shape{.prologue = 2, .body = 4, .epilogue = 3};
    shape.trips = seed % 2 ? 4 : 1;
    Problem p = randomProblem(random, shape);
    // Lowering shares whole buffers only.
    for (Recipe &recipe : p.recipes)
      std::erase_if(recipe.overwrites, [&](const Overwrite &o) {
        return p.values[o.read].bytes != p.values[o.written].bytes;
      });
    Solution solution = baseSolution(p);
    absl::StatusOr<Profile> profile = simulate(p, solution);
    if (!profile.ok())
      continue;
    int64_t needed = peakBytes(arenaOf(p, solution, 1));
    // Trips differ in what is alive; a buffer has one place for all of them.
    EXPECT_GE(needed, profile->peakBytes);
    if (shape.trips == 1) {
      EXPECT_EQ(needed, profile->peakBytes);
    }
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

TEST(Fit, PacksTheSameWhateverTheOrderOfBuffers) {
  Random random(1);
  for (int round = 0; round < 20; ++round) {
    ArenaProblem problem;
    problem.alignment = 16;
    for (int i = 0; i < 40; ++i) {
      int64_t begin = random.below(30);
      problem.buffers.push_back({"b",
                                 1 + int64_t(random.below(500)),
                                 {begin, begin + 1 + random.below(12)}});
    }
    ArenaProblem other = problem;
    for (size_t i = other.buffers.size(); i > 1; --i)
      std::swap(other.buffers[i - 1], other.buffers[random.below(uint32_t(i))]);
    Packing one = packSorted(problem), two = packSorted(other);
    EXPECT_EQ(one.arenaBytes, two.arenaBytes);
    EXPECT_EQ(verifyPacking(problem, one), std::nullopt);
    EXPECT_EQ(verifyPacking(other, two), std::nullopt);
  }
}

TEST(Fit, TheSmallestPlanWorksInAnyBook) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Problem p =
        randomProblem(random, {.prologue = 4, .body = 6, .epilogue = 6});
    if (!check(p).ok())
      continue;
    p.reservedBytes = 7;
    PlanCache book(p, {1}, quick());
    absl::StatusOr<const Plan *> smallest = book.smallest();
    ASSERT_TRUE(smallest.ok()) << smallest.status();
    int64_t budget = (*smallest)->arenaBytes() + p.reservedBytes;
    PlanCache again(p, {1}, quick());
    absl::StatusOr<const Plan *> found = again.fit(budget);
    ASSERT_TRUE(found.ok());
    ASSERT_NE(*found, nullptr);
    EXPECT_LE((*found)->arenaBytes() + p.reservedBytes, budget);
    PlanCache below(p, {1}, quick());
    found = below.fit(below.impossibleBelowBytes() - 1);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, nullptr);
  }
}

// At a tight budget the search may end with the smallest plan it knows; what
// checkpointing every block costs there is the most that may be asked.
TEST(Fit, CostsAtMostWhatEveryBlockCosts) {
  absl::StatusOr<Problem> p =
      problemOf(generateGraph({Family::Transformer, 120, 1, true}));
  ASSERT_TRUE(p.ok()) << p.status();
  absl::StatusOr<Plan> blocks = planBy("blocks", *p, {}, "");
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  int64_t arena = packSorted(arenaOf(*p, blocks->solution, 1)).arenaBytes;
  PlanCache book(*p, {1}, quick());
  ASSERT_TRUE(book.smallest().ok());
  const Plan *found = book.cheapestWithin(arena);
  ASSERT_NE(found, nullptr);
  EXPECT_LE(found->arenaBytes(), arena);
  EXPECT_LE(found->cost, blocks->cost);
}

// Where much is recomputed memory is nearly full for most of the step, and no
// simple order of placing buffers is good.
TEST(Fit, PacksWhatIsRecomputedClosely) {
  Problem p = *problemOf(generateGraph({Family::Transformer, 1500, 1, false}));
  SolveOptions options = quick();
  options.order = OrderMode::Fixed;
  options.effort.mostWork = 50'000'000;
  options.wantBound = false;
  int64_t peak = measure(p, baseSolution(p))->peakBytes;
  int64_t simple = 0, searched = 0; // Bytes above the live peaks.
  for (int64_t percent : {30, 40, 50}) {
    options.budgetBytes = peak * percent / 100;
    absl::StatusOr<Plan> plan = solve(p, options);
    ASSERT_TRUE(plan.ok() && plan->feasible);
    ArenaProblem arena = arenaOf(p, plan->solution, 1);
    simple += packSorted(arena, {.effort = 0}).arenaBytes - plan->peakBytes[0];
    searched +=
        packSorted(arena, {.effort = 300}).arenaBytes - plan->peakBytes[0];
  }
  EXPECT_LE(searched * 20, simple * 19);
}

// Whoever places the buffers gets the arena that the book promised, however it
// was packed. (As somebody's planner, ours walks once, and needs that more.)
TEST(Fit, TheArenaIsFoundAgain) {
  Problem p = *problemOf(generateGraph({Family::Transformer, 120, 1, false}));
  int64_t peak = measure(p, baseSolution(p))->peakBytes;
  SolveOptions options = quick();
  options.effort.mostWork = 2'000'000;
  PlanCache book(p, {1}, options, "tmc");
  int harder = 0;
  for (int64_t percent = 30; percent < 100; percent += 4) {
    absl::StatusOr<const Plan *> found = book.fit(peak * percent / 100);
    ASSERT_TRUE(found.ok());
    if (!*found)
      continue;
    ArenaProblem arena = arenaOf(p, (*found)->solution, 1);
    EXPECT_EQ(packSorted(arena, (*found)->arenas[0].packing).arenaBytes,
              (*found)->arenaBytes());
    EXPECT_LE((*found)->arenaBytes(), peak * percent / 100);
    harder += (*found)->arenas[0].packing.effort > PackOptions().effort;
  }
  EXPECT_GT(harder, 0);
}

TEST(Fit, MoreMemoryNeverCostsTimeInOneBook) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    Random random(seed);
    Problem p =
        randomProblem(random, {.prologue = 5, .body = 8, .epilogue = 8});
    if (!check(p).ok())
      continue;
    PlanCache book(p, {1}, quick());
    absl::StatusOr<const Plan *> most = book.fit(-1);
    ASSERT_TRUE(most.ok());
    int64_t from = (*book.smallest())->arenaBytes(), to = (*most)->arenaBytes();
    for (int i = 0; i <= 6; ++i)
      ASSERT_TRUE(book.fit(from + (to - from) * i / 6).ok());
    int64_t last = -1;
    for (int i = 0; i <= 6; ++i) {
      const Plan *best = book.cheapestWithin(from + (to - from) * i / 6);
      ASSERT_NE(best, nullptr);
      if (last >= 0) {
        EXPECT_LE(best->cost, last);
      }
      last = best->cost;
    }
  }
}

TEST(Fit, ProofsSurviveABiggerBudget) {
  int proved = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    Problem p =
        randomProblem(random, {.prologue = 5, .body = 8, .epilogue = 8});
    absl::StatusOr<Profile> base = simulate(p, baseSolution(p));
    if (!base.ok())
      continue;
    SolveOptions options = quick();
    options.order = OrderMode::Fixed;
    options.budgetBytes = base->peakBytes * 7 / 10;
    absl::StatusOr<Plan> plan = solve(p, options);
    ASSERT_TRUE(plan.ok());
    int64_t before = plan->provenExtraCost();
    recertify(p, *plan, base->peakBytes * 8 / 10);
    EXPECT_LE(plan->provenExtraCost(), before);
    EXPECT_EQ(checkCertificate(p, plan->certificate), std::nullopt);
    proved += plan->provenExtraCost() > 0;
    recertify(p, *plan, base->peakBytes);
    EXPECT_EQ(plan->provenExtraCost(), 0);
  }
  EXPECT_GT(proved, 3);
}

// Of each arena the cheapest plan, and none that more memory makes no cheaper.
TEST(Fit, TheFrontierIsWhatTheBookKnows) {
  absl::StatusOr<Problem> p =
      problemOf(generateGraph({Family::Transformer, 120, 1, true}));
  ASSERT_TRUE(p.ok()) << p.status();
  PlanCache book(*p, {1}, quick());
  EXPECT_TRUE(book.frontier().empty());
  ASSERT_TRUE(book.smallest().ok());
  ASSERT_TRUE(book.fit(-1).ok());
  std::vector<const Plan *> frontier = book.frontier();
  ASSERT_GE(frontier.size(), 2u);
  EXPECT_EQ(frontier.back(), book.cheapestWithin(-1));
  for (size_t i = 0; i < frontier.size(); ++i) {
    EXPECT_EQ(frontier[i]->cost,
              book.cheapestWithin(frontier[i]->arenaBytes() + p->reservedBytes)
                  ->cost);
    if (i > 0) {
      EXPECT_GT(frontier[i]->arenaBytes(), frontier[i - 1]->arenaBytes());
      EXPECT_LT(frontier[i]->cost, frontier[i - 1]->cost);
    }
  }
}

// The search for the smallest plan ends by what it has counted, says so, and
// ends the same each time.
TEST(Fit, TheSearchForTheSmallestIsBounded) {
  absl::StatusOr<Problem> p =
      problemOf(generateGraph({Family::Transformer, 250, 1, false}));
  ASSERT_TRUE(p.ok()) << p.status();
  SolveOptions options;
  options.order = OrderMode::Free;
  options.budgetBytes = 0; // Can't be met.
  options.wantBound = false;
  options.effort.mostWork = 40'000'000;
  absl::StatusOr<Plan> whole = solve(*p, options);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_FALSE(whole->stats.stoppedEarly);
  // Orders are sought before, and one step towards less is always taken: what a
  // search does that may do nothing.
  options.smallestWork = 1;
  absl::StatusOr<Plan> hardly = solve(*p, options);
  ASSERT_TRUE(hardly.ok()) << hardly.status();
  const int64_t least = hardly->stats.work;
  EXPECT_LT(least, whole->stats.work / 2);
  for (int64_t most : {int64_t(1), whole->stats.work / 2}) {
    SCOPED_TRACE("at most " + std::to_string(most));
    options.smallestWork = most;
    absl::StatusOr<Plan> plan = solve(*p, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(plan->stats.stoppedEarly);
    EXPECT_LT(plan->stats.work, whole->stats.work);
    EXPECT_LE(plan->stats.work, most + least);
    EXPECT_GE(plan->peakBytes[0], whole->peakBytes[0]);
    absl::StatusOr<Plan> again = solve(*p, options);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->stats.work, plan->stats.work);
    EXPECT_EQ(again->peakBytes[0], plan->peakBytes[0]);
    EXPECT_EQ(again->cost, plan->cost);
  }
  options.smallestWork = 1;
  PlanCache book(*p, {1}, options);
  ASSERT_TRUE(book.smallest().ok());
  EXPECT_TRUE(book.isSmallestStoppedEarly());
}
