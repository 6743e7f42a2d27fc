// Prices prove what the independent checker says they prove, and no more.

#include "test/unit/planning/RandomProblem.h"

#include "compiler/planning/bound/Bound.h"
#include "compiler/planning/model/Graph.h"

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

TEST(Bound, TheExampleOfTheHeader) {
  Problem p = threeValues();
  Certificate c;
  c.budgetBytes = 200;
  c.lambda = {{3, 5}};
  c.denominator = 100;
  EXPECT_EQ(*provenExtraCost(p, c), 5);
  c.extraCost = 5;
  EXPECT_EQ(checkCertificate(p, c), std::nullopt);
  Relaxation relaxation = relax(p);
  EXPECT_EQ(relaxation.live,
            (std::vector<int64_t>{100, 200, 300, 300, 300, 200, 100}));
  EXPECT_EQ(relaxation.gaps.size(), 3u);
  EXPECT_EQ(impossibleBelowInOrder(p, relaxation), 100);
  Certificate found = certify(p, relaxation, ascend(relaxation, 200, {}), 200);
  EXPECT_GE(found.extraCost, 5);
  EXPECT_EQ(checkCertificate(p, found), std::nullopt);
}

TEST(Bound, TheCheckerCatchesWhatIsPlanted) {
  Problem p = threeValues();
  Relaxation relaxation = relax(p);
  auto claimFor = [&](const Relaxation &wrong) {
    // Prices found on a wrong relaxation, with what they would prove there.
    std::vector<double> prices = ascend(wrong, 150, {});
    Certificate c = certify(p, wrong, prices, 150);
    double value = 0;
    std::vector<double> prefix(prices.size() + 1, 0);
    for (size_t k = 0; k < prices.size(); ++k) {
      value += prices[k] * double(wrong.live[k] - 150);
      prefix[k + 1] = prefix[k] + prices[k];
    }
    for (const Gap &g : wrong.gaps)
      value -= std::max(0.0, double(g.bytes) *
                                     (prefix[g.last + 1] - prefix[g.first]) -
                                 double(g.cost));
    c.extraCost = std::max(c.extraCost, int64_t(std::min(value, 1e15)));
    return checkCertificate(p, c).has_value();
  };
  EXPECT_FALSE(claimFor(relaxation));
  Relaxation inflated = relaxation;
  for (Gap &g : inflated.gaps)
    g.cost *= 3;
  EXPECT_TRUE(claimFor(inflated));
  Relaxation dropped = relaxation;
  dropped.gaps.pop_back();
  dropped.gaps.pop_back();
  EXPECT_TRUE(claimFor(dropped));
  Certificate c;
  c.budgetBytes = 200;
  c.lambda = {{3, -1}};
  EXPECT_EQ(checkCertificate(p, c), "the price at moment 3 is -1, below 0");
  c.lambda = {{3, 1}, {2, 1}};
  EXPECT_EQ(checkCertificate(p, c),
            "moment 2 is out of order or past the last of 7");
  c.lambda = {{3, 5}};
  c.denominator = 0;
  EXPECT_EQ(checkCertificate(p, c), "the denominator is 0");
  c.denominator = 100;
  c.extraCost = 6;
  EXPECT_EQ(checkCertificate(p, c),
            "the prices prove an extra cost of 5, not 6 as claimed");
}

TEST(Bound, BothWaysToSumAgree) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    RandomShape shape;
    shape.trips = 1 + int64_t(random.below(4));
    shape.body = 5;
    Problem p = randomProblem(random, shape);
    Relaxation relaxation = relax(p);
    int64_t limit = 5 + random.below(20), denominator = 1000;
    Certificate c;
    c.budgetBytes = limit;
    c.denominator = denominator;
    __int128 value = __int128(relaxation.cheaperRecipes) * denominator;
    std::vector<int64_t> prefix(relaxation.live.size() + 1, 0);
    for (size_t k = 0; k < relaxation.live.size(); ++k) {
      int64_t price = random.chance(0.5) ? random.below(2000) : 0;
      if (price)
        c.lambda.push_back({int32_t(k), price});
      prefix[k + 1] = prefix[k] + price;
      value += __int128(price) * (relaxation.live[k] - limit);
    }
    for (const Gap &g : relaxation.gaps)
      value -= std::max<__int128>(
          0, __int128(g.bytes) * (prefix[g.last + 1] - prefix[g.first]) -
                 __int128(g.cost) * denominator);
    int64_t expected = int64_t(value / denominator) + (value % denominator > 0);
    ASSERT_EQ(*provenExtraCost(p, c), expected) << seed;
  }
}

} // namespace
