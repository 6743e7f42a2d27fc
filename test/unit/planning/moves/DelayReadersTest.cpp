// DelayReadersTest.cpp - orders in which kernels hide the work of networks.

#include "compiler/planning/moves/DelayReaders.h"

#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/model/Timeline.h"
#include "compiler/planning/moves/Overlap.h"

#include "test/unit/Rounds.h"
#include "test/unit/planning/NetworkBrute.h"

#include <cstdio>

using namespace tmc::planning;

namespace {

/// The time of a layer's `kernel`, its exchange, sum and update.
struct Times {
  int64_t kernel, exchange = 15, sum = 2, update = 5;
};

/// The backward part of layers, the last layer first.
Problem backward(const std::vector<Times> &layers) {
  SpaceProblem w;
  w.p.engines.resize(1);
  w.p.spaces.resize(1);
  const EngineId dp = w.p.addNetwork("dp");
  w.p.addSegment("step");
  auto n = [](const char *kind, int i) { return kind + std::to_string(i); };
  const int count = int(layers.size());
  for (int i = count; i-- > 0;) {
    w.value(n("m", i), 100).kind = ValueKind::Persistent;
    Value &made = w.value(n("m'", i), 100);
    made.kind = ValueKind::Persistent;
    made.updates = w.id(n("m", i));
    for (const char *kind : {"d", "g", "p", "G"})
      w.value(n(kind, i), 100);
  }
  for (int i = count; i-- > 0;) {
    const Times &its = layers[size_t(i)];
    auto add = [&](Recipe r) { w.p.addInstruction(0, std::move(r)); };
    add(w.recipe(n("b", i), i + 1 < count ? n("d", i + 1) : "",
                 n("d", i) + " " + n("g", i), its.kernel));
    add(w.recipe(n("exch", i), n("g", i), n("p", i), its.exchange, dp));
    add(w.recipe(n("sum", i), n("p", i), n("G", i), its.sum));
    Recipe update = w.recipe(n("adam", i), n("G", i) + " " + n("m", i),
                             n("m'", i), its.update);
    update.overwrites = {{w.id(n("m", i)), w.id(n("m'", i)), true}};
    add(update);
  }
  return w.p;
}

std::string namesOf(const Problem &p, const Orders &orders) {
  std::string text;
  for (InstructionId i : orders[0])
    text += (text.empty() ? "" : " ") + p.instructions[i].name;
  return text;
}

int64_t secondsIn(const Problem &p, const Orders &orders) {
  return overlapNetwork(p, baseSolution(inOrder(p, orders)), -1)->makespan;
}

TEST(DelayReaders, KernelsHideExchanges) {
  const Problem p = backward({{1000}, {1000}, {1000}});
  ASSERT_TRUE(check(p).ok());
  const Orders orders = delayReaders(p);
  // Long kernels hide all but the last exchange: for it updates are held back.
  EXPECT_EQ(namesOf(p, orders),
            "b2 exch2 b1 exch1 b0 exch0 sum1 adam1 sum2 adam2 sum0 adam0");
  EXPECT_EQ(secondsIn(p, orders), 3000 + 15 + 2 + 5);
  // The program's order waits for each exchange.
  EXPECT_EQ(secondsIn(p, {}), 3000 + 3 * (15 + 2 + 5));
}

TEST(DelayReaders, TheNetworkIsFedFirst) {
  // The network takes longest: it never waits for a sum.
  const Problem p = backward({{10}, {10}, {10}});
  EXPECT_EQ(secondsIn(p, delayReaders(p)), 10 + 3 * 15 + 2 + 5);
}

/// The orders of drawn problems are legal.
TEST(DelayReaders, OrdersAreLegal) {
  Random random(8);
  for (int64_t i = 0; i < tmc::test::rounds(600, 4800); ++i) {
    const Problem p = NetworkProblem(random, int(i % kNetworkKinds)).w.p;
    const Problem delayed = inOrder(p, delayReaders(p));
    ASSERT_TRUE(check(delayed).ok()) << check(delayed) << printProblem(p);
    ASSERT_TRUE(simulate(p, baseSolution(delayed)).ok()) << printProblem(p);
  }
}

TEST(DelayReaders, DrawnLayersWaitLess) {
  Random random(9);
  int64_t before = 0, after = 0, slower = 0;
  const int64_t problems = tmc::test::rounds(200, 2000);
  for (int64_t i = 0; i < problems; ++i) {
    auto drawn = [&](int64_t most) { return 1 + int64_t(random.below(most)); };
    std::vector<Times> layers(size_t(1 + random.below(6)));
    int64_t kernels = 0;
    for (Times &its : layers) {
      its = {drawn(40), drawn(30), drawn(5), drawn(8)};
      kernels += its.kernel + its.sum + its.update;
    }
    const Problem p = backward(layers);
    const int64_t programs = secondsIn(p, {});
    const int64_t delayed = secondsIn(p, delayReaders(p));
    before += programs - kernels;
    after += delayed - kernels;
    slower += delayed > programs;
  }
  std::printf(
      "  waits: %lld, in the program's order %lld; %lld of %lld slower\n",
      (long long)after, (long long)before, (long long)slower,
      (long long)problems);
  EXPECT_LT(after, before / 2);
  EXPECT_LE(slower, problems / 50);
}

} // namespace
