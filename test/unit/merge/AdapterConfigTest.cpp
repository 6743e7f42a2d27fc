// AdapterConfigTest.cpp - patterns, ranks and scales, and hostile files of
// them.

#include "driver/merge/AdapterConfig.h"
#include "test/unit/Rounds.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace tmc;
using namespace tmc::test;

namespace {

bool matches(const std::string &pattern, const std::string &name) {
  Expected<NamePattern> parsed = NamePattern::parse(pattern);
  EXPECT_TRUE(bool(parsed)) << pattern;
  return parsed && parsed->matches(name);
}

Expected<AdapterConfig> parse(const std::string &text) {
  return AdapterConfig::parse("c.json", text);
}

double scaleOf(const std::string &keys, const std::string &module) {
  Expected<AdapterConfig> config =
      parse("{\"peft_type\": \"LORA\", " + keys + "}");
  EXPECT_TRUE(bool(config)) << keys;
  if (!config)
    return 0;
  Expected<double> scale = config->scaleOf(module);
  EXPECT_TRUE(bool(scale)) << keys;
  return scale ? *scale : 0;
}

} // namespace

TEST(NamePattern, MatchesANameOrItsEndAfterADot) {
  EXPECT_TRUE(matches("q_proj", "q_proj"));
  EXPECT_TRUE(matches("q_proj", "model.layers.0.q_proj"));
  EXPECT_FALSE(matches("q_proj", "model.layers.0.xq_proj"));
  EXPECT_FALSE(matches("q_proj", "model.layers.0.q_proj.x"));
  EXPECT_TRUE(matches("0.q_proj", "layers.0.q_proj"));
  EXPECT_FALSE(matches("0\\.q_proj", "layers.0xq_proj"));
  EXPECT_TRUE(matches("0.q_proj", "layers.0xq_proj")); // As in Python.
}

TEST(NamePattern, ReadsPythonsWords) {
  EXPECT_TRUE(matches("layers\\.\\d+\\.(q|k)_proj", "m.layers.17.k_proj"));
  EXPECT_FALSE(matches("layers\\.\\d+\\.(q|k)_proj", "m.layers.d.k_proj"));
  EXPECT_TRUE(matches("layers\\.[\\d]\\.\\w+", "layers.3.o_proj"));
  EXPECT_TRUE(matches("^model\\.a$", "model.a"));
  EXPECT_FALSE(matches("^model\\.a$", "x.model.a"));
  EXPECT_TRUE(matches("layers.[^02].w", "layers.1.w"));
  EXPECT_FALSE(matches("layers.[^02].w", "layers.2.w"));
  EXPECT_TRUE(matches("a?b*c+", "x.bbc"));
}

TEST(NamePattern, RefusesWhatPosixReadsInAnotherWay) {
  for (const char *text :
       {"(?i)q", "(?:q|k)", "q*?", "q+?", "q??", "q*+", "q{2}", "\\bq", "\\1",
        "[\\]]", "[[:alpha:]]", "q\\", "[q", "\\S"}) {
    Expected<NamePattern> parsed = NamePattern::parse(text);
    ASSERT_FALSE(bool(parsed)) << text;
    EXPECT_EQ(parsed.failure().kind, FailureKind::Unsupported) << text;
  }
  for (const char *text : {"(q", "q)", "*q"})
    EXPECT_FALSE(bool(NamePattern::parse(text))) << text;
  EXPECT_FALSE(bool(NamePattern::parse(std::string(1001, 'a'))));
}

TEST(NamePattern, TakesNoTimeForHostilePatterns) {
  const std::string name(300, 'a');
  EXPECT_FALSE(matches("(a*)*b", name));
  EXPECT_FALSE(matches("((a|a)*)*b", name));
  EXPECT_FALSE(matches("(.*)*(.*)*(.*)*b", name));
}

TEST(AdapterConfig, ScalesAreThoseOfPeft) {
  EXPECT_EQ(scaleOf("\"r\": 16, \"lora_alpha\": 32", "m"), 2);
  EXPECT_EQ(scaleOf("\"inference_mode\": true", "m"), 1); // Both are 8.
  EXPECT_EQ(scaleOf("\"r\": 16, \"lora_alpha\": 32, \"use_rslora\": true", "m"),
            8);
  EXPECT_EQ(scaleOf("\"r\": 3, \"lora_alpha\": 7", "m"), 7.0 / 3);
  const std::string patterns =
      "\"r\": 4, \"lora_alpha\": 8, \"rank_pattern\": {\"o\": 2}, "
      "\"alpha_pattern\": {\"o\": 5, \"k\": 16}";
  EXPECT_EQ(scaleOf(patterns, "m.o"), 2.5);
  EXPECT_EQ(scaleOf(patterns, "m.k"), 4);
  EXPECT_EQ(scaleOf(patterns, "m.v"), 2);
  EXPECT_EQ(scaleOf(patterns + ", \"use_rslora\": true", "m.o"),
            5 / std::sqrt(2.0));
}

/// Whatever is changed, the result is a configuration or one message.
TEST(AdapterConfig, AChangedFileDoesNoHarm) {
  const std::string whole =
      R"x({"peft_type": "LORA", "r": 4, "lora_alpha": 1.5, "use_rslora": true,)x"
      R"x( "rank_pattern": {"layers\\.\\d+\\.(q|k)": 2, "[^a]b*": 7},)x"
      R"x( "alpha_pattern": {"o": 5}, "use_dora": false, "x": [null, {}]})x";
  ASSERT_TRUE(bool(parse(whole)));
  std::mt19937 draw(3);
  int64_t read = 0, refused = 0;
  const auto tried = [&](const std::string &text) {
    Expected<AdapterConfig> config = parse(text);
    ++(config ? read : refused);
    if (config) {
      Expected<double> scale = config->scaleOf("model.layers.3.q");
      ASSERT_TRUE(!scale || (*scale > 0 && std::isfinite(*scale))) << text;
    } else {
      ASSERT_TRUE(config.failure().kind == FailureKind::Input ||
                  config.failure().kind == FailureKind::Unsupported)
          << text;
    }
  };
  for (size_t at = 0; at < whole.size(); ++at) {
    tried(whole.substr(0, at));
    for (const char c : std::string("{}[]\",:\\09-e(*.\xff"))
      tried(whole.substr(0, at) + c + whole.substr(at + 1));
  }
  for (int64_t round = rounds(5000, 200000); round; --round) {
    std::string text = whole;
    for (uint32_t changes = 1 + draw() % 4; changes; --changes) {
      const size_t from = draw() % text.size(), to = draw() % whole.size();
      text.replace(from, draw() % 8, whole.substr(to, draw() % 8));
      text += text.empty() ? " " : "";
    }
    tried(text);
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 1000);
}
