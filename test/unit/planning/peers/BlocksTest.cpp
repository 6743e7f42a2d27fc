// BlocksTest.cpp - every-block checkpointing finds the blocks by their shape.

#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/laboratory/Graph.h"
#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

/// Blocks of three nodes, x -> wide -> wider -> y, and their gradients, which
/// read what the block made. A count of the labels stands within block `at`.
struct Chain {
  std::string nodes, edges;
  int count = 0, edgeCount = 0;

  int add(int bytes, int cost, std::initializer_list<int> reads) {
    nodes += std::to_string(bytes) + " " + std::to_string(cost) + "\n";
    for (int r : reads) {
      edges += std::to_string(r) + " " + std::to_string(count) + "\n";
      ++edgeCount;
    }
    return count++;
  }
  std::string text() const {
    return std::to_string(count) + " " + std::to_string(edgeCount) + "\n" +
           nodes + edges;
  }
};

TEST(Blocks, AreRecomputedOnceEach) {
  constexpr int kBlocks = 5;
  Chain chain;
  int x = chain.add(100, 1, {});
  std::vector<std::array<int, 3>> made;
  std::vector<int> inputs;
  for (int b = 0; b < kBlocks; ++b) {
    inputs.push_back(x);
    int wide = chain.add(400, 7, {x});
    if (b == 3)
      chain.add(1, 1, {});
    int wider = chain.add(600, 9, {wide});
    x = chain.add(100, 5, {wider});
    made.push_back({wide, wider, x});
  }
  int head = chain.add(1000, 50, {x});
  int g = chain.add(100, 50, {head, x});
  for (int b = kBlocks; b-- > 0;) {
    int dwider = chain.add(600, 9, {g, made[b][1]});
    int dwide = chain.add(400, 7, {dwider, made[b][0]});
    g = chain.add(100, 5, {dwide, inputs[b]});
  }
  absl::StatusOr<Graph> graph = parseGraph(chain.text());
  ASSERT_TRUE(graph.ok()) << graph.status();
  absl::StatusOr<Problem> problem = problemOf(*graph);
  ASSERT_TRUE(problem.ok()) << problem.status();
  absl::StatusOr<Plan> plan = planBy("blocks", *problem, {}, "");
  ASSERT_TRUE(plan.ok()) << plan.status();
  // The two wide values of each block come back once; neither what enters a
  // block nor the head does.
  std::vector<int> again(chain.count, 0);
  for (const Execution &e : plan->solution.segments[0])
    again[problem->recipes[e.recipe].writes.front()] += e.instruction == kNone;
  std::vector<int> wanted(chain.count, 0);
  for (const std::array<int, 3> &block : made)
    wanted[block[0]] = wanted[block[1]] = 1;
  EXPECT_EQ(again, wanted);
  EXPECT_EQ(plan->cost - plan->baseCost, kBlocks * (7 + 9));
}

} // namespace
