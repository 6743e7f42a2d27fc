// The bound of spaces against every list of small problems and against the
// machine's optimum, and the judge against planted faults.

#include "compiler/planning/bound/SpaceBound.h"
#include "compiler/planning/bound/Bound.h"
#include "compiler/planning/bound/SpaceBoundCheck.h"
#include "compiler/planning/bound/SpaceRelax.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/laboratory/GenerateStep.h"
#include "compiler/planning/model/ProblemFile.h"

#include "test/unit/planning/SpaceOptimum.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>

using namespace tmc::planning;

namespace {

SpaceCertificate randomCertificate(Random &random, const Problem &p) {
  SpaceCertificate c;
  c.denominator = 1 + random.below(40);
  for (size_t s = 0; s < p.segments.size(); ++s) {
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

/// What both say that the certificate proves; they must say the same.
int64_t provenBy(const Problem &p, const SpaceCertificate &c) {
  absl::StatusOr<int64_t> judged = checkSpaceBound(p, c);
  absl::StatusOr<int64_t> summed = provenMakespan(p, c);
  EXPECT_TRUE(judged.ok() && summed.ok()) << judged.status().message();
  EXPECT_EQ(*judged, *summed) << printProblem(p);
  return *judged;
}

TEST(SpaceBound, NeverExceedsTheOptimumOfSmallProblems) {
  Random random(31);
  int64_t instances = 0, certificates = 0, above = 0, exact = 0, slower = 0;
  std::vector<double> shares;
  for (int i = 0; i < 2400; ++i) {
    SpaceProblem w = randomSpaces(random, i % 3);
    Problem &p = w.p;
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
    SpaceCertificate best = ascendSpaces(p, {200});
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
  EXPECT_GE(instances, 2000);
  EXPECT_GE(above, 200);
  EXPECT_GE(exact, 500);
}

/// On one device both bounds are the same formula: this one proves as much as
/// prices alone, on every family, size and budget.
TEST(SpaceBound, ProvesAsMuchAsPricesOnOneDevice) {
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
        const int64_t budget = int64_t(share * double(peak));
        const Relaxation relaxation = relax(*p);
        const Certificate prices =
            certify(*p, relaxation, ascend(relaxation, budget, {}), budget);
        p->spaces[0].budgetBytes = budget;
        SpaceCertificate best = ascendSpaces(*p);
        EXPECT_GE(provenBy(*p, best), baseCost(*p) + prices.extraCost);
        above += prices.extraCost > 0;
      }
  EXPECT_EQ(above, 18);
}

/// A false wording of the bound: it proves more of `p` than brute force finds,
/// and the judge, who holds the true one, doesn't follow it.
void expectFalse(const Problem &p, void (*plant)(SpaceModel &)) {
  ASSERT_TRUE(check(p).ok()) << check(p).message();
  std::optional<int64_t> optimum = optimumOf(p, Plans(p, 1));
  ASSERT_TRUE(optimum);
  SpaceModel model(p);
  plant(model);
  SpaceCertificate wrong = ascend(model, {1000});
  absl::StatusOr<int64_t> claimed = provenBy(model, wrong);
  ASSERT_TRUE(claimed.ok());
  EXPECT_GT(*claimed, *optimum);
  EXPECT_LE(provenBy(p, wrong), *optimum);
  SpaceCertificate right = ascendSpaces(p);
  EXPECT_LE(provenBy(p, right), *optimum);
  std::printf("  claimed %lld, optimum %lld, proved %lld\n",
              (long long)*claimed, (long long)*optimum,
              (long long)provenBy(p, right));
}

/// m, at home on the device or the host, and n, which updates it there.
SpaceProblem withUpdate(int64_t fetchCost) {
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
  w.p.addVariant(update, host);
  w.move("get", "m@host", "m", kH2D, fetchCost);
  w.move("put", "n", "n@host", kD2H, 5);
  w.move("down", "g", "g@host", kD2H, 5);
  w.p.spaces.resize(2);
  w.p.engines.resize(4);
  w.p.spaces[kDevice].budgetBytes = 120;
  return w;
}

TEST(SpaceBound, AFetchIsNotOwedByAnUpdateOnTheHost) {
  expectFalse(withUpdate(60).p, [](SpaceModel &model) {
    for (SpaceModel::Run &run : model.runs)
      for (SpaceModel::Variant &variant : run.variants)
        variant.gaps = run.variants[0].gaps;
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
  expectFalse(withUsers({"u", "v"}, false).p, [](SpaceModel &model) {
    std::fill(model.readers.begin(), model.readers.end(), 1);
  });
}

TEST(SpaceBound, WhatTheHostMadeNeedsNoCopy) {
  expectFalse(withUsers({"u"}, true).p, [](SpaceModel &model) {
    model.runs[1].variants[1].inputs = {1};
    model.readers[1] = 1;
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
  expectFalse(w.p, [](SpaceModel &model) {
    for (SpaceModel::Gap &gap : model.gaps)
      if (gap.value == 0 && !gap.ranges.empty())
        ++gap.ranges.back().end;
  });
}

TEST(SpaceBound, ARunWithTwoResultsIsPaidOnce) {
  expectFalse(withGap("x y", 201, 201).p, [](SpaceModel &model) {
    for (std::vector<SpaceModel::Breaker> &list : model.breakers)
      for (SpaceModel::Breaker &b : list)
        b.shares = 1;
  });
}

TEST(SpaceBound, AVariantThatSparesTwoOperandsIsPaidOnce) {
  SpaceProblem w = withGap("x y", 201, 201);
  w.p.recipes[0].recomputable = false;
  w.p.addVariant(2, w.recipe("g without", "", "z", 20));
  expectFalse(w.p, [](SpaceModel &model) {
    for (SpaceModel::Run &run : model.runs)
      if (run.variants.size() > 1)
        run.variants.pop_back();
    for (ValueId v : {0, 1})
      model.breakers[v].push_back({kCompute, kNone, 10, 1});
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
  expectFalse(w.p, [](SpaceModel &model) {
    model.runs[1].variants[0].bytes = {{kDevice, 200}};
  });
}

TEST(SpaceBound, AGapBeforeALoopIsBrokenOnce) {
  SpaceProblem w;
  w.p.addSegment("before");
  w.p.addSegment("body", 3);
  for (const char *name : {"x", "t", "z"})
    w.value(name);
  Recipe f = w.recipe("f", "", "x", 10);
  f.recomputable = true;
  w.p.addInstruction(0, f);
  w.p.recipes.back().segment = kNone;
  w.p.addInstruction(0, w.recipe("t", "", "t", 10));
  w.p.addInstruction(1, w.recipe("g", "x", "z", 10));
  w.p.spaces[kDevice].budgetBytes = 200;
  w.p.values[1].bytes = 150;
  expectFalse(w.p, [](SpaceModel &model) {
    // Runs of the body: its first trip's, then that of all others.
    model.runs[3].variants[0].gaps = model.runs[2].variants[0].gaps;
  });
}

TEST(SpaceBound, TheJudgeRefusesWhatIsNoCertificate) {
  SpaceProblem w = withUpdate(60);
  SpaceCertificate good = ascendSpaces(w.p);
  ASSERT_TRUE(checkSpaceBound(w.p, good).ok());
  good.prices = {{0, kDevice, 5}};
  ASSERT_TRUE(checkSpaceBound(w.p, good).ok());
  auto refused = [&](auto plant, const std::string &why) {
    SpaceCertificate bad = good;
    plant(bad);
    absl::StatusOr<int64_t> judged = checkSpaceBound(w.p, bad);
    ASSERT_FALSE(judged.ok()) << why;
    EXPECT_NE(judged.status().message().find(why), std::string::npos)
        << judged.status().message();
    EXPECT_FALSE(provenMakespan(w.p, bad).ok()) << why;
  };
  using C = SpaceCertificate;
  refused([](C &c) { c.denominator = 0; }, "the denominator is 0");
  refused([](C &c) { c.weights.pop_back(); }, "weights of 0 segments");
  refused([](C &c) { c.weights[0].pop_back(); }, "weights of 3 engines");
  refused([](C &c) { c.weights[0][0] = -1; }, "a weight of -1");
  refused([](C &c) { c.weights[0][1] = c.denominator + 1; }, "more than 1");
  refused([](C &c) { c.prices[0].price = -1; }, "a price of -1");
  refused([](C &c) { c.prices[0].moment = 9; }, "a price of instruction 9");
  refused([](C &c) { c.prices[0].space = 3; }, "in space 3");
  refused([](C &c) { c.prices[0].space = kHost; }, "which has no budget");
  refused([](C &c) { c.prices.push_back(c.prices[0]); }, "two prices of 'f'");
  w.p.spaces[kDevice].budgetBytes = INT64_MAX;
  SpaceCertificate bad = good;
  bad.prices.clear();
  for (InstructionId i : {0, 1, 2})
    bad.prices.push_back({i, kDevice, INT64_MAX});
  EXPECT_EQ(checkSpaceBound(w.p, bad).status().message(),
            "certificate: its sums leave 128 bits");
  EXPECT_FALSE(provenMakespan(w.p, bad).ok());
}

} // namespace
