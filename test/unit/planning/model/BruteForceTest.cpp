// The engine and its bound on the full problem, against every solution of
// small random instances.

#include "test/unit/planning/RandomProblem.h"

#include "compiler/planning/bound/BoundCheck.h"
#include "compiler/planning/driver/Solve.h"

#include <gtest/gtest.h>

#include <map>

using namespace tmc::planning;

namespace {

/// With one engine, the makespan: each execution times the trips.
int64_t costOf(const Problem &problem, const Solution &solution) {
  int64_t cost = 0;
  for (size_t s = 0; s < solution.segments.size(); ++s)
    for (const Execution &e : solution.segments[s])
      if (e.phase != Phase::Done)
        cost += problem.recipes[e.recipe].cost * problem.segments[s].trips;
  return cost;
}

struct Tally {
  int instances = 0, budgets = 0, positive = 0, optimal = 0, missed = 0,
      infeasible = 0, lifted = 0, closed = 0;
  /// Of what the search looks among (see `holdingOutside`); the same where
  /// nothing is a loop.
  int promised = 0, broken = 0;
  int beaten = 0; // Promised ones that another solution beats.
};

/// No tree of cases proves more than the cheapest solution costs, whatever its
/// prices are and however far it aims.
void compareCases(const Problem &p, const GapModel &model, int64_t budget,
                  int64_t best, const Plan &plan, Random &random,
                  Tally &tally) {
  BranchOptions options;
  options.work = 300'000;
  options.knownExtraCost = best - baseCost(p) + 5; // More than can be.
  options.moments = 2 + int32_t(random.below(5));
  BranchCertificate cases = branch(
      model, ascend(model, limitsOf(p, budget)).prices[0], budget, options);
  ASSERT_EQ(checkBranching(p, cases), std::nullopt);
  ASSERT_LE(baseCost(p) + cases.extraCost, best) << "the cases exceed a plan";
  tally.lifted += baseCost(p) + cases.extraCost > plan.certificate.provenCost;
  tally.closed += baseCost(p) + cases.extraCost == best;
  for (int trial = 0; trial < 3; ++trial) {
    BranchCertificate other = cases;
    for (BranchCertificate::Node &node : other.nodes)
      for (auto *list : {&node.lambda, &node.mu})
        for (auto &[index, price] : *list)
          price = int64_t(double(price) * 2 * random.unit());
    absl::StatusOr<int64_t> proven = provenByBranching(p, other);
    ASSERT_TRUE(proven.ok()) << proven.status().message();
    ASSERT_LE(baseCost(p) + *proven, best) << "wild prices exceed a plan";
  }
}

/// Whether each trip makes what it recomputes of values from outside before it
/// reads them, by any recipe.
bool makesOutsideFirst(const Problem &p, const Solution &solution) {
  std::vector<SegmentId> home(p.values.size(), kNone);
  for (const Instruction &i : p.instructions)
    for (ValueId v : p.recipes[i.recipes[0]].writes)
      home[v] = i.segment;
  for (size_t s = 0; s < p.segments.size(); ++s) {
    std::vector<char> isRead(p.values.size(), 0);
    for (const Execution &e : solution.segments[s]) {
      for (ValueId v : p.recipes[e.recipe].writes)
        if (isRead[v] && p.segments[s].trips > 1 && home[v] != SegmentId(s))
          return false;
      std::vector<RecipeId> recipes = {e.recipe};
      if (e.instruction != kNone)
        recipes = p.instructions[e.instruction].recipes;
      for (RecipeId r : recipes)
        for (ValueId v : p.recipes[r].reads)
          isRead[v] = 1;
    }
  }
  return true;
}

/// Whether something reads an output of each recomputation. One that nothing
/// reads can make room: an input that lives longer isn't overwritten, so a
/// larger one is.
bool readsWhatItRecomputes(const Problem &p, const Solution &solution) {
  std::vector<Execution> line;
  for (const std::vector<Execution> &list : solution.segments)
    line.insert(line.end(), list.begin(), list.end());
  auto names = [&](const std::vector<ValueId> &list, ValueId v) {
    return std::find(list.begin(), list.end(), v) != list.end();
  };
  auto isRead = [&](size_t from, ValueId v) {
    for (size_t at = from + 1; at < line.size(); ++at) {
      const Recipe &r = p.recipes[line[at].recipe];
      if (names(r.reads, v))
        return true;
      if (names(r.writes, v))
        return false;
    }
    return p.values[v].liveOut;
  };
  for (size_t at = 0; at < line.size(); ++at) {
    const std::vector<ValueId> &writes = p.recipes[line[at].recipe].writes;
    if (line[at].instruction == kNone &&
        std::none_of(writes.begin(), writes.end(),
                     [&](ValueId v) { return isRead(at, v); }))
      return false;
  }
  return true;
}

/// The least cost within each peak, of the solutions that the search promises
/// to look among.
std::map<int64_t, int64_t> promisedCosts(const Problem &p, int most) {
  const Problem held = holdingOutside(p);
  return cheapestWithin(held, most, INT64_MAX, [&](const Solution &s) {
    return makesOutsideFirst(held, s) && readsWhatItRecomputes(held, s);
  });
}

/// Solves one problem at each budget that makes a difference.
void compare(const Problem &p, int most, Tally &tally) {
  ASSERT_TRUE(check(p).ok()) << check(p).message();
  std::map<int64_t, int64_t> cheapest; // By peak.
  forEachSolution(p, most, [&](const Solution &s, const Claim &claim) {
    ASSERT_EQ(verifySolution(p, s, claim), std::nullopt);
    absl::StatusOr<Profile> profile = simulate(p, s);
    ASSERT_TRUE(profile.ok()) << profile.status().message();
    ASSERT_EQ(profile->peakBytes, claim.peakBytes);
    ASSERT_EQ(costOf(p, s), claim.cost);
    int64_t sum = 0;
    for (int64_t bytes : profile->peakByClass)
      sum += bytes;
    ASSERT_EQ(sum, claim.peakBytes);
    auto [it, fresh] = cheapest.insert({claim.peakBytes, claim.cost});
    it->second = std::min(it->second, claim.cost);
  });
  ASSERT_FALSE(cheapest.empty());
  ++tally.instances;
  int64_t base = simulate(p, baseSolution(p))->peakBytes;
  const GapModel model(p);
  Random random(uint64_t(base) * 7 + p.recipes.size());
  // No solution lies below what is proved impossible.
  ASSERT_GE(cheapest.begin()->first + p.reservedBytes,
            impossibleBelowInOrder(model));
  ASSERT_GE(cheapest.begin()->first + p.reservedBytes, impossibleBelow(p));
  std::map<int64_t, int64_t> promised = promisedCosts(p, most);
  int64_t best = INT64_MAX;
  for (auto [peak, cost] : cheapest) {
    best = std::min(best, cost);
    if (peak >= base)
      break;
    ++tally.budgets;
    SolveOptions options;
    options.budgetBytes = peak + p.reservedBytes;
    options.effort.mostWork = 400'000;
    absl::StatusOr<Plan> plan = solve(p, options);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    ASSERT_EQ(checkCertificate(p, plan->certificate), std::nullopt);
    ASSERT_LE(plan->certificate.provenCost, best)
        << "the bound exceeds a solution";
    tally.positive += plan->certificate.provenCost > baseCost(p);
    compareCases(p, model, options.budgetBytes, best, *plan, random, tally);
    if (::testing::Test::HasFatalFailure())
      return;
    if (auto within = promised.upper_bound(peak); within != promised.begin()) {
      ++tally.promised;
      tally.beaten += best < std::prev(within)->second;
      tally.broken += !plan->feasible || plan->cost > std::prev(within)->second;
    }
    if (!plan->feasible) {
      ++tally.infeasible;
      continue;
    }
    ASSERT_EQ(
        verifySolution(p, plan->solution,
                       {plan->peakBytes[0], plan->cost, options.budgetBytes}),
        std::nullopt);
    ASSERT_LE(plan->certificate.provenCost, plan->cost);
    tally.optimal += plan->cost <= best;
    tally.missed += plan->cost > best;
  }
}

TEST(BruteForce, StraightSteps) {
  Tally tally;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Random random(seed);
    RandomShape shape;
    shape.prologue = 0;
    shape.body = 4;
    shape.epilogue = 1;
    shape.carried = random.chance(0.3);
    Problem p = randomProblem(random, shape);
    compare(p, 2, tally);
    if (HasFatalFailure())
      FAIL() << "seed " << seed;
  }
  EXPECT_GT(tally.budgets, 100);
  EXPECT_GT(tally.positive * 5, tally.budgets * 2);
  EXPECT_EQ(tally.missed, 0) << "of " << tally.budgets;
  EXPECT_EQ(tally.infeasible, 0);
}

TEST(BruteForce, Graphs) {
  Tally tally;
  for (uint64_t seed = 0; seed < 250; ++seed) {
    Random random(seed);
    compare(randomProblem(random, kRandomGraph), 2, tally);
    if (HasFatalFailure())
      FAIL() << "seed " << seed;
  }
  EXPECT_GT(tally.budgets, 200);
  EXPECT_GT(tally.positive * 2, tally.budgets)
      << tally.positive << " of " << tally.budgets;
  // Most cases are closed, and many more than by prices alone.
  EXPECT_GT(tally.lifted * 4, tally.budgets) << tally.lifted;
  EXPECT_GT(tally.closed * 2, tally.budgets)
      << tally.closed << " of " << tally.budgets;
  EXPECT_LE(tally.missed * 100, tally.budgets)
      << tally.missed << " of " << tally.budgets << " missed";
  EXPECT_EQ(tally.infeasible, 0);
}

// Not promised: plans that recompute in each trip what a loop reads from
// outside, without holding it over the end of the trip (see `holdingOutside`),
// or after another read of it; and recomputations that nothing reads.
// Among all others the search is held to the optimum, as it is without loops;
// right answers and the bound are checked against all solutions.
TEST(BruteForce, Loops) {
  for (int64_t trips : {2, 3, 5}) {
    Tally tally;
    for (uint64_t seed = 0; seed < 40; ++seed) {
      Random random(seed * 10 + uint64_t(trips));
      RandomShape shape;
      shape.trips = trips;
      Problem p = randomProblem(random, shape);
      compare(p, 2, tally);
      if (HasFatalFailure())
        FAIL() << "seed " << seed << " trips " << trips;
    }
    EXPECT_GT(tally.budgets, 20);
    EXPECT_GT(tally.promised, 20);
    EXPECT_EQ(tally.broken, 0) << "of " << tally.promised;
    std::printf("  %d trips: %d of %d as cheap as promised, %d could be "
                "cheaper\n",
                int(trips), tally.promised - tally.broken, tally.promised,
                tally.beaten);
  }
}

// All that a problem can say, together: kernels from other values and inverses,
// workspaces, overwrites to choose from, pinned values, carried values that
// begin as something, reserved bytes, with loops and without.
TEST(BruteForce, Everything) {
  Tally straight, loops;
  int others = 0, initials = 0, pinned = 0;
  for (uint64_t seed = 0; seed < 184; ++seed) {
    Random random(seed);
    RandomShape shape;
    shape.extras = true;
    shape.trips = 1 + int64_t(seed % 4);
    shape.epilogue = 1;
    Problem p = randomProblem(random, shape);
    compare(p, 2, shape.trips == 1 ? straight : loops);
    if (HasFatalFailure())
      FAIL() << "seed " << seed;
    for (const Recipe &r : p.recipes)
      others += r.name.back() == 'o';
    for (const Value &v : p.values) {
      initials += v.initial != kNone;
      pinned += v.pinned;
    }
  }
  EXPECT_GT(others, 100);
  EXPECT_GT(initials, 30);
  EXPECT_GT(pinned, 50);
  // Of what the search promises to look among (see `Loops`), one in `share` may
  // be missed.
  auto expectFew = [](const Tally &tally, int share) {
    EXPECT_GT(tally.budgets, 50);
    EXPECT_GT(tally.positive, 10);
    EXPECT_GT(tally.promised, 50);
    EXPECT_LT(tally.broken * share, tally.promised)
        << tally.broken << " of " << tally.promised << " missed";
  };
  expectFew(straight, 20);
  expectFew(loops, 50);
}

TEST(BruteForce, AnyOrderIsStillRight) {
  int cheaper = 0, costlier = 0, budgets = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    RandomShape shape;
    shape.body = 8;
    shape.epilogue = 3;
    shape.trips = 1 + int64_t(seed % 3);
    Problem p = randomProblem(random, shape);
    int64_t base = simulate(p, baseSolution(p))->peakBytes;
    for (int64_t budget : {base * 9 / 10, base * 7 / 10}) {
      SolveOptions options;
      options.budgetBytes = budget;
      options.effort.mostWork = 400'000;
      Plan fixed = *solve(p, options);
      options.order = OrderMode::Free;
      absl::StatusOr<Plan> plan = solve(p, options);
      ASSERT_TRUE(plan.ok()) << seed << ": " << plan.status().message();
      ASSERT_EQ(verifySolution(p, plan->solution,
                               {plan->peakBytes[0], plan->cost,
                                plan->feasible ? budget : -1}),
                std::nullopt)
          << seed;
      ASSERT_GE(plan->peakBytes[0], plan->impossibleBelowBytes) << seed;
      // What is said to work does.
      options.budgetBytes = plan->smallestFoundBytes;
      EXPECT_TRUE(solve(p, options)->feasible) << seed;
      if (!fixed.feasible) {
        options.order = OrderMode::Fixed;
        options.budgetBytes = fixed.smallestFoundBytes;
        EXPECT_TRUE(solve(p, options)->feasible) << seed;
      }
      ++budgets;
      if (fixed.feasible && plan->feasible) {
        cheaper += plan->cost < fixed.cost;
        costlier += plan->cost > fixed.cost;
      }
      cheaper += plan->feasible && !fixed.feasible;
      costlier += fixed.feasible && !plan->feasible;
    }
  }
  EXPECT_EQ(costlier, 0);
  EXPECT_GT(budgets, 90);
  EXPECT_GT(cheaper, 10);
}

} // namespace
