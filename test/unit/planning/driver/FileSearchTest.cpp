// Plans with a file behind the host: against the optimum of small problems, and
// where the host's bytes are too few.

#include "compiler/planning/driver/MovesSearch.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/laboratory/GenerateStep.h"
#include "compiler/planning/laboratory/Graph.h"
#include "compiler/planning/model/OfferMoves.h"
#include "compiler/planning/model/ProblemFile.h"

#include "test/unit/planning/ExpectTrue.h"
#include "test/unit/planning/SpaceBrute.h"
#include "test/unit/planning/SpaceMachine.h"

#include <gtest/gtest.h>

#include <cstdio>

using namespace tmc::planning;

namespace {

/// What any number of executions, whatever the homes, can come to.
struct Optimum {
  bool isKnown = true; // Of few states.
  std::optional<int64_t> makespan;
};

/// Up to `limit`.
Optimum optimumOf(const Problem &p, int64_t limit) {
  constexpr size_t kMostStates = 6'000;
  std::vector<int64_t> budgets;
  for (const MemorySpace &space : p.spaces)
    budgets.push_back(space.budgetBytes);
  // One content has a choice of homes.
  std::vector<std::vector<ValueId>> homes;
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].kind == ValueKind::Persistent &&
        p.values[v].updates == kNone)
      homes.push_back({ValueId(v)});
  if (homes.empty())
    homes.push_back({});
  Optimum best;
  for (const std::vector<ValueId> &home : homes) {
    Solution at;
    at.homes = home;
    SpaceMachine machine(p, homesOf(p, at), budgets,
                         best.makespan.value_or(limit), kMostStates);
    auto found = machine.run();
    best.isKnown &= !machine.gaveUp;
    if (found && (!best.makespan || found->makespan < *best.makespan))
      best.makespan = found->makespan;
  }
  return best;
}

} // namespace

TEST(FileSearch, IsNearTheOptimumOfSmallProblems) {
  Random random(91);
  int64_t instances = 0, unknown = 0, found = 0, optimal = 0, impossible = 0;
  int64_t filed = 0; // Optima of which none is without the file.
  std::vector<double> over;
  for (int i = 0; i < 120; ++i) {
    SpaceProblem w = randomFiles(random, i % 3);
    Problem &p = w.p;
    ASSERT_TRUE(check(p).ok()) << check(p).message() << printProblem(p);
    int64_t sum = 0;
    for (const Recipe &r : p.recipes)
      sum += r.cost;
    SolveOptions options;
    options.effort = options.effort.part(64);
    absl::StatusOr<Plan> plan = solveMoves(p, options);
    ASSERT_TRUE(plan.ok()) << plan.status().message() << printProblem(p);
    if (plan->feasible)
      expectTrue(p, *plan);
    absl::StatusOr<Plan> exact = planWith("optimum", p);
    ASSERT_TRUE(exact.ok()) << exact.status().message() << printProblem(p);
    if (exact->feasible)
      expectTrue(p, *exact);
    const Optimum optimum = optimumOf(p, plan->feasible ? plan->cost : sum);
    if (!optimum.isKnown) {
      ++unknown;
      continue;
    }
    if (!optimum.makespan) {
      ASSERT_FALSE(plan->feasible || exact->feasible) << printProblem(p);
      ++impossible;
      continue;
    }
    ++instances;
    ASSERT_TRUE(exact->feasible) << printProblem(p);
    ASSERT_EQ(exact->cost, *optimum.makespan) << printProblem(p);
    Problem without = p;
    without.spaces[2].budgetBytes = 0;
    const Optimum other = optimumOf(without, *optimum.makespan);
    filed += other.isKnown && !other.makespan;
    if (plan->feasible) {
      ++found;
      ASSERT_GE(plan->cost, plan->certificate.provenCost);
      optimal += plan->cost == *optimum.makespan;
      over.push_back(100.0 * double(plan->cost - *optimum.makespan) /
                     double(*optimum.makespan));
    }
  }
  std::sort(over.begin(), over.end());
  std::printf("  %lld instances, of %lld the optimum is in the file; %lld with "
              "a plan, %lld optimal; worst %.1f %%; %lld impossible, %lld "
              "unknown\n",
              (long long)instances, (long long)filed, (long long)found,
              (long long)optimal, over.empty() ? 0 : over.back(),
              (long long)impossible, (long long)unknown);
  EXPECT_GE(instances, 80);
  EXPECT_GE(filed, 15);
  EXPECT_EQ(found, instances);
  EXPECT_GE(optimal, found - 1); // By the search alone: 112 of 113.
}

/// A step whose states have no room on the host: they are at home in the file,
/// and a plan is found where there is none without it.
TEST(FileSearch, FindsPlansWhereTheHostIsTooSmall) {
  StepOptions shape;
  shape.layers = 6;
  const Problem without = generateStep(shape);
  shape.fileBandwidth = 6'000'000'000;
  const Problem with = generateStep(shape);
  const Profile base = *simulate(with, baseSolution(with));
  int64_t only = 0, before = std::numeric_limits<int64_t>::max();
  for (int64_t mebibytes : {300, 600, 2000, 8000}) {
    SCOPED_TRACE(mebibytes);
    auto plan = [&](Problem p) -> absl::StatusOr<Plan> {
      p.spaces[0].budgetBytes = base.peakBytes / 5;
      p.spaces[1].budgetBytes = mebibytes << 20;
      SolveOptions options;
      options.effort = options.effort.part(16);
      absl::StatusOr<Plan> plan = solveMoves(p, options);
      if (plan.ok() && plan->feasible)
        expectTrue(p, *plan);
      return plan;
    };
    const absl::StatusOr<Plan> one = plan(without), two = plan(with);
    ASSERT_TRUE(one.ok() && two.ok()) << two.status().message();
    ASSERT_TRUE(two->feasible);
    EXPECT_GE(two->cost, two->certificate.provenCost);
    if (!one->feasible) {
      ++only;
      EXPECT_GT(two->peakBytes[2], 0);
    }
    // More room on the host isn't slower.
    EXPECT_LE(two->cost, before);
    before = two->cost;
    const absl::StatusOr<Plan> again = plan(with);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->cost, two->cost);
    EXPECT_EQ(again->peakBytes, two->peakBytes);
  }
  EXPECT_GE(only, 2);
}

/// Updates on the host, one after the other through a host that holds two
/// layers' states: reads, updates and writes overlap. All states are read and
/// written once; no plan is quicker than that.
TEST(FileSearch, PipelinesUpdatesThroughTheHost) {
  StepOptions shape;
  shape.layers = 24;
  shape.savedBytes = 1 << 20;
  shape.layerTime = 1'000'000'000;
  shape.fileBandwidth = 5'000'000'000;
  Problem p = generateStep(shape);
  int64_t states = 0, write = 0;
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].kind == ValueKind::Persistent && p.values[v].space == 2 &&
        p.values[v].updates != kNone)
      states += p.values[v].bytes;
  for (const Recipe &r : p.recipes)
    if (p.engines[r.engine].kind == EngineKind::FileWrite &&
        p.values[r.reads[0]].updates != kNone)
      write += r.cost;
  p.spaces[1].budgetBytes = states / 8;
  absl::StatusOr<Plan> plan = planWith("zero-offload", p);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_TRUE(plan->feasible);
  expectTrue(p, *plan);
  EXPECT_GE(plan->peakBytes[2], states * 3 / 4);
  std::printf("  %.1f ms, of which the file writes %.1f at most\n",
              double(plan->cost) / 1e9, double(write) / 1e9);
  EXPECT_LE(double(plan->cost), 2.2 * double(write));
}

/// Micro-batches: parameters that have no room on the host are read from the
/// file in each trip.
TEST(FileSearch, PlansMicroBatches) {
  StepOptions shape;
  shape.layers = 4;
  shape.microBatches = 3;
  shape.fileBandwidth = 6'000'000'000;
  Problem p = generateStep(shape);
  const Profile base = *simulate(p, baseSolution(p));
  p.spaces[0].budgetBytes = base.peakBytes * 9 / 20;
  p.spaces[1].budgetBytes = 400 << 20;
  SolveOptions options;
  options.effort = options.effort.part(16);
  absl::StatusOr<Plan> plan = solveMoves(p, options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_TRUE(plan->feasible);
  expectTrue(p, *plan);
  EXPECT_GT(plan->peakBytes[2], 0);
}

/// What a file is offered to, and that it changes nothing by itself.
TEST(OfferMoves, PutsAFileBehindTheHost) {
  GenerateOptions shape;
  shape.nodes = 200;
  const Problem one = *problemOf(generateGraph(shape));
  Problem p = one;
  MoveOptions moves;
  moves.leastBytes = 1;
  moves.toHost.latency = moves.toDevice.latency = 0;
  moves.fileRead.bandwidth = 5'000'000'000;
  moves.fileWrite.bandwidth = 2'500'000'000;
  moves.fileRead.latency = moves.fileWrite.latency = 7;
  moves.fileBudget = int64_t(1) << 40;
  ASSERT_TRUE(offerMoves(p, moves).ok());
  ASSERT_EQ(p.spaces.size(), 3u);
  EXPECT_EQ(p.spaces[2].kind, SpaceKind::File);
  EXPECT_EQ(p.spaces[2].budgetBytes, moves.fileBudget);
  int64_t reads = 0, writes = 0;
  for (const Recipe &r : p.recipes) {
    const EngineKind kind = p.engines[r.engine].kind;
    const int64_t bytes = p.values[r.writes[0]].bytes;
    if (kind == EngineKind::FileRead) {
      ++reads;
      EXPECT_EQ(r.cost, 7 + bytes * 200); // Picoseconds of a byte.
    } else if (kind == EngineKind::FileWrite) {
      ++writes;
      EXPECT_EQ(r.cost, 7 + bytes * 400);
    }
  }
  EXPECT_GT(reads, 10);
  EXPECT_EQ(reads, writes);
  const Profile before = *simulate(one, baseSolution(one));
  const Profile after = *simulate(p, baseSolution(p));
  EXPECT_EQ(before.peakBytes, after.peakBytes);
  EXPECT_EQ(before.makespan, after.makespan);
  // Activations wait in the file where the host has room for half of them.
  p.spaces[0].budgetBytes = before.peakBytes * 4 / 5;
  absl::StatusOr<Plan> roomy = planWith("oldest-first", p);
  ASSERT_TRUE(roomy.ok()) << roomy.status().message();
  ASSERT_TRUE(roomy->feasible);
  EXPECT_EQ(roomy->peakBytes[2], 0);
  p.spaces[1].budgetBytes = roomy->peakBytes[1] / 2;
  absl::StatusOr<Plan> plan = planWith("oldest-first", p);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_TRUE(plan->feasible);
  expectTrue(p, *plan);
  EXPECT_GT(plan->peakBytes[2], 0);
  EXPECT_EQ(plan->peakBytes[0], roomy->peakBytes[0]);
}

/// No larger budget of the host or of the file is slower, if each search starts
/// from the plan before.
TEST(FileSearch, SweepsAreMonotone) {
  StepOptions shape;
  shape.layers = 5;
  shape.fileBandwidth = 6'000'000'000;
  Problem p = generateStep(shape);
  const Profile base = *simulate(p, baseSolution(p));
  p.spaces[0].budgetBytes = base.peakBytes * 2 / 5;
  p.spaces[1].budgetBytes = 600 << 20;
  for (SpaceId space : {1, 2}) {
    const Sweep swept = sweep(p, space, base.peakBytes / 2);
    EXPECT_GE(swept.found, 20);
    if (space == 1) {
      EXPECT_GE(swept.steps, 3);
    }
  }
}
