//===- ProfileTest.cpp - sums and spans of times that a device took -------===//

#include "TinyProgram.h"

#include "runtime/step/Profile.h"
#include "runtime/step/Trace.h"

#include "gtest/gtest.h"

#include <string>

using namespace tmc;
using namespace tmc::test;

namespace {

const StepProgram &program() {
  static const StepProgram made = tiny::program();
  return made;
}

// Entries of kLaunches.
constexpr int64_t kEmbed = 0, kEmbedUpdate = 7, kHeadUpdate = 8;

/// One launch of the embedding, then two updates of two launches each. Each
/// launch takes `milliseconds`, with gaps of a millisecond between entries.
StepTimes stepOf(double milliseconds) {
  StepTimes step;
  double now = 0.005;
  auto entry = [&](int64_t index, std::initializer_list<const char *> names) {
    step.entries.push_back({index, step.launches.size(), names.size()});
    for (const char *name : names) {
      step.launches.push_back({name, now, now + milliseconds * 1e-3});
      now = step.launches.back().end;
    }
    now += 1e-3;
  };
  entry(kEmbed, {"lookUp"});
  entry(kEmbedUpdate, {"adamw", "addParts"});
  entry(kHeadUpdate, {"adamw", "addParts"});
  return step;
}

std::string lineOf(const std::string &text, const std::string &begin) {
  const size_t at = text.find("\n" + begin);
  return at == std::string::npos
             ? ""
             : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

} // namespace

TEST(Profile, AddsUpWhatTheDeviceTimed) {
  Profile profile(program(), nullptr, true, "a card");
  for (double milliseconds : {50.0, 4.0, 2.0}) { // the first isn't counted
    profile.start();
    profile.add(stepOf(milliseconds));
    profile.finish();
  }
  EXPECT_EQ(profile.steps(), 2);
  const std::string table = profile.table();
  // Five launches of 4 and of 2 ms, and two gaps of 1 ms.
  EXPECT_EQ(table.substr(0, table.find('\n')),
            "profile of 2 steps after the first: device busy 15.0 ms of 17.0 "
            "ms a step, 10.0 ms of each launch's fastest");
  EXPECT_EQ(lineOf(table, "update "),
            "update                          2     12.00      8.00  80.0%"
            "                           embed.update")
      << table;
  for (const char *name : {"addParts", "adamw"})
    EXPECT_EQ(lineOf(table, std::string("  ") + name)
                  .compare(24, 36, "        2      6.00      4.00  40.0%"),
              0)
        << table;
  // One launch an entry: its row says all.
  EXPECT_EQ(table.find("lookUp"), std::string::npos) << table;
  const std::string json = profile.json();
  EXPECT_EQ(json.find("{\"schema\": 3, \"steps\": 2, \"device\": \"a card\", "
                      "\"wall_seconds\": 0.034,"),
            0u)
      << json;
  EXPECT_NE(
      json.find("\"runs\": 2, \"seconds\": 0.012, \"least_seconds\": 0.004, "
                "\"flops\": 0, \"bytes\": 0, \"elements\": 0, "
                "\"device_launches\": [{\"name\": \"adamw\", \"runs\": "
                "2, \"seconds\": 0.006, \"least_seconds\": 0.002}, "),
      std::string::npos)
      << json;
  EXPECT_NE(json.find("\"device_launches\": []"), std::string::npos) << json;
}

TEST(Profile, OfTheCallersClockHasNoDeviceLaunches) {
  Profile profile(program(), nullptr, false, "cpu");
  for (int step = 0; step < 2; ++step) {
    profile.start();
    profile.finish();
  }
  EXPECT_EQ(profile.table().find("device"), std::string::npos);
  EXPECT_EQ(profile.json().find("device_launches"), std::string::npos);
  EXPECT_EQ(profile.json().find("wall_seconds"), std::string::npos);
  EXPECT_NE(profile.json().find("\"device\": \"cpu\", \"objects\": {},"),
            std::string::npos)
      << profile.json();
}

TEST(Trace, AnEntryLastsFromItsFirstLaunchToItsLast) {
  Trace trace(program(), nullptr, true);
  trace.start();
  trace.add(stepOf(2)); // of seconds since the clock's epoch: before the step
  const std::string json = trace.json();
  EXPECT_NE(json.find("\"dur\": 2000.000, \"args\": {\"entry\": 0,"),
            std::string::npos)
      << json;
  for (const char *entry : {"7", "8"})
    EXPECT_NE(
        json.find(std::string("\"dur\": 4000.000, \"args\": {\"entry\": ") +
                  entry + ","),
        std::string::npos)
        << json;
}
