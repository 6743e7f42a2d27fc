#include "compiler/planning/model/Problem.h"
#include "compiler/planning/driver/Solve.h"
#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

#include <random>

using namespace tmc::planning;

namespace {

Value temp(std::string name, int64_t bytes) {
  Value v;
  v.name = std::move(name);
  v.bytes = bytes;
  return v;
}

Recipe recipe(std::string name, std::vector<ValueId> reads,
              std::vector<ValueId> writes, int64_t cost = 1,
              bool again = true) {
  Recipe r;
  r.name = std::move(name);
  r.reads = std::move(reads);
  r.writes = std::move(writes);
  r.cost = cost;
  r.recomputable = again;
  return r;
}

/// a = f0(p); b = f1(a); c = f2(b); d = g2(b, c); e = g1(a, d); p' = update(p,
/// e)
struct Chain {
  Problem problem;
  ValueId p, a, b, c, d, e, p1;
  SegmentId s;
  Chain() {
    Value param = temp("p", 10);
    param.kind = ValueKind::Persistent;
    p = problem.addValue(param);
    a = problem.addValue(temp("a", 100));
    b = problem.addValue(temp("b", 100));
    c = problem.addValue(temp("c", 100));
    d = problem.addValue(temp("d", 100));
    e = problem.addValue(temp("e", 100));
    param.name = "p'";
    param.updates = p;
    p1 = problem.addValue(param);
    s = problem.addSegment("step");
    problem.addInstruction(s, recipe("f0", {p}, {a}));
    problem.addInstruction(s, recipe("f1", {a}, {b}));
    problem.addInstruction(s, recipe("f2", {b}, {c}));
    problem.addInstruction(s, recipe("g2", {b, c}, {d}));
    problem.addInstruction(s, recipe("g1", {a, d}, {e}));
    Recipe update = recipe("update", {p, e}, {p1}, 1, false);
    update.overwrites = {{p, p1, true}};
    problem.addInstruction(s, update);
  }
};

TEST(Problem, LiveBytesOfAChain) {
  Chain chain;
  ASSERT_EQ(check(chain.problem).message(), "");
  Solution solution = baseSolution(chain.problem);
  Profile profile = *simulate(chain.problem, solution);
  // p 10 always; at g2 a, b, c, d.
  EXPECT_EQ(profile.liveBytes,
            (std::vector<int64_t>{110, 210, 310, 410, 310, 110}));
  EXPECT_EQ(profile.peakBytes, 410);
  EXPECT_EQ(profile.peakByClass[size_t(ValueClass::Activation)], 410);
  EXPECT_EQ(verifySolution(chain.problem, solution, {410, 6, -1}),
            std::nullopt);
  // Recomputing a before g1 frees it from f1 to there.
  solution.segments[0].insert(solution.segments[0].begin() + 4, {0, kNone, {}});
  EXPECT_EQ(simulate(chain.problem, solution)->peakBytes, 310);
  EXPECT_EQ(verifySolution(chain.problem, solution, {310, 7, 310}),
            std::nullopt);
}

TEST(Problem, TheVerifierNamesPlantedDefects) {
  Chain chain;
  const Problem &problem = chain.problem;
  Solution good = baseSolution(problem);
  auto defect = [&](const Solution &s, Claim claim = {410, 6, -1}) {
    return verifySolution(problem, s, claim).value_or("none");
  };
  EXPECT_EQ(defect(good, {409, 6, -1}),
            "claim: the peak is 410 bytes, not 409 as claimed");
  EXPECT_EQ(defect(good, {410, 5, -1}),
            "claim: the cost is 6, not 5 as claimed");
  EXPECT_EQ(defect(good, {410, 6, 400}),
            "budget: the peak of 410 bytes and 0 reserved exceed the budget of "
            "400 by 10 bytes");
  Solution s = good;
  s.segments[0].pop_back();
  EXPECT_EQ(defect(s),
            "lists: instruction 'update' runs 0 times for itself, not once");
  s = good;
  std::swap(s.segments[0][0], s.segments[0][1]);
  EXPECT_EQ(defect(s),
            "R1: 'f1' (entry 0 of 'step') reads 'a' before it is made");
  s = good; // A clone that reads the parameter after its update.
  s.segments[0].push_back({0, kNone, {}});
  EXPECT_EQ(defect(s),
            "R14: 'update' takes the place of 'p', which is needed later");
  EXPECT_FALSE(simulate(problem, s).ok());
  s = good;
  s.segments[0].push_back({5, kNone, {}});
  EXPECT_EQ(defect(s), "lists: 'update' runs again but may not");
  s = good;
  s.segments[0][5].overwrites.clear();
  EXPECT_EQ(defect(s), "R4: 'update' doesn't update 'p' in place");
}

TEST(Problem, InPlaceCountsTheLarger) {
  Problem problem;
  ValueId a = problem.addValue(temp("a", 100)),
          b = problem.addValue(temp("b", 60)),
          c = problem.addValue(temp("c", 1));
  SegmentId s = problem.addSegment("s");
  problem.addInstruction(s, recipe("f", {}, {a}));
  Recipe g = recipe("g", {a}, {b});
  g.overwrites = {{a, b, false}};
  g.workspaceBytes = 7;
  problem.addInstruction(s, g);
  problem.addInstruction(s, recipe("h", {b}, {c}));
  Solution solution = baseSolution(problem);
  EXPECT_EQ(simulate(problem, solution)->liveBytes,
            (std::vector<int64_t>{100, 107, 61}));
  EXPECT_EQ(verifySolution(problem, solution, {107, 3, -1}), std::nullopt);
}

/// acc' = g(x, acc) in each of `trips`, then e = f(acc').
Problem accumulate(int64_t trips) {
  Problem problem;
  Value batch = temp("batch", 5);
  batch.kind = ValueKind::Persistent;
  ValueId x = problem.addValue(batch), t = problem.addValue(temp("t", 30));
  ValueId out = problem.addValue(temp("acc'", 100));
  Value in = temp("acc", 100);
  in.kind = ValueKind::Carried;
  in.carriedFrom = out;
  ValueId acc = problem.addValue(in), e = problem.addValue(temp("e", 1));
  SegmentId body = problem.addSegment("body", trips),
            end = problem.addSegment("epilogue");
  problem.addInstruction(body, recipe("f", {x}, {t}, 2));
  Recipe g = recipe("g", {t, acc}, {out}, 3, false);
  g.overwrites = {{acc, out, true}};
  problem.addInstruction(body, g);
  problem.addInstruction(end, recipe("h", {out}, {e}, 1));
  return problem;
}

TEST(Problem, CarriedValuesAreNothingInTheFirstTrip) {
  for (int64_t trips : {1, 2, 3, 7}) {
    Problem problem = accumulate(trips);
    ASSERT_EQ(check(problem).message(), "");
    Solution solution = baseSolution(problem);
    Profile profile = *simulate(problem, solution);
    EXPECT_EQ(profile.liveBytes[0], 35);
    EXPECT_EQ(profile.liveBytes[1], 135);
    if (trips > 1) {
      EXPECT_EQ(profile.liveBytes[2], 135); // acc is there from the start.
    }
    EXPECT_EQ(profile.moments.size(),
              size_t(std::min<int64_t>(trips, 3)) * 2 + 1);
    EXPECT_EQ(verifySolution(problem, solution, {135, 5 * trips + 1, -1}),
              std::nullopt);
  }
}

// Of two trips the first has no sum yet, and the last no z any more.
TEST(Problem, OnlyAMiddleTripHoldsWhatBothItsNeighboursNeed) {
  for (int64_t trips : {1, 2, 3}) {
    Problem problem;
    Value batch = temp("batch", 5);
    batch.kind = ValueKind::Persistent;
    ValueId x = problem.addValue(batch), z = problem.addValue(temp("z", 50)),
            t = problem.addValue(temp("t", 30)),
            u = problem.addValue(temp("u", 1)),
            out = problem.addValue(temp("acc'", 100));
    Value in = temp("acc", 100);
    in.kind = ValueKind::Carried;
    in.carriedFrom = out;
    ValueId acc = problem.addValue(in), e = problem.addValue(temp("e", 1));
    SegmentId start = problem.addSegment("prologue"),
              body = problem.addSegment("body", trips),
              end = problem.addSegment("epilogue");
    problem.addInstruction(start, recipe("z", {x}, {z}, 1));
    problem.addInstruction(body, recipe("f", {z}, {t}, 1));
    Recipe m = recipe("m", {t}, {u}, 1);
    m.workspaceBytes = 70;
    problem.addInstruction(body, m);
    Recipe g = recipe("g", {u, acc}, {out}, 3, false);
    g.overwrites = {{acc, out, true}};
    problem.addInstruction(body, g);
    problem.addInstruction(end, recipe("h", {out}, {e}, 1));
    ASSERT_TRUE(check(problem).ok()) << check(problem).message();
    Solution solution = baseSolution(problem);
    // At m: the batch, t, u, its workspace; of two trips the last has the sum;
    // of three the middle one has z for the next one, too.
    int64_t peak =
        5 + 30 + 1 + 70 + (trips > 1 ? 100 : 0) + (trips > 2 ? 50 : 0);
    EXPECT_EQ(simulate(problem, solution)->peakBytes, peak);
    EXPECT_EQ(verifySolution(problem, solution, {peak, 5 * trips + 2, -1}),
              std::nullopt);
    SolveOptions options;
    options.budgetBytes = peak;
    EXPECT_TRUE(solve(problem, options)->feasible);
    EXPECT_EQ(solve(problem, options)->baseCost, 5 * trips + 2);
  }
}

TEST(Problem, CheckNamesWhatIsMalformed) {
  Chain chain;
  Problem p = chain.problem;
  p.values[chain.a].bytes = -1;
  EXPECT_EQ(check(p).message(), "value 'a' has -1 bytes");
  p = chain.problem;
  p.recipes[1].cost = INT64_MAX;
  EXPECT_EQ(check(p).message(),
            "the costs of all recipes don't fit 61 bits together");
  p = chain.problem;
  p.recipes[5].overwrites.clear();
  EXPECT_EQ(check(p).message(),
            "'update' reads and writes the home of 'p'', but not in place");
  p = chain.problem;
  p.segments[0].instructions.pop_back();
  EXPECT_EQ(check(p).message(),
            "instruction 'update' isn't listed in its segment");
  p = chain.problem;
  p.recipes[2].reads[0] = 77;
  EXPECT_EQ(check(p).message(), "recipe 'f2' refers to value 77 of 7");
}

TEST(Solve, AChainWithinLessMemory) {
  Chain chain;
  SolveOptions options;
  options.budgetBytes = 310;
  Plan plan = *solve(chain.problem, options);
  EXPECT_TRUE(plan.feasible);
  EXPECT_EQ(plan.peakBytes[0], 310);
  EXPECT_EQ(plan.cost, 7);
  EXPECT_EQ(plan.baseCost, 6);
}

} // namespace
