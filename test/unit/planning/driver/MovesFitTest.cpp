#include "test/unit/planning/SpaceOptimum.h"

#include "compiler/planning/driver/SpaceFit.h"
#include "compiler/planning/model/GenerateStep.h"
#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace tmc::planning;

namespace {

/// No list, of any homes and of up to two executions more, is below what can't
/// be; and where one is there, the bound says all there is to say.
TEST(SpaceFit, NothingIsBelowWhatIsImpossible) {
  Random random(31);
  int64_t instances = 0, met = 0;
  for (int i = 0; i < 600; ++i) {
    const Problem p = randomSpaces(random, i % 3).p;
    const Plans plans(p, 2);
    if (plans.all.empty())
      continue;
    int64_t least = plans.all.front().peaks[0];
    for (const Plans::Plan &plan : plans.all)
      least = std::min(least, plan.peaks[0]);
    ++instances;
    const int64_t bound = impossibleBelow(p);
    ASSERT_LE(bound, least + p.reservedBytes) << printProblem(p);
    met += bound == least + p.reservedBytes;
  }
  printf("  %lld instances, the bound is met in %lld\n", (long long)instances,
         (long long)met);
  EXPECT_GT(instances, 500);
  EXPECT_GT(met, instances / 4);
}

Problem smallStep(int64_t file) {
  StepOptions shape;
  shape.layers = 4;
  shape.fileBandwidth = file;
  return generateStep(shape);
}

SpaceFitOptions quickly(const Problem &p) {
  SpaceFitOptions options;
  options.search.effort = options.search.effort.part(32);
  options.alignments.assign(p.spaces.size(), 64);
  return options;
}

/// Arenas are within the budgets, hold what is alive, and can be packed again.
void expectFits(const Problem &p, const FittedSpaces &fitted) {
  ASSERT_TRUE(fitted.plan.feasible);
  const Profile profile = *simulate(p, fitted.plan.solution);
  const auto byClass = layoutPeakByClass(p, fitted.plan.solution);
  EXPECT_EQ(std::accumulate(byClass.begin(), byClass.end(), int64_t(0)),
            fitted.layoutPeakBytes[0]);
  EXPECT_EQ(byClass, profile.peakByClass); // There is no loop.
  for (SpaceId s = 0; s < SpaceId(p.spaces.size()); ++s) {
    SCOPED_TRACE(p.spaces[s].name);
    if (p.spaces[s].budgetBytes >= 0) {
      EXPECT_LE(fitted.arenaBytes[s] + p.reservedOf(s),
                p.spaces[s].budgetBytes);
    }
    EXPECT_GE(fitted.arenaBytes[s], fitted.layoutPeakBytes[s]);
    // There is no loop: what is laid out is what is alive.
    EXPECT_EQ(fitted.layoutPeakBytes[s], profile.spacePeakBytes[s]);
    const ArenaProblem arena = arenaOf(p, fitted.plan.solution, 64, s);
    const Packing packing = packSorted(arena, fitted.packing[s]);
    EXPECT_EQ(packing.arenaBytes, fitted.arenaBytes[s]);
    EXPECT_FALSE(verifyPacking(arena, packing));
  }
}

TEST(SpaceFit, ArenasAreWithinTheirBudgets) {
  for (double share : {0.8, 0.5}) {
    SCOPED_TRACE(share);
    Problem p = smallStep(/*file=*/0);
    const Profile all = *simulate(p, baseSolution(p));
    p.spaces[0].budgetBytes = int64_t(share * double(all.peakBytes));
    absl::StatusOr<FittedSpaces> fitted = fitSpaces(p, quickly(p));
    ASSERT_TRUE(fitted.ok()) << fitted.status().message();
    ASSERT_NO_FATAL_FAILURE(expectFits(p, *fitted));
    EXPECT_LE(fitted->impossibleBelowBytes,
              fitted->arenaBytes[0] + p.reservedBytes);
    EXPECT_EQ(fitted->smallestFoundBytes, -1) << "none was sought";
    // A smallest budget that was sought is no larger than what fits.
    SpaceFitOptions seeking = quickly(p);
    seeking.smallest = SpaceFitOptions::Smallest::Always;
    fitted = fitSpaces(p, seeking);
    ASSERT_TRUE(fitted.ok()) << fitted.status().message();
    EXPECT_LE(fitted->impossibleBelowBytes, fitted->smallestFoundBytes);
    EXPECT_LE(fitted->smallestFoundBytes, p.spaces[0].budgetBytes);
  }
}

TEST(SpaceFit, AFileTakesWhatTheHostHasNoRoomFor) {
  Problem p = smallStep(6'000'000'000);
  const Profile all = *simulate(p, baseSolution(p));
  p.spaces[0].budgetBytes = all.peakBytes / 2;
  p.spaces[1].budgetBytes = all.peakBytes / 8;
  absl::StatusOr<FittedSpaces> fitted = fitSpaces(p, quickly(p));
  ASSERT_TRUE(fitted.ok()) << fitted.status().message();
  ASSERT_NO_FATAL_FAILURE(expectFits(p, *fitted));
  EXPECT_GT(fitted->arenaBytes[2], 0);
}

/// Over what can be there is no plan, and the smallest that is known works.
TEST(SpaceFit, SaysWhichBudgetWorks) {
  Problem p = smallStep(/*file=*/0);
  p.spaces[0].budgetBytes = impossibleBelow(p) - 1;
  absl::StatusOr<FittedSpaces> none = fitSpaces(p, quickly(p));
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_FALSE(none->plan.feasible);
  ASSERT_GT(none->smallestFoundBytes, p.spaces[0].budgetBytes);
  p.spaces[0].budgetBytes = none->smallestFoundBytes;
  absl::StatusOr<FittedSpaces> fitted = fitSpaces(p, quickly(p));
  ASSERT_TRUE(fitted.ok()) << fitted.status().message();
  expectFits(p, *fitted);
}

/// Where a budget works, what is said to work below it is in it, and so it is
/// never refused with a smaller one named.
TEST(SpaceFit, NamesNoSmallerBudgetWhereItFails) {
  int64_t works = 0, fails = 0;
  Problem p = smallStep(/*file=*/0);
  const int64_t low = impossibleBelow(p);
  p.spaces[0].budgetBytes = low - 1;
  absl::StatusOr<FittedSpaces> none = fitSpaces(p, quickly(p));
  ASSERT_TRUE(none.ok()) << none.status().message();
  const int64_t least = none->smallestFoundBytes;
  for (int i = -8; i < 8; ++i) {
    p.spaces[0].budgetBytes = least + i * (least - low) / 8;
    SCOPED_TRACE(p.spaces[0].budgetBytes);
    absl::StatusOr<FittedSpaces> fitted = fitSpaces(p, quickly(p));
    ASSERT_TRUE(fitted.ok()) << fitted.status().message();
    if (fitted->plan.feasible)
      ASSERT_NO_FATAL_FAILURE(expectFits(p, *fitted));
    else
      EXPECT_GT(fitted->smallestFoundBytes, p.spaces[0].budgetBytes);
    (fitted->plan.feasible ? works : fails) += 1;
  }
  EXPECT_GE(works, 8);
  EXPECT_GT(fails, 0);
}

} // namespace
