// AccountTest.cpp - an account adds up to what the simulation counts, and its
// gaps say what the plan did.

#include "compiler/planning/driver/Account.h"
#include "test/unit/planning/RandomProblem.h"
#include "test/unit/planning/SpaceProblem.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

/// a1 a2 a3 of 100 bytes and cost 5, each read by the next and again on the way
/// back, with nothing to spare for all three.
static Problem stack() {
  Problem p;
  SegmentId s = p.addSegment("step");
  ValueId x = p.addValue({"x", 10, ValueClass::Batch, ValueKind::Persistent});
  std::vector<ValueId> forward = {x};
  for (int i = 1; i <= 3; ++i) {
    ValueId a = p.addValue({"a" + std::to_string(i), 100});
    Recipe r;
    r.name = "f" + std::to_string(i);
    r.reads = {forward.back()};
    r.writes = {a};
    r.cost = 5;
    r.recomputable = true;
    p.addInstruction(s, r);
    forward.push_back(a);
  }
  ValueId back = kNone;
  for (int i = 3; i >= 1; --i) {
    ValueId g = p.addValue({"g" + std::to_string(i), 10});
    Recipe r;
    r.name = "b" + std::to_string(i);
    r.reads = {forward[i]};
    if (back != kNone)
      r.reads.push_back(back);
    r.writes = {g};
    r.cost = 5;
    p.addInstruction(s, r);
    back = g;
  }
  p.values[back].liveOut = true;
  return p;
}

TEST(Account, TellsWhatWasMadeAgainAndWhatItPaid) {
  Problem p = stack();
  // a1 a2 a3 and x: 310 bytes at f3 and b3. One of a1, a2 must go.
  absl::StatusOr<Plan> plan = solve(p, {.budgetBytes = 230});
  ASSERT_TRUE(plan.ok());
  ASSERT_TRUE(plan->feasible);
  absl::StatusOr<Account> found = account(p, *plan);
  ASSERT_TRUE(found.ok());
  int64_t paid = 0, broken = 0;
  for (const GapDecision &gap : found->gaps) {
    EXPECT_EQ(gap.leastCost, 5);
    EXPECT_EQ(gap.held, gap.paidCost == 0) << p.values[gap.value].name;
    paid += gap.paidCost;
    broken += !gap.held;
  }
  EXPECT_EQ(paid, plan->cost - plan->baseCost);
  EXPECT_GE(broken, 1);
  EXPECT_EQ(found->levers.plainPeak, 320); // b3 makes g3 beside them.
  EXPECT_EQ(found->levers.planPeak, plan->peakBytes[0]);
  EXPECT_EQ(found->levers.recomputeCost, paid);
}

TEST(Account, AddsUpToTheSimulation) {
  int recomputing = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Problem p =
        randomProblem(random, {.prologue = 3, .body = 4, .epilogue = 4});
    absl::StatusOr<Profile> base = simulate(p, baseSolution(p));
    if (!base.ok())
      continue;
    SolveOptions options;
    options.budgetBytes = base->peakBytes * 8 / 10;
    options.effort.mostWork = 200'000;
    absl::StatusOr<Plan> plan = solve(p, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    recomputing += recomputedExecutions(p, plan->solution) > 0;
    absl::StatusOr<Account> found = account(p, *plan);
    ASSERT_TRUE(found.ok()) << found.status();
    // One trip: every moment is a row, so the intervals are all there is.
    std::vector<int64_t> live(found->rows.size(), 0);
    for (const LiveInterval &interval : found->intervals)
      for (int32_t row = interval.begin; row < interval.end; ++row) {
        int64_t bytes = p.values[interval.value].bytes;
        if (interval.storageOf != kNone && row == interval.begin)
          bytes -= std::min(
              bytes,
              p.values[found->intervals[interval.storageOf].value].bytes);
        live[row] += bytes;
      }
    for (size_t row = 0; row < live.size(); ++row)
      EXPECT_EQ(live[row] + p.recipes[found->rows[row].recipe].workspaceBytes,
                found->rows[row].liveBytes)
          << "row " << row;
    EXPECT_EQ(found->rows[found->peakRow].liveBytes, plan->peakBytes[0]);
  }
  EXPECT_GT(recomputing, 20);
}

/// a waits on the host while f2 and f3 run: the list of Problem.h's R12.
static std::pair<Problem, Plan> moved() {
  SpaceProblem s;
  SegmentId step = s.p.addSegment("step");
  s.value("x", 10).kind = ValueKind::Persistent;
  for (const char *name : {"a", "b", "c", "d", "l"})
    s.value(name);
  s.p.values[s.id("l")].liveOut = true;
  s.form("a@host", "a");
  for (auto [name, reads, writes] : {std::tuple("f1", "x", "a"),
                                     {"f2", "a", "b"},
                                     {"f3", "b", "c"},
                                     {"g3", "c", "d"},
                                     {"g1", "d a", "l"}})
    s.p.addInstruction(step, s.recipe(name, reads, writes));
  s.move("stash", "a", "a@host", kD2H);
  s.move("fetch", "a@host", "a", kH2D);
  Plan plan;
  plan.solution = s.list("f1 stash( f2 )stash f3 fetch( g3 )fetch g1");
  plan.baseCost = 50;
  absl::StatusOr<Profile> profile = simulate(s.p, plan.solution);
  EXPECT_TRUE(profile.ok()) << profile.status();
  plan.cost = profile->makespan;
  plan.peakBytes = profile->spacePeakBytes;
  return {s.p, plan};
}

TEST(Account, TellsWhatMovedAndWhatItTook) {
  auto [p, plan] = moved();
  EXPECT_EQ(plan.cost, 60);
  absl::StatusOr<Account> found = account(p, plan);
  ASSERT_TRUE(found.ok()) << found.status();
  // Kernels at 0, 10, 25, 35 and 50; copies from 10 to 25 and from 35 to 50.
  std::vector<std::pair<int64_t, int64_t>> times;
  for (const AccountRow &row : found->rows)
    times.push_back({row.times[0].begin, row.times[0].end});
  EXPECT_EQ(times, (std::vector<std::pair<int64_t, int64_t>>{{0, 10},
                                                             {10, 25},
                                                             {10, 20},
                                                             {20, 25},
                                                             {25, 35},
                                                             {35, 50},
                                                             {35, 45},
                                                             {45, 50},
                                                             {50, 60}}));
  EXPECT_EQ(found->rows[1].other, 3);
  EXPECT_EQ(found->rows[7].other, 5);
  EXPECT_EQ(found->tripLengths, (std::vector<std::vector<int64_t>>{{60}}));
  EXPECT_EQ(found->rows[0].otherBytes, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(found->rows[4].otherBytes, (std::vector<int64_t>{100, 0}));
  // a between f2 and g1: two copies of 15, and 5 that the kernels wait after
  // each.
  ASSERT_EQ(found->gaps.size(), 1u);
  const GapDecision &gap = found->gaps[0];
  EXPECT_EQ(gap.value, 1);
  EXPECT_FALSE(gap.held);
  EXPECT_EQ(gap.space, kHost);
  EXPECT_EQ(gap.from, 2);
  EXPECT_EQ(gap.to, 8);
  EXPECT_EQ(gap.paidCost, 30);
  EXPECT_EQ(gap.waitedCost, 10);
  // No kernel can make it again; if f1 could, that would take 10.
  EXPECT_EQ(gap.leastCost, -1);
  EXPECT_EQ(gap.moveCost, 30);
  EXPECT_EQ(gap.breakCost(), 30);
  EXPECT_EQ(gap.worth, -1);
  p.recipes[0].recomputable = true;
  // f3 and g3, two and three quarters a byte, are inside; f2 and g1 aren't.
  plan.certificate = plainCertificate(p);
  plan.certificate.denominator = 4;
  plan.certificate.prices = {{1, 0, 1}, {2, 0, 8}, {3, 0, 3}, {2, 1, 100}};
  found = account(p, plan);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->gaps[0].leastCost, 10);
  EXPECT_EQ(found->gaps[0].breakCost(), 10);
  EXPECT_EQ(found->gaps[0].worth, 100 * (8 + 3) / 4);
  // x, and two values beside a; while a comes, c and d; held, the same.
  EXPECT_EQ(found->levers.planPeak, plan.peakBytes[0]);
  EXPECT_EQ(found->levers.recomputedPeak, plan.peakBytes[0]);
  EXPECT_EQ(found->levers.recomputeCost, 0);
  EXPECT_EQ(found->levers.movesCost, 10);
  EXPECT_EQ(found->levers.activations.bytes, 0);
  EXPECT_EQ(found->levers.activations.cost, 10);
  EXPECT_EQ(found->levers.optimizer.cost, 0);
  EXPECT_EQ(found->levers.parameters.cost, 0);
}

/// The program runs u between f and g, and the plan runs it after them.
TEST(Account, HoldsAValueInTheOrderOfThePlan) {
  SpaceProblem s;
  SegmentId step = s.p.addSegment("step");
  s.value("x", 10).kind = ValueKind::Persistent;
  for (const char *name : {"a", "c", "l"})
    s.value(name);
  s.p.values[s.id("c")].liveOut = s.p.values[s.id("l")].liveOut = true;
  s.form("a@host", "a");
  for (auto [name, reads, writes] :
       {std::tuple("f", "x", "a"), {"u", "x", "c"}, {"g", "a", "l"}}) {
    Recipe recipe = s.recipe(name, reads, writes);
    recipe.recomputable = true;
    s.p.addInstruction(step, recipe);
  }
  s.move("stash", "a", "a@host", kD2H);
  s.move("fetch", "a@host", "a", kH2D);
  Plan plan;
  plan.solution = s.list("f g u");
  plan.orders = {{0, 1, 2}};
  absl::StatusOr<Profile> profile = simulate(s.p, plan.solution);
  ASSERT_TRUE(profile.ok()) << profile.status();
  plan.cost = profile->makespan;
  plan.peakBytes = profile->spacePeakBytes;
  absl::StatusOr<Account> found = account(s.p, plan);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->gaps.size(), 2u); // a over u, and c over g.
  for (const GapDecision &gap : found->gaps)
    EXPECT_TRUE(gap.held) << s.p.values[gap.value].name;
}

/// A parameter w and its state m, 100 bytes each, the gradient g, and what the
/// host needs to update m.
void addState(SpaceProblem &s, int64_t gradientBytes) {
  for (const char *name : {"w", "m"})
    s.value(name).kind = ValueKind::Persistent;
  s.p.values[s.id("m")].valueClass = ValueClass::Optimizer;
  s.p.values[s.id("w")].valueClass = ValueClass::Parameter;
  s.value("g", gradientBytes).valueClass = ValueClass::Gradient;
  Value updated = s.p.values[s.id("m")];
  updated.name = "m'";
  updated.updates = s.id("m");
  s.p.addValue(updated);
  s.form("m@host", "m");
  s.form("m'@host", "m'").updates = s.id("m@host");
  s.form("g@host", "g");
}

/// The update of m, by the device in 20 or by the host in 30.
void addUpdate(SpaceProblem &s, SegmentId step) {
  Recipe adam = s.recipe("adam", "g m", "m'", 20);
  adam.overwrites = {{s.id("m"), s.id("m'"), true}};
  InstructionId update = s.p.addInstruction(step, adam);
  Recipe host = s.recipe("adam'", "g@host m@host", "m'@host", 30, kHostEngine);
  host.overwrites = {{s.id("m@host"), s.id("m'@host"), true}};
  s.p.addVariant(update, host);
}

/// A state at home on the host, updated there.
TEST(Account, TellsWhatStatesOnTheHostBring) {
  SpaceProblem s;
  SegmentId step = s.p.addSegment("step");
  addState(s, 100);
  s.value("l", 10).liveOut = true;
  s.p.addInstruction(step, s.recipe("f", "w", "g"));
  addUpdate(s, step);
  s.p.addInstruction(step, s.recipe("k", "w", "l"));
  s.move("stash", "g", "g@host", kD2H);
  Plan plan;
  plan.solution = s.list("f stash( k )stash adam'( )adam'");
  plan.solution.homes = s.ids("m@host m'@host");
  plan.baseCost = 40;
  EXPECT_TRUE(check(s.p).ok()) << check(s.p);
  absl::StatusOr<Profile> profile = simulate(s.p, plan.solution);
  ASSERT_TRUE(profile.ok()) << profile.status();
  plan.cost = profile->makespan;
  EXPECT_EQ(plan.cost, 10 + 15 + 30);
  plan.peakBytes = profile->spacePeakBytes;
  EXPECT_EQ(plan.peakBytes[0], 100 + 100 + 10);
  absl::StatusOr<Account> found = account(s.p, plan);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->levers.recomputedPeak, 310); // m beside w, g and l.
  EXPECT_EQ(found->levers.planPeak, 210);
  EXPECT_EQ(found->levers.recomputeCost, 0);
  EXPECT_EQ(found->levers.movesCost, 15);
  EXPECT_EQ(found->levers.activations.bytes, 0);
  EXPECT_EQ(found->levers.activations.cost, 0);
  EXPECT_EQ(found->levers.optimizer.bytes, 100);
  EXPECT_EQ(found->levers.optimizer.cost, 15);
  EXPECT_EQ(found->levers.parameters.bytes, 0);
  EXPECT_EQ(found->levers.parameters.cost, 0);
}

/// Moves of activations relieve one peak, those of states a higher one. Beside
/// the plan without any moves, activations alone would seem to bring nothing.
TEST(Account, TellsEachClassBesideThePlanWithoutIt) {
  SpaceProblem s;
  SegmentId step = s.p.addSegment("step");
  addState(s, 400);
  s.value("a", 300), s.value("b", 300), s.value("c", 10);
  s.value("o", 10).liveOut = true;
  s.value("l", 450).liveOut = true;
  s.form("a@host", "a");
  s.p.addInstruction(step, s.recipe("p", "w", "a"));
  s.p.addInstruction(step, s.recipe("q", "w", "b"));
  s.p.addInstruction(step, s.recipe("r", "b", "c"));
  s.p.addInstruction(step, s.recipe("s", "a c", "o"));
  s.p.addInstruction(step, s.recipe("f", "w", "g"));
  s.p.addInstruction(step, s.recipe("k", "w", "l"));
  addUpdate(s, step);
  s.move("out", "a", "a@host", kD2H);
  s.move("in", "a@host", "a", kH2D);
  s.move("stash", "g", "g@host", kD2H);
  Plan plan;
  plan.solution = s.list("p out( )out q r in( )in s f stash( )stash k adam'( "
                         ")adam'");
  plan.solution.homes = s.ids("m@host m'@host");
  plan.baseCost = 80;
  EXPECT_TRUE(check(s.p).ok()) << check(s.p);
  absl::StatusOr<Profile> profile = simulate(s.p, plan.solution);
  ASSERT_TRUE(profile.ok()) << profile.status();
  plan.cost = profile->makespan;
  EXPECT_EQ(plan.cost, 60 + 3 * 15 + 30); // Six kernels and three copies.
  plan.peakBytes = profile->spacePeakBytes;
  EXPECT_EQ(plan.peakBytes[0], 100 + 10 + 450); // At k: w, o and l.
  absl::StatusOr<Account> found = account(s.p, plan);
  ASSERT_TRUE(found.ok()) << found.status();
  const Levers &levers = found->levers;
  EXPECT_EQ(levers.recomputedPeak, 560 + 100 + 400); // At k: m and g as well.
  EXPECT_EQ(levers.activations.bytes, 710 - 560);    // At r: w, a, b and c.
  EXPECT_EQ(levers.activations.cost, 2 * 15);
  EXPECT_EQ(levers.optimizer.bytes, 100 + 400);
  EXPECT_EQ(levers.optimizer.cost, 15 + 30 - 20);
  EXPECT_EQ(levers.parameters.bytes, 0);
  EXPECT_EQ(levers.recomputeCost, 0);
  EXPECT_EQ(levers.movesCost, 3 * 15 + 30 - 20);
}
