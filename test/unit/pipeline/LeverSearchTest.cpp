// The search for levers beside the whole grid, on made-up steps: what they take
// follows from a few drawn figures, as it does for real ones.

#include "driver/pipeline/LeverSearch.h"

#include "llvm/ADT/StringRef.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <random>

using namespace tmc;

namespace {

LeverValue count(int64_t number) { return {number, ""}; }
LeverValue name(std::string text) { return {{}, std::move(text)}; }

std::vector<LeverValue> counts(const std::vector<int64_t> &numbers) {
  std::vector<LeverValue> values;
  for (int64_t number : numbers)
    values.push_back(count(number));
  return values;
}

std::vector<LeverValue> names(const std::vector<std::string> &texts) {
  std::vector<LeverValue> values;
  for (const std::string &text : texts)
    values.push_back(name(text));
  return values;
}

/// Every lever is pinned to its default.
LeverSpace pinnedSpace() {
  LeverSpace space;
  for (size_t lever = 0; lever < kLevers; ++lever)
    space.values[lever] = {LeverSetting()[lever]};
  return space;
}

LeverSpace wholeSpace() {
  LeverSpace space = pinnedSpace();
  space.values[kMicroBatches] = counts({1, 2, 4, 8, 16, 32, 64});
  space.values[kPrecision] = names({"f32", "tf32", "bf16"});
  space.values[kOptimizer] = names({"adamw", "adamw8bit", "adamw4bit"});
  space.values[kLossChunk] = {LeverValue(), count(256)};
  return space;
}

/// Tiles instead of chunks of the loss.
LeverSpace tiledSpace() {
  LeverSpace space = wholeSpace();
  space.values[kLossChunk] = {LeverValue()};
  space.values[kTiles] = counts({1, 4, 16});
  return space;
}

/// A frozen base in three formats instead of formats of the optimizer.
LeverSpace frozenSpace() {
  LeverSpace space = wholeSpace();
  space.values[kOptimizer] = names({"adamw"});
  space.values[kBase] = names({"keep", "int8", "nf4"});
  return space;
}

LeverSetting settingOf(int64_t pieces, std::string precision,
                       std::string optimizer,
                       std::optional<int64_t> chunk = std::nullopt) {
  LeverSetting setting;
  setting[kMicroBatches].count = pieces;
  setting[kPrecision].name = std::move(precision);
  setting[kOptimizer].name = std::move(optimizer);
  setting[kLossChunk].count = chunk;
  return setting;
}

/// A step whose activations shrink with its pieces and tiles, whose states
/// shrink with their format, and that is slower the more the budget lacks.
struct Step {
  double budget, activations, logits, kept;
  std::map<std::string, double> states, update; // Of an optimizer.
  std::map<std::string, double> kernels, width; // Of a precision.
  double launch, recompute, limit;
  double inside; // The part of the activations that tiles cut.
  std::map<std::string, double> base, decoding; // Of a format of the base.

  double frozen = 0; // Of the base.

  explicit Step(unsigned seed) {
    std::mt19937 draws(seed);
    auto draw = [&](double low, double high) {
      return low * std::pow(high / low, double(draws()) / double(draws.max()));
    };
    budget = 1;
    states["adamw"] = draw(0.2, 2);
    states["adamw8bit"] = states["adamw"] * draw(0.4, 0.8);
    activations = draw(0.1, 30), logits = draw(0.01, 3);
    kept = draw(0.01, 0.2);
    kernels["f32"] = 1;
    kernels["tf32"] = draw(0.5, 1.0);
    kernels["bf16"] = draw(0.25, 1.05);
    width["f32"] = width["tf32"] = 1;
    width["bf16"] = draw(0.55, 0.9);
    update["adamw"] = draw(0.01, 0.2);
    update["adamw8bit"] = update["adamw"] * draw(0.6, 3);
    launch = draw(0.0001, 0.02);
    recompute = draw(0.1, 0.6), limit = draw(1.2, 4);
    states["adamw4bit"] = states["adamw8bit"] * draw(0.5, 0.95);
    update["adamw4bit"] = update["adamw"] * draw(0.6, 4);
    inside = draw(0.1, 0.8);
    base["keep"] = draw(0.2, 4);
    base["int8"] = base["keep"] / 2, base["nf4"] = base["keep"] / 4;
    decoding["int8"] = draw(0.001, 0.1);
    decoding["nf4"] = decoding["int8"] * draw(0.5, 2);
  }

  CoarsePlan plan(const LeverSetting &s, double useless = HUGE_VAL) const {
    CoarsePlan plan;
    double tiled = 1 - inside + inside / double(s.count(kTiles));
    const bool isFrozen = s.name(kBase) != "keep";
    double need = states.at(s.name(kOptimizer)) + kept +
                  base.at(s.name(kBase)) * frozen +
                  (activations * tiled * width.at(s.name(kPrecision)) +
                   (s[kLossChunk].count ? 0 : logits)) /
                      double(s.count(kMicroBatches));
    plan.baseSeconds = kernels.at(s.name(kPrecision)) +
                       update.at(s.name(kOptimizer)) +
                       (isFrozen ? decoding.at(s.name(kBase)) : 0) +
                       launch * double(s.count(kMicroBatches)) +
                       launch / 10 * double(s.count(kTiles) - 1) +
                       (s[kLossChunk].count ? launch : 0);
    if (plan.baseSeconds >= useless) {
      plan.isLeftOut = true;
      plan.provenSeconds = plan.baseSeconds;
      return plan;
    }
    plan.neededBytes = int64_t(need * 1e9);
    plan.impossibleBelowBytes = int64_t(need / limit * 1e9);
    double lacking = std::max(0.0, need / budget - 1);
    if (need / limit > budget)
      return plan;
    plan.fits = true;
    plan.seconds = plan.stayingSeconds =
        plan.baseSeconds + recompute * lacking / limit;
    return plan;
  }
};

Expected<LeverChoice> choose(const LeverSpace &space, const PlanSetting &plan,
                             bool wholeGrid = false) {
  return chooseLevers(space, plan, {.wholeGrid = wholeGrid, .say = {}});
}

void expectCloseToGrid(const LeverSpace &space, double frozen = 0) {
  size_t fitting = 0, seen = 0;
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    Step step(seed);
    step.frozen = frozen;
    auto plan = [&](const LeverSetting &s,
                    double useless) -> Expected<CoarsePlan> {
      return step.plan(s, useless);
    };
    Expected<LeverChoice> found = choose(space, plan);
    Expected<LeverChoice> grid = choose(space, plan, true);
    ASSERT_TRUE(bool(found) && bool(grid));
    ASSERT_EQ(grid->seen.size(), space.size());
    EXPECT_EQ(found->ranked.empty(), grid->ranked.empty()) << seed;
    if (found->ranked.empty() || grid->ranked.empty())
      continue;
    ++fitting;
    seen += found->seen.size();
    double least = HUGE_VAL;
    for (const auto &[setting, made] : grid->seen)
      if (made.fits)
        least = std::min(least, made.seconds);
    EXPECT_LE(step.plan(found->ranked[0]).seconds, least * 1.01)
        << seed << ": " << textOf(found->ranked[0]) << ", not "
        << textOf(grid->ranked[0]);
  }
  std::printf("  %zu steps, %.1f of %zu settings seen in the mean\n", fitting,
              double(seen) / double(fitting), space.size());
  EXPECT_GT(fitting, 700u);
  EXPECT_LT(seen, fitting * space.size() * 2 / 5);
}

TEST(LeverSearch, ComesWithinAPercentOfTheGrid) {
  expectCloseToGrid(wholeSpace());
}

TEST(LeverSearch, ComesWithinAPercentOfTheGridWithTiles) {
  expectCloseToGrid(tiledSpace());
}

TEST(LeverSearch, ComesWithinAPercentOfTheGridWithAFrozenBase) {
  expectCloseToGrid(frozenSpace(), /*frozen=*/1);
}

TEST(LeverSearch, TakesTheLeastHarmOfEquals) {
  auto plan = [](const LeverSetting &s, double) -> Expected<CoarsePlan> {
    CoarsePlan made;
    made.fits = true;
    // Each lever gains, but less than what counts.
    made.seconds = made.baseSeconds =
        1 - (s.name(kPrecision) == "bf16" ? 0.002 : 0) -
        (s.name(kOptimizer) == "adamw" ? 0 : 0.002);
    return made;
  };
  Expected<LeverChoice> found = choose(wholeSpace(), plan);
  ASSERT_TRUE(bool(found));
  EXPECT_EQ(textOf(found->ranked[0]), "no lever");
}

TEST(LeverSearch, LeavesOutWhatCantBe) {
  Step step(7);
  step.budget = 100;
  auto plan = [&](const LeverSetting &s,
                  double useless) -> Expected<CoarsePlan> {
    if (s.count(kMicroBatches) > 1)
      return Failure::unsupported("can't be cut");
    return step.plan(s, useless);
  };
  Expected<LeverChoice> found = choose(wholeSpace(), plan);
  ASSERT_TRUE(bool(found));
  EXPECT_FALSE(found->refused.empty());
  EXPECT_EQ(found->ranked[0].count(kMicroBatches), 1);
  auto never = [&](const LeverSetting &, double) -> Expected<CoarsePlan> {
    return Failure::unsupported("can't be at all");
  };
  Expected<LeverChoice> none = choose(wholeSpace(), never);
  ASSERT_FALSE(bool(none));
  EXPECT_EQ(none.failure().message, "can't be at all");
  auto defect = [&](const LeverSetting &s,
                    double useless) -> Expected<CoarsePlan> {
    if (s.count(kMicroBatches) > 1)
      return Failure::defect("wrong");
    return step.plan(s, useless);
  };
  EXPECT_FALSE(bool(choose(wholeSpace(), defect)));
}

TEST(LeverSearch, TellsWhatOthersTakeAtLeast) {
  auto plan = [](const LeverSetting &s, double useless) {
    CoarsePlan made;
    made.baseSeconds = s.name(kPrecision) == "bf16"  ? 1
                       : s.name(kPrecision) == "f32" ? 3
                                                     : 2;
    made.isLeftOut = made.baseSeconds >= useless;
    made.fits = !made.isLeftOut;
    (made.fits ? made.seconds : made.provenSeconds) = made.baseSeconds;
    return Expected<CoarsePlan>(made);
  };
  Expected<LeverChoice> found = choose(wholeSpace(), plan);
  ASSERT_TRUE(bool(found));
  ChosenLever lever = found->alternatives(found->ranked[0])[1];
  EXPECT_EQ(lever.lever + " " + lever.value + " " + lever.instead,
            "precision bf16 tf32");
  EXPECT_EQ(lever.seconds, -1);
  EXPECT_EQ(lever.atLeast, 2);
}

TEST(LeverSearch, TellsWhatOtherValuesComeTo) {
  auto plan = [](const LeverSetting &s, double) -> Expected<CoarsePlan> {
    CoarsePlan made;
    made.fits = s.name(kPrecision) != "f32" || s.count(kMicroBatches) > 8;
    made.baseSeconds = s.name(kPrecision) == "bf16" ? 1 : 2;
    made.seconds =
        made.fits ? made.baseSeconds + 0.1 * s.count(kMicroBatches) : -1;
    return made;
  };
  LeverSpace space = pinnedSpace();
  space.values[kMicroBatches] = counts({1, 4, 16});
  space.values[kPrecision] = names({"f32", "bf16"});
  Expected<LeverChoice> found = choose(space, plan, /*wholeGrid=*/true);
  ASSERT_TRUE(bool(found));
  std::vector<ChosenLever> levers = found->alternatives(found->ranked[0]);
  ASSERT_EQ(levers.size(), 2u); // The pinned ones are left out.
  EXPECT_EQ(levers[0].lever + " " + levers[0].value + " " + levers[0].instead,
            "micro-batches 1 4");
  EXPECT_DOUBLE_EQ(levers[0].seconds, 1.4);
  EXPECT_EQ(levers[1].lever + " " + levers[1].value + " " + levers[1].instead,
            "precision bf16 f32");
  EXPECT_DOUBLE_EQ(levers[1].seconds, 3.6);
}

TEST(LeverSpace, FollowsFlagsAndTarget) {
  CompileOptions asked;
  EXPECT_FALSE(hasFreeLevers(asked));
  EXPECT_TRUE(
      leverSpaceOf(asked, *targetNamed("cpu"), {.samples = 8, .codes = {}})
          .isPinned());
  asked.levers[kMicroBatches].count = kAuto;
  asked.levers[kPrecision].name = "auto,lm_head=f32";
  asked.levers[kOptimizer].name = "auto(clip=1.0)";
  EXPECT_TRUE(hasFreeLevers(asked));
  LeverSpace space = leverSpaceOf(asked, *targetNamed("cuda:rtx3060"),
                                  {.samples = 12, .codes = {}});
  EXPECT_EQ(space[kMicroBatches], counts({1, 2, 4, 12}));
  EXPECT_EQ(space[kPrecision],
            names({"f32,lm_head=f32", "tf32,lm_head=f32", "bf16,lm_head=f32"}));
  EXPECT_EQ(space[kOptimizer], names({"adamw(clip=1.0)", "adamw8bit(clip=1.0)",
                                      "adamw4bit(clip=1.0)"}));
  EXPECT_EQ(space[kLossChunk].size(), 1u);
  EXPECT_EQ(space[kTiles], counts({1}));
  asked.levers[kTiles].count = kAuto;
  EXPECT_EQ(leverSpaceOf(asked, *targetNamed("cpu"),
                         {.samples = 12, .codes = {}})[kTiles],
            counts({1, 4, 16}));
  EXPECT_EQ(leverSpaceOf(asked, *targetNamed("cuda:v100"),
                         {.samples = 1, .codes = {}})[kPrecision][1],
            name("fp16,lm_head=f32"));
  EXPECT_EQ(space[kBase], names({"keep"}));
  EXPECT_LT(harmOf(settingOf(8, "f32", "adamw", 256)),
            harmOf(settingOf(1, "tf32", "adamw")));
  EXPECT_LT(harmOf(settingOf(1, "f32", "adamw8bit")),
            harmOf(settingOf(1, "bf16,lm_head=f32", "adamw")));
  EXPECT_LT(harmOf(settingOf(1, "bf16", "adamw8bit")),
            harmOf(settingOf(1, "f32", "adamw4bit(clip=1.0)")));
}

TEST(LeverSpace, HasABaseIfAParameterIsFrozen) {
  CompileOptions asked;
  asked.levers[kBase].name = "auto,lm_head*=bf16";
  EXPECT_TRUE(hasFreeLevers(asked));
  auto bases = [&](const ModelFacts &model) {
    return leverSpaceOf(asked, *targetNamed("cpu"), model)[kBase];
  };
  EXPECT_EQ(bases({.samples = 8, .hasFrozen = false, .codes = {}}),
            names({"keep,lm_head*=bf16"}));
  EXPECT_EQ(
      bases({.samples = 8, .hasFrozen = true, .codes = {}}),
      names({"keep,lm_head*=bf16", "int8,lm_head*=bf16", "nf4,lm_head*=bf16"}));
  EXPECT_EQ(bases({.samples = 8, .hasFrozen = true, .codes = "nf4:plain"}),
            names({"nf4:plain,lm_head*=bf16"}));
  asked.levers[kBase].name = "int8";
  EXPECT_EQ(bases({.samples = 8, .hasFrozen = true, .codes = {}}),
            names({"int8"}));

  auto harmWith = [](const char *base, const char *precision,
                     const char *optimizer) {
    LeverSetting setting = settingOf(1, precision, optimizer);
    setting[kBase].name = base;
    return harmOf(setting);
  };
  const Harm rows = harmWith("int8,lm_head*=bf16", "f32", "adamw");
  EXPECT_LT(harmWith("keep,lm_head*=bf16", "f32", "adamw8bit"), rows);
  EXPECT_LT(rows, harmWith("keep", "bf16", "adamw"));
  EXPECT_LT(harmWith("keep", "bf16", "adamw4bit"),
            harmWith("nf4", "f32", "adamw"));
}

TEST(Levers, ReadTheirFlags) {
  const Lever &pieces = leverTable()[kMicroBatches];
  const Lever &rows = leverTable()[kLossChunk];
  EXPECT_EQ(*pieces.parse(""), count(1));
  EXPECT_EQ(*pieces.parse("auto"), count(kAuto));
  EXPECT_EQ(*rows.parse(""), LeverValue());
  EXPECT_EQ(*rows.parse("all"), count(0));
  EXPECT_EQ(pieces.parse("all").failure().message,
            "--micro-batches=all is no positive number or 'auto'");
  EXPECT_EQ(rows.parse("0").failure().message,
            "--loss-chunk=0 is no positive number, 'all' or 'auto'");
}

TEST(Levers, AreNamedByFlagsFromLittleHarmToMuch) {
  CompileOptions asked, other;
  other.levers = settingOf(4, "bf16", "adamw8bit", 256);
  other.levers[kTiles].count = 4;
  other.levers[kBase].name = "nf4";
  other.offload = OffloadSpec::all();
  EXPECT_EQ(flagsOf(asked, other),
            "--micro-batches=4 --loss-chunk=256 --tiles=4 --offload=all "
            "--optimizer=adamw8bit --precision=bf16 --base=nf4");
  EXPECT_EQ(textOf(other.levers), "4 micro-batches, bf16, adamw8bit, 256 rows "
                                  "of logits, 4 tiles, nf4 base");
}

} // namespace
