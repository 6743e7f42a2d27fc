// Proofs by cases: examples that can be counted by hand, and planted faults.

#include "compiler/planning/bound/Branch.h"
#include "compiler/planning/driver/MovesSearch.h"
#include "compiler/planning/laboratory/Graph.h"
#include "compiler/planning/model/OfferMoves.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

/// The example of Branch.h: three values of 100 bytes and cost 4, made before
/// and used after a moment with a fourth, of 200; 350 bytes are there.
Problem threeGaps() {
  Graph graph;
  graph.nodes = {{100, 4}, {100, 4}, {100, 4}, {200, 1},
                 {0, 1},   {0, 1},   {0, 1},   {0, 1}};
  graph.edges = {{3, 4}, {0, 5}, {1, 6}, {2, 7}};
  return *problemOf(graph);
}

/// b = f(a) of cost 1, 90 bytes; a of cost 10, 60 bytes, used by nobody else.
/// At moment 2 another 150 bytes are alive, b is used at moment 4.
Problem chain() {
  Graph graph;
  graph.nodes = {{60, 10}, {90, 1}, {150, 1}, {0, 1}, {0, 1}};
  graph.edges = {{0, 1}, {2, 3}, {1, 4}};
  return *problemOf(graph);
}

/// The extra cost that prices prove.
int64_t byPrices(const Problem &p, int64_t budget) {
  const GapModel model(p);
  return certify(model, ascend(model, {budget}), budget).provenCost -
         baseCost(p);
}

BranchCertificate find(const Problem &p, int64_t budget, int64_t known) {
  const GapModel model(p);
  BranchOptions options;
  options.work = 3'000'000;
  options.knownExtraCost = known;
  return branch(model, ascend(model, {budget}).prices[0], budget, options);
}

TEST(Branch, WholeGapsAreDearerThanParts) {
  Problem p = threeGaps();
  EXPECT_LE(byPrices(p, 350), 6);
  BranchCertificate cases = find(p, 350, 8);
  EXPECT_EQ(cases.extraCost, 8);
  EXPECT_EQ(checkBranching(p, cases), std::nullopt);
  EXPECT_EQ(cases.nodes.size(), 5u); // Two splits.
}

TEST(Branch, InputsThatAreGoneArePaidFor) {
  Problem p = chain();
  // 150 bytes: neither a nor b can be alive at moment 2.
  EXPECT_LE(byPrices(p, 150), 1);
  BranchCertificate cases = find(p, 150, 11);
  EXPECT_EQ(cases.extraCost, 11);
  EXPECT_EQ(checkBranching(p, cases), std::nullopt);
  // With 210 bytes a can stay, and b is cheap.
  EXPECT_EQ(find(p, 210, 11).extraCost, 1);
}

/// At 210 bytes there are 60 bytes of room at moment 2: a fits, b doesn't.
BranchCertificate byHand() {
  BranchCertificate c;
  c.budgetBytes = 210;
  c.denominator = 100;
  c.moments = {2};
  c.rows = {{1, 1, 0, 0}};
  c.nodes = {{kNone, 0, {{0, 5}}, {{0, 300}}}};
  return c;
}

TEST(Branch, ACertificateByHand) {
  Problem p = chain();
  // Price 1/20 a byte at moment 2, and 3 for the row of b's input a:
  //   floor - limit = -60: -3; the row: +3; b isn't there and recomputed: 1;
  //   a's tail is there (3 - 3), or not (0), or recomputed (10 - 3): 0.
  BranchCertificate c = byHand();
  EXPECT_EQ(*provenByBranching(p, c), 1);
  // At 1/100 a byte, -0.6 + 3 + 1 + (0.6 - 3): 1 again.
  c.nodes = {{kNone, 0, {{0, 1}}, {{0, 300}}}};
  EXPECT_EQ(*provenByBranching(p, c), 1);
  // The case that keeps b is empty: the room is -30.
  c.nodes = {{1, 1, {}, {}}, {}, {}};
  EXPECT_EQ(*provenByBranching(p, c), 1);
  // At 209 bytes neither fits: 10 for the row, 1 for b, 10 - 10 for a.
  c.budgetBytes = 209;
  c.nodes = {{kNone, 0, {}, {{0, 1000}}}};
  EXPECT_EQ(*provenByBranching(p, c), 11);
  // At 149 bytes there is no plan at all.
  c.budgetBytes = 149;
  EXPECT_GT(*provenByBranching(p, c), int64_t(1) << 60);
}

TEST(Branch, TheCheckerCatchesWhatIsPlanted) {
  Problem p = chain();
  BranchCertificate c = byHand();
  c.extraCost = 2;
  EXPECT_EQ(checkBranching(p, c),
            "the cases prove an extra cost of 1, not 2 as claimed");
  auto defect = [&](auto change) {
    BranchCertificate wrong = c;
    change(wrong);
    return checkBranching(p, wrong).value_or("");
  };
  EXPECT_EQ(defect([](auto &w) { w.denominator = 0; }), "the denominator is 0");
  EXPECT_EQ(defect([](auto &w) { w.moments = {9}; }),
            "moment 9 is out of order or past the last of 5");
  EXPECT_EQ(defect([](auto &w) { w.nodes[0].lambda[0].second = -1; }),
            "a price of -1 at moment number 0 of 1");
  EXPECT_EQ(defect([](auto &w) { w.nodes[0].mu[0].first = 1; }),
            "a price of 300 at row 1 of 1");
  // Node 2 isn't an input of node 1, and node 0's gap isn't one.
  EXPECT_EQ(defect([](auto &w) { w.rows[0].read = 2; }),
            "the row of 'n1' after moment 1 at moment number 0, which reads "
            "'n2', isn't read by 'n1'");
  EXPECT_EQ(defect([](auto &w) {
              w.rows[0] = {0, 0, 0, 1};
            }),
            "the row of 'n0' after moment 0 at moment number 0, which reads "
            "'n1', is of no gap");
  EXPECT_EQ(defect([](auto &w) { w.rows[0].moment = 1; }),
            "the row of 'n1' after moment 1 at moment number 1, which reads "
            "'n0', isn't inside its gap");
  // A tree that covers one of two cases only.
  EXPECT_EQ(defect([](auto &w) {
              w.nodes.insert(w.nodes.begin(), {1, 1, {}, {}});
            }),
            "the tree of cases ends early");
  EXPECT_EQ(defect([](auto &w) { w.nodes.push_back(w.nodes[0]); }),
            "the tree of cases goes on after its end");
  EXPECT_EQ(defect([](auto &w) { w.nodes.clear(); }),
            "the tree of cases ends early");
  EXPECT_EQ(defect([](auto &w) {
              w.nodes.insert(w.nodes.begin(), {3, 3, {}, {}});
            }),
            "the tree splits at a gap of value 3 after moment 3, which isn't "
            "one");
}

TEST(Branch, InflatedCostsAndDroppedGapsAreCaught) {
  // What would be proved for more expensive recomputation, or had a been pinned
  // away (so that its gap and its tail were not), isn't for the problem itself.
  Problem p = chain(), costlier = chain(), pinned = chain();
  costlier.recipes[0].cost *= 3;
  BranchCertificate c = find(costlier, 150, 31);
  EXPECT_EQ(c.extraCost, 31);
  EXPECT_TRUE(checkBranching(p, c).has_value());
  pinned.values[1].pinned = true; // b counts in full at moment 2.
  c = find(pinned, 150, 1000);
  EXPECT_GT(c.extraCost, 11);
  EXPECT_EQ(checkBranching(pinned, c), std::nullopt);
  EXPECT_TRUE(checkBranching(p, c).has_value());
}

/// What is fetched needs no input: the same cases prove nothing any more, and
/// a plan with moves takes less than they would.
TEST(Branch, FetchesVoidTheCases) {
  Problem p = chain();
  const BranchCertificate cases = find(p, 150, 11);
  EXPECT_EQ(checkBranching(p, cases), std::nullopt);
  auto isFetch = [&](const Recipe &r) { return p.isFetch(r); };
  EXPECT_TRUE(std::ranges::none_of(p.recipes, isFetch));
  const int64_t proved = baseCost(p) + cases.extraCost;
  ASSERT_TRUE(offerMoves(p, {.leastBytes = 1}).ok());
  EXPECT_TRUE(std::ranges::any_of(p.recipes, isFetch));
  const std::optional<std::string> defect = checkBranching(p, cases);
  ASSERT_TRUE(defect);
  EXPECT_NE(defect->find("the certificate is void"), std::string::npos)
      << *defect;
  p.spaces[0].budgetBytes = 150;
  for (Recipe &r : p.recipes)
    if (p.isMove(r))
      r.cost = 1;
  absl::StatusOr<Plan> plan = solveMoves(p, {});
  ASSERT_TRUE(plan.ok() && plan->feasible);
  EXPECT_LT(plan->cost, proved);
}

} // namespace
