// The schedule that the search changes step by step stays equal to what it
// would be if built anew, and to what the verifier measures.

#include "test/unit/planning/RandomProblem.h"

#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/search/Construct.h"
#include "compiler/planning/search/Schedule.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

void churn(const Problem &p, Random &random, int steps, bool exact) {
  LinearProblem linear = linearize(p);
  Schedule schedule(linear, 10);
  std::vector<OpId> ops;
  for (OpId o = 0; o < OpId(linear.ops.size()); ++o)
    if (linear.ops[o].firstStage <= linear.ops[o].lastStage)
      ops.push_back(o);
  if (ops.empty())
    return;
  int64_t base = schedule.excess();
  for (int step = 0; step < steps; ++step) {
    if (!schedule.clones().empty() && random.chance(0.45)) {
      Schedule::Clone c =
          schedule.clones()[random.below(uint32_t(schedule.clones().size()))];
      schedule.erase(c.op, c.stage);
    } else {
      OpId o = ops[random.below(uint32_t(ops.size()))];
      int32_t stage =
          linear.ops[o].firstStage +
          int32_t(random.below(uint32_t(linear.ops[o].lastStage -
                                        linear.ops[o].firstStage + 1)));
      if (schedule.canInsert(o, stage))
        schedule.insert(o, stage);
    }
    if (random.chance(0.2)) {
      int32_t k = int32_t(random.below(uint32_t(linear.stages.size())));
      schedule.switchVariant(
          k, int32_t(random.below(uint32_t(linear.stages[k].variants.size()))));
    }
    Solution solution = schedule.toSolution(p);
    absl::StatusOr<Claim> claim = measure(p, solution);
    ASSERT_TRUE(claim.ok()) << claim.status().message();
    ASSERT_EQ(claim->cost, linear.baseCost + schedule.cost());
    int64_t peak = schedule.peakBytes() + linear.constantBytes;
    if (exact)
      ASSERT_EQ(claim->peakBytes, peak);
    else
      ASSERT_LE(claim->peakBytes, peak);
    // Overwrites of the linear form: the same options, taken in order.
    if (schedule.clones().empty())
      continue;
    bool firstOnly = true;
    for (int32_t k = 0; k < int32_t(linear.stages.size()); ++k)
      firstOnly &= schedule.variantIndex(k) == 0;
    if (!firstOnly)
      continue;
    std::vector<int64_t> live = liveOf(linear, schedule.clones());
    ASSERT_EQ(*std::max_element(live.begin(), live.end()),
              schedule.peakBytes());
  }
  // All of it undone: where it began.
  while (!schedule.clones().empty()) {
    Schedule::Clone c = schedule.clones().back();
    schedule.erase(c.op, c.stage);
  }
  for (int32_t k = 0; k < int32_t(linear.stages.size()); ++k)
    schedule.switchVariant(k, 0);
  EXPECT_EQ(schedule.excess(), base);
  EXPECT_EQ(schedule.cost(), 0);
}

TEST(Schedule, StaysTrueUnderRandomChanges) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    RandomShape shape;
    shape.body = 8;
    shape.epilogue = 4;
    churn(randomProblem(random, shape), random, 60, false);
    ASSERT_FALSE(HasFatalFailure()) << seed;
  }
}

TEST(Schedule, CountsGraphsExactly) {
  for (Family family :
       {Family::Transformer, Family::UNet, Family::RandomLayered}) {
    Random random(7);
    churn(*problemOf(generateGraph({family, 150, 3, false})), random, 300,
          true);
  }
}

TEST(Schedule, LoopsAreNeverUnderstated) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    RandomShape shape;
    shape.trips = 2 + int64_t(random.below(3));
    shape.body = 6;
    churn(randomProblem(random, shape), random, 40, false);
    ASSERT_FALSE(HasFatalFailure()) << seed;
  }
}

} // namespace

// As each option is meant: its operand dies, serves by no earlier option, and
// its result has taken none.
static int64_t savedOptionByOption(const LinearProblem &linear,
                                   const LinearOp &op,
                                   const std::vector<char> &dies) {
  int64_t saved = 0;
  for (size_t o = 0; o < op.overwrites.size(); ++o) {
    const LinearOverwrite &option = op.overwrites[o];
    bool used = !dies[option.read];
    for (size_t p = 0; p < o; ++p)
      used |= op.overwrites[p].read == option.read ||
              (op.overwrites[p].written == option.written &&
               dies[op.overwrites[p].read]);
    if (!used)
      saved +=
          std::min(linear.bytes[option.read], linear.bytes[option.written]);
  }
  return saved;
}

TEST(Schedule, OverwritesSaveWhatTheirOptionsSay) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    LinearProblem linear;
    LinearOp op;
    for (int v = 0; v < 10; ++v)
      linear.bytes.push_back(1 + random.below(9));
    for (uint32_t i = 0, many = random.below(20); i < many; ++i)
      op.overwrites.push_back({ValueId(random.below(5)),
                               ValueId(5 + random.below(5)),
                               random.chance(0.2)});
    indexOverwrites(linear, op);
    for (uint32_t dying = 0; dying < 32; ++dying) {
      std::vector<char> dies(10, 0);
      for (int v = 0; v < 5; ++v)
        dies[v] = dying >> v & 1;
      ASSERT_EQ(savedByOverwrites(op, [&](ValueId v) { return dies[v] != 0; }),
                savedOptionByOption(linear, op, dies));
    }
  }
}

// A kernel fused of a hundred others may write any of its results over any of
// its operands; that is ten thousand options, and each change of a schedule
// asks for them.
TEST(Schedule, OverwritesOfAWideKernelAreAskedForOnce) {
  constexpr int kWide = 100;
  LinearProblem linear;
  linear.bytes.assign(2 * kWide, 64);
  LinearOp op;
  for (int read = 0; read < kWide; ++read)
    for (int written = 0; written < kWide; ++written)
      op.overwrites.push_back({read, kWide + written, false});
  indexOverwrites(linear, op);
  int asked = 0;
  EXPECT_EQ(savedByOverwrites(op, [&](ValueId) { return ++asked, false; }), 0);
  EXPECT_LE(asked, kWide);
}
