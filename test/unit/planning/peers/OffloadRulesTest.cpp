// OffloadRulesTest.cpp - every block recomputed, every update on the host.

#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/model/OfferMoves.h"
#include "compiler/planning/model/Verify.h"
#include "compiler/planning/peers/TurningGaps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>

using namespace tmc::planning;

namespace {

constexpr int kBlocks = 5;
constexpr int64_t kTrips = 3;

/// Micro-batches of a chain of blocks, x -> wide -> wider -> y, and their
/// gradients: a body of `kTrips`, and the last one peeled off, with an update
/// of each block behind it.
struct ChainStep {
  Problem problem;
  ValueId weights[kBlocks], moments[kBlocks];
  std::set<ValueId> insides; // The wide values of each block.
  SegmentId body = problem.addSegment("body", kTrips);
  SegmentId last = problem.addSegment("last");

  ChainStep() {
    for (int b = 0; b < kBlocks; ++b) {
      weights[b] = persistent("w", ValueClass::Parameter, kNone);
      moments[b] = persistent("m", ValueClass::Optimizer, kNone);
    }
    addMicroBatch(body);
    const std::vector<ValueId> gradients = addMicroBatch(last);
    for (int b = 0; b < kBlocks; ++b)
      addUpdate(b, gradients[b]);
  }

  ValueId persistent(const char *name, ValueClass of, ValueId updates) {
    Value v;
    v.name = name;
    v.bytes = 100;
    v.valueClass = of;
    v.kind = ValueKind::Persistent;
    v.updates = updates;
    return problem.addValue(v);
  }

  ValueId addKernel(SegmentId s, int64_t bytes, int64_t cost,
                    std::vector<ValueId> reads) {
    Value v;
    v.name = "v";
    v.bytes = bytes;
    const ValueId made = problem.addValue(v);
    Recipe r;
    r.name = "kernel";
    r.reads = std::move(reads);
    r.writes = {made};
    r.cost = cost;
    r.recomputable = true;
    r.segment = s;
    problem.addInstruction(s, r);
    return made;
  }

  /// The gradients of weights.
  std::vector<ValueId> addMicroBatch(SegmentId s) {
    ValueId x = addKernel(s, 100, 1, {});
    std::vector<ValueId> inputs, wide, wider, gradients(kBlocks);
    for (int b = 0; b < kBlocks; ++b) {
      inputs.push_back(x);
      wide.push_back(addKernel(s, 400, 7, {x, weights[b]}));
      wider.push_back(addKernel(s, 600, 9, {wide[b]}));
      x = addKernel(s, 100, 5, {wider[b]});
      insides.insert({wide[b], wider[b]});
    }
    const ValueId head = addKernel(s, 1000, 50, {x});
    ValueId g = addKernel(s, 100, 50, {head, x});
    for (int b = kBlocks; b-- > 0;) {
      const ValueId dwider = addKernel(s, 600, 9, {g, wider[b]});
      const ValueId dwide = addKernel(s, 400, 7, {dwider, wide[b]});
      gradients[b] = addKernel(s, 100, 5, {dwide, inputs[b]});
      g = addKernel(s, 100, 5, {dwide, weights[b]});
    }
    return gradients;
  }

  void addUpdate(int b, ValueId gradient) {
    const ValueId w = persistent("w'", ValueClass::Parameter, weights[b]);
    const ValueId m = persistent("m'", ValueClass::Optimizer, moments[b]);
    Recipe r;
    r.name = "update";
    r.reads = {gradient, weights[b], moments[b]};
    r.writes = {w, m};
    r.overwrites = {{weights[b], w, true}, {moments[b], m, true}};
    r.cost = 1;
    problem.addInstruction(last, r);
  }
};

TEST(OffloadRules, RecomputeEachBlockOfEachSegmentAndUpdateOnTheHost) {
  ChainStep step;
  Problem &p = step.problem;
  MoveOptions moves;
  moves.leastBytes = 1;
  ASSERT_TRUE(offerMoves(p, moves).ok());
  const absl::StatusOr<Plan> plan = planBy("zero-offload-blocks", p, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(plan->feasible);
  const std::optional<std::string> fault =
      verifyPlan(p, *plan, p.spaces[0].budgetBytes);
  EXPECT_FALSE(fault) << *fault;
  std::vector<int> again(p.values.size(), 0);
  int onHost = 0;
  for (const std::vector<Execution> &list : plan->solution.segments)
    for (const Execution &e : list) {
      const Recipe &r = p.recipes[e.recipe];
      const EngineKind kind = p.engines[r.engine].kind;
      if (kind == EngineKind::Compute && e.instruction == kNone)
        ++again[r.writes[0]];
      onHost += kind == EngineKind::Host && e.phase != Phase::Done;
    }
  for (ValueId v = 0; v < ValueId(p.values.size()); ++v)
    EXPECT_EQ(again[v], int(step.insides.count(v))) << v;
  EXPECT_EQ(onHost, kBlocks);
  // Moments are at home on the host, weights on the device.
  for (int b = 0; b < kBlocks; ++b) {
    const auto isAway = [&](ValueId main) {
      return std::ranges::any_of(plan->solution.homes, [&](ValueId home) {
        return home != main && p.contentOf(home) == main;
      });
    };
    EXPECT_TRUE(isAway(step.moments[b]));
    EXPECT_FALSE(isAway(step.weights[b]));
  }
}

} // namespace

TEST(TurningGaps, AReadRightBehindTheTurnHasNoGap) {
  for (int between : {0, 1}) {
    Problem p;
    const SegmentId s = p.addSegment("step");
    auto add = [&](int64_t bytes, std::vector<ValueId> reads, int64_t scratch) {
      Value v;
      v.name = "v";
      v.bytes = bytes;
      const ValueId made = p.addValue(v);
      Recipe r;
      r.name = "kernel";
      r.reads = std::move(reads);
      r.writes = {made};
      r.cost = 10;
      r.workspaceBytes = scratch;
      r.recomputable = true;
      p.addInstruction(s, std::move(r));
      return made;
    };
    const ValueId first = add(100, {}, 50); // The most bytes.
    for (int i = 0; i < between; ++i)
      add(1, {}, 0);
    add(1, {first}, 0);
    const Projection projection =
        *project(p, plainChoice(p), std::numeric_limits<double>::infinity());
    const TurningGaps gaps(p, projection);
    EXPECT_EQ(gaps.turn, 1u);
    EXPECT_EQ(gaps.items.size(), size_t(between));
  }
}
