#include "compiler/planning/pack/Arena.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace tmc::planning;

namespace {

/// The definition, pair by pair.
bool overlaps(const ArenaProblem &problem, const Packing &packing) {
  auto root = [&](size_t i) {
    while (problem.buffers[i].inside >= 0)
      i = problem.buffers[i].inside;
    return i;
  };
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const Buffer &a = problem.buffers[i], &b = problem.buffers[j];
      if (root(i) != root(j) && a.bytes && b.bytes &&
          a.lifetime.meets(b.lifetime) &&
          packing.offsets[i] < packing.offsets[j] + b.bytes &&
          packing.offsets[j] < packing.offsets[i] + a.bytes)
        return true;
    }
  return false;
}

ArenaProblem randomProblem(std::mt19937 &random, int n) {
  ArenaProblem problem;
  problem.alignment = 1 << random() % 3;
  for (int i = 0; i < n; ++i) {
    Buffer b;
    b.name = "b" + std::to_string(i);
    b.bytes = random() % 20;
    b.lifetime.begin = random() % 20;
    b.lifetime.end = b.lifetime.begin + random() % 8;
    if (i && random() % 4 == 0) {
      b.inside = random() % i;
      b.distance = random() % 3 * problem.alignment;
    }
    problem.buffers.push_back(b);
  }
  return problem;
}

TEST(Arena, PacksThePictureOfTheHeader) {
  ArenaProblem problem;
  problem.alignment = 64;
  problem.buffers = {{"a", 64, {0, 2}}, {"b", 64, {2, 6}}, {"c", 64, {2, 4}}};
  Packing packing = packArena(problem);
  EXPECT_EQ(verifyPacking(problem, packing), std::nullopt);
  EXPECT_EQ(packing.arenaBytes, 128);
  EXPECT_EQ(peakBytes(problem), 128);
}

TEST(Arena, RandomProblemsWithTiesPackRight) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    ArenaProblem problem = randomProblem(random, 1 + random() % 30);
    ASSERT_EQ(checkArena(problem), std::nullopt);
    Packing packing = packArena(problem);
    ASSERT_EQ(verifyPacking(problem, packing), std::nullopt);
    ASSERT_FALSE(overlaps(problem, packing));
    EXPECT_GE(packing.arenaBytes, peakBytes(problem));
  }
}

TEST(Arena, TheSweepFindsWhatThePairsFind) {
  std::mt19937 random(2);
  int wrong = 0;
  for (int round = 0; round < 2000; ++round) {
    ArenaProblem problem = randomProblem(random, 1 + random() % 12);
    Packing packing = packArena(problem);
    // Move one group somewhere else.
    int64_t by = problem.alignment * (random() % 12);
    size_t victim = random() % problem.buffers.size();
    auto root = [&](size_t i) {
      while (problem.buffers[i].inside >= 0)
        i = problem.buffers[i].inside;
      return i;
    };
    for (size_t i = 0; i < problem.buffers.size(); ++i)
      if (root(i) == root(victim))
        packing.offsets[i] += by;
    packing.arenaBytes += by;
    wrong += overlaps(problem, packing);
    ASSERT_EQ(verifyPacking(problem, packing).has_value(),
              overlaps(problem, packing))
        << round;
  }
  EXPECT_GT(wrong, 300);
}

TEST(Arena, NamesTheDefect) {
  ArenaProblem problem;
  problem.alignment = 8;
  problem.buffers = {
      {"a", 16, {0, 2}}, {"b", 16, {1, 3}}, {"c", 8, {1, 3}, 0, 1, 8}};
  Packing good{{0, 16, 24}, 32};
  EXPECT_EQ(verifyPacking(problem, good), std::nullopt);
  EXPECT_EQ(
      verifyPacking(problem, {{0, 8, 16}, 32}),
      "'a' at [0, 16) and 'b' at [8, 24) overlap while both are alive at 1");
  EXPECT_EQ(verifyPacking(problem, {{0, 20, 28}, 64}),
            "'b' is at misaligned offset 20");
  EXPECT_EQ(verifyPacking(problem, {{0, 16, 16}, 32}),
            "'c' is 0 bytes into 'b', not 8");
  EXPECT_EQ(verifyPacking(problem, {{0, 16, 24}, 24}),
            "'b' ends at 32, past the arena of 24 bytes");
  EXPECT_EQ(verifyPacking(problem, {{0, 16}, 32}),
            "packing places 2 of 3 buffers");
  problem.buffers[0].fixedOffset = 32;
  EXPECT_EQ(verifyPacking(problem, good),
            "'a' is at 0, not at its fixed offset 32");
  EXPECT_EQ(packArena(problem).offsets[0], 32);
  problem.buffers[1].inside = 2;
  EXPECT_EQ(checkArena(problem), "'b' is inside itself");
}

/// Cuts time x bytes into boxes at random: they fill the arena exactly.
void cut(std::mt19937 &random, int64_t t0, int64_t t1, int64_t b0, int64_t b1,
         int pieces, ArenaProblem &problem) {
  bool acrossTime = random() % 2;
  int64_t room = acrossTime ? t1 - t0 : b1 - b0;
  if (pieces <= 1 || room < 2) {
    problem.buffers.push_back(
        {"b" + std::to_string(problem.buffers.size()), b1 - b0, {t0, t1}});
    return;
  }
  int64_t at = 1 + int64_t(random() % uint64_t(room - 1));
  int first = 1 + int(random() % uint64_t(pieces - 1));
  if (acrossTime) {
    cut(random, t0, t0 + at, b0, b1, first, problem);
    cut(random, t0 + at, t1, b0, b1, pieces - first, problem);
  } else {
    cut(random, t0, t1, b0, b0 + at, first, problem);
    cut(random, t0, t1, b0 + at, b1, pieces - first, problem);
  }
}

TEST(Arena, PerfectPackingsAreFound) {
  std::mt19937 random(3);
  int perfect = 0;
  for (int round = 0; round < 40; ++round) {
    ArenaProblem problem;
    problem.alignment = 1;
    problem.capacityBytes = 1000;
    cut(random, 0, 60, 0, 1000, 40, problem);
    ASSERT_EQ(peakBytes(problem), 1000);
    PackOptions options;
    options.effort = 2;
    Packing packing = packArena(problem, options);
    ASSERT_EQ(verifyPacking(problem, packing), std::nullopt);
    perfect += packing.arenaBytes == 1000;
  }
  EXPECT_GE(perfect, 36);
}

/// The same with pieces of like area, in spirals of five now and then, which no
/// straight cut takes apart.
void cutEvenly(std::mt19937 &random, int64_t t0, int64_t t1, int64_t b0,
               int64_t b1, int pieces, ArenaProblem &problem) {
  int64_t time = t1 - t0, bytes = b1 - b0;
  auto inside = [&](int64_t from, int64_t room, int64_t of, int64_t many) {
    return from + 1 + (room - 1) * of / many +
           int64_t(random() % uint64_t((room - 1) / many));
  };
  struct Part {
    int64_t t0, t1, b0, b1;
  };
  std::vector<Part> parts;
  if (pieces >= 5 && time > 4 && bytes > 4 && random() % 3 == 0) {
    int64_t a = inside(t0, time, 0, 2), c = inside(t0, time, 1, 2);
    int64_t x = inside(b0, bytes, 0, 2), y = inside(b0, bytes, 1, 2);
    parts = {{t0, c, b0, x},
             {c, t1, b0, y},
             {a, t1, y, b1},
             {t0, a, x, b1},
             {a, c, x, y}};
  } else if (pieces > 1 && time > 1 && (bytes < 2 || random() % 2)) {
    int64_t a = inside(t0, time, 0, 1);
    parts = {{t0, a, b0, b1}, {a, t1, b0, b1}};
  } else if (pieces > 1 && bytes > 1) {
    int64_t x = inside(b0, bytes, 0, 1);
    parts = {{t0, t1, b0, x}, {t0, t1, x, b1}};
  } else {
    problem.buffers.push_back(
        {"b" + std::to_string(problem.buffers.size()), bytes, {t0, t1}});
    return;
  }
  for (const Part &p : parts)
    cutEvenly(random, p.t0, p.t1, p.b0, p.b1,
              int(pieces * ((p.t1 - p.t0) * (p.b1 - p.b0)) / (time * bytes)),
              problem);
}

// Small buffers that live long would lie on top of everything, wherever the
// others leave no room; at the bottom they take next to none.
TEST(Arena, SmallBuffersThatLiveLongLieBelow) {
  std::mt19937 random(3);
  ArenaProblem problem;
  problem.alignment = 1;
  for (int i = 0; i < 900; ++i) { // Towers that leave a hole now and then.
    int64_t begin = int64_t(random() % 900), bytes = 1000 + random() % 9000;
    problem.buffers.push_back(
        {"large", bytes, {begin, begin + 4 + int64_t(random() % 40)}});
  }
  for (int i = 0; i < 600; ++i)
    problem.buffers.push_back({"small", 2, {i, 950}});
  Packing packing = packArena(problem);
  ASSERT_EQ(verifyPacking(problem, packing), std::nullopt);
  int64_t highest = 0;
  for (size_t i = 900; i < problem.buffers.size(); ++i)
    highest = std::max(highest, packing.offsets[i]);
  EXPECT_LT(highest, packing.arenaBytes / 10);
}

TEST(Arena, HundredsOfBuffersArePackedPerfectly) {
  std::mt19937 random(2);
  int perfect = 0;
  for (int round = 0; round < 10; ++round) {
    ArenaProblem problem;
    problem.alignment = 1;
    problem.capacityBytes = 1024;
    cutEvenly(random, 0, 1024, 0, 1024, 260, problem);
    ASSERT_GT(problem.buffers.size(), 100u);
    PackOptions options;
    options.effort = 1;
    Packing packing = packArena(problem, options);
    ASSERT_EQ(verifyPacking(problem, packing), std::nullopt);
    perfect += packing.arenaBytes == 1024;
  }
  EXPECT_EQ(perfect, 10);
}

// Of thousands few need a place where most is alive; they come first.
TEST(Arena, OfThousandsOfBuffersLittleIsLost) {
  std::mt19937 random(5);
  ArenaProblem problem;
  problem.alignment = 1;
  std::uniform_real_distribution<double> unit;
  std::normal_distribution<double> hump(1500, 250);
  for (int i = 0; i < 5100; ++i) {
    const int64_t sizes[] = {25, 32, 50, 75, 100, 150};
    const int64_t begin = random() % 2 ? int64_t(random() % 3000)
                                       : int64_t(std::abs(hump(random)));
    const int64_t length = 1 + int64_t(std::pow(unit(random), 3) * 100);
    problem.buffers.push_back(
        {"b", sizes[random() % 6], {begin, begin + length}});
  }
  ASSERT_GT(problem.buffers.size(), 5000u);
  Packing packing = packArena(problem);
  ASSERT_EQ(verifyPacking(problem, packing), std::nullopt);
  const int64_t peak = peakBytes(problem);
  printf("  %.4f of the peak\n", double(packing.arenaBytes) / double(peak));
  EXPECT_LT(packing.arenaBytes, peak + peak / 33);
}

} // namespace
