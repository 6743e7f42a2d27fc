// MoveFitTest.cpp - rates of engines from what a trace shows while all are
// busy.

#include "driver/calibrate/MoveFit.h"

#include <gtest/gtest.h>

using namespace tmc;

namespace {

constexpr double kLarge = 16 << 20, kSmall = 64 << 10;

/// One after the other from `begin` on, until `end`.
void add(std::vector<MeasuredMove> &moves, const Channel &channel, double begin,
         double end) {
  for (int i = 0; begin < end; ++i) {
    const double bytes = i % 4 == 0 ? kSmall : kLarge;
    moves.push_back({bytes, begin, begin + channel.seconds(bytes)});
    begin = moves.back().endSeconds;
  }
}

} // namespace

TEST(MoveFit, FindsLatencyAndRate) {
  const Channel out{20e-6, 5e9}, in{10e-6, 8e9};
  MeasuredMoves moves;
  add(moves[engine("d2h")], out, 0, 0.2);
  add(moves[engine("h2d")], in, 0, 0.2);
  EngineRates found = fitRates(moves);
  EXPECT_NEAR(found[engine("d2h")].bytesPerSecond, 5e9, 1e4);
  EXPECT_NEAR(found[engine("d2h")].latencySeconds, 20e-6, 1e-9);
  EXPECT_NEAR(found[engine("h2d")].bytesPerSecond, 8e9, 1e4);
  EXPECT_NEAR(found[engine("h2d")].latencySeconds, 10e-6, 1e-9);
}

/// A copy is three times as fast when the file's engine has come to its end,
/// and before the device's has begun.
TEST(MoveFit, WhatRunsBesideIdleEnginesDoesntCount) {
  MeasuredMoves moves;
  add(moves[engine("compute")], {0, 1e9}, 0.1, 0.5);
  add(moves[engine("file-write")], {0, 1e9}, 0, 0.4);
  const double end = moves[engine("file-write")].back().endSeconds;
  add(moves[engine("d2h")], {0, 6e9}, 0, 0.09);
  add(moves[engine("d2h")], {0, 2e9}, 0.1, end - 0.01);
  add(moves[engine("d2h")], {0, 6e9}, end, 2);
  EngineRates found = fitRates(moves);
  EXPECT_NEAR(found[engine("d2h")].bytesPerSecond, 2e9, 1e4);
  EXPECT_NEAR(found[engine("file-write")].bytesPerSecond, 1e9, 1e4);
  EXPECT_NEAR(found[engine("compute")].bytesPerSecond, 1e9, 1e4);
}

/// Two copies in three wait as long for the processor as they take: the median
/// would know nothing of the third.
TEST(MoveFit, WaitingForTheProcessorCounts) {
  MeasuredMoves moves;
  double at = 0;
  for (int i = 0; i < 30; ++i) {
    const double seconds = i % 3 == 0 ? 3e-3 : 1e-3;
    moves[engine("h2d")].push_back({5e6, at, at + seconds});
    at += seconds;
  }
  EXPECT_NEAR(fitRates(moves)[engine("h2d")].bytesPerSecond, 3e9, 1e4);
}

/// Updates are of one size; scalars that are moved for them are none of it.
TEST(MoveFit, OneSizeIsARate) {
  EngineRates found = fitRates(
      {{engine("host"), {{4, 0, 1}, {1e9, 1, 3}, {1e9, 3, 5}, {1e9, 5, 7}}}});
  EXPECT_DOUBLE_EQ(found[engine("host")].bytesPerSecond, 0.5e9);
  EXPECT_EQ(found[engine("host")].latencySeconds, 0);
  EXPECT_TRUE(fitRates({{engine("d2h"), {{8, 0, 1}}}}).empty());
}

/// Of an engine that did little while all were busy, the first pieces count.
TEST(MoveFit, FewPiecesAreTheFirst) {
  MeasuredMoves moves;
  add(moves[engine("d2h")], {0, 2e9}, 0, 0.1);
  moves[engine("file-read")] = {
      {kLarge, 0, 1}, {kLarge, 1, 2}, {kLarge, 2, 3}, {kLarge, 3, 10}};
  EXPECT_DOUBLE_EQ(fitRates(moves)[engine("file-read")].bytesPerSecond, kLarge);
}

/// A small piece that took no less than its share has no latency below zero.
TEST(MoveFit, LatencyIsNeverNegative) {
  MeasuredMoves moves;
  moves[engine("d2h")] = {{kSmall, 0, 1e-6}, {kLarge, 1, 2}};
  Channel found = fitRates(moves)[engine("d2h")];
  EXPECT_EQ(found.latencySeconds, 0);
  EXPECT_EQ(found.bytesPerSecond, kLarge);
}

/// What one engine gains while another loses as much is no gain.
TEST(MoveFit, EnginesAreComparedTogether) {
  const EngineRates even = {{engine("d2h"), {0, 2e9}},
                            {engine("h2d"), {0, 2e9}}};
  EXPECT_TRUE(areFaster(even, {}));
  EXPECT_FALSE(areFaster({}, even));
  EXPECT_FALSE(areFaster(even, even));
  EXPECT_TRUE(
      areFaster(even, {{engine("d2h"), {0, 3e9}}, {engine("h2d"), {0, 1e9}}}));
  EXPECT_TRUE(areFaster(
      {{engine("d2h"), {0, 3e9}}, {engine("h2d"), {0, 1.5e9}}}, even));
}

TEST(MoveFit, ReadsTheTracesMeasuredLanes) {
  MeasuredMoves moves = movesOfTrace(R"({"traceEvents": [
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0,
     "args": {"name": "measured"}},
    {"ph": "X", "name": "stash", "pid": 1, "tid": 1, "ts": 2.5, "dur": 1.5,
     "args": {"entry": 3, "bytes": 4096}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1,
     "args": {"name": "d2h"}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 0,
     "args": {"name": "compute"}},
    {"ph": "X", "name": "product", "pid": 1, "tid": 0, "ts": 0, "dur": 9,
     "args": {"entry": 1, "bytes": 1}},
    {"ph": "M", "name": "thread_name", "pid": 2, "tid": 1,
     "args": {"name": "d2h"}},
    {"ph": "X", "name": "stash", "pid": 2, "tid": 1, "ts": 7, "dur": 1,
     "args": {"entry": 3, "bytes": 4096}}]})");
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_EQ(moves[engine("compute")].size(), 1u);
  ASSERT_EQ(moves[engine("d2h")].size(), 1u);
  EXPECT_EQ(moves[engine("d2h")][0].bytes, 4096);
  EXPECT_DOUBLE_EQ(moves[engine("d2h")][0].beginSeconds, 2.5e-6);
  EXPECT_DOUBLE_EQ(moves[engine("d2h")][0].endSeconds, 4e-6);
  EXPECT_TRUE(movesOfTrace("{").empty());
  EXPECT_TRUE(movesOfTrace("{\"traceEvents\": 1}").empty());
}

TEST(MoveFit, DescribesTheHost) {
  Target target = *findTarget("cpu");
  const Channel read = target.copies[engine("file-read")];
  describeMoves({{engine("d2h"), {1, 2}},
                 {engine("h2d"), {3, 4}},
                 {engine("host"), {0, 28e9}}},
                target);
  EXPECT_EQ(target.copies[engine("d2h")].seconds(2), 1 + 1);
  EXPECT_EQ(target.copies[engine("h2d")].seconds(4), 3 + 1);
  // An update of a million parameters, of 20 operations each.
  EXPECT_EQ(target.updates.seconds(20e6, 28e6), 1e-3);
  EXPECT_EQ(target.copies[engine("file-read")].bytesPerSecond,
            read.bytesPerSecond);
  describeMoves({{engine("file-read"), {5, 6}}, {engine("file-write"), {7, 8}}},
                target);
  EXPECT_EQ(target.copies[engine("file-read")].seconds(6), 5 + 1);
  EXPECT_EQ(target.copies[engine("file-write")].seconds(8), 7 + 1);
}
