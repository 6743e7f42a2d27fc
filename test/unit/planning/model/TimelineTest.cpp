// The timeline on a chain by hand, and on random problems against the verifier
// and against counts entry by entry.

#include "compiler/planning/search/LinearProblem.h"
#include "test/unit/planning/RandomProblem.h"

#include <gtest/gtest.h>

#include <tuple>

using namespace tmc::planning;

namespace {

Problem chain() {
  Problem p;
  for (const char *name : {"a", "b", "c", "d"}) {
    Value value;
    value.name = name;
    value.bytes = 100;
    p.addValue(value);
  }
  SegmentId s = p.addSegment("step");
  auto add = [&](std::vector<ValueId> reads, std::vector<ValueId> writes) {
    Recipe recipe;
    recipe.reads = std::move(reads);
    recipe.writes = std::move(writes);
    recipe.cost = 3;
    recipe.recomputable = true;
    p.addInstruction(s, recipe);
  };
  add({}, {0});     // a
  add({0}, {1});    // b = f(a)
  add({1}, {2});    // c = f(b)
  add({0, 2}, {3}); // d = g(a, c)
  return p;
}

TEST(Timeline, OfAChainByHand) {
  Problem p = chain();
  Timeline t = *timelineOf(p, baseSolution(p));
  ASSERT_EQ(t.size(), 4u);
  std::vector<std::tuple<ValueId, int32_t, int32_t>> lives, gaps;
  auto findGaps = [&] { // From each touch to the next read, beyond neighbours.
    gaps.clear();
    for (size_t i = 0; i < t.instances.size(); ++i) {
      int32_t from = t.instances[i].begin;
      for (int32_t use : t.usesOf(int32_t(i))) {
        if (use - from > 1)
          gaps.push_back({t.instances[i].value, from, use});
        from = use;
      }
    }
  };
  for (const Instance &i : t.instances)
    lives.push_back({i.value, i.begin, i.last});
  using List = std::vector<std::tuple<ValueId, int32_t, int32_t>>;
  EXPECT_EQ(lives, (List{{0, 0, 3}, {1, 1, 2}, {2, 2, 3}, {3, 3, 3}}));
  findGaps();
  // b and c are used right after their production: no gap to break.
  EXPECT_EQ(gaps, (List{{0, 1, 3}}));
  ASSERT_EQ(t.spaces.size(), 1u);
  EXPECT_EQ(t.spaces[kDeviceSpace].liveBytes,
            (std::vector<int64_t>{100, 200, 300, 300}));
  EXPECT_EQ(t.spaces[kDeviceSpace].peakMoment, 2u);
  ASSERT_EQ(t.engineBusy.size(), 1u);
  EXPECT_EQ(t.engineBusy[kComputeEngine], 12);

  // a recomputed before d: a second instance, and only c waits for d.
  Solution recomputed = baseSolution(p);
  recomputed.segments[0].insert(recomputed.segments[0].begin() + 3,
                                {0, kNone, {}});
  t = *timelineOf(p, recomputed);
  EXPECT_EQ(t.instances.size(), 5u);
  EXPECT_EQ(t.spaces[kDeviceSpace].liveBytes,
            (std::vector<int64_t>{100, 200, 200, 200, 300}));
  EXPECT_EQ(t.engineBusy[kComputeEngine], 15);
  findGaps();
  EXPECT_EQ(gaps, (List{{2, 2, 4}}));
}

TEST(Timeline, CountsWhatTheVerifierCounts) {
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    RandomShape shape;
    shape.trips = 1 + int64_t(random.below(3));
    shape.extras = i % 2;
    Problem p = randomProblem(random, shape);
    Solution base = baseSolution(p);
    Timeline t = *timelineOf(p, base);
    Claim claim = *measure(p, base);
    EXPECT_EQ(t.spaces[kDeviceSpace].peakBytes, claim.peakBytes);
    EXPECT_EQ(t.engineBusy[kComputeEngine], claim.cost);
    // An instance's last read is its last use.
    for (int32_t k = 0; k < int32_t(t.instances.size()); ++k)
      if (std::span<const int32_t> uses = t.usesOf(k); !uses.empty()) {
        EXPECT_LE(uses.back(), t.instances[k].last);
      }
  }
}

TEST(Timeline, OfALinearProblemEntryByEntry) {
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    Problem p = randomProblem(random, {});
    LinearProblem linear = linearize(p);
    std::vector<OpId> sequence = ownExecutions(linear);
    Timeline t = timelineOf(linear, sequence);
    ASSERT_EQ(t.size(), linear.stages.size());
    std::vector<int64_t> live = t.liveBytes(linear.bytes);
    std::vector<int64_t> across = t.crossingBytes(linear.bytes);
    ASSERT_EQ(across.size(), t.size() + 1);
    for (int32_t k = 0; k <= int32_t(t.size()); ++k) {
      int64_t here = 0, before = 0;
      for (const Instance &instance : t.instances) {
        int64_t bytes = linear.bytes[instance.value];
        here += instance.begin <= k && k <= instance.last ? bytes : 0;
        before += instance.begin < k && k <= instance.last ? bytes : 0;
      }
      EXPECT_EQ(across[k], before);
      if (k < int32_t(t.size())) {
        EXPECT_EQ(live[k], here);
      }
    }
    for (size_t k = 0; k < t.size(); ++k)
      for (size_t r = 0; r < linear.ops[sequence[k]].reads.size(); ++r)
        EXPECT_EQ(t.instances[t.readsAt(k)[r]].value,
                  linear.ops[sequence[k]].reads[r]);
  }
}

} // namespace
