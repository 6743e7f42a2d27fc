// Where moves of contents are missing, a search may write a list that its
// checker refuses. That is no defect of the problem: the next list is taken.

#include "compiler/planning/driver/MovesSearch.h"
#include "compiler/planning/model/ProblemFile.h"

#include "test/unit/Rounds.h"
#include "test/unit/planning/ExpectTrue.h"
#include "test/unit/planning/SmallSteps.h"

#include <gtest/gtest.h>

#include <cstdio>

using namespace tmc::planning;

/// Whether anything moves.
static bool moves(const Problem &p, const Solution &solution) {
  for (const std::vector<Execution> &list : solution.segments)
    for (const Execution &e : list)
      if (p.isMove(p.recipes[e.recipe]))
        return true;
  return false;
}

/// Budgets of the device from a half of what the step takes, and of the others
/// of a few values' bytes, or none.
static void drawBudgets(Random &random, Problem &p) {
  const Profile base = *simulate(p, baseSolution(p));
  p.spaces[0].budgetBytes =
      1 + int64_t(double(base.peakBytes) * (0.5 + 0.5 * random.unit()));
  for (SpaceId s : {kHost, kFile})
    p.spaces[s].budgetBytes =
        random.chance(0.5) ? 1 + int64_t(random.below(12)) : -1;
}

TEST(RefusedList, SmallStepsArePlannedOrHaveNone) {
  Random random(70);
  int64_t planned = 0, moved = 0, refused = 0;
  const int64_t count = tmc::test::rounds(200, 10'000);
  for (int64_t i = 0; i < count; ++i) {
    Problem p = SmallStep(random).w.p;
    ASSERT_TRUE(check(p).ok()) << check(p).message();
    drawBudgets(random, p);
    SolveOptions options;
    options.effort = options.effort.part(256);
    absl::StatusOr<Plan> plan = solveMoves(p, options);
    ASSERT_TRUE(plan.ok()) << plan.status().message() << "\n"
                           << printProblem(p);
    refused += plan->stats.refused;
    if (!plan->feasible)
      continue;
    ++planned;
    moved += moves(p, plan->solution);
    ASSERT_NO_FATAL_FAILURE(expectTrue(p, *plan)) << printProblem(p);
  }
  std::printf("  %lld of %lld planned, %lld of them move, %lld lists refused\n",
              (long long)planned, (long long)count, (long long)moved,
              (long long)refused);
  EXPECT_GE(planned, count / 4);
  EXPECT_GE(moved, planned / 8);
  EXPECT_LE(refused, count / 50);
}
