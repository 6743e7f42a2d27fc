//===- ScheduleTest.cpp - learning rates and the command line -------------===//

#include "runtime/step/Arguments.h"

#include "gtest/gtest.h"

using namespace tmc;

TEST(Schedule, Shapes) {
  Schedule s;
  ASSERT_TRUE(Schedule::parse("constant", s));
  EXPECT_EQ(s.factor(1, 10), 1);
  ASSERT_TRUE(Schedule::parse("linear:warmup=4,min=0.5", s));
  EXPECT_EQ(s.factor(1, 14), 0.25);
  EXPECT_EQ(s.factor(4, 14), 1);
  EXPECT_DOUBLE_EQ(s.factor(9, 14), 0.75); // half of the way from 1 to 0.5
  EXPECT_EQ(s.factor(14, 14), 0.5);
  ASSERT_TRUE(Schedule::parse("cosine:total=100", s));
  EXPECT_NEAR(s.factor(50, 7), 0.5, 1e-12); // `total` wins over the last step
  EXPECT_NEAR(s.factor(100, 7), 0, 1e-12);
  EXPECT_NEAR(s.factor(150, 7), 0, 1e-12);
}

TEST(Schedule, RefusesNonsense) {
  Schedule s;
  for (const char *text : {"", "exp", "linear:warmup", "linear:warmup=x",
                           "linear:warmup=1.5", "cosine:min=2", "cosine:min=-1",
                           "cosine:total=0", "cosine:foo=1", "cosine:min=nan"})
    EXPECT_EQ(Schedule::parse(text, s).code(), Code::Usage) << text;
}

TEST(Arguments, AreReadAndChecked) {
  Arguments a;
  ASSERT_TRUE(parseArguments({"--data", "x=f+1", "--data=g", "--steps", "7",
                              "--lr=3e-4", "--init", "random:5", "--seed", "2",
                              "--threads", "2"},
                             a));
  EXPECT_EQ(a.data, (std::vector<std::string>{"x=f+1", "g"}));
  EXPECT_EQ(a.steps, 7);
  EXPECT_EQ(a.rate, 3e-4);
  EXPECT_EQ(a.initSeed, 5u);
  EXPECT_EQ(*a.seed, 2u);
  EXPECT_EQ(a.threads, 2);
  EXPECT_FALSE(a.profile);
  EXPECT_TRUE(a.graph);

  Arguments table, file;
  ASSERT_TRUE(parseArguments(
      {"--profile", "--data", "f", "--steps", "1", "--no-graph"}, table));
  EXPECT_TRUE(table.profile);
  EXPECT_FALSE(table.graph);
  EXPECT_EQ(table.profileFile, "");
  ASSERT_TRUE(parseArguments(
      {"--profile=p.json", "--data", "f", "--steps", "1"}, file));
  EXPECT_TRUE(file.profile);
  EXPECT_EQ(file.profileFile, "p.json");

  Arguments kept, rounded;
  ASSERT_TRUE(parseArguments(
      {"--save-weights", "--save=d", "--data", "f", "--steps", "1"}, kept));
  EXPECT_TRUE(kept.saveWeights && !kept.weightsType);
  ASSERT_TRUE(parseArguments(
      {"--save-weights=bf16", "--save=d", "--data", "f", "--steps", "1"},
      rounded));
  EXPECT_EQ(*rounded.weightsType, DType::BF16);

  auto fails = [](std::vector<std::string> words) {
    Arguments b;
    const Status s = parseArguments(words, b);
    EXPECT_EQ(s.code(), Code::Usage);
    return s.message();
  };
  EXPECT_NE(fails({"--stepz", "3"}).find("'--steps'"), std::string::npos);
  fails({"--data", "f"});
  fails({"--steps", "3"});
  fails({"--data", "f", "--steps"});
  fails({"--data", "f", "--steps", "-3"});
  fails({"--data", "f", "--steps", "99999999999999999999"});
  fails({"--data", "f", "--steps", "1", "--init", "zero"});
  fails(
      {"--data", "f", "--steps", "1", "--init", "random:1", "--weights", "w"});
  fails({"--data", "f", "--steps", "1", "--resume", "d", "--seed", "1"});
  fails({"--data", "f", "--steps", "1", "--quiet=1"});
  fails({"--data", "f", "--steps", "1", "--profile="});
  fails({"--data", "f", "--steps", "1", "--profile", "p.json"});
  fails({"--data", "f", "--steps", "1", "stray"});
  fails({"--data", "f", "--steps", "1", "--save-weights"});
  fails({"--data", "f", "--steps", "1", "--save", "d", "--save-weights=i8"});
  fails({"--data", "f", "--steps", "1", "--lr", "abc"});
  fails({"--data", "f", "--steps", "1", "--threads", "0"});
}
