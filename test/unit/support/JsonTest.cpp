// JSON of hostile files.

#include "compiler/support/Json.h"

#include <gtest/gtest.h>

using namespace tmc;

TEST(Json, DeepTextIsRefused) {
  for (const char *open : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 40000; ++i)
      text += open;
    auto value = parseJson(text);
    ASSERT_FALSE(value);
    EXPECT_EQ(value.failure().message, "is nested more than 200 deep");
    EXPECT_EQ(value.failure().kind, FailureKind::Input);
  }
  std::string deep = std::string(200, '[') + std::string(200, ']');
  EXPECT_TRUE(parseJson(deep));
  EXPECT_FALSE(parseJson("[" + deep + "]"));
  // Brackets of texts are none.
  EXPECT_TRUE(parseJson("\"" + std::string(1000, '[') + "\\\"[[\""));
}

TEST(Json, ManyValuesAreRefused) {
  JsonLimits few;
  few.maxValues = 5;
  EXPECT_TRUE(parseJson("[1,2,3]", few));
  auto value = parseJson("[[],[],[],[]]", few);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.failure().message, "has more than 5 values");
}

TEST(Json, OtherTextsAreNone) {
  for (const char *text : {"", "[", "{\"a\"}", "\"\xff\"", "nul", "[1,]"}) {
    auto value = parseJson(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.failure().message.rfind("is no JSON: ", 0), 0u);
  }
}

TEST(Json, WhatIsWrittenIsVisibleAndReadAlike) {
  const std::string name = "a\u202e\u2028\x7f\033\n\"\\\U000e0041\u00e9<";
  llvm::json::Value value = llvm::json::Object{{name, name}};
  for (unsigned indent : {0, 2}) {
    const std::string text = jsonText(value, indent);
    EXPECT_NE(text.find("\\u202e\\u2028\\u007f\\u001b"), std::string::npos)
        << text;
    EXPECT_NE(text.find("\\udb40\\udc41\u00e9<"), std::string::npos) << text;
    auto again = parseJson(text);
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, value);
  }
  EXPECT_EQ(jsonText(llvm::json::Array{1, 2}), "[1,2]\n");
}

/// LLVM makes another character of two surrogates above U+1FFFF.
TEST(Json, EscapesOfTwoSurrogatesAreOneCharacter) {
  for (auto [escape, character] : {std::pair("\\ud83d\\ude00", "\U0001f600"),
                                   {"\\uD840\\uDC00", "\U00020000"},
                                   {"a\\udb40\\udc41b", "a\U000e0041b"},
                                   {"\\udbff\\udfff", "\U0010ffff"},
                                   // A backslash, and then letters.
                                   {"\\\\udb40\\\\udc41", "\\udb40\\udc41"}}) {
    auto value = parseJson("[\"" + std::string(escape) + "\"]");
    ASSERT_TRUE(value) << escape;
    EXPECT_EQ(*(*value->getAsArray())[0].getAsString(), character);
  }
}
