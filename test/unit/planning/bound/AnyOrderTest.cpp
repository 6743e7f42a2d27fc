// The bound for any order is never above the optimum, and its checker finds
// what is wrong with a certificate.

#include "test/unit/Rounds.h"
#include "test/unit/planning/AnyOrderBrute.h"

#include "compiler/planning/bound/AnyOrderCheck.h"
#include "compiler/planning/bound/AnyOrderInputs.h"
#include "compiler/planning/bound/Bound.h"
#include "compiler/planning/laboratory/Graph.h"
#include "compiler/planning/model/ProblemFile.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

/// Prices of all moments that need room and of their inputs, at random, with
/// the chains that the bound itself would take.
AnyOrderCertificate wildPrices(const Problem &p, int64_t budget,
                               Random &random) {
  AnyOrderCertificate c;
  c.budgetBytes = budget;
  c.denominator = 1 + random.below(1000);
  const AnyOrderGraph graph(p);
  const int64_t limit = budget - p.reservedBytes;
  std::vector<AnyOrderGraph::Row> rows, inputRows;
  for (InstructionId k = 0; k < InstructionId(p.instructions.size()); ++k)
    if (AnyOrderGraph::Row row = graph.rowOf(k); row.liveBytes > limit) {
      if (random.chance(0.5)) {
        c.prices.push_back({k, int64_t(random.below(3000))});
        rows.push_back(row);
      }
      if (random.chance(0.5)) {
        c.inputMoments.push_back({k, int64_t(random.below(3000)), {}});
        rows.push_back(row);
        inputRows.push_back(row);
      }
    }
  c.chains = findChains(graph, rows);
  AnyOrderGaps gaps(graph, c.chains);
  const AnyOrderInputs inputs(gaps, inputRows, limit);
  // An input's price is worth something if it is near that of its bytes.
  const int64_t most = 1 + int64_t(random.below(2)) * 100'000;
  for (size_t m = 0; m < inputs.moments.size(); ++m)
    for (int32_t i = inputs.moments[m].firstPair;
         i < inputs.moments[m].lastPair; ++i)
      if (random.chance(0.7))
        c.inputMoments[m].inputs.push_back(
            {inputs.slots[inputs.pairs[i].value].value,
             inputs.slots[inputs.pairs[i].input].value,
             int64_t(random.below(uint64_t(most)))});
  return c;
}

struct Tally {
  int budgets = 0, positive = 0, tight = 0, chains = 0, inputs = 0,
      wildInputs = 0;
  void print() const {
    std::printf("  %d budgets, %d with prices, %d with inputs, %d tight; wild "
                "ones: %d with chains, %d with inputs\n",
                budgets, positive, inputs, tight, chains, wildInputs);
  }
};

/// No certificate proves more than `best`, and both sums agree.
void compare(Problem p, int64_t budget, int64_t best, Random &random,
             Tally &tally) {
  p.spaces[0].budgetBytes = budget;
  absl::StatusOr<AnyOrderCertificate> found = proveAnyOrder(p);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(checkAnyOrderCertificate(p, *found), std::nullopt)
      << printProblem(p);
  ASSERT_EQ(*checkAnyOrderBound(p, *found), found->provenCost);
  ASSERT_LE(found->provenCost, best) << "budget " << budget << "\n"
                                     << printProblem(p);
  ++tally.budgets;
  tally.positive += !found->prices.empty() || !found->inputMoments.empty();
  tally.tight += found->provenCost == best;
  tally.inputs += !found->inputMoments.empty();
  for (int trial = 0; trial < 4; ++trial) {
    const AnyOrderCertificate wild = wildPrices(p, budget, random);
    absl::StatusOr<int64_t> judged = checkAnyOrderBound(p, wild);
    ASSERT_TRUE(judged.ok()) << judged.status().message() << printProblem(p);
    ASSERT_EQ(*judged, *costProvenInAnyOrder(p, wild)) << printProblem(p);
    ASSERT_LE(*judged, best) << "wild, budget " << budget << "\n"
                             << printProblem(p);
    tally.chains += !wild.chains.empty();
    tally.wildInputs += std::any_of(
        wild.inputMoments.begin(), wild.inputMoments.end(), [](const auto &m) {
          return std::any_of(m.inputs.begin(), m.inputs.end(),
                             [](const auto &row) { return row.price > 0; });
        });
  }
}

TEST(AnyOrder, NeverAboveTheOptimum) {
  Tally tally;
  int problems = 0;
  const int64_t wanted = tmc::test::rounds(300, 2000);
  for (uint64_t seed = 0; problems < wanted; ++seed) {
    Random random(seed);
    const Problem p = seed % 3 == 0   ? randomFreeProblem(random)
                      : seed % 3 == 1 ? randomLine(random, 7, 1)
                                      : randomStack(random, 5, 3, 1);
    ASSERT_LE(p.instructions.size(), 9u);
    if (!check(p).ok())
      continue;
    ++problems;
    const int64_t peak =
        simulate(p, baseSolution(p))->peakBytes + p.reservedBytes;
    for (double part : {0.9, 0.8, 0.7, 0.6}) {
      const int64_t budget = int64_t(double(peak) * part);
      std::optional<int64_t> best = AnyOrderOptimum(p, budget).run();
      compare(p, budget, best.value_or(INT64_MAX), random, tally);
      if (HasFatalFailure())
        FAIL() << "seed " << seed;
      if (!best)
        break;
    }
  }
  EXPECT_GT(tally.budgets, problems);
  EXPECT_GT(tally.positive * 4, tally.budgets) << tally.budgets;
  EXPECT_GT(tally.chains, 0);
  EXPECT_GT(tally.inputs, 10);
  EXPECT_GT(tally.wildInputs, 50);
  tally.print();
}

// Prices far below the largest round to 0 and leave the certificate, and chains
// come from the moments that stay.
TEST(AnyOrder, PricesThatRoundToNothing) {
  int priced = 0;
  const int64_t wanted = tmc::test::rounds(300, 2000);
  for (uint64_t seed = 0; seed < uint64_t(wanted); ++seed) {
    Random random(seed);
    Problem p = randomLine(random, 14, 1);
    // A byte of the first half of the line is worth some 2^50 times as much.
    const size_t half = p.values.size() / 2;
    for (size_t v = 0; v < p.values.size(); ++v)
      if (v >= half && p.values[v].kind == ValueKind::Temporary)
        p.values[v].bytes <<= 30;
    for (Recipe &r : p.recipes)
      if (!r.writes.empty() && size_t(r.writes[0]) < half)
        r.cost <<= 20;
    if (!check(p).ok())
      continue;
    const int64_t peak =
        simulate(p, baseSolution(p))->peakBytes + p.reservedBytes;
    for (double part : {0.9, 0.7, 0.5, 1e-9}) {
      p.spaces[0].budgetBytes = int64_t(double(peak) * part);
      absl::StatusOr<AnyOrderCertificate> found = proveAnyOrder(p);
      ASSERT_TRUE(found.ok()) << found.status().message();
      ASSERT_EQ(checkAnyOrderCertificate(p, *found), std::nullopt)
          << "seed " << seed << "\n"
          << printProblem(p);
      priced += !found->prices.empty();
    }
  }
  EXPECT_GT(priced, wanted / 4);
}

TEST(AnyOrder, NeverAboveAPlanOfALoop) {
  Tally tally;
  const int64_t wanted = tmc::test::rounds(60, 240);
  for (uint64_t seed = 0; seed < uint64_t(wanted); ++seed) {
    Random random(seed);
    RandomShape shape;
    shape.trips = 2 + int64_t(seed % 3);
    shape.prologue = int(seed % 2);
    shape.body = 3 + int(random.below(2));
    shape.epilogue = int(random.below(2));
    shape.carried = random.chance(0.7);
    shape.extras = random.chance(0.5);
    Problem p = seed % 4 == 0   ? randomProblem(random, shape)
                : seed % 4 == 1 ? randomStack(random, 4, 1, shape.trips)
                                : randomLine(random, 3, shape.trips);
    if (!check(p).ok())
      continue;
    const std::map<int64_t, int64_t> cheapest =
        cheapestInAnyOrder(p, seed % 4 ? 2 : 1);
    for (auto [peak, cost] : cheapest) {
      compare(p, peak + p.reservedBytes, cost, random, tally);
      if (HasFatalFailure())
        FAIL() << "seed " << seed;
    }
  }
  EXPECT_GT(tally.positive, 10) << tally.budgets;
  tally.print();
}

/// A problem of one segment, written line by line.
class Writer {
public:
  explicit Writer(int64_t trips = 1) { p.addSegment("step", trips); }
  ValueId value(int64_t bytes) {
    Value v;
    v.name = "v" + std::to_string(p.values.size());
    v.bytes = bytes;
    return p.addValue(v);
  }
  InstructionId add(std::vector<ValueId> reads, std::vector<ValueId> writes,
                    int64_t workspace = 0, SegmentId s = 0) {
    Recipe r;
    r.name = "i" + std::to_string(p.instructions.size());
    r.reads = std::move(reads);
    r.writes = std::move(writes);
    r.cost = 5;
    r.workspaceBytes = workspace;
    r.recomputable = true;
    return p.addInstruction(s, r);
  }
  /// A variant that spares one read.
  void spare(InstructionId i, ValueId read) {
    Recipe r = p.recipes[p.instructions[i].recipes[0]];
    std::erase(r.reads, read);
    r.name += "b";
    p.addVariant(i, r);
  }
  Problem p;
};

/// u of 10 bytes is read three times, with a kernel that needs 90 bytes of
/// scratch between: with 95 bytes it is made three times.
Writer threeReads() {
  Writer w;
  const ValueId u = w.value(10), a = w.value(1), b = w.value(1), c = w.value(1),
                d = w.value(1), e = w.value(1);
  w.add({}, {u});      // 0
  w.add({u}, {a});     // 1
  w.add({a}, {b}, 90); // 2
  w.add({u, b}, {c});  // 3
  w.add({c}, {d}, 90); // 4
  w.add({u, d}, {e});  // 5
  w.p.spaces[0].budgetBytes = 95;
  return w;
}

TEST(AnyOrder, GapsOfOneValueAddUp) {
  const Problem p = threeReads().p;
  ASSERT_TRUE(check(p).ok());
  const int64_t base = baseCost(p);
  EXPECT_EQ(AnyOrderOptimum(p, 95).run(), base + 10);
  const AnyOrderCertificate c = *proveAnyOrder(p);
  EXPECT_EQ(c.provenCost, base + 10);
  ASSERT_EQ(c.prices.size(), 2u);
  ASSERT_EQ(c.chains.size(), 1u);
  EXPECT_EQ(c.chains[0].readers, std::vector<InstructionId>{3});
  EXPECT_EQ(checkAnyOrderCertificate(p, c), std::nullopt);
}

/// The checker's message about a certificate after a change.
struct Verdict {
  std::string operator()(void (*change)(AnyOrderCertificate &),
                         const Problem &of) const {
    AnyOrderCertificate c = good;
    change(c);
    return checkAnyOrderCertificate(of, c).value_or("none");
  }
  const AnyOrderCertificate &good;
};

void nothing(AnyOrderCertificate &) {}

// Each is a proof that something makes wrong; the checker finds it.
TEST(AnyOrder, PlantedFaults) {
  const Problem p = threeReads().p;
  const AnyOrderCertificate good = *proveAnyOrder(p);
  const Verdict verdict{good};
  EXPECT_EQ(verdict(nothing, p), "none");
  // A use that a variant spares.
  Writer spares = threeReads();
  spares.spare(3, 0);
  ASSERT_TRUE(check(spares.p).ok());
  EXPECT_EQ(verdict(nothing, spares.p), "certificate: 'i3' may spare 'v0'");
  EXPECT_LE(proveAnyOrder(spares.p)->provenCost,
            *AnyOrderOptimum(spares.p, 95).run());
  // Gaps that overlap: no priced moment stands between the readers.
  EXPECT_EQ(verdict(
                [](auto &c) {
                  c.chains[0].readers = {3, 1};
                },
                p),
            "certificate: gaps of 'v0' overlap at 'i1'");
  EXPECT_EQ(verdict(
                [](auto &c) {
                  c.chains[0].readers = {1, 3, 3};
                },
                p),
            "certificate: gaps of 'v0' overlap at 'i3'");
  // A moment that touches u holds it as an operand, and not in a gap as well.
  EXPECT_EQ(verdict([](auto &c) { c.prices[0].moment = 3; }, p),
            "certificate: a price of 'i3', which has room");
  EXPECT_EQ(verdict([](auto &c) { c.prices[0].moment = 4; }, p),
            "certificate: two prices of 'i4'");
  EXPECT_EQ(verdict([](auto &c) { c.prices[0].price = -1; }, p),
            "certificate: a price of -1");
  EXPECT_EQ(verdict([](auto &c) { c.denominator = 0; }, p),
            "certificate: the denominator is 0");
  EXPECT_EQ(verdict([](auto &c) { c.chains.push_back(c.chains[0]); }, p),
            "certificate: two chains of 'v0'");
  EXPECT_EQ(verdict([](auto &c) { ++c.provenCost; }, p),
            "the certificate proves a cost of 40, not 41 as claimed");
  EXPECT_EQ(verdict([](auto &c) { c.budgetBytes = 102; }, p),
            "certificate: a price of 'i2', which has room");
}

/// u of 100 bytes is made of w, which has 50, and read again behind k, which
/// leaves room for neither.
Writer madeOfAnother() {
  Writer w;
  const ValueId made = w.value(50), u = w.value(100), a = w.value(1),
                b = w.value(1), end = w.value(1);
  w.add({}, {made});    // 0
  w.add({made}, {u});   // 1
  w.add({u}, {a});      // 2
  w.add({a}, {b}, 199); // 3: k
  w.add({u, b}, {end}); // 4
  w.p.spaces[0].budgetBytes = 203;
  return w;
}

TEST(AnyOrder, AnInputIsKeptOrMadeAgain) {
  const Problem p = madeOfAnother().p;
  ASSERT_TRUE(check(p).ok()) << check(p).message();
  const int64_t base = baseCost(p);
  EXPECT_EQ(AnyOrderOptimum(p, 203).run(), base + 10);
  const AnyOrderCertificate c = *proveAnyOrder(p);
  EXPECT_EQ(c.provenCost, base + 10);
  ASSERT_EQ(c.inputMoments.size(), 1u);
  EXPECT_EQ(c.inputMoments[0].moment, 3);
  ASSERT_EQ(c.inputMoments[0].inputs.size(), 1u);
  EXPECT_EQ(c.inputMoments[0].inputs[0].value, 1);
  EXPECT_EQ(c.inputMoments[0].inputs[0].input, 0);
  EXPECT_EQ(checkAnyOrderCertificate(p, c), std::nullopt);
  AnyOrderOptions without;
  without.inputMoments = 0;
  EXPECT_EQ(proveAnyOrder(p, without)->provenCost, base + 5);
  // With room for w it is kept, and u alone is made again.
  Problem roomy = p;
  roomy.spaces[0].budgetBytes = 253;
  EXPECT_EQ(AnyOrderOptimum(roomy, 253).run(), base + 5);
  EXPECT_EQ(proveAnyOrder(roomy)->provenCost, base + 5);
}

// An input that can't be made again has to be there.
TEST(AnyOrder, AnInputThatIsMadeOnce) {
  Writer w = madeOfAnother();
  w.p.recipes[0].recomputable = false;
  EXPECT_EQ(AnyOrderOptimum(w.p, 203).run(), std::nullopt);
  EXPECT_GT(proveAnyOrder(w.p)->provenCost, baseCost(w.p) + 10);
  w.p.spaces[0].budgetBytes = 253;
  EXPECT_EQ(proveAnyOrder(w.p)->provenCost, baseCost(w.p) + 5);
}

// Three trips: the pair is of one trip, and pays in each of them.
TEST(AnyOrder, AnInputInALoopPaysInEachTrip) {
  Writer w = madeOfAnother();
  w.p.segments[0].trips = 3;
  for (Recipe &r : w.p.recipes)
    r.segment = 0;
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  const AnyOrderCertificate c = *proveAnyOrder(w.p);
  EXPECT_EQ(checkAnyOrderCertificate(w.p, c), std::nullopt);
  EXPECT_EQ(c.provenCost, baseCost(w.p) + 3 * 10);
  // If w may be made outside, it may be there in each trip.
  w.p.recipes[0].segment = kNone;
  const AnyOrderCertificate outside = *proveAnyOrder(w.p);
  EXPECT_TRUE(outside.inputMoments.empty());
  EXPECT_EQ(checkAnyOrderCertificate(w.p, c).value_or("none"),
            "certificate: 'v1', made of 'v0', at 'i3': the input isn't of this "
            "trip");
}

// Each is a row of an input that doesn't hold; the checker finds it.
TEST(AnyOrder, PlantedFaultsOfInputs) {
  const Problem p = madeOfAnother().p;
  const AnyOrderCertificate good = *proveAnyOrder(p);
  const Verdict verdict{good};
  EXPECT_EQ(verdict(nothing, p), "none");
  // A variant of u's maker spares w, and so does a recipe that only recomputes.
  const std::string pair = "certificate: 'v1', made of 'v0', at 'i3': ";
  for (bool isVariant : {true, false}) {
    Writer spares = madeOfAnother();
    if (isVariant) {
      spares.spare(1, 0);
    } else {
      Recipe r = spares.p.recipes[1];
      r.name = "i1b";
      r.reads.clear();
      r.instruction = kNone;
      spares.p.addRecipe(r);
    }
    ASSERT_TRUE(check(spares.p).ok());
    EXPECT_EQ(verdict(nothing, spares.p), pair + "'i1b' doesn't read it");
    EXPECT_LE(proveAnyOrder(spares.p)->provenCost,
              *AnyOrderOptimum(spares.p, 203).run());
  }
  // k reads w: its bytes are k's own.
  Writer touches = madeOfAnother();
  touches.p.recipes[3].reads.push_back(0);
  EXPECT_EQ(verdict(nothing, touches.p),
            pair + "the input's bytes count already");
  // w is read behind k: it is one of the certain values.
  Writer later = madeOfAnother();
  later.p.recipes[4].reads.push_back(0);
  EXPECT_EQ(verdict(nothing, later.p),
            pair + "the input's bytes count already");
  // Nothing reads u behind k.
  Writer unused = madeOfAnother();
  std::erase(unused.p.recipes[4].reads, 1);
  unused.p.recipes[3].workspaceBytes = 205;
  EXPECT_EQ(verdict(nothing, unused.p),
            pair + "the value isn't surely there or written again");
  EXPECT_EQ(verdict([](auto &c) { c.inputMoments[0].inputs[0].input = 2; }, p),
            "certificate: 'v1', made of 'v2', at 'i3': the input's bytes count "
            "already");
  EXPECT_EQ(verdict([](auto &c) { c.inputMoments[0].inputs[0].input = 5; }, p),
            "certificate: a pair of values 1 and 5");
  EXPECT_EQ(verdict([](auto &c) { c.inputMoments[0].inputs[0].price = -1; }, p),
            "certificate: an input's price of -1");
  EXPECT_EQ(verdict(
                [](auto &c) {
                  auto &inputs = c.inputMoments[0].inputs;
                  inputs.push_back(inputs[0]);
                },
                p),
            "certificate: an input of value 1 twice");
  EXPECT_EQ(
      verdict([](auto &c) { c.inputMoments.push_back(c.inputMoments[0]); }, p),
      "certificate: inputs of 'i3' twice");
  EXPECT_EQ(verdict([](auto &c) { c.inputMoments[0].moment = 4; }, p),
            "certificate: a price of 'i4', which has room");
  EXPECT_EQ(verdict([](auto &c) { c.inputMoments[0].moment = 9; }, p),
            "certificate: inputs at instruction 9");
  EXPECT_EQ(verdict([](auto &c) { c.inputMoments[0].price = -1; }, p),
            "certificate: a price of -1 at 'i3'");
  EXPECT_EQ(verdict([](auto &c) { ++c.provenCost; }, p),
            "the certificate proves a cost of 35, not 36 as claimed");
}

// An update runs behind all that surely reads the old content, so what it
// reads is held. A reader that may spare the content says nothing.
TEST(AnyOrder, AnUpdateRunsBehindItsReaders) {
  for (bool isSpared : {false, true}) {
    Writer w;
    const ValueId old = w.value(1), g = w.value(10), a = w.value(1),
                  fresh = w.value(1);
    w.p.values[old].kind = w.p.values[fresh].kind = ValueKind::Persistent;
    w.p.values[fresh].updates = old;
    w.add({}, {g});
    // It needs g, and is needed by k: g is made before k.
    const ValueId h = w.value(1);
    w.add({g}, {h});
    const InstructionId k = w.add({old, h}, {a}, 90);
    if (isSpared)
      w.spare(k, old);
    const InstructionId update = w.add({old, g}, {fresh});
    Recipe &r = w.p.recipes[w.p.instructions[update].recipes[0]];
    r.recomputable = false;
    r.overwrites = {{old, fresh, true}};
    w.p.spaces[0].budgetBytes = 95;
    ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
    const int64_t base = baseCost(w.p), extra = isSpared ? 0 : 5;
    EXPECT_EQ(AnyOrderOptimum(w.p, 95).run(), base + extra);
    EXPECT_EQ(proveAnyOrder(w.p)->provenCost, base + extra);
  }
}

// k2 may stand on either side of b, so it pays for one of two gaps of u. Beside
// k3, it pays for k3's.
TEST(AnyOrder, AMomentInOneOfTwoGaps) {
  Writer w;
  const ValueId u = w.value(10), spare = w.value(1), s = w.value(1),
                x = w.value(1), y = w.value(1), z = w.value(1), q = w.value(1),
                end = w.value(1);
  w.add({}, {u});
  w.add({}, {spare});
  w.p.recipes.back().cost = 0; // Room for the first moment.
  w.add({u, spare}, {s});
  const InstructionId k1 = w.add({s}, {x}, 83), b = w.add({x, u}, {y}),
                      k3 = w.add({y}, {z}, 90), k2 = w.add({s}, {q}, 90);
  w.add({u, spare, z, q}, {end});
  w.p.spaces[0].budgetBytes = 95;
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  const int64_t base = baseCost(w.p);
  EXPECT_EQ(AnyOrderOptimum(w.p, 95).run(), base + 5);
  AnyOrderCertificate c{95, 8, {{k1, 0}, {k3, 5}, {k2, 5}}, {{u, {b}}}, {}, 0};
  EXPECT_EQ(*checkAnyOrderBound(w.p, c), base + 4);
  EXPECT_EQ(*costProvenInAnyOrder(w.p, c), base + 4);
}

// A temporary that is overwritten in place can be made again, and read then. So
// its readers may run behind the update.
TEST(AnyOrder, OverwrittenTemporariesComeBack) {
  for (bool comesBack : {false, true}) {
    Writer w;
    const ValueId o = w.value(1), u = w.value(10), h = w.value(1),
                  a = w.value(1), t = w.value(1);
    w.add({}, {o});
    w.p.recipes.back().cost = 1;
    w.p.recipes.back().recomputable = comesBack;
    w.add({}, {u});
    w.add({u}, {h});
    w.add({o, h}, {a}, 90);
    w.add({o, u}, {t});
    w.p.recipes.back().recomputable = false;
    w.p.recipes.back().overwrites = {{o, t, true}};
    w.p.spaces[0].budgetBytes = 95;
    ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
    const int64_t base = baseCost(w.p);
    EXPECT_EQ(AnyOrderOptimum(w.p, 95).run(), base + (comesBack ? 1 : 5));
    EXPECT_EQ(proveAnyOrder(w.p)->provenCost, base + (comesBack ? 0 : 5));
  }
}

// Five trips: u of 10 bytes is made before the loop and read at the end of each
// trip, behind a kernel that has no room for it.
TEST(AnyOrder, ALoopPaysInEachTrip) {
  Writer w(1);
  w.p.addSegment("loop", 5);
  const ValueId u = w.value(10), a = w.value(10), b = w.value(1),
                c = w.value(1), d = w.value(1);
  w.add({}, {u});
  w.add({}, {a}, 0, 1);
  w.add({a}, {b}, 0, 1);
  w.add({b}, {c}, 90, 1); // Neither u nor a fits.
  w.add({a, c, u}, {d}, 0, 1);
  w.p.spaces[0].budgetBytes = 92;
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  const AnyOrderCertificate proof = *proveAnyOrder(w.p);
  EXPECT_EQ(checkAnyOrderCertificate(w.p, proof), std::nullopt);
  // a pays in five trips. u's gap reaches out of the loop, so it pays once.
  EXPECT_EQ(proof.provenCost, baseCost(w.p) + 5 * 5 + 5);
}

TEST(AnyOrder, OtherSpacesAreRefused) {
  Problem p = threeReads().p;
  p.addSpace(SpaceKind::Host);
  EXPECT_EQ(proveAnyOrder(p).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(checkAnyOrderCertificate(p, {}),
            "certificate: the problem has another space or engine");
}

} // namespace
