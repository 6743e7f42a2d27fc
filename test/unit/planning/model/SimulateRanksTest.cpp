// SimulateRanksTest.cpp - the lists of several ranks, run together: beside a
// graph of all their moments, beside one rank, and pipelines beside formulas.

#include "test/unit/planning/Lagging.h"
#include "test/unit/planning/NetworkBrute.h"
#include "test/unit/planning/RanksBrute.h"
#include "test/unit/planning/SpaceBrute.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

TEST(SimulateRanks, MeetsAsAGraphOfAllMomentsSays) {
  int64_t stuck = 0, waiting = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    DrawnRanks drawn(random);
    for (const RankList &list : drawn.lists)
      ASSERT_TRUE(check(*list.problem).ok()) << check(*list.problem).message();
    absl::StatusOr<RankTimes> times =
        simulateRanks(drawn.lists, drawn.channels);
    std::optional<RankTimes> wanted =
        RanksGraph(drawn.lists, drawn.channels).run();
    ASSERT_EQ(times.ok(), wanted.has_value()) << times.status().message();
    if (!wanted) {
      EXPECT_EQ(times.status().message().find("ranks wait for each other: "),
                0u)
          << times.status().message();
      ++stuck;
      continue;
    }
    EXPECT_EQ(times->makespan, wanted->makespan);
    for (size_t r = 0; r < wanted->ranks.size(); ++r) {
      EXPECT_EQ(times->ranks[r].end, wanted->ranks[r].end) << r;
      EXPECT_EQ(times->ranks[r].waiting, wanted->ranks[r].waiting) << r;
      waiting += wanted->ranks[r].waiting > 0;
    }
    if (HasFailure())
      return;
  }
  EXPECT_GT(stuck, 200);
  EXPECT_GT(waiting, 2000);
}

/// All network work meets that of the other ranks, each network for itself.
std::vector<int32_t> byNetwork(const Problem &p) {
  std::vector<int32_t> channels;
  for (const Recipe &recipe : p.recipes)
    channels.push_back(p.isOnNetwork(recipe) ? recipe.engine : kNone);
  return channels;
}

void expectAsOne(const Problem &p, const Solution &solution, int ranks) {
  Channel all;
  for (int r = 0; r < ranks; ++r)
    all.push_back(r);
  const std::vector<Channel> channels(p.engines.size(), all);
  const std::vector<RankList> lists(size_t(ranks),
                                    {&p, &solution, byNetwork(p)});
  absl::StatusOr<Profile> one = simulate(p, solution);
  ASSERT_TRUE(one.ok()) << one.status().message();
  absl::StatusOr<RankTimes> times = simulateRanks(lists, channels);
  ASSERT_TRUE(times.ok()) << times.status().message();
  EXPECT_EQ(times->makespan, one->makespan);
  for (const RankTimes::Of &each : times->ranks) {
    EXPECT_EQ(each.end, one->makespan);
    EXPECT_EQ(each.waiting, 0);
  }
}

TEST(SimulateRanks, EqualRanksAreAsOne) {
  for (uint64_t seed = 0; seed < 1000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const int ranks = 2 + int(random.below(3));
    DrawnRanks drawn(random);
    expectAsOne(*drawn.lists[0].problem, *drawn.lists[0].solution, ranks);
    SpaceProblem w = NetworkProblem(random, int(seed % kNetworkKinds)).w;
    shareMemory(random, w.p);
    for (Recipe &r : w.p.recipes)
      r.busShare = w.p.isOnNetwork(r) ? 0 : r.busShare;
    expectAsOne(w.p, baseSolution(w.p), ranks);
    const Problem lagging = laggingLoop(random, /*network=*/true);
    expectAsOne(lagging, baseSolution(lagging), ranks);
  }
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

struct Shape {
  int stages = 2, microBatches = 1;
  int64_t forward = 1, backward = 1, latency = 0; // Costs.
  bool oneNetwork = false; // Each stage has one for all messages.
};

/// Equal stages that send what they make to the next one, and gradients back.
class Pipeline : Shape {
public:
  /// `order` of a stage: its parts, m for the forward part of micro-batch m,
  /// and -1 - m for its backward part.
  template <typename F> Pipeline(const Shape &shape, F order) : Shape(shape) {
    for (int s = 0; s + 1 < stages; ++s)
      channels.insert(channels.end(), {{s, s + 1}, {s, s + 1}});
    problems.resize(size_t(stages));
    solutions.resize(size_t(stages));
    for (int s = 0; s < stages; ++s)
      addStage(s, order(s));
  }
  Pipeline(const Pipeline &) = delete;

  std::vector<Problem> problems;
  std::vector<Solution> solutions;
  std::vector<RankList> lists;
  std::vector<Channel> channels;

  absl::StatusOr<RankTimes> run() const {
    return simulateRanks(lists, channels);
  }
  /// The most micro-batches that a stage saves.
  int64_t saved(int stage) const {
    return simulate(problems[size_t(stage)], solutions[size_t(stage)])
        ->peakBytes;
  }

private:
  /// The channels from a stage to the next one, and back.
  int32_t there(int s) const { return 2 * s; }
  int32_t back(int s) const { return 2 * s + 1; }

  void addStage(int s, const std::vector<int> &order) {
    Problem &p = problems[size_t(s)];
    std::vector<int32_t> channelOf;
    p.addSegment("step");
    std::vector<Execution> list, ends;
    std::vector<ValueId> savedBy(size_t(microBatches), kNone);
    auto value = [&](const std::string &name, int64_t bytes) {
      Value v;
      v.name = name;
      v.bytes = bytes;
      return p.addValue(v);
    };
    auto add = [&](const std::string &name, std::vector<ValueId> reads,
                   std::vector<ValueId> writes, int64_t cost, int32_t channel,
                   const char *network) {
      Recipe r;
      r.name = name;
      r.reads = std::move(reads);
      r.writes = std::move(writes);
      r.cost = cost;
      r.engine = network ? p.networkNamed(oneNetwork ? "pp" : network) : 0;
      Execution e;
      e.instruction = p.addInstruction(0, r);
      e.recipe = RecipeId(p.recipes.size()) - 1;
      channelOf.push_back(channel);
      if (network) {
        e.phase = Phase::Start;
        e.work = e.recipe;
      }
      list.push_back(e);
      e.phase = Phase::Done;
      return e;
    };
    auto receive = [&](const std::string &name, int32_t channel,
                       const char *network) {
      const ValueId v = value(name, 0);
      list.push_back(
          add("receive_" + name, {}, {v}, latency, channel, network));
      return v;
    };
    auto send = [&](ValueId v, int32_t channel, const char *network) {
      const std::string name = p.values[size_t(v)].name;
      ends.push_back(add("send_" + name, {v}, {value("sent_" + name, 0)},
                         latency, channel, network));
    };
    for (int part : order) {
      const bool isForward = part >= 0;
      const int m = isForward ? part : -1 - part;
      const std::string number = std::to_string(m);
      ValueId &kept = savedBy[size_t(m)];
      std::vector<ValueId> reads, writes;
      const bool receives = isForward ? s > 0 : s + 1 < stages;
      const bool sends = isForward ? s + 1 < stages : s > 0;
      if (receives)
        reads.push_back(receive((isForward ? "x" : "g") + number,
                                isForward ? there(s - 1) : back(s),
                                isForward ? "in" : "back-in"));
      if (isForward)
        writes.push_back(kept = value("a" + number, 1));
      else
        reads.push_back(kept);
      const ValueId made = value((isForward ? "y" : "d") + number, 0);
      writes.push_back(made);
      add((isForward ? "f" : "b") + number, reads, writes,
          isForward ? forward : backward, kNone, nullptr);
      if (sends)
        send(made, isForward ? there(s) : back(s - 1),
             isForward ? "out" : "back-out");
    }
    if (oneNetwork)
      ends = moveDones(list);
    list.insert(list.end(), ends.begin(), ends.end());
    solutions[size_t(s)].segments = {list};
    lists.push_back({&p, &solutions[size_t(s)], channelOf});
  }

  /// With one network, the sends before a receive are done before it. Returns
  /// the other Dones.
  static std::vector<Execution> moveDones(std::vector<Execution> &list) {
    std::vector<Execution> sorted, open;
    for (const Execution &e : list) {
      if (e.phase == Phase::Done) {
        sorted.insert(sorted.end(), open.begin(), open.end());
        open.clear();
        continue;
      }
      sorted.push_back(e);
      if (e.phase == Phase::Start) {
        open.push_back(e);
        open.back().phase = Phase::Done;
      }
    }
    list = sorted;
    return open;
  }
};

/// All forward parts, then all backward parts.
std::vector<int> gpipe(int microBatches) {
  std::vector<int> order;
  for (int m = 0; m < microBatches; ++m)
    order.push_back(m);
  for (int m = 0; m < microBatches; ++m)
    order.push_back(-1 - m);
  return order;
}

/// Some forward parts, then one of each in turn, then the other backward parts.
std::vector<int> oneForwardOneBackward(int stages, int stage,
                                       int microBatches) {
  const int first = std::min(stages - stage - 1, microBatches);
  std::vector<int> order;
  for (int m = 0; m < first; ++m)
    order.push_back(m);
  for (int m = 0; m < microBatches; ++m) {
    if (first + m < microBatches)
      order.push_back(first + m);
    order.push_back(-1 - m);
  }
  return order;
}

TEST(SimulateRanks, PipelinesTakeWhatTheFormulasSay) {
  for (int stages = 1; stages <= 5; ++stages)
    for (int microBatches = 1; microBatches <= 8; ++microBatches)
      for (auto [forward, backward] : {std::pair{1, 1}, {1, 2}, {3, 1}}) {
        SCOPED_TRACE(std::to_string(stages) + " stages, " +
                     std::to_string(microBatches) + " micro-batches, " +
                     std::to_string(forward) + " and " +
                     std::to_string(backward));
        const int64_t periods = microBatches + stages - 1;
        for (bool isGpipe : {true, false}) {
          const Pipeline pipeline(
              {stages, microBatches, forward, backward}, [&](int stage) {
                return isGpipe
                           ? gpipe(microBatches)
                           : oneForwardOneBackward(stages, stage, microBatches);
              });
          absl::StatusOr<RankTimes> times = pipeline.run();
          ASSERT_TRUE(times.ok()) << times.status().message();
          EXPECT_EQ(times->makespan, periods * (forward + backward));
          for (int s = 0; s < stages; ++s)
            EXPECT_EQ(pipeline.saved(s),
                      isGpipe ? microBatches
                              : std::min(stages - s, microBatches));
        }
      }
}

/// Two stages, two micro-batches, kernels of 10 and messages of 5: by hand.
TEST(SimulateRanks, MessagesTakeTime) {
  const Pipeline pipeline({2, 2, 10, 10, 5}, [](int stage) {
    return oneForwardOneBackward(2, stage, 2);
  });
  absl::StatusOr<RankTimes> times = pipeline.run();
  ASSERT_TRUE(times.ok()) << times.status().message();
  // rank 0   f0 0-10, f1 10-20,             b0 40-50,              b1 60-70
  // x                 x0 10-15, x1 35-40
  // rank 1                f0 15-25, b0 25-35,     f1 40-50, b1 50-60
  // g                                       g0 35-40,              g1 60-65
  EXPECT_EQ(times->ranks[1].end, 65);
  EXPECT_EQ(times->ranks[0].end, 75);
  // x1 has been ready since 20, and g0 and g1 are received when they are made.
  EXPECT_EQ(times->ranks[0].waiting, (35 - 20) + (35 - 20) + (60 - 50));
  EXPECT_EQ(times->ranks[1].waiting, 10);
}

/// With one network, each stage sends before it receives.
TEST(SimulateRanks, ARingIsNamed) {
  const Pipeline pipeline({2, 3, 1, 1, 0, true}, [](int stage) {
    return oneForwardOneBackward(2, stage, 3);
  });
  absl::StatusOr<RankTimes> times = pipeline.run();
  EXPECT_EQ(times.status().message(),
            "ranks wait for each other: rank 0 in 'send_y1' for rank 1 in "
            "'send_d0' for rank 0");
}

TEST(SimulateRanks, ChannelsAreChecked) {
  Pipeline pipeline({2, 1}, [](int) { return gpipe(1); });
  ASSERT_TRUE(pipeline.run().ok());
  auto says = [&](const std::string &words) {
    absl::StatusOr<RankTimes> times = pipeline.run();
    EXPECT_EQ(times.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(times.status().message(), words);
  };
  std::vector<int32_t> &channelOf = pipeline.lists[0].channelOf;
  const std::vector<int32_t> right = channelOf;
  channelOf.pop_back();
  says("rank 0 doesn't say the channel of each recipe");
  channelOf = right;
  channelOf[0] = 0;
  says("rank 0 runs 'f0' on a channel, but not on its one network");
  channelOf[0] = 7;
  says("rank 0 runs 'f0' on no channel");
  channelOf = right;
  for (const Channel &wrong :
       {Channel{0}, Channel{1, 0}, Channel{0, 0}, Channel{0, 2}, Channel{}}) {
    pipeline.channels[0] = wrong;
    says("rank 0 runs 'send_y0' on a channel that isn't a list of two or more "
         "ranks with this one");
  }
}

} // namespace
