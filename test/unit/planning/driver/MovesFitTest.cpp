#include "test/unit/planning/NetworkBrute.h"
#include "test/unit/planning/SpaceOptimum.h"

#include "compiler/planning/driver/PlanCache.h"
#include "compiler/planning/laboratory/GenerateStep.h"
#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

using namespace tmc::planning;

namespace {

/// No list, of any homes and of up to two executions more, is below what can't
/// be; and where one is there, the bound says all there is to say.
TEST(MovesFit, NothingIsBelowWhatIsImpossible) {
  Random random(31);
  int64_t instances = 0, met = 0;
  for (int i = 0; i < 600; ++i) {
    const Problem p = i % 4 == 3
                          ? NetworkProblem(random, i / 4 % kNetworkKinds).w.p
                          : randomSpaces(random, i % 3).p;
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

/// What a cache answers for the problem's budget of the device.
struct Fitted {
  const Plan *plan = nullptr; // Null: none fits.
  int64_t smallestFoundBytes = -1, impossibleBelowBytes = 0;
  std::unique_ptr<PlanCache> cache;
};

Fitted fit(const Problem &p, bool seeksSmallest = false) {
  SolveOptions options;
  options.effort = options.effort.part(32);
  Fitted fitted;
  fitted.cache = std::make_unique<PlanCache>(
      p, std::vector<int64_t>(p.spaces.size(), 64), options);
  absl::StatusOr<const Plan *> found =
      fitted.cache->fit(p.spaces[0].budgetBytes);
  EXPECT_TRUE(found.ok()) << found.status().message();
  fitted.plan = found.value_or(nullptr);
  fitted.impossibleBelowBytes = fitted.cache->impossibleBelowBytes();
  if (seeksSmallest || !fitted.plan)
    if (absl::StatusOr<const Plan *> least = fitted.cache->smallest();
        least.ok() && *least)
      fitted.smallestFoundBytes = (*least)->arenaBytes() + p.reservedBytes;
  return fitted;
}

/// Arenas are within the budgets, hold what is alive, and can be packed again.
void expectFits(const Problem &p, const Fitted &fitted) {
  ASSERT_TRUE(fitted.plan && fitted.plan->feasible);
  const Plan &plan = *fitted.plan;
  EXPECT_EQ(verifyPlan(p, plan, p.spaces[0].budgetBytes), std::nullopt);
  EXPECT_GE(plan.cost, plan.certificate.provenCost);
  const Profile profile = *simulate(p, plan.solution);
  const auto byClass = layoutPeakByClass(p, plan.solution);
  EXPECT_EQ(std::accumulate(byClass.begin(), byClass.end(), int64_t(0)),
            plan.arenas[0].livePeakBytes);
  EXPECT_EQ(byClass, profile.peakByClass); // There is no loop.
  for (SpaceId s = 0; s < SpaceId(p.spaces.size()); ++s) {
    SCOPED_TRACE(p.spaces[s].name);
    if (p.spaces[s].budgetBytes >= 0) {
      EXPECT_LE(plan.arenas[s].bytes + p.reservedOf(s),
                p.spaces[s].budgetBytes);
    }
    EXPECT_GE(plan.arenas[s].bytes, plan.arenas[s].livePeakBytes);
    // There is no loop: what is laid out is what is alive.
    EXPECT_EQ(plan.arenas[s].livePeakBytes, profile.spacePeakBytes[s]);
    const ArenaProblem arena = arenaOf(p, plan.solution, 64, s);
    const Packing packing = packSorted(arena, plan.arenas[s].packing);
    EXPECT_EQ(packing.arenaBytes, plan.arenas[s].bytes);
    EXPECT_FALSE(verifyPacking(arena, packing));
  }
}

TEST(MovesFit, ArenasAreWithinTheirBudgets) {
  for (double share : {0.8, 0.5}) {
    SCOPED_TRACE(share);
    Problem p = smallStep(/*file=*/0);
    const Profile all = *simulate(p, baseSolution(p));
    p.spaces[0].budgetBytes = int64_t(share * double(all.peakBytes));
    Fitted fitted = fit(p);
    ASSERT_NO_FATAL_FAILURE(expectFits(p, fitted));
    EXPECT_LE(fitted.impossibleBelowBytes,
              fitted.plan->arenaBytes() + p.reservedBytes);
    // A smallest budget that was sought is no larger than what fits.
    fitted = fit(p, /*seeksSmallest=*/true);
    EXPECT_LE(fitted.impossibleBelowBytes, fitted.smallestFoundBytes);
    EXPECT_LE(fitted.smallestFoundBytes, p.spaces[0].budgetBytes);
  }
}

TEST(MovesFit, AFileTakesWhatTheHostHasNoRoomFor) {
  Problem p = smallStep(6'000'000'000);
  const Profile all = *simulate(p, baseSolution(p));
  p.spaces[0].budgetBytes = all.peakBytes / 2;
  p.spaces[1].budgetBytes = all.peakBytes / 8;
  Fitted fitted = fit(p);
  ASSERT_NO_FATAL_FAILURE(expectFits(p, fitted));
  EXPECT_GT(fitted.plan->arenas[2].bytes, 0);
}

/// Over what can be there is no plan, and the smallest that is known works.
TEST(MovesFit, SaysWhichBudgetWorks) {
  Problem p = smallStep(/*file=*/0);
  p.spaces[0].budgetBytes = impossibleBelow(p) - 1;
  Fitted none = fit(p);
  EXPECT_FALSE(none.plan);
  ASSERT_GT(none.smallestFoundBytes, p.spaces[0].budgetBytes);
  p.spaces[0].budgetBytes = none.smallestFoundBytes;
  Fitted fitted = fit(p);
  expectFits(p, fitted);
}

/// Where a budget works, what is said to work below it is in it, and so it is
/// never refused with a smaller one named.
TEST(MovesFit, NamesNoSmallerBudgetWhereItFails) {
  int64_t works = 0, fails = 0;
  Problem p = smallStep(/*file=*/0);
  const int64_t low = impossibleBelow(p);
  p.spaces[0].budgetBytes = low - 1;
  Fitted none = fit(p);
  const int64_t least = none.smallestFoundBytes;
  for (int i = -8; i < 8; ++i) {
    p.spaces[0].budgetBytes = least + i * (least - low) / 8;
    SCOPED_TRACE(p.spaces[0].budgetBytes);
    Fitted fitted = fit(p);
    if (fitted.plan)
      ASSERT_NO_FATAL_FAILURE(expectFits(p, fitted));
    else
      EXPECT_GT(fitted.smallestFoundBytes, p.spaces[0].budgetBytes);
    (fitted.plan ? works : fails) += 1;
  }
  EXPECT_GE(works, 8);
  EXPECT_GT(fails, 0);
}

} // namespace
