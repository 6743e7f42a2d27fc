// The worked examples of R9 to R17, to the byte and to the cost unit.

#include "test/unit/planning/SpaceProblem.h"

#include "compiler/planning/model/OfferMoves.h"
#include "compiler/planning/model/Timeline.h"
#include "compiler/planning/model/Verify.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

using Row = std::vector<int64_t>;

std::string errorOf(const SpaceProblem &w, const std::string &list) {
  return std::string(simulate(w.p, w.list(list)).status().message());
}

Timeline layOut(const SpaceProblem &w, const Solution &solution) {
  absl::StatusOr<Timeline> t = timelineOf(w.p, solution);
  EXPECT_TRUE(t.ok()) << t.status().message();
  EXPECT_TRUE(simulate(w.p, solution).ok())
      << simulate(w.p, solution).status().message();
  return t.ok() ? *std::move(t) : Timeline();
}

/// How long moment `t` takes; of a Done, how long compute waits there.
int64_t lengthAt(const Timeline &timeline, size_t t) {
  return timeline.times[t].end - timeline.times[t].begin;
}

/// f1 makes a, f2 b, f3 c; g3 reads c, g1 reads a.
SpaceProblem chain() {
  SpaceProblem w;
  w.p.addSegment("step");
  w.value("a");
  w.form("a@host", "a");
  w.value("b", 30);
  w.value("c", 7);
  w.value("d", 1);
  w.value("e", 1).liveOut = true;
  w.p.addInstruction(0, w.recipe("f1", "", "a"));
  w.p.addInstruction(0, w.recipe("f2", "", "b"));
  w.p.addInstruction(0, w.recipe("f3", "b", "c"));
  w.p.addInstruction(0, w.recipe("g3", "c", "d"));
  w.p.addInstruction(0, w.recipe("g1", "a d", "e"));
  w.move("stash", "a", "a@host", kD2H);
  w.move("fetch", "a@host", "a", kH2D);
  return w;
}

TEST(Spaces, ABaseWithoutMovesIsTheSumOfItsCosts) {
  SpaceProblem w = chain();
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  Timeline t = layOut(w, baseSolution(w.p));
  EXPECT_EQ(t.makespan, 50);
  EXPECT_EQ(t.spaces[kDevice].liveBytes, (Row{100, 130, 137, 108, 102}));
  EXPECT_EQ(t.spaces[kHost].peakBytes, 0);
}

TEST(Spaces, MovesRunBesideComputeAndItWaitsAtTheirDones) {
  SpaceProblem w = chain();
  Timeline t = layOut(w, w.list("f1 stash( f2 )stash f3 fetch( g3 )fetch g1"));
  // f1 0-10, f2 10-20, the stash 10-25, f3 25-35, g3 35-45, fetch 35-50.
  EXPECT_EQ(t.makespan, 60);
  EXPECT_EQ(t.engineBusy[kCompute], 50);
  EXPECT_EQ(lengthAt(t, 3), 5); // Compute waits for the stash,
  EXPECT_EQ(lengthAt(t, 7), 5); // and for the fetch.
  EXPECT_EQ(t.engineBusy[kD2H], 15);
  EXPECT_EQ(t.engineBusy[kH2D], 15);
  EXPECT_EQ(t.spaces[kDevice].liveBytes,
            (Row{100, 100, 130, 130, 37, 107, 108, 101, 102}));
  EXPECT_EQ(t.spaces[kHost].liveBytes,
            (Row{0, 100, 100, 100, 100, 100, 100, 100, 0}));
  EXPECT_EQ(t.spaces[kDevice].peakBytes, 130);
}

TEST(Spaces, ATailThatNobodyWaitsForStillCounts) {
  SpaceProblem w = chain();
  EXPECT_EQ(layOut(w, w.list("f1 f2 f3 g3 stash( g1 )stash")).makespan, 55);
}

/// R17's example: a stash of 100 from 10 on, and a fetch of 60 from 50 on.
TEST(Spaces, WorkSharesTheHostsMemory) {
  SpaceProblem w = chain();
  w.value("z", 1).kind = ValueKind::Persistent;
  w.form("z@host", "z");
  w.move("bring", "z@host", "z", kH2D, 60);
  w.p.recipes[w.recipeId("f2")].cost = 20;
  w.p.recipes[w.recipeId("stash")].cost = 100;
  auto run = [&](int32_t stash, int32_t bring, int64_t makespan) {
    w.p.recipes[w.recipeId("stash")].busShare = stash;
    w.p.recipes[w.recipeId("bring")].busShare = bring;
    ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
    Solution s = w.list("f1 stash( f2 f3 g3 bring( )stash )bring g1");
    s.homes = {w.id("z@host")};
    Timeline t = layOut(w, s);
    EXPECT_EQ(t.makespan, makespan);
    EXPECT_EQ(t.engineBusy[kD2H], makespan - 20);
    EXPECT_EQ(t.engineBusy[kH2D], makespan - 60);
    absl::StatusOr<Claim> claim = measure(w.p, s);
    ASSERT_TRUE(claim.ok()) << claim.status().message();
    EXPECT_EQ(claim->cost, makespan);
  };
  run(0, 0, 120);
  run(512, 512, 120); // Together they have all of it.
  run(0, kWholeBus, 120);
  run(768, 512, 135); // 60 each at four fifths: 75.
  run(768, 513, 136); // 75.06: an end is rounded up.
  run(kWholeBus, kWholeBus, 180);
}

/// Behind the end of the shorter one the longer one has its own speed again.
TEST(Spaces, WorkIsSlowedWhileOthersShare) {
  SpaceProblem w = chain();
  w.value("z", 1).kind = ValueKind::Persistent;
  w.form("z@host", "z");
  w.move("bring", "z@host", "z", kH2D, 30).busShare = kWholeBus;
  w.p.recipes[w.recipeId("stash")].cost = 100;
  w.p.recipes[w.recipeId("stash")].busShare = kWholeBus;
  Solution s = w.list("f1 stash( bring( f2 f3 g3 )stash )bring g1");
  s.homes = {w.id("z@host")};
  Timeline t = layOut(w, s);
  // Until 70 both have half of the memory: 30 of each. The stash's other 70 end
  // at 140.
  EXPECT_EQ(t.engineBusy[kH2D], 60);
  EXPECT_EQ(t.engineBusy[kD2H], 130);
  EXPECT_EQ(t.makespan, 150);
}

TEST(Spaces, OfferedMovesHaveTheirShareOfTheHostsMemory) {
  auto offered = [](MoveOptions moves) {
    Problem p;
    p.addSegment("step");
    Value v;
    v.bytes = 1'000'000;
    Recipe r;
    r.writes = {p.addValue(v)};
    p.addInstruction(0, r);
    EXPECT_TRUE(offerMoves(p, moves).ok());
    const Recipe &stash = p.recipes[1];
    EXPECT_TRUE(p.isStash(stash));
    return std::pair(stash.cost, stash.busShare);
  };
  MoveOptions moves;
  moves.leastBytes = 1;
  moves.toHost = {25'000'000'000, 0};
  EXPECT_EQ(offered(moves), std::pair(int64_t(40'000'000), 0));
  moves.hostBandwidth = 40'960'000'000;
  EXPECT_EQ(offered(moves), std::pair(int64_t(40'000'000), 625));
  moves.toHost.latency = 10'000'000; // In the mean it is slower.
  EXPECT_EQ(offered(moves), std::pair(int64_t(50'000'000), 500));
  // A link that is faster than the memory has the memory's speed.
  moves.toHost = {100'000'000'000, 0};
  moves.hostBandwidth = 50'000'000'000;
  EXPECT_EQ(offered(moves), std::pair(int64_t(20'000'000), 1024));
}

TEST(Spaces, AShareOfTheHostsMemoryIsChecked) {
  SpaceProblem w = chain();
  Recipe &stash = w.p.recipes[w.recipeId("stash")];
  for (int32_t share : {-1, kWholeBus + 1}) {
    stash.busShare = share;
    EXPECT_NE(
        check(w.p).message().find("has a share of " + std::to_string(share)),
        std::string::npos);
  }
  stash.busShare = kWholeBus;
  EXPECT_TRUE(check(w.p).ok());
  w.p.recipes[w.recipeId("f2")].busShare = 1;
  EXPECT_NE(check(w.p).message().find("0 on the engine that computes"),
            std::string::npos);
}

TEST(Spaces, FastestMovesOfTwoSpaces) {
  SpaceProblem w = chain();
  w.form("a@file", "a", kFile);
  w.move("quick stash", "a", "a@host", kD2H, 5);
  w.move("slow fetch", "a@host", "a", kH2D, 40);
  w.move("write", "a@host", "a@file", kWrite, 7);
  w.move("read", "a@file", "a@host", kRead, 9);
  const ValueId a = w.id("a"), b = w.id("b"), onHost = w.id("a@host");
  const FastestMoves device = fastestMoves(w.p, kDevice);
  EXPECT_EQ(device.in[a], w.recipeId("fetch"));
  EXPECT_EQ(device.out[a], w.recipeId("quick stash"));
  EXPECT_EQ(device.in[b], kNone);
  EXPECT_EQ(device.out[onHost], kNone);
  const FastestMoves file = fastestMoves(w.p, kHost, kFile);
  EXPECT_EQ(file.in[onHost], w.recipeId("read"));
  EXPECT_EQ(file.out[onHost], w.recipeId("write"));
  EXPECT_EQ(file.out[a], kNone);
}

TEST(Spaces, BudgetsCountReservedBytes) {
  SpaceProblem w = chain();
  w.p.reservedBytes = 30;
  w.p.spaces[kDevice].budgetBytes = 100;
  w.p.spaces[kHost].budgetBytes = 50;
  w.p.spaces[kHost].reservedBytes = 60;
  EXPECT_EQ(w.p.liveLimitOf(kDevice), 70);
  EXPECT_EQ(w.p.liveLimitOf(kHost), 0); // Reserved bytes alone exceed it.
  EXPECT_EQ(w.p.liveLimitOf(kFile), -1);
  EXPECT_FALSE(fitsBudgets(w.p, {70, 0, 1'000}));
  w.p.spaces[kHost].reservedBytes = 10;
  EXPECT_TRUE(fitsBudgets(w.p, {70, 40, 1'000}));
  EXPECT_FALSE(fitsBudgets(w.p, {70, 41, 1'000}));
  EXPECT_FALSE(fitsBudgets(w.p, {71, 40, 1'000}));
  EXPECT_TRUE(fitsBudgets(w.p, {71, 40, 1'000}, kHost));
}

TEST(Spaces, WorkReadsWhatOtherWorkIsStillMaking) {
  SpaceProblem w = chain();
  w.form("a@file", "a", kFile);
  w.move("out", "a@host", "a@file", kWrite, 40);
  // `out` begins at 25, when the stash ends, and nobody on the device waits.
  Timeline t = layOut(w, w.list("f1 stash( out( f2 )stash f3 g3 g1 )out"));
  EXPECT_EQ(t.makespan, 65);
  EXPECT_EQ(lengthAt(t, 4), 5); // The stash's Done.
  EXPECT_EQ(lengthAt(t, 8), 0);
  EXPECT_EQ(errorOf(w, "f1 stash( f2 fetch( )stash )fetch f3 g3 g1"),
            "'fetch' writes 'a' while other work reads or writes it");
  EXPECT_EQ(errorOf(w, "f1 f2 f3 g3 stash( )stash fetch( g1 )fetch"),
            "'g1' at position 7 of segment 'step' reads 'a' before the work "
            "that makes it is done");
}

TEST(Spaces, AnEngineIsFirstInFirstOut) {
  SpaceProblem w = chain();
  w.form("b@host", "b");
  w.move("stash b", "b", "b@host", kD2H);
  w.p.recipes.back().name = "put";
  EXPECT_EQ(
      layOut(w, w.list("f1 f2 stash( put( )stash )put f3 g3 g1")).makespan, 80);
  EXPECT_EQ(errorOf(w, "f1 f2 stash( put( )put )stash f3 g3 g1"),
            "engine 'd2h' is first in, first out, but 'put' is done out of "
            "turn");
  EXPECT_EQ(errorOf(w, "f1 stash( f2 f3 g3 g1"),
            "'stash' in segment 'step' starts, but is never done");
}

/// `adam` on the host reads g@host and makes m2@host in m@host's place.
SpaceProblem hostUpdate() {
  SpaceProblem w;
  w.p.addSegment("step");
  w.value("m").kind = ValueKind::Persistent;
  w.form("m@host", "m");
  w.value("n").kind = ValueKind::Persistent;
  w.p.values.back().updates = w.id("m");
  w.form("n@host", "n").updates = w.id("m@host");
  w.value("g", 10);
  w.form("g@host", "g");
  w.p.addInstruction(0, w.recipe("f", "", "g"));
  Recipe device = w.recipe("update", "g m", "n");
  device.overwrites = {{w.id("m"), w.id("n"), true}};
  w.p.addInstruction(0, device);
  Recipe host = w.recipe("adam", "g@host m@host", "n@host", 50, kHostEngine);
  host.overwrites = {{w.id("m@host"), w.id("n@host"), true}};
  host.workspaceBytes = 3;
  host.workspaceSpace = kHost;
  w.p.addVariant(1, host);
  w.move("get", "m@host", "m", kH2D);
  w.move("put", "n", "n@host", kD2H);
  w.move("down", "g", "g@host", kD2H, 5);
  w.move("peek", "m@host", "m", kH2D);
  return w;
}

TEST(Spaces, TheDeviceUpdatesWhatIsAtHomeOnTheHost) {
  SpaceProblem w = hostUpdate();
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  EXPECT_EQ(layOut(w, baseSolution(w.p)).spaces[kDevice].liveBytes,
            (Row{110, 110}));
  Solution s = w.list("get( f )get update put( )put");
  s.homes = {w.id("m@host")};
  Timeline t = layOut(w, s);
  EXPECT_EQ(t.makespan, 40);
  EXPECT_EQ(t.spaces[kDevice].liveBytes, (Row{100, 110, 110, 110, 100, 100}));
  EXPECT_EQ(t.spaces[kHost].liveBytes, (Row{100, 100, 100, 100, 100, 100}));

  // Between the update and the stash the old content is still at home.
  s = w.list("get( f )get update put( peek( )peek )put");
  s.homes = {w.id("m@host")};
  EXPECT_EQ(simulate(w.p, s).status().message(),
            "'n@host' is written at home while 'm@host' is still read there");
  s = w.list("get( f )get update peek( )peek put( )put");
  s.homes = {w.id("m@host")};
  EXPECT_EQ(layOut(w, s).spaces[kDevice].peakBytes, 200);
}

TEST(Spaces, TheHostUpdatesInPlaceFromStartThroughDone) {
  SpaceProblem w = hostUpdate();
  Solution s = w.list("f down( )down adam( )adam");
  s.homes = {w.id("m@host")};
  Timeline t = layOut(w, s);
  EXPECT_EQ(t.makespan, 65);
  EXPECT_EQ(t.engineBusy[kHostEngine], 50);
  EXPECT_EQ(lengthAt(t, 2), 5); // Compute waits for `down` alone.
  EXPECT_EQ(lengthAt(t, 4), 0);
  EXPECT_EQ(t.spaces[kDevice].liveBytes, (Row{10, 10, 10, 0, 0}));
  EXPECT_EQ(t.spaces[kHost].liveBytes, (Row{100, 110, 110, 113, 113}));

  auto at = [&](const char *list) {
    Solution s = w.list(list);
    s.homes = {w.id("m@host")};
    return std::string(simulate(w.p, s).status().message());
  };
  const char *busy = "'adam' overwrites 'm@host', which is read later";
  EXPECT_EQ(at("f down( )down peek( adam( )peek )adam"), busy);
  EXPECT_EQ(at("f down( )down adam( peek( )peek )adam"), busy);
  EXPECT_EQ(at("f down( )down adam( )adam peek( )peek"), busy);
  EXPECT_EQ(at("f down( )down peek( )peek adam( )adam"), "");
}

TEST(Spaces, HomesFollowEachOther) {
  SpaceProblem w = hostUpdate();
  auto with = [&](std::vector<ValueId> homes, const char *list) {
    Solution s = w.list(list);
    s.homes = std::move(homes);
    return std::string(simulate(w.p, s).status().message());
  };
  const char *host = "f down( )down adam( )adam";
  ValueId m = w.id("m"), mh = w.id("m@host"), nh = w.id("n@host");
  EXPECT_EQ(with({mh}, host), "");
  EXPECT_EQ(with({mh, nh}, host), "");
  EXPECT_EQ(with({nh}, host),
            "'n' is a home, but 'm' is that of what it updates");
  EXPECT_EQ(with({m, mh}, host), "'m' has two homes");
  EXPECT_EQ(with({w.id("g")}, host), "'g' can't be a home");
  EXPECT_EQ(with({99}, host), "value 99 of 6 is a home");
  EXPECT_EQ(with({mh}, "get( f )get update"),
            "'n@host' is a home, but nothing makes it");
  EXPECT_EQ(with({mh}, "get( f )get update put( )put put( )put"),
            "'n@host' is a home, but is written twice");
  w.move("back", "m", "m@host", kD2H);
  EXPECT_EQ(with({mh}, "get( f )get back( )back update put( )put"),
            "'m@host' is a home, but is written anew");
}

/// `f` reads w, made before the body, and adds to acc; `g` reads what f made.
SpaceProblem loop(int64_t trips) {
  SpaceProblem w;
  w.p.addSegment("before");
  w.p.addSegment("body", trips);
  w.p.addSegment("after");
  w.value("w");
  w.value("x", 10);
  w.value("t", 40);
  w.form("t@host", "t");
  Value &c = w.value("c", 40);
  c.kind = ValueKind::Carried;
  c.carriedFrom = w.id("t");
  Value &ch = w.form("c@host", "c");
  ch.carriedFrom = w.id("t@host");
  w.value("y", 1).liveOut = true;
  w.p.addInstruction(0, w.recipe("p", "", "w"));
  w.p.addInstruction(1, w.recipe("f", "w", "x"));
  w.p.addInstruction(1, w.recipe("g", "x c", "t"));
  w.p.addInstruction(2, w.recipe("h", "t", "y"));
  w.move("stash", "t", "t@host", kD2H).segment = 1;
  w.move("fetch", "c@host", "c", kH2D).segment = 1;
  w.move("take", "t@host", "t", kH2D);
  return w;
}

TEST(Spaces, TwoTripsAreLaidOutAsTwo) {
  SpaceProblem w = loop(2);
  ASSERT_TRUE(check(w.p).ok()) << check(w.p).message();
  Timeline t = layOut(w, baseSolution(w.p));
  // p | f g | f g | h: w isn't in the last g, c is nothing in the first.
  EXPECT_EQ(t.spaces[kDevice].liveBytes, (Row{100, 110, 150, 150, 90, 41}));
  EXPECT_EQ(t.makespan, 60);
  Timeline four = layOut(loop(4), baseSolution(loop(4).p));
  EXPECT_EQ(four.spaces[kDevice].liveBytes,
            (Row{100, 110, 150, 150, 190, 150, 90, 41}));
  EXPECT_EQ(four.makespan, 100);
}

TEST(Spaces, AFirstTripsNothingIsMovedInNoTime) {
  SpaceProblem w = loop(3);
  Solution s = w.list("p | f fetch( )fetch g stash( )stash | take( )take h");
  Timeline t = layOut(w, s);
  // The first trip has no fetch: 10 + 10 + 15, then 2 x (10 + 15 + 10 + 15).
  EXPECT_EQ(t.makespan, 10 + 35 + 2 * 50 + 15 + 10);
  EXPECT_EQ(t.engineBusy[kH2D], 2 * 15 + 15);
  EXPECT_EQ(t.engineBusy[kD2H], 3 * 15);
  EXPECT_EQ(t.spaces[kHost].liveBytes,
            (Row{0,  0,  0,  0,  0,  40, 40, 40, 40, 40, 0,
                 40, 40, 40, 40, 40, 0,  40, 40, 40, 40, 0}));
  // Without the stash no trip but the first finds c@host.
  EXPECT_EQ(errorOf(w, "p | f fetch( )fetch g | h"),
            "'fetch' at position 1 of segment 'body' reads 'c@host' before it "
            "is made");
}

TEST(Spaces, WhatATripWritesIsForgotten) {
  SpaceProblem w = loop(3);
  w.form("w@host", "w");
  w.move("out", "w", "w@host", kD2H);
  w.move("in", "w@host", "w", kH2D);
  // Each trip fetches w for itself; w from outside is read nowhere.
  Timeline t = layOut(w, w.list("p out( )out | in( )in f g | h"));
  EXPECT_EQ(t.spaces[kDevice].liveBytes,
            (Row{100, 100, 100, 100, 100, 110, 50, 140, 140, 150, 90, 140, 140,
                 150, 90, 41}));
  EXPECT_EQ(t.spaces[kHost].liveBytes[6], 100);
  EXPECT_EQ(t.spaces[kHost].liveBytes[12], 100);
  EXPECT_EQ(t.spaces[kHost].liveBytes[13], 0);
  // Fetched after its read, w must be there from outside in every trip.
  t = layOut(w, w.list("p out( )out | f g in( )in | h"));
  EXPECT_EQ(t.spaces[kDevice].liveBytes[9], 240); // Two of w, and t.
}

} // namespace
