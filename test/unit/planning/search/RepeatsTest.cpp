// Layers that repeat each other are found by what they are, and what is done in
// one can be done in another.

#include "compiler/planning/search/Repeats.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/search/Checkpoint.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

LinearProblem transformer(int64_t nodes, bool repeats) {
  return linearize(
      *problemOf(generateGraph({Family::Transformer, nodes, 5, repeats})));
}

TEST(Repeats, FindsEqualLayersAndNoOthers) {
  LinearProblem linear = transformer(1000, true);
  Repeats repeats(linear);
  int64_t n = int64_t(linear.stages.size());
  EXPECT_GT(repeats.count(), n * 9 / 10);
  for (int32_t k = 0; k < n; ++k) {
    std::span<const int32_t> like = repeats.like(k);
    EXPECT_TRUE(std::is_sorted(like.begin(), like.end()));
    EXPECT_TRUE(std::binary_search(like.begin(), like.end(), k));
    for (int32_t j : like) {
      EXPECT_EQ(linear.ops[linear.stages[j].variants[0]].cost,
                linear.ops[linear.stages[k].variants[0]].cost);
    }
  }
  EXPECT_EQ(Repeats(transformer(1000, false)).count(), 0);
}

/// A layer that differs in one cost is like the others only where that is far
/// away.
TEST(Repeats, ADifferenceSpreads) {
  LinearProblem linear = transformer(1000, true);
  Repeats before(linear);
  int32_t odd = 0;
  while (before.like(odd).size() < 10)
    ++odd;
  odd = before.like(odd)[4];
  linear.ops[linear.stages[odd].variants[0]].cost += 1;
  Repeats after(linear);
  EXPECT_EQ(after.like(odd).size(), 1u);
  EXPECT_LT(after.count(), before.count());
  EXPECT_GT(after.count(), before.count() - 100);
}

/// A sum over all layers reads them in some order, which means nothing.
TEST(Repeats, SeesThroughASumOverAllLayers) {
  constexpr int32_t kLayers = 30, kSum = 1 + 2 * kLayers;
  Graph graph;
  graph.nodes.assign(kSum + 1, {8, 1});
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    int32_t first = 1 + 2 * layer;
    graph.edges.insert(graph.edges.end(),
                       {{0, first}, {first, first + 1}, {first + 1, kSum}});
  }
  LinearProblem linear = linearize(*problemOf(graph));
  Repeats repeats(linear);
  EXPECT_EQ(repeats.like(1).size(), size_t(kLayers));
  EXPECT_EQ(repeats.like(2).size(), size_t(kLayers));
  EXPECT_EQ(repeats.like(0).size(), 1u);
  EXPECT_FALSE(repeats.areIsomorphic(1, 2));
}

/// What one layer recomputes, another can, and back again it is the same.
TEST(Repeats, WhatOneLayerDoesAnotherCan) {
  LinearProblem linear = transformer(1000, true);
  Repeats repeats(linear);
  Schedule schedule(linear, 0);
  schedule.setLimit(schedule.peakBytes() * 6 / 10);
  RematPlan plan = checkpoint(linear, schedule.limit());
  int translated = 0;
  for (int32_t from = 0; from + 40 < int32_t(linear.stages.size()); ++from) {
    std::span<const int32_t> like = repeats.like(from);
    if (like.size() < 2 || like.back() == from)
      continue;
    int32_t shift = *std::upper_bound(like.begin(), like.end(), from) - from;
    int32_t to = from + std::min(shift, 40) - 1;
    if (to + shift >= int32_t(linear.stages.size()))
      continue;
    restore(linear, schedule, plan);
    std::vector<Schedule::Clone> there;
    if (!repeats.translate(schedule, from, to, shift, there) || there.empty())
      continue;
    ++translated;
    Schedule twin(linear, schedule.limit());
    for (const Schedule::Clone &c : there) {
      ASSERT_TRUE(twin.canInsert(c.op, c.stage));
      twin.insert(c.op, c.stage);
    }
    std::vector<Schedule::Clone> back;
    ASSERT_TRUE(
        repeats.translate(twin, from + shift, to + shift, -shift, back));
    EXPECT_EQ(back.size(), there.size());
    for (const Schedule::Clone &c : back)
      EXPECT_TRUE(schedule.has(c.op, c.stage));
  }
  EXPECT_GT(translated, 20);
}

} // namespace
