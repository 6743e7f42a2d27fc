// HostRoomTest.cpp - plans whose moves the host can't hold all.

#include "compiler/planning/driver/HostRoom.h"
#include "compiler/planning/driver/MovesSearch.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/model/OfferMoves.h"

#include "test/unit/planning/ExpectTrue.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace tmc::planning;

namespace {

/// Equal layers beside a host, over links that take a hundredth of the step for
/// all bytes of its peak: time is no reason to keep a value.
Problem layersBesideHost(int64_t nodes, int64_t &peakBytes) {
  GenerateOptions shape;
  shape.nodes = nodes;
  Problem p = *problemOf(generateGraph(shape));
  const Profile base = *simulate(p, baseSolution(p));
  peakBytes = base.peakBytes;
  MoveOptions moves;
  moves.leastBytes = 1;
  moves.toHost = moves.toDevice = {
      int64_t(100 * double(base.peakBytes) * 1e12 / double(base.makespan)),
      /*latency=*/0};
  EXPECT_TRUE(offerMoves(p, moves).ok());
  return p;
}

int64_t bytesThatGo(const Problem &p, const std::vector<char> &stays) {
  int64_t bytes = 0;
  const FastestMoves moves = fastestMoves(p, 0);
  for (size_t v = 0; v < p.values.size(); ++v)
    if (p.values[v].space == 0 && moves.out[v] != kNone && !stays[v])
      bytes += p.values[v].bytes;
  return bytes;
}

TEST(HostRoom, KeepsWhatTheHostCantHold) {
  int64_t peak = 0;
  const Problem p = layersBesideHost(300, peak);
  const SpaceChoice choice = plainChoice(p);
  EXPECT_TRUE(stayingValues(p, choice, 2 * peak).empty());
  EXPECT_TRUE(stayingValues(p, choice, -1).empty());
  std::vector<int64_t> all;
  for (int64_t part : {16, 8, 4, 2}) {
    SCOPED_TRACE(part);
    const std::vector<char> stays = stayingValues(p, choice, peak / part);
    ASSERT_EQ(stays.size(), p.values.size());
    int64_t kept = 0;
    for (size_t v = 0; v < stays.size(); ++v)
      kept += stays[v] ? p.values[v].bytes : 0;
    EXPECT_GT(kept, 0);
    all.push_back(bytesThatGo(p, stays));
  }
  // With more room, more goes.
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_GE(all.back() - all.front(), peak / 4);
}

TEST(HostRoom, CountsHomesBesideTheDevice) {
  int64_t peak = 0;
  Problem p = layersBesideHost(100, peak);
  SpaceChoice choice = plainChoice(p);
  p.spaces[1].budgetBytes = -1;
  EXPECT_EQ(roomBeside(p, choice), -1);
  p.spaces[1].budgetBytes = 1000;
  EXPECT_EQ(roomBeside(p, choice), 1000);
}

/// The host has room for the layers' inputs and little more. A plan sends these
/// there, and recomputes the layers. Without the rule, what moves doesn't fit
/// at cheap links, and nothing moves at expensive ones.
TEST(HostRoom, FindsPlansWithinTheHost) {
  for (int64_t nodes : {450, 900}) {
    SCOPED_TRACE(nodes);
    int64_t peak = 0;
    Problem p = layersBesideHost(nodes, peak);
    SolveOptions options;
    options.effort = options.effort.part(16);
    auto plan = [&](int64_t hostBytes) {
      p.spaces[0].budgetBytes = peak / 11;
      p.spaces[1].budgetBytes = hostBytes;
      absl::StatusOr<Plan> made = solveMoves(p, options);
      EXPECT_TRUE(made.ok() && made->feasible);
      expectTrue(p, *made);
      return *std::move(made);
    };
    const Plan alone = plan(0), little = plan(peak / 6), all = plan(-1);
    EXPECT_GT(little.peakBytes[1], 0);
    EXPECT_LT(little.cost - all.cost, (alone.cost - all.cost) * 3 / 4);
    EXPECT_GT(all.peakBytes[1], peak / 6); // More would be better.
  }
}

} // namespace
