// The bound of spaces against every list of small problems and against the
// machine's optimum, and the judge against planted faults.

#include "compiler/planning/bound/BoundCheck.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/laboratory/GenerateStep.h"
#include "compiler/planning/model/ProblemFile.h"

#include "test/unit/Rounds.h"
#include "test/unit/planning/NetworkBrute.h"
#include "test/unit/planning/SpaceOptimum.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>

using namespace tmc::planning;

namespace {

Certificate randomCertificate(Random &random, const Problem &p) {
  Certificate c;
  c.budgetBytes = p.spaces[0].budgetBytes;
  c.denominator = 1 + random.below(40);
  const GapModel model(p);
  for (int32_t k = 0; k < int32_t(model.numMoments()); ++k) {
    const bool isFirst =
        std::count(model.begins.begin(), model.begins.end(), k);
    if (!isFirst && model.isComputes(k) && random.chance(0.4))
      c.borders.push_back(model.order[k]);
  }
  for (size_t s = 0; s < p.segments.size() + c.borders.size(); ++s) {
    std::vector<int64_t> &row = c.weights.emplace_back(p.engines.size(), 0);
    for (int64_t left = c.denominator; left > 0;) {
      int64_t part = 1 + random.below(uint32_t(left));
      row[random.below(uint32_t(row.size()))] += part;
      left -= part;
    }
  }
  for (size_t s = 0; s < p.spaces.size(); ++s)
    for (size_t i = 0; i < p.instructions.size(); ++i)
      if (p.spaces[s].budgetBytes >= 0 && random.chance(0.5))
        c.prices.push_back({InstructionId(i), SpaceId(s), random.below(200)});
  return c;
}

/// The cost that model and checker say that the certificate proves.
int64_t provenBy(const Problem &p, const Certificate &c) {
  absl::StatusOr<int64_t> judged = checkBound(p, c);
  absl::StatusOr<int64_t> summed = costProvenBy(GapModel(p), c);
  EXPECT_TRUE(judged.ok() && summed.ok()) << judged.status().message();
  EXPECT_EQ(*judged, *summed) << printProblem(p);
  return *judged;
}

/// In budgets of some plan no certificate proves more than the optimum.
void expectBelowOptimum(Random &random, int64_t problems,
                        const std::function<Problem(int64_t)> &problemOf) {
  int64_t instances = 0, certificates = 0, above = 0, exact = 0, slower = 0;
  std::vector<double> shares;
  for (int64_t i = 0; i < problems; ++i) {
    Problem p = problemOf(i);
    Plans plans(p, 2);
    ASSERT_FALSE(plans.all.empty());
    const Plans::Plan &one =
        plans.all[random.below(uint32_t(plans.all.size()))];
    for (size_t s = 0; s < p.spaces.size(); ++s)
      p.spaces[s].budgetBytes = s && random.chance(0.4) ? -1 : one.peaks[s];
    std::optional<int64_t> optimum = optimumOf(p, plans);
    ASSERT_TRUE(optimum);
    ++instances;
    for (int c = 0; c < 8; ++c, ++certificates) {
      int64_t bound = provenBy(p, randomCertificate(random, p));
      ASSERT_LE(bound, *optimum) << printProblem(p);
    }
    int64_t plain = provenBy(p, plainCertificate(p));
    EXPECT_EQ(loadOf(p), plain) << printProblem(p);
    Certificate best = prove(p, {.steps = 200});
    int64_t bound = provenBy(p, best);
    ASSERT_LE(bound, *optimum) << printProblem(p);
    ASSERT_GE(bound, plain);
    above += bound > plain;
    exact += bound == *optimum;
    if (*optimum > plain) {
      ++slower;
      shares.push_back(double(bound - plain) / double(*optimum - plain));
    }
  }
  std::sort(shares.begin(), shares.end());
  std::printf("  %lld instances, %lld certificates; %lld bounds are the "
              "optimum, %lld above compute's load; of %lld whose optimum is "
              "above it, the median share closed is %.2f\n",
              (long long)instances, (long long)certificates, (long long)exact,
              (long long)above, (long long)slower, shares[shares.size() / 2]);
  EXPECT_GE(instances, problems);
  EXPECT_GE(above, problems / 12);
  EXPECT_GE(exact, problems / 5);
}

TEST(SpaceBound, NeverExceedsTheOptimumOfSmallProblems) {
  Random random(31);
  expectBelowOptimum(random, 2400, [&](int64_t i) {
    return randomSpaces(random, int(i % 3)).p;
  });
}

TEST(SpaceBound, NeverExceedsTheOptimumOnTheNetwork) {
  Random random(18);
  expectBelowOptimum(random, tmc::test::rounds(400, 2400), [&](int64_t i) {
    return NetworkProblem(random, int(i % kNetworkKinds)).w.p;
  });
}

/// Engines that can do nothing change nothing: the ascent on several engines
/// proves as much as the one on compute alone, on every family, size and
/// budget.
TEST(SpaceBound, IdleEnginesCostNoProof) {
  int64_t above = 0;
  for (Family family :
       {Family::Transformer, Family::UNet, Family::RandomLayered})
    for (int64_t nodes : {150, 400})
      for (double share : {0.9, 0.7, 0.5}) {
        SCOPED_TRACE(testing::Message() << "family " << int(family) << ", "
                                        << nodes << " nodes, " << share);
        absl::StatusOr<Problem> p =
            problemOf(generateGraph({.family = family, .nodes = nodes}));
        ASSERT_TRUE(p.ok());
        const int64_t peak = simulate(*p, baseSolution(*p))->peakBytes;
        p->spaces[0].budgetBytes = int64_t(share * double(peak));
        const Certificate alone = prove(*p);
        EXPECT_EQ(provenBy(*p, alone), alone.provenCost);
        above += alone.provenCost > baseCost(*p);
        const SpaceId host = p->addSpace(SpaceKind::Host);
        p->engineBetween(0, host);
        p->engineBetween(host, 0);
        EXPECT_GE(provenBy(*p, prove(*p)), alone.provenCost);
      }
  EXPECT_EQ(above, 18);
}

/// A false wording of the bound: it proves more of `p` than brute force finds,
/// and the judge, who holds the true one, doesn't follow it. Brute force tries
/// `extras` runs in addition to the instructions' own.
void expectFalse(const Problem &p, void (*plant)(GapModel &), int extras = 1) {
  ASSERT_TRUE(check(p).ok()) << check(p).message();
  std::optional<int64_t> optimum = optimumOf(p, Plans(p, extras));
  ASSERT_TRUE(optimum);
  GapModel model(p);
  plant(model);
  const int64_t budget = p.spaces[0].budgetBytes;
  Certificate wrong = certify(
      model, ascend(model, limitsOf(p, budget), {.steps = 1000}), budget);
  const int64_t claimed = wrong.provenCost;
  EXPECT_GT(claimed, *optimum);
  EXPECT_TRUE(checkCertificate(p, wrong).has_value());
  EXPECT_LE(provenBy(p, wrong), *optimum);
  Certificate right = prove(p);
  EXPECT_LE(provenBy(p, right), *optimum);
  std::printf("  claimed %lld, optimum %lld, proved %lld\n", (long long)claimed,
              (long long)*optimum, (long long)provenBy(p, right));
}

/// m, at home on the device or the host, and n, which updates it there; the
/// host can run the update if `onHost`.
SpaceProblem withUpdate(int64_t fetchCost, int64_t backCost = 5,
                        bool onHost = true) {
  SpaceProblem w;
  w.p.addSegment("step");
  w.value("m").kind = ValueKind::Persistent;
  w.form("m@host", "m");
  Value &n = w.value("n");
  n.kind = ValueKind::Persistent;
  n.updates = w.id("m");
  w.form("n@host", "n").updates = w.id("m@host");
  w.value("x");
  w.value("g", 10);
  w.form("g@host", "g");
  w.p.addInstruction(0, w.recipe("f", "", "x"));
  w.p.addInstruction(0, w.recipe("b", "x", "g"));
  Recipe device = w.recipe("update", "g m", "n");
  device.overwrites = {{w.id("m"), w.id("n"), true}};
  InstructionId update = w.p.addInstruction(0, device);
  Recipe host = w.recipe("adam", "g@host m@host", "n@host", 5, kHostEngine);
  host.overwrites = {{w.id("m@host"), w.id("n@host"), true}};
  if (onHost)
    w.p.addVariant(update, host);
  w.move("get", "m@host", "m", kH2D, fetchCost);
  w.move("put", "n", "n@host", kD2H, backCost);
  w.move("down", "g", "g@host", kD2H, 5);
  w.p.spaces.resize(2);
  w.p.engines.resize(4);
  w.p.spaces[kDevice].budgetBytes = 120;
  return w;
}

TEST(SpaceBound, AFetchIsNotOwedByAnUpdateOnTheHost) {
  expectFalse(withUpdate(60).p, [](GapModel &model) {
    for (const GapModel::Choice &choice : model.choices)
      for (int32_t v = choice.variants.begin; v < choice.variants.end; ++v)
        model.variants[v].gaps = model.variants[choice.variants.begin].gaps;
  });
}

/// b makes g, then each of `users` reads it; all may do so on the host.
SpaceProblem withUsers(const std::vector<std::string> &users, bool onHost) {
  SpaceProblem w;
  w.p.addSegment("step");
  w.p.spaces.resize(2);
  w.p.engines.resize(4);
  w.value("g", 10);
  w.form("g@host", "g");
  InstructionId b = w.p.addInstruction(0, w.recipe("b", "", "g", 2));
  if (onHost)
    w.p.addVariant(b, w.recipe("b_host", "", "g@host", 2, kHostEngine));
  for (const std::string &name : users) {
    w.value(name, 10);
    w.form(name + "@host", name);
    InstructionId u = w.p.addInstruction(0, w.recipe(name, "g", name, 10'000));
    w.p.addVariant(
        u, w.recipe(name + "_host", "g@host", name + "@host", 2, kHostEngine));
  }
  w.move("down", "g", "g@host", kD2H, 18);
  return w;
}

TEST(SpaceBound, OneCopyOfAGradientServesEveryUpdate) {
  expectFalse(withUsers({"u", "v"}, false).p, [](GapModel &model) {
    for (const GapModel::Gap &gap : model.gaps)
      for (int32_t c = gap.charges.begin; c < gap.charges.end; ++c)
        model.charges[c].cost *= gap.isOwed ? 2 : 1;
  });
}

/// The copy of g begins after g, and the kernels before g are done by then.
TEST(SpaceBound, ACopyBeginsBehindWhatItCopies) {
  SpaceProblem w = withUsers({"u"}, false);
  w.value("k", 10);
  w.p.addInstruction(0, w.recipe("k", "", "k", 30));
  std::swap(w.p.segments[0].instructions[0], w.p.segments[0].instructions[2]);
  std::swap(w.p.segments[0].instructions[1], w.p.segments[0].instructions[2]);
  ASSERT_EQ(optimumOf(w.p, Plans(w.p, 1)), 30 + 2 + 18 + 2);
  EXPECT_EQ(provenBy(w.p, prove(w.p)), 30 + 18);
  EXPECT_EQ(prove(w.p, {.stretches = 1}).provenCost, 30 + 2);
}

/// Kernels behind an update on the host don't wait for its copy.
TEST(SpaceBound, ACopyForTheHostGoesOnBesideLaterKernels) {
  SpaceProblem w = withUsers({"u"}, false);
  for (const char *name : {"k", "l"}) {
    w.value(name, 10);
    w.p.addInstruction(0, w.recipe(name, "", name, 10));
  }
  expectFalse(w.p, [](GapModel &model) {
    for (const GapModel::Gap &gap : model.gaps)
      for (int32_t c = gap.charges.begin; gap.isOwed && c < gap.charges.end;
           ++c)
        model.charges[c].when.end = model.charges[c].when.begin + 1;
  });
}

/// Only the device updates m, and x leaves no room for it: m is fetched, and n
/// is written back behind the update.
TEST(SpaceBound, AStateFromTheHostIsWrittenBack) {
  SpaceProblem w = withUpdate(5, 60, false);
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  ASSERT_EQ(optimumOf(w.p, Plans(w.p, 2)), 10 + 10 + 5 + 10 + 60);
  EXPECT_GE(provenBy(w.p, prove(w.p)), 10 + 60);
}

/// t takes all the room, so u is fetched behind it. The fetch can't hide behind
/// the long kernel before t: there u would be alive while t runs.
TEST(SpaceBound, AFetchStandsBehindTheMomentThatItRelieves) {
  SpaceProblem w;
  w.p.addSegment("step");
  w.value("u");
  w.form("u@host", "u");
  w.value("y", 1);
  w.value("t", 200);
  w.value("z", 1).liveOut = true;
  w.p.addInstruction(0, w.recipe("f", "", "u", 10));
  w.p.addInstruction(0, w.recipe("long", "", "y", 100));
  w.p.addInstruction(0, w.recipe("t", "", "t", 10));
  w.p.addInstruction(0, w.recipe("g", "u", "z", 10));
  w.move("put", "u", "u@host", kD2H, 5);
  w.move("get", "u@host", "u", kH2D, 15);
  w.p.spaces.resize(2);
  w.p.engines.resize(4);
  w.p.spaces[kDevice].budgetBytes = 210;
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  ASSERT_EQ(optimumOf(w.p, Plans(w.p, 2)), 10 + 100 + 10 + 15 + 10);
  EXPECT_EQ(provenBy(w.p, prove(w.p, {.stretches = 1})), 130);
  // The ascent ends near the best weights, and costs are integers.
  EXPECT_GE(provenBy(w.p, prove(w.p)), 130 + 4);
}

TEST(SpaceBound, WhatTheHostMadeNeedsNoCopy) {
  expectFalse(withUsers({"u"}, true).p, [](GapModel &model) {
    for (GapModel::Gap &gap : model.gaps)
      gap.isOwed |= gap.value == 1;
  });
}

/// f makes x and what else is said, t takes the room, g reads them.
SpaceProblem withGap(const std::string &made, int64_t room, int64_t budget) {
  SpaceProblem w;
  w.p.addSegment("step");
  std::istringstream names(made);
  for (std::string name; names >> name;)
    w.value(name);
  w.value("t", room);
  w.value("z", 1).liveOut = true;
  Recipe f = w.recipe("f", "", made);
  f.recomputable = true;
  w.p.addInstruction(0, f);
  w.p.addInstruction(0, w.recipe("t", "", "t"));
  w.p.addInstruction(0, w.recipe("g", made, "z"));
  w.p.spaces[kDevice].budgetBytes = budget;
  return w;
}

TEST(SpaceBound, AnOperandIsCountedOnce) {
  SpaceProblem w = withGap("x", 100, 200);
  // x and its twin in the gap would be 201 at g.
  expectFalse(w.p, [](GapModel &model) {
    for (const GapModel::Gap &gap : model.gaps)
      if (gap.value == 0)
        model.live[0][model.ranges[gap.moments.begin].end++] += 100;
  });
}

TEST(SpaceBound, ARunWithTwoResultsIsPaidOnce) {
  expectFalse(withGap("x y", 201, 201).p, [](GapModel &model) {
    for (GapModel::Charge &charge : model.charges)
      charge.cost *= 2;
  });
}

TEST(SpaceBound, AVariantThatSparesTwoOperandsIsPaidOnce) {
  SpaceProblem w = withGap("x y", 201, 201);
  w.p.recipes[0].recomputable = false;
  w.p.addVariant(2, w.recipe("g without", "", "z", 20));
  expectFalse(w.p, [](GapModel &model) {
    for (GapModel::Choice &choice : model.choices)
      --choice.variants.end;
    model.charges = {{0, kCompute, 10, {}}};
    for (GapModel::Gap &gap : model.gaps)
      gap.charges = {0, 1};
  });
}

TEST(SpaceBound, AnOverwriteTakesNoRoom) {
  SpaceProblem w;
  w.p.addSegment("step");
  w.value("x");
  w.value("y");
  w.value("z", 1).liveOut = true;
  Recipe f = w.recipe("f", "", "x");
  f.recomputable = true;
  w.p.addInstruction(0, f);
  Recipe g = w.recipe("g", "x", "y");
  g.overwrites = {{w.id("x"), w.id("y"), false}};
  w.p.addInstruction(0, g);
  w.p.addInstruction(0, w.recipe("h", "y", "z"));
  w.p.spaces[kDevice].budgetBytes = 101;
  expectFalse(w.p, [](GapModel &model) { model.live[0][1] += 100; });
}

/// x is made before a loop of three trips, which each read it behind the values
/// `inTrips`. `t` stands between; what isn't x or z has `bytes` bytes.
static SpaceProblem readInALoop(std::initializer_list<const char *> inTrips,
                                int64_t bytes) {
  SpaceProblem w;
  w.p.addSegment("before");
  w.p.addSegment("body", 3);
  w.value("x");
  w.value("t");
  for (const char *name : inTrips)
    w.value(name);
  for (size_t v = 1; v < w.p.values.size(); ++v)
    w.p.values[v].bytes = bytes;
  w.value("z");
  Recipe f = w.recipe("f", "", "x", 10);
  f.recomputable = true;
  w.p.addInstruction(0, f);
  w.p.recipes.back().segment = kNone;
  w.p.addInstruction(0, w.recipe("t", "", "t", 10));
  for (const char *name : inTrips)
    w.p.addInstruction(1, w.recipe(name, "", name, 10));
  w.p.addInstruction(1, w.recipe("g", "x", "z", 10));
  w.p.spaces[kDevice].budgetBytes = 200;
  return w;
}

TEST(SpaceBound, AGapBeforeALoopIsBrokenOnce) {
  SpaceProblem w = readInALoop({}, 150);
  expectFalse(w.p, [](GapModel &model) {
    for (GapModel::Charge &charge : model.charges)
      charge.cost *= 3;
  });
}

/// Neither x and t nor x and u fit, so each trip makes x: one execution breaks
/// the gap from outside, and two break the gap over the trips' borders.
TEST(SpaceBound, AGapOverTripsIsBrokenOnceLess) {
  SpaceProblem w = readInALoop({"u"}, 200);
  EXPECT_EQ(prove(w.p).provenCost, baseCost(w.p) + 30);
  expectFalse(w.p, [](GapModel &model) {
    for (GapModel::Charge &charge : model.charges)
      charge.cost = charge.cost == 20 ? 30 : charge.cost;
  });
}

/// Each trip reads c, which is the last trip's t, after `u`. Both don't fit, so
/// t leaves for the host, and a fetch makes c in the trip.
TEST(SpaceBound, ACarriedValueMayBeFetched) {
  SpaceProblem w;
  w.p.addSegment("body", 3);
  w.value("u", 200);
  w.value("t");
  w.value("c");
  w.form("t@host", "t");
  w.form("c@host", "c");
  for (const char *host : {"", "@host"}) {
    Value &c = w.p.values[w.id(std::string("c") + host)];
    c.kind = ValueKind::Carried;
    c.carriedFrom = w.id(std::string("t") + host);
  }
  w.p.addInstruction(0, w.recipe("u", "", "u", 10));
  w.p.addInstruction(0, w.recipe("g", "c", "t", 10));
  w.move("down", "t", "t@host", kD2H, 5);
  w.move("up", "c@host", "c", kH2D, 7);
  for (Recipe &r : w.p.recipes)
    r.segment = 0;
  w.p.spaces.resize(2);
  w.p.engines.resize(4);
  w.p.spaces[kDevice].budgetBytes = 200;
  expectFalse(
      w.p,
      [](GapModel &model) {
        for (GapModel::Charge &charge : model.charges)
          charge.cost *= 100;
      },
      2);
}

TEST(SpaceBound, TheJudgeRefusesWhatIsNoCertificate) {
  SpaceProblem w = withUpdate(60);
  Certificate good = prove(w.p);
  ASSERT_TRUE(checkBound(w.p, good).ok());
  good.prices = {{0, kDevice, 5}};
  ASSERT_TRUE(checkBound(w.p, good).ok());
  auto refused = [&](auto plant, const std::string &why) {
    Certificate bad = good;
    plant(bad);
    absl::StatusOr<int64_t> judged = checkBound(w.p, bad);
    ASSERT_FALSE(judged.ok()) << why;
    EXPECT_NE(judged.status().message().find(why), std::string::npos)
        << judged.status().message();
    EXPECT_FALSE(costProvenBy(GapModel(w.p), bad).ok()) << why;
  };
  using C = Certificate;
  refused([](C &c) { c.denominator = 0; }, "the denominator is 0");
  refused([](C &c) { c.weights.pop_back(); }, "weights of 0 stretches");
  refused([](C &c) { c.weights[0].pop_back(); }, "weights of 3 engines");
  auto cut = [](std::vector<InstructionId> borders) {
    return [borders](C &c) {
      c.borders = borders;
      c.weights.resize(1 + borders.size(), c.weights[0]);
    };
  };
  refused(cut({2}), "a border at 'update', which compute may not run");
  refused(cut({0}), "a border at the begin of segment 'step'");
  refused(cut({1, 1}), "borders in another order");
  refused(cut({9}), "borders in another order");
  refused([](C &c) { c.borders = {1}; }, "stretches, not of");
  refused([](C &c) { c.weights[0][0] = -1; }, "a weight of -1");
  refused([](C &c) { c.weights[0][1] = c.denominator + 1; }, "more than 1");
  refused([](C &c) { c.prices[0].price = -1; }, "a price of -1");
  refused([](C &c) { c.prices[0].moment = 9; }, "a price of instruction 9");
  refused([](C &c) { c.prices[0].space = 3; }, "in space 3");
  refused([](C &c) { c.prices[0].space = kHost; }, "which has no budget");
  refused([](C &c) { c.prices.push_back(c.prices[0]); }, "two prices of 'f'");
  Certificate bad = good;
  bad.budgetBytes = INT64_MAX;
  bad.prices.clear();
  for (InstructionId i : {0, 1, 2})
    bad.prices.push_back({i, kDevice, INT64_MAX});
  EXPECT_EQ(checkBound(w.p, bad).status().message(),
            "certificate: its sums leave 128 bits");
  EXPECT_FALSE(costProvenBy(GapModel(w.p), bad).ok());
}

} // namespace
