// Certificates prove what the independent checker says they prove, and no more.

#include "test/unit/planning/RandomProblem.h"

#include "compiler/planning/bound/BoundCheck.h"
#include "compiler/planning/bound/GapSum.h"
#include "compiler/planning/laboratory/Graph.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

/// The example of Bound.h: three values of 100 bytes and cost 5, each used at
/// once and again far later.
Problem threeValues() {
  Graph graph;
  for (int i = 0; i < 3; ++i)
    graph.nodes.push_back({100, 5});
  graph.nodes.push_back({0, 1}); // Moment 3: all three alive.
  for (int i = 0; i < 3; ++i) {
    graph.nodes.push_back({0, 1});
    graph.edges.push_back({i, 4 + i});
  }
  return *problemOf(graph);
}

/// All weight on compute, and these prices of a byte of the device.
Certificate priced(const Problem &p, int64_t budget, int64_t denominator,
                   std::vector<Certificate::Price> prices) {
  Certificate c = plainCertificate(p);
  c.budgetBytes = budget;
  c.denominator = denominator;
  for (std::vector<int64_t> &row : c.weights)
    row[0] = denominator;
  c.prices = std::move(prices);
  return c;
}

Certificate found(const GapModel &model, int64_t budget) {
  return certify(model, ascend(model, limitsOf(model.problem, budget)), budget);
}

TEST(Bound, TheExampleOfTheHeader) {
  Problem p = threeValues();
  Certificate c = priced(p, 200, 100, {{3, 0, 5}});
  const int64_t base = baseCost(p);
  EXPECT_EQ(*checkBound(p, c), base + 5);
  c.provenCost = base + 5;
  EXPECT_EQ(checkCertificate(p, c), std::nullopt);
  const GapModel model(p);
  EXPECT_EQ(*costProvenBy(model, c), base + 5);
  EXPECT_EQ(model.live[0],
            (std::vector<int64_t>{100, 200, 300, 300, 300, 200, 100}));
  EXPECT_EQ(model.gaps.size(), 3u);
  EXPECT_EQ(impossibleBelowInOrder(model), 100);
  Certificate best = found(model, 200);
  EXPECT_GE(best.provenCost, base + 5);
  EXPECT_EQ(checkCertificate(p, best), std::nullopt);
}

TEST(Bound, TheCheckerCatchesPlantedFaults) {
  Problem p = threeValues();
  auto isCaught = [&](auto plant) {
    GapModel wrong(p);
    plant(wrong);
    return checkCertificate(p, found(wrong, 150)).has_value();
  };
  EXPECT_FALSE(isCaught([](GapModel &) {}));
  EXPECT_TRUE(isCaught([](GapModel &model) {
    for (GapModel::Charge &charge : model.charges)
      charge.cost *= 3;
  }));
  EXPECT_TRUE(isCaught([](GapModel &model) { model.plainGaps -= 2; }));
  Certificate c = priced(p, 200, 100, {{3, 0, 5}});
  c.provenCost = baseCost(p) + 6;
  EXPECT_EQ(checkCertificate(p, c),
            "the certificate proves a cost of 24, not 25 as claimed");
}

/// The model's sum and the checker's walk agree on random loops, whatever the
/// prices are.
TEST(Bound, BothWaysToSumAgree) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    RandomShape shape;
    shape.trips = 1 + int64_t(random.below(4));
    shape.body = 5;
    Problem p = randomProblem(random, shape);
    const GapModel model(p);
    std::vector<Certificate::Price> prices;
    const int64_t budget = 5 + random.below(20);
    for (InstructionId i : model.order)
      if (random.chance(0.5))
        prices.push_back({i, 0, int64_t(random.below(2000))});
    Certificate c = priced(p, budget, 1000, prices);
    ASSERT_EQ(*checkBound(p, c), *costProvenBy(model, c)) << seed;
  }
}

/// The device's gaps prove no more than the model does: they take choices
/// apart.
TEST(Bound, ChoicesTakenApartProveNoMore) {
  int64_t choices = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    Problem p = randomProblem(random, {.body = 6});
    const GapModel model(p);
    const Relaxation relaxation = relax(model);
    choices += int64_t(model.choices.size());
    const int64_t limit = 5 + random.below(20);
    GapSum<__int128> sum(model, {limit}, 1000, true, {});
    std::vector<__int128> at = sum.point(1000, 0);
    __int128 apart = __int128(relaxation.cheaperRecipes) * 1000;
    std::vector<int64_t> before(model.numMoments() + 1, 0);
    for (size_t k = 0; k < model.numMoments(); ++k) {
      const int64_t price = random.chance(0.5) ? random.below(2000) : 0;
      at[sum.priceOf(0, int32_t(k))] = price;
      before[k + 1] = before[k] + price;
      apart += __int128(price) * (relaxation.live[k] - limit);
    }
    for (const Gap &g : relaxation.gaps)
      apart -= std::max<__int128>(
          0, __int128(g.bytes) * (before[g.last + 1] - before[g.first]) -
                 __int128(g.cost) * 1000);
    __int128 base = 0;
    for (const Instruction &i : p.instructions)
      base += p.recipes[i.recipes.front()].cost * p.segments[i.segment].trips *
              __int128(1000);
    __int128 whole = sum(at, nullptr);
    for (int64_t cost : model.costs)
      whole += cost * __int128(1000);
    ASSERT_LE(base + apart, whole) << seed;
  }
  EXPECT_GT(choices, 50);
}

} // namespace
