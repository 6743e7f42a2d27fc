// Freedom of order never costs anything: whatever is planned with the order
// fixed is planned with it free, for no more, and mostly for less.

#include "compiler/planning/Generate.h"
#include "compiler/planning/Graph.h"
#include "compiler/planning/Solve.h"
#include "compiler/planning/Verify.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

TEST(Order, FreeIsNeverDearerThanFixed) {
  int planned = 0, cheaper = 0;
  for (Family family :
       {Family::Transformer, Family::UNet, Family::RandomLayered})
    for (uint64_t graph = 1; graph <= 3; ++graph) {
      Problem p = *problemOf(generateGraph({family, 28, graph, false}));
      int64_t base = simulate(p, baseSolution(p))->peakBytes;
      for (int64_t percent : {85, 70, 55})
        for (uint64_t seed = 1; seed <= 2; ++seed) {
          SCOPED_TRACE("family " + std::to_string(int(family)) + " graph " +
                       std::to_string(graph) + " at " +
                       std::to_string(percent) + " seed " +
                       std::to_string(seed));
          SolveOptions options;
          options.budgetBytes = base * percent / 100;
          options.seed = seed;
          options.maxWork = 500'000;
          options.wantCases = false;
          Plan fixed = *solve(p, options);
          options.order = OrderMode::Free;
          Plan free = *solve(p, options);
          ASSERT_EQ(verifySolution(p, free.solution,
                                   {free.peakBytes, free.cost,
                                    free.feasible ? options.budgetBytes : -1}),
                    std::nullopt);
          EXPECT_GE(free.feasible, fixed.feasible);
          EXPECT_LE(free.smallestFoundBytes, fixed.smallestFoundBytes);
          if (!fixed.feasible)
            continue;
          EXPECT_LE(free.cost, fixed.cost);
          ++planned;
          cheaper += free.cost < fixed.cost;
        }
    }
  EXPECT_GT(planned, 25);
  EXPECT_GT(cheaper, 5) << "of " << planned;
}

} // namespace
