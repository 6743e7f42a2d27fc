// The worked example of R18, its checks, and planted faults that both checkers
// see.

#include "test/unit/planning/NetworkBrute.h"
#include "test/unit/planning/SpaceBrute.h"

#include "compiler/planning/laboratory/ProblemReader.h"
#include "compiler/planning/model/ProblemFile.h"
#include "compiler/planning/model/Timeline.h"
#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

using Row = std::vector<int64_t>;

/// The example of R18: w at home whole or as a shard, one network.
SpaceProblem example() {
  SpaceProblem w;
  w.p.spaces.resize(1);
  w.p.engines.resize(1);
  const EngineId dp = w.p.addNetwork("dp");
  w.p.addSegment("step");
  w.value("w").kind = ValueKind::Persistent;
  w.form("w@shard", "w", kDevice).bytes = 50;
  Value &next = w.value("w'");
  next.kind = ValueKind::Persistent;
  next.updates = w.id("w");
  Value &shard = w.form("w'@shard", "w'", kDevice);
  shard.bytes = 50;
  shard.updates = w.id("w@shard");
  w.value("a", 20);
  w.value("g");
  w.value("pieces");
  w.value("G", 50);
  w.p.addInstruction(0, w.recipe("f", "w", "a"));
  w.p.addInstruction(0, w.recipe("b", "a w", "g"));
  w.p.addInstruction(0, w.recipe("exchange", "g", "pieces", 15, dp));
  w.p.addInstruction(0, w.recipe("sum", "pieces", "G"));
  const InstructionId update =
      w.p.addInstruction(0, w.recipe("whole", "G w", "w'@shard"));
  Recipe inPlace = w.recipe("update", "G w@shard", "w'@shard");
  inPlace.overwrites = {{w.id("w@shard"), w.id("w'@shard"), true}};
  w.p.addVariant(update, inPlace);
  w.move("gather", "w@shard", "w", dp);
  w.move("spread", "w'@shard", "w'", dp);
  return w;
}

Solution asShard(const SpaceProblem &w, const std::string &list) {
  Solution s = w.list(list);
  s.homes = {w.id("w@shard")};
  return s;
}

void expectAlike(const Problem &p, const Solution &s, int64_t peak,
                 int64_t makespan) {
  absl::StatusOr<Profile> profile = simulate(p, s);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  absl::StatusOr<Claim> claim = measure(p, s);
  ASSERT_TRUE(claim.ok()) << claim.status().message();
  EXPECT_EQ(profile->peakBytes, peak);
  EXPECT_EQ(claim->peakBytes, peak);
  EXPECT_EQ(profile->makespan, makespan);
  EXPECT_EQ(claim->cost, makespan);
}

TEST(Network, AShardIsGatheredAndUpdated) {
  SpaceProblem w = example();
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  const Solution s =
      asShard(w, "gather( )gather f b exchange( )exchange sum update");
  EXPECT_EQ(simulate(w.p, s)->liveBytes,
            (Row{150, 150, 170, 270, 250, 250, 200, 100}));
  expectAlike(w.p, s, 270, 15 + 10 + 10 + 15 + 10 + 10);
  // A second gather before b: the first w is free behind f, which hides
  // nothing of the gather here.
  const Solution again = asShard(w, "gather( )gather f gather( )gather b "
                                    "exchange( )exchange sum update");
  EXPECT_EQ(simulate(w.p, again)->liveBytes,
            (Row{150, 150, 170, 170, 170, 270, 250, 250, 200, 100}));
  expectAlike(w.p, again, 270, 85);
}

/// A replicated weight: the base copies what its update leaves as a shard.
TEST(Network, TheBaseGathersTheNewHome) {
  SpaceProblem w = example();
  const Solution base = baseSolution(w.p);
  ASSERT_EQ(base.segments[0].size(), 8u);
  EXPECT_EQ(w.p.recipes[base.segments[0].back().recipe].name, "spread");
  EXPECT_EQ(simulate(w.p, base)->liveBytes,
            (Row{120, 220, 300, 300, 250, 200, 150, 150}));
  expectAlike(w.p, base, 300, 70);
  EXPECT_EQ(baseCost(w.p), 40);
}

TEST(Network, GathersAreMovesAndExchangesAreKernels) {
  SpaceProblem w = example();
  auto of = [&](const char *name) { return w.p.recipes[w.recipeId(name)]; };
  EXPECT_TRUE(w.p.isMove(of("gather")) && w.p.isGather(of("gather")));
  EXPECT_FALSE(w.p.isFetch(of("gather")) || w.p.isStash(of("gather")));
  EXPECT_FALSE(w.p.isMove(of("exchange")));
  EXPECT_TRUE(w.p.isBeside(of("exchange")));
  EXPECT_TRUE(w.p.touchesDevice(of("exchange")));
  // A gather is no move from or to another space.
  const FastestMoves moves = fastestMoves(w.p, kDevice);
  for (const std::vector<RecipeId> &all : {moves.in, moves.out})
    for (RecipeId r : all)
      EXPECT_EQ(r, kNone);
  EXPECT_EQ(w.p.engineBetween(kDevice, kDevice), 0);
  EXPECT_EQ(w.p.hostSpace(), kNone);
}

TEST(Network, ProblemsWithNetworksAreFiles) {
  SpaceProblem w = example();
  w.p.addNetwork("tp");
  const std::string text = printProblem(w.p);
  EXPECT_NE(text.find("engine kind=network dp\nengine kind=network tp\n"),
            std::string::npos);
  absl::StatusOr<Problem> read = parseProblem(text);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(printProblem(*read), text);
  EXPECT_TRUE(check(*read).ok());
}

TEST(Network, ProblemsAreChecked) {
  auto refused = [](auto plant, const std::string &why) {
    SpaceProblem w = example();
    plant(w);
    EXPECT_NE(check(w.p).message().find(why), std::string::npos)
        << check(w.p).message();
  };
  refused(
      [](SpaceProblem &w) { w.p.recipes[w.recipeId("gather")].busShare = 1; },
      "of the network has a share of the host's memory");
  refused(
      [](SpaceProblem &w) {
        w.p.addSpace(SpaceKind::Host);
        w.p.values[w.id("pieces")].space = kHost;
      },
      "but engine 'dp' writes to device");
  refused(
      [](SpaceProblem &w) {
        w.p.recipes[w.recipeId("gather")].overwrites = {
            {w.id("w@shard"), w.id("w"), false}};
      },
      "doesn't copy one form of a content to another");
}

/// A network that waits for another and for compute: times of two axes.
TEST(Network, TwoNetworksWorkBesideEachOther) {
  SpaceProblem w = example();
  w.p.recipes[w.recipeId("gather")].engine = w.p.addNetwork("tp");
  w.value("z", 1).kind = ValueKind::Persistent;
  w.form("z@shard", "z", kDevice);
  w.move("other", "z@shard", "z", 1, 40);
  Solution s = asShard(w, "other( gather( )gather f b exchange( )exchange "
                          ")other sum update");
  s.homes.push_back(w.id("z@shard"));
  // FIFO: the exchange is behind the other gather on dp, so it can't be done
  // first.
  EXPECT_FALSE(simulate(w.p, s).ok());
  EXPECT_FALSE(measure(w.p, s).ok());
  s = asShard(w, "other( gather( )gather f b exchange( )other )exchange sum "
                 "update");
  s.homes.push_back(w.id("z@shard"));
  // other 0-40 on dp, gather 0-15 on tp, f, b to 35, exchange 40-55.
  expectAlike(w.p, s, 272, 75);
}

//===----------------------------------------------------------------------===//
// Planted faults
//===----------------------------------------------------------------------===//

struct Planted {
  std::string rule; // The verifier's; one of them.
  int count = 0;
};

const Recipe &recipeOf(const Problem &p, const Execution &e) {
  return p.recipes[e.recipe];
}

/// The Done of network work stands behind a kernel that reads its result.
bool readBeforeDone(const Problem &p, std::vector<Execution> &list) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].phase == Phase::Done && p.isOnNetwork(recipeOf(p, list[i])))
      for (size_t j = i + 1; j < list.size(); ++j) {
        const Recipe &later = recipeOf(p, list[j]);
        if (later.engine == recipeOf(p, list[i]).engine)
          break;
        const ValueId made = recipeOf(p, list[i]).writes[0];
        if (later.engine == 0 &&
            std::count(later.reads.begin(), later.reads.end(), made)) {
          std::rotate(list.begin() + i, list.begin() + i + 1,
                      list.begin() + j + 1);
          return true;
        }
      }
  return false;
}

/// Network work runs twice at once: both write one value.
bool writtenTwice(const Problem &p, std::vector<Execution> &list) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].phase != Phase::Start || !p.isOnNetwork(recipeOf(p, list[i])) ||
        !recipeOf(p, list[i]).recomputable)
      continue;
    Execution start = list[i];
    start.instruction = kNone;
    start.overwrites.clear();
    start.work = 0;
    for (const Execution &e : list)
      start.work = std::max(start.work, e.work + 1);
    size_t done = i;
    while (list[done].phase != Phase::Done || list[done].work != list[i].work)
      ++done;
    Execution end = start;
    end.phase = Phase::Done;
    if (start.work >= int32_t(list.size()) + 2)
      continue;
    list.insert(list.begin() + done + 1, end);
    list.insert(list.begin() + i + 1, start);
    return true;
  }
  return false;
}

/// A gather reads a shard from before to after the shard's update.
bool updatedInFlight(const Problem &p, std::vector<Execution> &list) {
  std::vector<int> open(p.engines.size(), 0);
  int32_t work = 0;
  for (const Execution &e : list)
    work = std::max(work, e.work + 1);
  for (size_t i = 0; i < list.size(); ++i) {
    const Recipe &r = recipeOf(p, list[i]);
    open[size_t(r.engine)] += list[i].phase == Phase::Start;
    open[size_t(r.engine)] -= list[i].phase == Phase::Done;
    for (size_t g = 0; r.name == "inplace" && g < p.recipes.size(); ++g)
      if (const Recipe &gather = p.recipes[g];
          p.isGather(gather) && gather.reads[0] == r.reads[1] &&
          !open[size_t(gather.engine)] && work < int32_t(list.size()) + 2) {
        list.insert(list.begin() + i + 1,
                    {RecipeId(g), kNone, {}, Phase::Done, work});
        list.insert(list.begin() + i,
                    {RecipeId(g), kNone, {}, Phase::Start, work});
        return true;
      }
  }
  return false;
}

TEST(Network, BothCheckersSeePlantedFaults) {
  Random random(5), chooser(6);
  std::map<std::string, Planted> faults = {
      {"read before the done", {"R11"}},
      {"two writes in flight", {"R11"}},
      {"a shard that is gathered is updated", {"R13 R14"}},
      {"a host's value on the network", {"R18"}}};
  bool (*const plants[])(const Problem &, std::vector<Execution> &) = {
      readBeforeDone, writtenTwice, updatedInFlight};
  const char *const names[] = {"read before the done", "two writes in flight",
                               "a shard that is gathered is updated"};
  auto seen = [&](const std::string &name, const Problem &p,
                  const Solution &s) {
    Planted &fault = faults[name];
    ++fault.count;
    const std::string defect(measure(p, s).status().message());
    EXPECT_NE(fault.rule.find(defect.substr(0, 3)), std::string::npos)
        << name << ": " << defect;
  };
  for (int i = 0; i < 600; ++i) {
    const Problem p = NetworkProblem(random, i % kNetworkKinds).w.p;
    EveryList(p, 2, [&](const Solution &bare) {
      if (!chooser.chance(0.05))
        return;
      Solution s = bare;
      takeOverwrites(p, s);
      if (!simulate(p, s).ok())
        return;
      for (int f = 0; f < 3; ++f)
        for (size_t segment = 0; segment < s.segments.size(); ++segment) {
          Solution planted = s;
          if (faults[names[f]].count >= 200 ||
              !plants[f](p, planted.segments[segment]))
            continue;
          EXPECT_FALSE(simulate(p, planted).ok()) << names[f];
          seen(names[f], p, planted);
        }
    }).run();
    // The first network work of the base writes a value of the host.
    Problem moved = p;
    if (moved.spaces.size() < 2)
      moved.addSpace(SpaceKind::Host);
    const Solution base = baseSolution(p);
    for (const Execution &e : base.segments.back())
      if (e.phase == Phase::Start && p.isOnNetwork(recipeOf(p, e))) {
        moved.values[recipeOf(p, e).writes[0]].space = kHost;
        EXPECT_NE(check(moved).message().find("writes to device"),
                  std::string::npos)
            << check(moved).message();
        seen("a host's value on the network", moved, base);
        break;
      }
  }
  for (const auto &[name, fault] : faults)
    EXPECT_GE(fault.count, 40) << name;
}

} // namespace
