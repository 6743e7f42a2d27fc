// Cuts and knapsacks against all subsets, and the planner on chains whose best
// answer can be told by hand.

#include "test/unit/planning/RandomProblem.h"

#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/laboratory/Laboratory.h"
#include "compiler/planning/laboratory/MinCut.h"
#include "compiler/planning/search/Checkpoint.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

/// Whether the backward part can be computed from what is `saved` alone, with
/// neither the banned nor what isn't made from anything.
bool suffices(const LinearProblem &linear, const Problem &p, int32_t turn,
              const std::vector<char> &banned, const std::vector<char> &saved) {
  std::vector<ValueId> open;
  for (size_t k = size_t(turn); k < linear.stages.size(); ++k)
    for (ValueId v : linear.ops[linear.stages[k].variants.front()].reads)
      open.push_back(v);
  while (!open.empty()) {
    ValueId v = open.back();
    open.pop_back();
    if (saved[v] || linear.madeAt[v] >= turn || linear.madeAt[v] < 0)
      continue;
    if (banned[v] || p.recipes[v].reads.empty())
      return false;
    for (ValueId u : p.recipes[v].reads)
      open.push_back(u);
  }
  return true;
}

TEST(MinCut, SavesTheFewestBytesThatSuffice) {
  int smaller = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    Graph graph = generateGraph(
        {Family::RandomLayered, 16 + int64_t(seed % 5), seed, false});
    Problem p = *problemOf(graph);
    LinearProblem linear = linearize(p);
    int32_t turn = 9;
    std::vector<char> banned(linear.bytes.size(), 0);
    for (int32_t v = 0; v < turn; ++v)
      banned[v] = random.chance(0.2);
    std::vector<char> saved = minimumCut(p, linear, turn, banned);
    ASSERT_TRUE(suffices(linear, p, turn, banned, saved)) << seed;
    int64_t least = INT64_MAX, bytes = 0, all = 0;
    for (int32_t v = 0; v < turn; ++v) {
      bytes += saved[v] ? linear.bytes[v] : 0;
      all += linear.bytes[v];
    }
    for (uint32_t set = 0; set < (1u << turn); ++set) {
      std::vector<char> other(linear.bytes.size(), 0);
      int64_t sum = 0;
      for (int32_t v = 0; v < turn; ++v)
        if (set >> v & 1) {
          other[v] = 1;
          sum += linear.bytes[v];
        }
      if (sum < least && suffices(linear, p, turn, banned, other))
        least = sum;
    }
    ASSERT_EQ(bytes, least) << seed;
    smaller += bytes < all;
  }
  EXPECT_GT(smaller, 50);
}

TEST(MinCut, TheKnapsackIsWorthMost) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> sizes, worth;
    for (int i = 0; i < 10; ++i) {
      sizes.push_back(random.below(30));
      worth.push_back(random.below(30));
    }
    int64_t capacity = round % 10 ? random.below(120) : 0;
    auto sum = [&](const std::vector<int64_t> &list, auto in) {
      int64_t total = 0;
      for (size_t i = 0; i < list.size(); ++i)
        total += in(i) ? list[i] : 0;
      return total;
    };
    std::vector<char> taken = knapsack(sizes, worth, capacity);
    auto isTaken = [&](size_t i) { return taken[i] != 0; };
    ASSERT_LE(sum(sizes, isTaken), capacity);
    // Sizes are rounded up to thousandths of the capacity.
    int64_t best = 0;
    for (uint32_t set = 0; set < 1024; ++set) {
      auto in = [&](size_t i) { return (set >> i & 1) != 0; };
      if (sum(sizes, in) * 100 <= capacity * 99)
        best = std::max(best, sum(worth, in));
    }
    ASSERT_GE(sum(worth, isTaken), best);
  }
}

/// a, b, c, d each from the one before; then their gradients, last first, each
/// from its own value and the gradient after.
Problem chain(const std::vector<Graph::Node> &forward) {
  Graph graph;
  graph.nodes = forward;
  int32_t n = int32_t(forward.size());
  for (int32_t i = 1; i < n; ++i)
    graph.edges.push_back({i - 1, i});
  for (int32_t i = n; i-- > 1;) {
    graph.edges.push_back({i, int32_t(graph.nodes.size())});
    if (i + 1 < n)
      graph.edges.push_back(
          {int32_t(graph.nodes.size()) - 1, int32_t(graph.nodes.size())});
    graph.nodes.push_back({1, 1});
  }
  return *problemOf(graph);
}

TEST(MinCut, AChainHasAKnownAnswer) {
  registerLaboratory();
  // Values 1 to 5 are read backward, 0 is the input. All held, 501 bytes are
  // alive when the first gradient is made. To drop 1 costs the least, and is
  // what has to be done.
  std::vector<Graph::Node> nodes = {{10, 1},  {100, 3}, {100, 5},
                                    {100, 9}, {100, 7}, {100, 20}};
  SolveOptions options;
  options.budgetBytes = 450;
  options.effort.mostWork = 1'000'000;
  Problem p = chain(nodes);
  EXPECT_EQ(simulate(p, baseSolution(p))->peakBytes, 501);
  Plan plan = *planBy("mincut", p, options, "");
  EXPECT_TRUE(plan.feasible);
  EXPECT_EQ(plan.cost - plan.baseCost, 3);
  EXPECT_EQ(plan.cost, solve(p, options)->cost);

  // Now 5 costs less. But it is read at once: dropping it frees nothing at the
  // peak, which a cut doesn't see.
  nodes[5].cost = 1;
  p = chain(nodes);
  plan = *planBy("mincut", p, options, "");
  EXPECT_TRUE(plan.feasible);
  EXPECT_EQ(plan.cost - plan.baseCost, 4);
  EXPECT_EQ(solve(p, options)->cost - plan.baseCost, 3);
}

TEST(MinCut, AnswersAreRightOnAnyProblem) {
  registerLaboratory();
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    RandomShape shape;
    shape.body = 8;
    shape.epilogue = 4;
    shape.trips = 1 + int64_t(seed % 3);
    Problem p = randomProblem(random, shape);
    SolveOptions options;
    options.budgetBytes = simulate(p, baseSolution(p))->peakBytes * 8 / 10;
    absl::StatusOr<Plan> plan = planBy("mincut", p, options, "");
    ASSERT_TRUE(plan.ok()) << seed << ": " << plan.status().message();
    EXPECT_EQ(
        verifySolution(p, plan->solution, {plan->peakBytes[0], plan->cost, -1}),
        std::nullopt);
  }
}

} // namespace
