// Planners by name and as programs: what they answer is checked, whoever they
// are. The first one is the example of docs/planning/search.md, word for word.

#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/laboratory/Graph.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace tmc::planning;

namespace {

void registerAgain() {
  registerPlanner(
      "again", "recomputes the largest value before its last use",
      [](const Problem &problem,
         const PlanRequest &) -> absl::StatusOr<Solution> {
        Solution solution = baseSolution(problem);
        RecipeId largest = kNone;
        int64_t most = 0;
        for (RecipeId r = 0; r < RecipeId(problem.recipes.size()); ++r)
          if (const Recipe &recipe = problem.recipes[r];
              recipe.recomputable &&
              problem.values[recipe.writes[0]].bytes > most) {
            largest = r;
            most = problem.values[recipe.writes[0]].bytes;
          }
        if (largest == kNone)
          return absl::FailedPreconditionError("nothing can be recomputed");
        ValueId value = problem.recipes[largest].writes[0];
        std::vector<Execution> &list = solution.segments.back();
        for (size_t i = list.size(); i-- > 0;)
          if (const Recipe &recipe = problem.recipes[list[i].recipe];
              std::ranges::count(recipe.reads, value)) {
            list.insert(list.begin() + i, {largest, kNone, {}});
            break;
          }
        return solution;
      });
}

/// 3 reads 1 and 2, 4 reads 0 and 3: at 3, 0 waits, and 400 bytes are alive.
Problem chain() {
  Graph graph;
  graph.nodes = {{100, 1}, {100, 1}, {100, 1}, {100, 1}, {100, 1}, {10, 1}};
  graph.edges = {{0, 1}, {1, 2}, {1, 3}, {2, 3}, {0, 4}, {3, 4}, {4, 5}};
  return *problemOf(graph);
}

SolveOptions within(int64_t bytes) {
  SolveOptions options;
  options.budgetBytes = bytes;
  options.timeLimitSeconds = 20;
  return options;
}

std::string failureOf(const std::string &name, double seconds = 20) {
  SolveOptions options = within(300);
  options.timeLimitSeconds = seconds;
  return std::string(planBy(name, chain(), options, "").status().message());
}

TEST(Planners, OneIsAddedInCpp) {
  registerAgain();
  Plan plan = *planBy("again", chain(), within(300), "");
  EXPECT_TRUE(plan.feasible);
  EXPECT_EQ(plan.peakBytes[0], 300);
  EXPECT_EQ(plan.cost, 7);
  EXPECT_FALSE(planBy("again", chain(), within(299), "")->feasible);
  // Of one name there is one.
  size_t before = planners().size();
  registerPlanner(
      "again", "answers with nothing",
      [](const Problem &, const PlanRequest &) -> absl::StatusOr<Solution> {
        return Solution{};
      });
  EXPECT_EQ(planners().size(), before);
  EXPECT_EQ(failureOf("again"),
            "the answer of planner 'again' is wrong: lists: the solution has 0 "
            "segments, the problem 1");
}

TEST(Planners, ProgramsMayDoAnything) {
  EXPECT_EQ(planBy("exec:echo 0 1 2 3 0 4 5 #", chain(), within(300), "")->cost,
            7);
  EXPECT_EQ(failureOf("exec:exit 3 #"),
            "the external planner 'exit 3 #' ended with exit code 3");
  EXPECT_EQ(failureOf("exec:kill -9 $$ #"),
            "the external planner 'kill -9 $$ #' ended with signal 9");
  EXPECT_EQ(failureOf("exec:echo 0 1 two #"),
            "the planner's answer has no number after 2 of them");
  EXPECT_EQ(
      failureOf("exec:true #"),
      "the answer of planner 'exec:true #' is wrong: lists: instruction 'n0' "
      "runs 0 times for itself, not once");
  EXPECT_EQ(failureOf("exec:echo 0 1 77 #"), "the sequence names node 77 of 6");
  // Whether it waits, writes without end, or has closed its output.
  for (std::string command :
       {"exec sleep 50 #", "exec yes #", "exec 1>&-; exec sleep 50 #"})
    EXPECT_EQ(failureOf("exec:" + command, 0.1),
              "the external planner '" + command +
                  "' hasn't ended after 0.1 s; --time-limit says how long it "
                  "may take");
}

} // namespace
