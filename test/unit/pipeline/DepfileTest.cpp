// DepfileTest.cpp - names in rules of make and ninja. Both programs read them
// in test/tools/tmc/depfile.test.

#include "driver/pipeline/Depfile.h"

#include <gtest/gtest.h>

using namespace tmc;

TEST(Depfile, EscapesWhatMakeAndNinjaBothKnow) {
  auto name = [](const std::string &text) {
    return makeName(text, RulePart::Prerequisite).value_or("refused");
  };
  EXPECT_EQ(name("models/a-b_c.onnx"), "models/a-b_c.onnx");
  EXPECT_EQ(name("a model.onnx"), "a\\ model.onnx");
  EXPECT_EQ(name("$(shell touch x).onnx"), "$$(shell\\ touch\\ x).onnx");
  EXPECT_EQ(name("a#b:c"), "a\\#b\\:c");
  EXPECT_EQ(name("~root/a"), "./~root/a");
  EXPECT_EQ(name("-m.onnx"), "./-m.onnx");
  EXPECT_EQ(name("\xc3\xa4 (1).onnx"), "\xc3\xa4\\ (1).onnx");
  EXPECT_EQ(name("lr=0.1/50%.onnx"), "lr=0.1/50%.onnx");
}

TEST(Depfile, RefusesWhatTheyReadAsTheirOwn) {
  for (const char *text :
       {"", "a;b", "a|b", "a*", "a?", "[ab]", "a\\b", "a\nb", "a\tb", "a\rb",
        "a\x7f", "a<b", "a>b", "a`b", "a^b", "lib(member)", "a:"})
    EXPECT_FALSE(makeName(text, RulePart::Prerequisite)) << text;
  for (const char *text : {"SHELL=x/plan.json", "%/plan.json"}) {
    EXPECT_FALSE(makeName(text, RulePart::Target)) << text;
    EXPECT_TRUE(makeName(text, RulePart::Prerequisite)) << text;
  }
  // The first word after the colon must not set a variable.
  EXPECT_FALSE(bool(checkRule({{"out"}, {"SHELL=x"}})));
  EXPECT_TRUE(bool(checkRule({{"out"}, {"SHELL=x", "tmc"}})));
  auto done = checkRule({{"out"}, {"a\x01;b"}});
  ASSERT_FALSE(bool(done));
  EXPECT_EQ(done.failure().exitCode(), 2);
  EXPECT_EQ(done.failure().message,
            "a depfile can't name 'a\\01;b': make and ninja read control "
            "characters as their own");
}
