// NetworkSearchTest.cpp - plans of steps with networks: never wrong, near the
// optimum of small ones, and with shards where whole weights have no room.

#include "compiler/planning/driver/NetworkSearch.h"

#include "compiler/planning/bound/BoundCheck.h"
#include "compiler/planning/driver/PlanCache.h"
#include "compiler/planning/laboratory/Optimum.h"
#include "compiler/planning/model/OfferMoves.h"
#include "compiler/planning/moves/NetworkProjection.h"

#include "test/unit/Rounds.h"
#include "test/unit/planning/ExpectTrue.h"
#include "test/unit/planning/NetworkBrute.h"

#include <cstdio>

using namespace tmc::planning;

namespace {

/// In budgets around the base's peak, against the optimum.
TEST(NetworkSearch, IsNearTheOptimumOfSmallProblems) {
  Random random(4);
  int64_t met = 0, found = 0, same = 0, slower = 0, shards = 0;
  int64_t ours = 0, least = 0;
  const int64_t problems = tmc::test::rounds(300, 2400);
  for (int64_t i = 0; i < problems; ++i) {
    Problem p = NetworkProblem(random, int(i % kNetworkKinds)).w.p;
    const Profile base = *simulate(p, baseSolution(p));
    p.spaces[0].budgetBytes = base.peakBytes * (60 + random.below(50)) / 100;
    absl::StatusOr<std::optional<OptimalPlan>> optimum =
        planOptimum(p, {.mostStates = 20'000});
    if (absl::IsResourceExhausted(optimum.status()))
      continue;
    ASSERT_TRUE(optimum.ok()) << optimum.status().message();
    SolveOptions options;
    options.effort = options.effort.part(20);
    options.budgetBytes = p.spaces[0].budgetBytes;
    absl::StatusOr<Plan> plan = solve(p, options);
    ASSERT_TRUE(plan.ok()) << plan.status().message() << printProblem(p);
    met += optimum->has_value();
    ASSERT_TRUE(!plan->feasible || *optimum) << printProblem(p);
    if (!plan->feasible)
      continue;
    ASSERT_NO_FATAL_FAILURE(expectTrue(p, *plan));
    EXPECT_EQ(checkCertificate(provenProblem(p, *plan), plan->certificate),
              std::nullopt);
    ++found;
    // A mandatory piece may start before an instruction in front of it, which
    // the optimum's order doesn't allow.
    same += plan->cost <= (*optimum)->makespan;
    slower += plan->cost > base.makespan;
    shards += !plan->solution.homes.empty();
    ours += plan->cost, least += (*optimum)->makespan;
  }
  std::printf("  %lld budgets can be met, %lld are; %lld as quick as the "
              "optimum, %lld slower than the base, %lld with other homes; "
              "%.1f %% above the optima in all\n",
              (long long)met, (long long)found, (long long)same,
              (long long)slower, (long long)shards,
              100 * (double(ours) / double(least) - 1));
  EXPECT_GE(found, met * 9 / 10);
  EXPECT_GE(same, found * 6 / 10);
}

/// A step of `layers` layers on `ranks` devices. Each has a weight of 1,000
/// bytes, an activation of 100 and moments that are shards.
SpaceProblem layeredStep(int layers, int64_t ranks, bool hasHost = false) {
  SpaceProblem w;
  w.p.spaces.resize(hasHost ? 2 : 1);
  w.p.engines.resize(hasHost ? 3 : 1);
  const EngineId dp = w.p.addNetwork("dp");
  w.p.addSegment("step");
  const int64_t bytes = 1000, part = bytes / ranks;
  auto n = [](const char *kind, int i) { return kind + std::to_string(i); };
  auto persistent = [&](const std::string &name, int64_t size,
                        const std::string &old) {
    Value &v = w.value(name, size);
    v.kind = ValueKind::Persistent;
    if (!old.empty())
      v.updates = w.id(old);
  };
  auto shard = [&](const std::string &v, const std::string &old) {
    w.form(v + "@shard", v, kDevice).bytes = part;
    if (!old.empty())
      w.p.values.back().updates = w.id(old + "@shard");
    w.move("gather_" + v, v + "@shard", v, dp, 15);
    if (!hasHost)
      return;
    w.form(v + "@shard@host", v).bytes = part;
    if (!old.empty())
      w.p.values.back().updates = w.id(old + "@shard@host");
    w.move("fetch_" + v, v + "@shard@host", v + "@shard", kH2D, 5);
    w.move("stash_" + v, v + "@shard", v + "@shard@host", kD2H, 5);
  };
  for (int i = 0; i < layers; ++i) {
    persistent(n("w", i), bytes, "");
    shard(n("w", i), "");
    persistent(n("w'", i), bytes, n("w", i));
    shard(n("w'", i), n("w", i));
    persistent(n("m", i), part, "");
    persistent(n("m'", i), part, n("m", i));
    w.value(n("a", i), 100);
    w.value(n("d", i), 100);
    w.value(n("g", i), bytes);
    w.value(n("p", i), bytes);
    w.value(n("G", i), part);
  }
  for (int i = 0; i < layers; ++i)
    w.p.addInstruction(0, w.recipe(n("f", i),
                                   n("w", i) + (i ? " " + n("a", i - 1) : ""),
                                   n("a", i), 20));
  for (int i = layers; i-- > 0;) {
    w.p.addInstruction(0,
                       w.recipe(n("b", i),
                                n("a", i) + " " + n("w", i) +
                                    (i + 1 < layers ? " " + n("d", i + 1) : ""),
                                n("d", i) + " " + n("g", i), 40));
    w.p.addInstruction(
        0, w.recipe(n("exchange", i), n("g", i), n("p", i), 15, dp));
    w.p.addInstruction(0, w.recipe(n("sum", i), n("p", i), n("G", i), 2));
  }
  for (int i = 0; i < layers; ++i) {
    auto update = [&](const std::string &name, const std::string &weight) {
      Recipe r = w.recipe(name, n("G", i) + " " + n("m", i) + " " + weight,
                          n("w'", i) + "@shard " + n("m'", i), 3);
      r.overwrites = {{w.id(n("m", i)), w.id(n("m'", i)), true}};
      if (weight != n("w", i))
        r.overwrites.push_back(
            {w.id(weight), w.id(n("w'", i) + "@shard"), true});
      return r;
    };
    const InstructionId u =
        w.p.addInstruction(0, update(n("whole", i), n("w", i)));
    w.p.addVariant(u, update(n("update", i), n("w", i) + "@shard"));
  }
  return w;
}

/// Whole weights where they have room; else shards, gathered beside kernels.
TEST(NetworkSearch, WeightsAreShardsWhereTheyMustBe) {
  const int layers = 12;
  SpaceProblem w = layeredStep(layers, 4);
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  const int64_t kernels = layers * (20 + 40 + 2 + 3);
  int64_t before = 0;
  for (int64_t budget : {60'000, 18'000, 12'500}) {
    w.p.spaces[0].budgetBytes = budget;
    SolveOptions options;
    options.budgetBytes = budget;
    options.effort = options.effort.part(20);
    absl::StatusOr<Plan> plan = solve(w.p, options);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    ASSERT_TRUE(plan->feasible) << budget;
    ASSERT_NO_FATAL_FAILURE(expectTrue(w.p, *plan));
    std::printf("  %lld bytes: %zu of %d as shards, %lld, %.1f %% above its "
                "kernels' %lld; proved %lld\n",
                (long long)budget, plan->solution.homes.size(), layers,
                (long long)plan->cost,
                100 * (double(plan->cost) / double(kernels) - 1),
                (long long)kernels, (long long)plan->certificate.provenCost);
    EXPECT_GE(plan->cost, before);
    EXPECT_LE(plan->cost, kernels * 3 / 2);
    if (before == 0) { // Nothing but the step's border is in the open.
      EXPECT_LE(plan->cost, kernels + 15);
    }
    before = plan->cost;
  }
}

/// A host is offered to a step with shards: they may be at home there.
TEST(NetworkSearch, MovesAreOfferedToShards) {
  SpaceProblem w = layeredStep(6, 4);
  for (Value &v : w.p.values)
    if (v.kind == ValueKind::Persistent)
      v.valueClass =
          w.p.values[w.p.contentOf(ValueId(&v - &w.p.values[0]))].name[0] == 'w'
              ? ValueClass::Parameter
              : ValueClass::Optimizer;
  MoveOptions moves;
  moves.toHost = moves.toDevice = moves.update = {1'000'000'000'000'000, 1};
  moves.leastBytes = 1;
  const absl::Status offered = offerMoves(w.p, moves);
  ASSERT_TRUE(offered.ok()) << offered.message();
  EXPECT_NE(w.id("w0@shard@host"), kNone);
  EXPECT_EQ(w.p.contentOf(w.id("w0@shard@host")), w.id("w0"));
  EXPECT_EQ(w.p.values[w.id("w'0@shard@host")].updates, w.id("w0@shard@host"));
  // The host's update is that of the shards.
  const Recipe &there = w.p.recipes[w.recipeId("update0 on the host")];
  EXPECT_EQ(there.writes, w.ids("w'0@shard@host m'0@host"));
  SolveOptions options;
  options.effort = options.effort.part(20);
  options.budgetBytes = 4'000; // Less than all shards and moments.
  absl::StatusOr<Plan> plan = solve(w.p, options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_TRUE(plan->feasible);
  w.p.spaces[0].budgetBytes = options.budgetBytes;
  ASSERT_NO_FATAL_FAILURE(expectTrue(w.p, *plan));
  EXPECT_TRUE(absl::IsFailedPrecondition(offerMoves(w.p, moves)));
}

/// Arenas fit, and the bound is of the plan's own order.
TEST(NetworkSearch, PlansArePacked) {
  const SpaceProblem w = layeredStep(6, 4);
  SolveOptions options;
  options.effort = options.effort.part(20);
  PlanCache cache(w.p, {1}, options);
  for (int64_t budget : {20'000, 9'000, 8'000}) {
    absl::StatusOr<const Plan *> plan = cache.fit(budget);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    ASSERT_TRUE(*plan) << budget;
    EXPECT_LE((*plan)->arenaBytes(), budget);
    EXPECT_EQ(verifyPlan(w.p, **plan, budget), std::nullopt);
    EXPECT_EQ(
        checkCertificate(provenProblem(w.p, **plan), (*plan)->certificate),
        std::nullopt);
    EXPECT_LE((*plan)->certificate.provenCost, (*plan)->cost);
  }
}

/// Shards at home on the host are fetched first and then gathered.
TEST(NetworkSearch, ShardsLiveOnTheHostWhereTheyHaveNoRoom) {
  SpaceProblem w = layeredStep(6, 4, /*hasHost=*/true);
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  SolveOptions options;
  options.effort = options.effort.part(8);
  // Moments and sums of 1,500 bytes each, activations of 600, w and g of one
  // layer. The shards would take another 1,500.
  options.budgetBytes = 2 * 1'500 + 600 + 2 * 1'000;
  w.p.spaces[0].budgetBytes = options.budgetBytes;
  absl::StatusOr<Plan> plan = solve(w.p, options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_TRUE(plan->feasible);
  ASSERT_NO_FATAL_FAILURE(expectTrue(w.p, *plan));
  int64_t onHost = 0;
  for (ValueId h : plan->solution.homes)
    onHost += w.p.values[h].space == kHost;
  EXPECT_GE(onHost, 3);
  // The other planners see the step without its network.
  registerLaboratory();
  for (const char *name : {"none", "recompute", "zero-offload"}) {
    absl::StatusOr<Plan> other = planBy(name, w.p, options);
    ASSERT_TRUE(other.ok()) << name << ": " << other.status().message();
    if (other->feasible) {
      EXPECT_GE(other->cost, plan->cost) << name;
    }
  }
}

} // namespace
