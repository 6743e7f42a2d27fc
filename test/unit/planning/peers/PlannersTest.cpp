// Planners by name and as programs: what they answer is checked, whoever they
// are. The first one is the example of docs/planning/search.md, word for word.

#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/laboratory/Graph.h"
#include "compiler/planning/laboratory/Optimum.h"
#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/model/Verify.h"
#include "compiler/planning/peers/External.h"

#include "test/unit/TemporaryDirectory.h"
#include "test/unit/planning/SmallSteps.h"
#include "test/unit/planning/SpaceProblem.h"

#include "absl/strings/str_cat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

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

std::string failureOf(const std::string &name, double seconds = 20,
                      const std::string &file = "") {
  SolveOptions options = within(300);
  options.timeLimitSeconds = seconds;
  return std::string(planBy(name, chain(), options, file).status().message());
}

/// R9's example: `a` is stashed while `f2` runs, and fetched before `g1`.
SpaceProblem stashed() {
  SpaceProblem w;
  w.p.addSegment("step");
  for (const char *v : {"a", "b", "c"})
    w.value(v);
  w.form("a@host", "a");
  w.value("d", 50);
  w.value("e", 50).liveOut = true;
  w.form("e@host", "e").liveOut = true;
  w.move("stash", "a", "a@host", kD2H);
  w.move("fetch", "a@host", "a", kH2D);
  w.move("save", "e", "e@host", kD2H);
  w.p.addInstruction(0, w.recipe("f1", "", "a"));
  w.p.addInstruction(0, w.recipe("f2", "", "b"));
  w.p.addInstruction(0, w.recipe("f3", "b", "c"));
  w.p.addInstruction(0, w.recipe("g3", "c", "d"));
  w.p.addInstruction(0, w.recipe("g1", "a d", "e"));
  EXPECT_TRUE(check(w.p).ok()) << check(w.p).message();
  return w;
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

/// The words of a graph's file and of a full problem's are different, whatever
/// the full problem looks like.
TEST(Planners, AProgramAnswersInTheWordsOfItsFile) {
  tmc::test::TemporaryDirectory directory;
  const std::string file = directory / "chain.graph";
  std::ofstream(file) << "6 7 100 1 100 1 100 1 100 1 100 1 10 1 0 1 1 2 1 3 "
                         "2 3 0 4 3 4 4 5";
  EXPECT_EQ(
      planBy("exec:echo 0 1 2 3 0 4 5 #", chain(), within(300), file)->cost, 7);
  EXPECT_EQ(failureOf("exec:echo 0 1 77 #", 20, file),
            "the sequence names node 77 of 6");
  EXPECT_EQ(failureOf("exec:echo 0 1 start #", 20, file),
            "the planner's answer has no number after 2 of them");
  const std::string full = directory / "chain.problem";
  std::ofstream(full) << printProblem(chain());
  for (const std::string &given : {std::string(), full})
    EXPECT_EQ(planBy("exec:echo 0 0 0 1 0 2 0 3 0 0 0 4 0 5 #", chain(),
                     within(300), given)
                  ->cost,
              7);
}

TEST(Planners, ProgramsMayMove) {
  const SpaceProblem w = stashed();
  auto plan = [&](const std::string &words, int64_t budget = 299) {
    return planBy("exec:echo '" + words + "' #", w.p, within(budget), "");
  };
  auto fault = [&](const std::string &words) {
    const std::string message = std::string(plan(words).status().message());
    return message.substr(message.find("is wrong: ") == std::string::npos
                              ? 0
                              : message.find("is wrong: ") + 10);
  };
  const std::string begin = "0 3 0 0 start 0 4 0 0 done 0 5 ";
  const std::string whole = begin + "0 1 start 0 6 0 1 done 0 7";
  EXPECT_EQ(plan(whole)->cost, 60);
  EXPECT_EQ(plan(whole)->peakBytes, (std::vector<int64_t>{250, 100, 0}));
  EXPECT_TRUE(plan(whole)->feasible);
  EXPECT_FALSE(plan(whole, 249)->feasible);
  // Without a word, nothing moves.
  EXPECT_EQ(plan("0 3 0 4 0 5 0 6 0 7", 300)->cost, 50);
  EXPECT_FALSE(plan("0 3 0 4 0 5 0 6 0 7")->feasible);
  // The answer's home is a form on the host.
  EXPECT_EQ(plan("home 6 " + whole + " 0 2 start 0 2 done")->cost, 75);
  EXPECT_EQ(fault("home 6 " + whole), "R14: nothing makes 'e@host', which is a "
                                      "home");
  EXPECT_EQ(fault("home 77 " + whole),
            "R14: there is no value 77 to be a home");
  // Faults of the words, and of the list.
  EXPECT_EQ(fault("home x " + whole),
            "the planner's answer has no number after 0 of them");
  EXPECT_EQ(fault("0 3 stop"),
            "the planner's answer has no number after 2 of them");
  EXPECT_EQ(fault("0 -3"),
            "the planner's answer has no number after 1 of them");
  EXPECT_EQ(fault("0 3 0"),
            "the planner's answer has no number after 3 of them");
  EXPECT_EQ(fault("0 3 0 0 done"),
            "the planner's answer ends 'stash', but it isn't under way");
  EXPECT_EQ(fault("0 3 0 0 start 0 2 done"),
            "the planner's answer ends 'save', but its engine runs other work "
            "before it");
  EXPECT_EQ(fault(begin + "0 0 start 0 2 start 0 2 done"),
            "the planner's answer ends 'save', but its engine runs other work "
            "before it");
  EXPECT_EQ(fault(begin + "0 1 start 0 6 0 7"),
            "R10: 'fetch' starts, but is never done");
  EXPECT_EQ(fault("0 3 start"), "R10: 'f1' stands as work, but computes");
  EXPECT_EQ(fault("0 3 0 0"), "R10: 'stash' stands as one entry, but is work");
  EXPECT_EQ(fault("0 3 0 99"),
            "the planner's answer runs recipe 99 in segment 0, of 8 and 1");
}

/// Every plan with moves can be said in words: updates on the host, homes.
TEST(Planners, WordsSayAllPlansWithMoves) {
  Random random(5);
  int64_t plans = 0, onHost = 0, homes = 0;
  for (int i = 0; i < 200; ++i) {
    Problem p = SmallStep(random).w.p;
    p.spaces[0].budgetBytes = simulate(p, baseSolution(p))->peakBytes * 9 / 10;
    absl::StatusOr<std::optional<OptimalPlan>> plan =
        planOptimum(p, {.mostStates = 1500});
    if (!plan.ok() || !*plan)
      continue;
    const Solution &solution = (*plan)->solution;
    std::string words;
    for (ValueId home : solution.homes)
      absl::StrAppend(&words, "home ", home, "\n");
    for (size_t s = 0; s < solution.segments.size(); ++s)
      for (const Execution &e : solution.segments[s]) {
        absl::StrAppend(&words, s, " ", e.recipe,
                        e.phase == Phase::Start  ? " start\n"
                        : e.phase == Phase::Done ? " done\n"
                                                 : "\n");
        onHost += e.phase == Phase::Done && e.instruction != kNone;
      }
    absl::StatusOr<Solution> said = parseAnswer(p, words, /*isGraph=*/false);
    ASSERT_TRUE(said.ok()) << said.status().message() << words;
    takeOverwrites(p, *said);
    absl::StatusOr<Claim> claim = measure(p, *said);
    ASSERT_TRUE(claim.ok()) << claim.status().message() << words;
    ASSERT_EQ(claim->cost, (*plan)->makespan);
    ASSERT_LE(claim->peakBytes, p.spaces[0].budgetBytes);
    ++plans;
    homes += solution.homes.size();
  }
  EXPECT_GE(plans, 30);
  EXPECT_GE(onHost, 10);
  EXPECT_GE(homes, 10);
}

TEST(Planners, ProgramsMayDoAnything) {
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
  // Whether it waits, writes without end, or has closed its output.
  for (std::string command :
       {"exec sleep 50 #", "exec yes #", "exec 1>&-; exec sleep 50 #"})
    EXPECT_EQ(failureOf("exec:" + command, 0.1),
              "the external planner '" + command +
                  "' hasn't ended after 0.1 s; --time-limit says how long it "
                  "may take");
}

} // namespace
