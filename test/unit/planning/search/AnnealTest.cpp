// A walk ends in the best state that it met, however far it strayed from it.

#include "test/unit/planning/RandomProblem.h"

#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/model/Verify.h"
#include "compiler/planning/search/Anneal.h"
#include "compiler/planning/search/Construct.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

/// The schedule, the plain answer and a schedule built from it agree.
void expectTrue(const LinearProblem &linear, const Schedule &schedule,
                const RematPlan &plan) {
  Schedule anew(linear, schedule.limit());
  restore(linear, anew, plan);
  EXPECT_EQ(anew.cost(), plan.cost);
  EXPECT_EQ(anew.excess() <= 0, plan.feasible);
  EXPECT_EQ(schedule.cost(), plan.cost);
  EXPECT_EQ(schedule.excess(), anew.excess());
  EXPECT_EQ(schedule.peakBytes(), anew.peakBytes());
}

TEST(Anneal, EndsInTheBestState) {
  for (Family family :
       {Family::Transformer, Family::UNet, Family::RandomLayered}) {
    LinearProblem linear =
        linearize(*problemOf(generateGraph({family, 300, 5, false})));
    int64_t peak = Schedule(linear, 0).peakBytes();
    for (size_t journal : {size_t(1), size_t(40), size_t(1) << 20}) {
      Schedule schedule(linear, peak * 8 / 10);
      int64_t excess = schedule.excess();
      Random random(3);
      AnnealOptions options;
      options.work = 1'000'000;
      options.longestJournal = journal;
      RematPlan first = anneal(linear, schedule, random, options);
      expectTrue(linear, schedule, first);
      EXPECT_LT(schedule.excess(), excess);
      // Far too hot to keep what it has: the best state is the first.
      options.work = 100'000;
      options.startTemperature = options.endTemperature = 1000;
      RematPlan second = anneal(linear, schedule, random, options);
      expectTrue(linear, schedule, second);
      EXPECT_GE(second.feasible, first.feasible);
      if (first.feasible) {
        EXPECT_LE(second.cost, first.cost);
      }
    }
  }
}

// A solution says what the schedule was that it was written from.
TEST(Anneal, ReadsASolutionBack) {
  size_t clones = 0, switched = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    RandomShape shape{.prologue = 3, .body = 5, .epilogue = 4};
    shape.trips = seed % 2 ? 3 : 1;
    shape.extras = seed % 3 == 0;
    Problem p = randomProblem(random, shape);
    if (!check(p).ok())
      continue;
    LinearProblem linear = linearize(p);
    Schedule schedule(linear, 0);
    schedule.setLimit(schedule.peakBytes() * 3 / 4);
    AnnealOptions options;
    options.work = 20'000;
    RematPlan was = anneal(linear, schedule, random, options);
    RematPlan is = rematPlanOf(linear, schedule.toSolution(p));
    EXPECT_EQ(is.variants, was.variants);
    Schedule anew(linear, schedule.limit());
    restore(linear, anew, is);
    EXPECT_EQ(anew.cost(), schedule.cost());
    EXPECT_EQ(anew.excess(), schedule.excess());
    EXPECT_EQ(anew.clones().size(), schedule.clones().size());
    clones += was.clones.size();
    switched += was.variants.size();
  }
  EXPECT_GT(clones, 100u);
  EXPECT_GT(switched, 20u);
}

// Copies of what another layer recomputes are taken back like other moves.
TEST(Anneal, CopiesBetweenEqualLayers) {
  LinearProblem linear =
      linearize(*problemOf(generateGraph({Family::Transformer, 300, 5})));
  int64_t peak = Schedule(linear, 0).peakBytes();
  Repeats repeats(linear);
  RematPlan plans[2];
  for (bool copies : {false, true}) {
    Schedule schedule(linear, peak * 6 / 10);
    Random random(3);
    AnnealOptions options;
    options.work = 1'000'000;
    options.repeats = copies ? &repeats : nullptr;
    plans[copies] = anneal(linear, schedule, random, options);
    expectTrue(linear, schedule, plans[copies]);
    ASSERT_TRUE(plans[copies].feasible);
    // Far too hot to keep what it has: the best state is near the first.
    options.startTemperature = options.endTemperature = 1000;
    RematPlan again = anneal(linear, schedule, random, options);
    expectTrue(linear, schedule, again);
    EXPECT_TRUE(again.feasible);
    EXPECT_LE(again.cost, plans[copies].cost);
  }
  EXPECT_NE(plans[0].clones, plans[1].clones); // They have been tried.
}

TEST(Anneal, SwitchesBackToTheBestState) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    RandomShape shape;
    shape.body = 8;
    Problem problem = randomProblem(random, shape);
    LinearProblem linear = linearize(problem);
    Schedule schedule(linear, Schedule(linear, 0).peakBytes() * 3 / 4);
    AnnealOptions options;
    options.work = 20'000;
    options.longestJournal = seed % 2 ? 3 : 1 << 20;
    RematPlan first = anneal(linear, schedule, random, options);
    int64_t excess = schedule.excess();
    options.startTemperature = options.endTemperature = 1000;
    RematPlan second = anneal(linear, schedule, random, options);
    expectTrue(linear, schedule, second);
    if (first.feasible) {
      EXPECT_TRUE(second.feasible);
      EXPECT_LE(second.cost, first.cost);
    } else {
      EXPECT_LE(schedule.excess(), excess);
    }
    ASSERT_FALSE(HasFailure()) << seed;
  }
}

/// Over the limit everywhere, whatever is given up frees bytes: a ramp can't be
/// measured, and begins somewhere.
TEST(Anneal, RampsWhereNothingIsLeftOver) {
  LinearProblem linear =
      linearize(*problemOf(generateGraph({Family::UNet, 60, 1, false})));
  Schedule schedule(linear, 0);
  for (OpId o = 0; o < OpId(linear.ops.size()) && schedule.clones().empty();
       ++o)
    if (int32_t stage = linear.ops[o].firstStage;
        schedule.canInsert(o, stage)) {
      int64_t before = schedule.excess();
      schedule.insert(o, stage);
      if (schedule.excess() < before)
        schedule.erase(o, stage);
    }
  ASSERT_EQ(schedule.clones().size(), 1u);
  Random random(1);
  AnnealOptions options;
  options.work = 100'000;
  options.penaltyRamp = 400;
  expectTrue(linear, schedule, anneal(linear, schedule, random, options));
}

/// Equal layers are all worth recomputing at one price: what prices construct
/// recomputes too much, and the walk that follows has to give much of it up.
TEST(Anneal, PlansEqualLayersNearTheBound) {
  Problem problem =
      *problemOf(generateGraph({Family::Transformer, 3000, 1, true}));
  SolveOptions options;
  options.budgetBytes = measure(problem, baseSolution(problem))->peakBytes / 2;
  Plan plan = *solve(problem, options);
  ASSERT_TRUE(plan.feasible);
  EXPECT_LE(double(plan.cost - plan.baseCost - plan.provenExtraCost()),
            0.005 * double(plan.baseCost));
}

} // namespace
