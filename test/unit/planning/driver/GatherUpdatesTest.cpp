#include "test/unit/planning/SpaceBrute.h"

#include "compiler/planning/driver/GatherUpdates.h"
#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/pack/Buffers.h"
#include "test/unit/planning/RandomProblem.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace tmc::planning;

namespace {

/// A step of `updates` parameters of 8 bytes with gradients of `gradientBytes`,
/// after a kernel that needs 100 bytes; each update stands behind its gradient.
struct SmallStep {
  Problem p;
  std::vector<int32_t> kindOf;

  SmallStep(int updates, int64_t gradientBytes, int kinds = 1) {
    p.addSegment("step");
    add("f", {}, {value("big", 100)}, kNone);
    for (int i = 0; i < updates; ++i) {
      const std::string name = std::to_string(i);
      const ValueId w = value("w" + name, 8), next = value("w'" + name, 8);
      const ValueId g = value("g" + name, gradientBytes);
      p.values[w].kind = p.values[next].kind = ValueKind::Persistent;
      p.values[next].updates = w;
      add("g" + name, {}, {g}, kNone);
      const RecipeId update = add("u" + name, {w, g}, {next}, i % kinds);
      p.recipes[update].overwrites = {{w, next, true}};
    }
  }
  ValueId value(const std::string &name, int64_t bytes) {
    Value made;
    made.name = name;
    made.bytes = bytes;
    return p.addValue(made);
  }
  RecipeId add(const std::string &name, std::vector<ValueId> reads,
               std::vector<ValueId> writes, int32_t kind) {
    Recipe recipe;
    recipe.name = name;
    recipe.reads = std::move(reads);
    recipe.writes = std::move(writes);
    recipe.cost = 1;
    kindOf.push_back(kind);
    return p.instructions[p.addInstruction(0, std::move(recipe))].recipes[0];
  }

  Plan planned() const {
    Plan plan;
    plan.solution = baseSolution(p);
    const Profile profile = *simulate(p, plan.solution);
    plan.feasible = true;
    plan.cost = profile.makespan;
    plan.peakBytes = profile.spacePeakBytes;
    return plan;
  }
  /// The names of the kernels after gathering.
  std::string gathered(int64_t budgetBytes = -1) const {
    Plan plan = planned();
    gatherUpdates(p, plan, kindOf, 1, budgetBytes);
    EXPECT_EQ(verifyPlan(p, plan, budgetBytes), std::nullopt);
    std::string names;
    for (const Execution &e : plan.solution.segments[0])
      names += (names.empty() ? "" : " ") + p.recipes[e.recipe].name;
    return names;
  }
};

int64_t arenaBytes(const Problem &p, const Plan &plan) {
  return packSorted(arenaOf(p, plan.solution, 1)).arenaBytes;
}

/// The executions that don't wait, in order.
std::vector<std::pair<RecipeId, Phase>>
othersOf(const Solution &solution, const std::vector<int32_t> &kindOf) {
  std::vector<std::pair<RecipeId, Phase>> others;
  for (const std::vector<Execution> &list : solution.segments)
    for (const Execution &e : list)
      if (kindOf[e.recipe] == kNone || e.instruction == kNone)
        others.push_back({e.recipe, e.phase});
  return others;
}

} // namespace

TEST(GatherUpdates, WaitForTheLastAndStandByKind) {
  EXPECT_EQ(SmallStep(4, 20, 2).gathered(), "f g0 g1 g2 g3 u0 u2 u1 u3");
}

TEST(GatherUpdates, WaitOnlyWithinThePeak) {
  // Three gradients of 40 are more than the 100 of the first kernel.
  EXPECT_EQ(SmallStep(4, 40).gathered(), "f g0 g1 u0 u1 g2 g3 u2 u3");
  EXPECT_EQ(SmallStep(4, 60).gathered(), "f g0 u0 g1 u1 g2 u2 g3 u3");
}

TEST(GatherUpdates, RunBeforeAReaderOfTheirResults) {
  SmallStep step(3, 20);
  step.p.recipes[3].reads.push_back(step.p.recipes[2].writes[0]); // g1 of w'0
  EXPECT_EQ(step.gathered(), "f g0 u0 g1 g2 u1 u2");
}

/// Gathers the updates of one plan. Its budget is the arena that it needs.
static void expectGathered(const Problem &p, Solution solution,
                           const std::vector<int32_t> &kindOf, int64_t &lists,
                           int64_t &changed) {
  takeOverwrites(p, solution);
  const absl::StatusOr<Profile> before = simulate(p, solution);
  if (!before.ok())
    return;
  ++lists;
  Plan plan;
  plan.solution = solution;
  plan.cost = before->makespan;
  plan.peakBytes = before->spacePeakBytes;
  const int64_t budget = arenaBytes(p, plan) + p.reservedBytes;
  gatherUpdates(p, plan, kindOf, 1, budget);
  ASSERT_EQ(verifyPlan(p, plan, -1), std::nullopt) << printProblem(p);
  EXPECT_LE(plan.cost, before->makespan);
  EXPECT_LE(plan.peakBytes[0], before->peakBytes);
  EXPECT_LE(arenaBytes(p, plan) + p.reservedBytes, budget);
  EXPECT_EQ(othersOf(plan.solution, kindOf), othersOf(solution, kindOf));
  changed += firstExecutions(plan.solution) != firstExecutions(solution);
}

static std::vector<int32_t> randomKinds(Random &random, const Problem &p) {
  std::vector<int32_t> kindOf;
  for (size_t i = 0; i < p.recipes.size(); ++i)
    kindOf.push_back(random.chance(0.5) ? int32_t(random.below(2)) : kNone);
  return kindOf;
}

TEST(GatherUpdates, KeepEveryRuleOfLists) {
  int64_t lists = 0, changed = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Random random(seed);
    RandomShape shape{.prologue = 4, .body = 6, .epilogue = 12};
    shape.trips = seed % 2 ? 4 : 1;
    const Problem p = randomProblem(random, shape);
    expectGathered(p, baseSolution(p), randomKinds(random, p), lists, changed);
  }
  printf("  %lld lists, %lld changed\n", (long long)lists, (long long)changed);
  EXPECT_GT(lists, 3000);
  EXPECT_GT(changed, lists / 20);
}

TEST(GatherUpdates, KeepEveryRuleOfMoves) {
  int64_t lists = 0, changed = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Random random(seed);
    const Problem p = randomSpaces(random, int(seed % 3)).p;
    const std::vector<int32_t> kindOf = randomKinds(random, p);
    EveryList(p, 1, [&](const Solution &list) {
      expectGathered(p, list, kindOf, lists, changed);
    }).run();
  }
  printf("  %lld lists, %lld changed\n", (long long)lists, (long long)changed);
  EXPECT_GT(lists, 3000);
  EXPECT_GT(changed, 20);
}
