// PlanAheadTest.cpp - a cache that is filled beside other work holds what one
// filled on the spot does.

#include "compiler/planning/driver/PlanAhead.h"
#include "compiler/planning/laboratory/Generate.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

using namespace tmc::planning;

namespace {

SolveOptions quick() {
  SolveOptions options;
  options.order = OrderMode::Free;
  options.effort.mostWork = 200'000;
  options.smallestWork = 200'000;
  return options;
}

Problem transformer() {
  return *problemOf(generateGraph({Family::Transformer, 40, 1, false}));
}

/// (arena, cost) of all that a cache would answer with.
std::vector<std::pair<int64_t, int64_t>> figures(const PlanCache &cache) {
  std::vector<std::pair<int64_t, int64_t>> all;
  for (const Plan *plan : cache.frontier())
    all.emplace_back(plan->arenaBytes(), plan->cost);
  return all;
}

} // namespace

TEST(PlanAhead, HoldsWhatACacheFilledOnTheSpotDoes) {
  Problem p = transformer();
  PlanCache spot(p, {256}, quick());
  ASSERT_TRUE(spot.smallest().ok());
  int64_t least = (*spot.smallest())->arenaBytes();
  for (int64_t budget : {least / 2, least * 5 / 4}) {
    SCOPED_TRACE(budget);
    // Two at a time, as two forms are.
    PlanAhead ahead = planAhead(p, {256}, quick(), budget);
    PlanCache here(p, {256}, quick());
    ASSERT_TRUE(here.fit(budget).ok());
    absl::StatusOr<std::unique_ptr<PlanCache>> there = ahead.get();
    ASSERT_TRUE(there.ok()) << there.status();
    EXPECT_EQ(figures(**there), figures(here));
    EXPECT_EQ((*there)->impossibleBelowBytes(), here.impossibleBelowBytes());
    EXPECT_EQ((*(*there)->smallest())->arenaBytes(), least);
    const Plan *chosen = here.cheapestWithin(budget);
    const Plan *found = (*there)->cheapestWithin(budget);
    ASSERT_EQ(chosen == nullptr, found == nullptr);
    ASSERT_EQ(chosen == nullptr, budget < least);
    if (chosen) {
      EXPECT_EQ(found->orders, chosen->orders);
      EXPECT_EQ(found->arenas[0].packing.seed, chosen->arenas[0].packing.seed);
    }
  }
}

TEST(PlanAhead, NeedNotBeTaken) {
  // Waits for the search, which goes on reading its own problem.
  PlanAhead ahead = planAhead(transformer(), {256}, quick(), -1);
}

TEST(PlanAhead, SaysWhatIsWrong) {
  Problem p = transformer();
  p.recipes[0].cost = -1;
  PlanAhead ahead = planAhead(p, {256}, quick(), -1);
  EXPECT_FALSE(ahead.get().ok());
}
