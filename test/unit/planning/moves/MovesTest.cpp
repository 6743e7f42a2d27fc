// Where transfers are placed.

#include "compiler/planning/moves/Moves.h"
#include "compiler/planning/laboratory/GenerateStep.h"
#include "compiler/planning/model/OfferMoves.h"
#include "compiler/planning/model/Timeline.h"
#include "compiler/planning/model/Verify.h"
#include "compiler/planning/moves/UpdateGroups.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace tmc::planning;

namespace {

/// The step with each update right behind what makes its gradient.
Problem updatedEarly(Problem p) {
  std::vector<InstructionId> &order = p.segments[0].instructions;
  auto own = [&](InstructionId i) -> const Recipe & {
    return p.recipes[p.instructions[i].recipes[0]];
  };
  auto isUpdate = [&](InstructionId i) {
    return p.instructions[i].recipes.size() > 1;
  };
  std::vector<InstructionId> early;
  for (InstructionId i : order) {
    if (isUpdate(i))
      continue;
    early.push_back(i);
    for (InstructionId u : order)
      if (isUpdate(u) && std::ranges::any_of(own(i).writes, [&](ValueId v) {
            return std::ranges::count(own(u).reads, v) > 0;
          }))
        early.push_back(u);
  }
  EXPECT_EQ(early.size(), order.size());
  order = early;
  EXPECT_TRUE(check(p).ok()) << check(p).message();
  return p;
}

struct Step {
  explicit Step(const StepOptions &shape)
      : Step(updatedEarly(generateStep(shape))) {}
  explicit Step(Problem stated)
      : problem(std::move(stated)), groups(findUpdateGroups(problem)) {}

  /// The base list with these modes, verified.
  MovedPlan planOf(const UpdateModes &modes) const {
    const SpaceChoice choice = choiceOf(problem, groups, modes);
    absl::StatusOr<Projection> projection = project(problem, choice, 1);
    EXPECT_TRUE(projection.ok()) << projection.status().message();
    absl::StatusOr<MovedPlan> plan =
        placeMoves(problem, choice, *projection,
                   baseSolution(projection->problem), /*liveBytes=*/-1);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    const Claim claim{plan->peakBytes[0],
                      plan->makespan,
                      -1,
                      {plan->peakBytes.begin() + 1, plan->peakBytes.end()}};
    std::optional<std::string> fault =
        verifySolution(problem, plan->solution, claim);
    EXPECT_FALSE(fault) << *fault;
    return *std::move(plan);
  }
  UpdateModes all(GroupMode mode) const {
    UpdateModes modes;
    for (const UpdateGroup &group : groups.all)
      modes.push_back(possibleMode(group, mode));
    return modes;
  }

  Problem problem;
  UpdateGroups groups;
};

/// Layers of four kernels of 30, the last of which reads a parameter that is at
/// home on the host and makes a gradient. The host updates a moment with it. A
/// fetch takes 60 and an update 80; both take 700 of 1024 parts of the host's
/// memory.
Problem layersBesideUpdates(int layers) {
  Problem p;
  p.addSegment("step");
  auto value = [&](ValueKind kind, ValueClass of, ValueId updates = kNone) {
    Value v;
    v.name = "v" + std::to_string(p.values.size());
    v.bytes = 1 << 20;
    v.kind = kind, v.valueClass = of, v.updates = updates;
    return p.addValue(v);
  };
  auto temporary = [&] {
    return value(ValueKind::Temporary, ValueClass::Activation);
  };
  ValueId x = value(ValueKind::Persistent, ValueClass::Batch);
  for (int i = 0; i < layers; ++i) {
    const ValueId w = value(ValueKind::Persistent, ValueClass::Parameter);
    const ValueId m = value(ValueKind::Persistent, ValueClass::Optimizer);
    const ValueId d = temporary();
    for (int k = 0; k < 4; ++k) {
      Recipe kernel;
      kernel.cost = 30;
      kernel.reads = {x};
      x = temporary();
      kernel.writes = {x};
      if (k == 3)
        kernel.reads.push_back(w), kernel.writes.push_back(d);
      p.addInstruction(0, kernel);
    }
    Recipe update;
    update.cost = 500;
    update.reads = {d, m};
    update.writes = {value(ValueKind::Persistent, ValueClass::Optimizer, m)};
    update.overwrites = {{m, update.writes[0], true}};
    p.addInstruction(0, update);
  }
  EXPECT_TRUE(offerMoves(p, {.leastBytes = 1}).ok());
  for (Recipe &r : p.recipes)
    if (const EngineKind kind = p.engines[r.engine].kind;
        kind == EngineKind::DeviceToHost) {
      r.cost = 10, r.busShare = 0;
    } else if (kind != EngineKind::Compute) {
      r.cost = kind == EngineKind::Host ? 80 : 60;
      r.busShare = 700;
    }
  return p;
}

StepOptions shapeOf(int64_t gigabytes) {
  StepOptions shape;
  shape.layers = 8;
  shape.linkBandwidth = gigabytes * 1'000'000'000;
  return shape;
}

} // namespace

/// Parameters at home on the device go to the host while the link waits for
/// gradients, and come back while later updates run there.
TEST(Transfers, CopiesAndReturnsGoWhereLinksHaveTime) {
  const Step step(shapeOf(12));
  ASSERT_EQ(step.groups.hostable, 8u);
  const MovedPlan plan = step.planOf(step.all(GroupMode::Returned));
  const Problem &p = step.problem;
  size_t copies = 0, returns = 0, lastKernel = 0, firstUpdate = 0, i = 0;
  std::vector<size_t> copiedAt, returnedAt;
  for (const Execution &e : plan.solution.segments[0]) {
    const Recipe &r = p.recipes[e.recipe];
    const EngineKind kind = p.engines[r.engine].kind;
    const bool isParameter =
        p.values[r.writes[0]].valueClass == ValueClass::Parameter;
    if (kind == EngineKind::Compute)
      lastKernel = i;
    if (kind == EngineKind::Host && firstUpdate == 0)
      firstUpdate = i;
    if (e.phase == Phase::Start && isParameter) {
      if (kind == EngineKind::DeviceToHost)
        copiedAt.push_back(i), ++copies;
      else if (kind == EngineKind::HostToDevice)
        returnedAt.push_back(i), ++returns;
    }
    ++i;
  }
  EXPECT_EQ(copies, 8u);
  EXPECT_EQ(returns, 8u);
  // Most copies go in the forward part, before any update.
  EXPECT_GE(std::count_if(copiedAt.begin(), copiedAt.end(),
                          [&](size_t at) { return at < firstUpdate; }),
            6);
  EXPECT_GE(std::count_if(returnedAt.begin(), returnedAt.end(),
                          [&](size_t at) { return at < lastKernel; }),
            4);
  // All at the end, one after the other, would take longer.
  const MovedPlan base = step.planOf(plainModes(step.groups));
  int64_t link = 0;
  for (const Recipe &r : p.recipes)
    if (p.engines[r.engine].kind == EngineKind::HostToDevice &&
        p.values[r.writes[0]].valueClass == ValueClass::Parameter &&
        p.values[r.writes[0]].updates != kNone)
      link += r.cost;
  EXPECT_GT(link, 0);
  EXPECT_LT(plan.makespan, base.makespan + link);
}

/// The least time of a choice is no more than what its list takes, and counts
/// the memory that engines share.
TEST(Transfers, TheLeastMakespanHolds) {
  int64_t raised = 0;
  for (int32_t share : {0, 400, kWholeBus})
    for (int64_t gigabytes : {3, 12, 50}) {
      Step step(shapeOf(gigabytes));
      for (Recipe &r : step.problem.recipes)
        r.busShare = r.engine ? share : 0;
      Problem alone = step.problem;
      for (Recipe &r : alone.recipes)
        r.busShare = 0;
      for (size_t mode = 0; mode < kNumGroupModes; ++mode) {
        const UpdateModes modes = step.all(GroupMode(mode));
        const SpaceChoice choice = choiceOf(step.problem, step.groups, modes);
        const int64_t least =
            leastMakespan(step.problem, *project(step.problem, choice, 1));
        EXPECT_LE(least, step.planOf(modes).makespan)
            << share << ", " << gigabytes << ", " << mode;
        raised += least > leastMakespan(alone, *project(alone, choice, 1));
      }
    }
  EXPECT_GE(raised, 4);
}

/// A fetch that shares the host's memory with an update starts earlier, where
/// there is room: no kernel waits for it.
TEST(Transfers, SlowedFetchesStartEarlier) {
  const Step step(layersBesideUpdates(8));
  const MovedPlan plan = step.planOf(step.all(GroupMode::Hosted));
  // The last gradient leaves, and its update runs, behind the kernels.
  EXPECT_EQ(plan.makespan, 8 * 120 + 10 + 80);
}

/// Lists with stalls tell later beginnings than a list without needs, so the
/// rounds begin anew with the times that transfers take beside other work.
TEST(Transfers, RoundsBeginAnew) {
  Step step(shapeOf(12));
  for (Recipe &r : step.problem.recipes)
    r.busShare = r.engine ? kWholeBus : 0;
  const UpdateModes modes = step.all(GroupMode::Away);
  const SpaceChoice choice = choiceOf(step.problem, step.groups, modes);
  const int64_t least =
      leastMakespan(step.problem, *project(step.problem, choice, 1));
  // 1.14 times the least; 1.16 with one begin.
  EXPECT_LT(step.planOf(modes).makespan, least + least * 3 / 20);
}
