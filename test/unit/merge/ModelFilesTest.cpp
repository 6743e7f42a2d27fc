// ModelFilesTest.cpp - the type in a configuration, and the facts that it has.

#include "driver/merge/ModelFiles.h"

#include "gtest/gtest.h"

using namespace tmc;

TEST(ModelConfig, TheTypeChangesInPlace) {
  EXPECT_EQ(withDType("{\"a\": 1, \"dtype\": \"float32\"}", DType::BF16),
            "{\"a\": 1, \"dtype\": \"bfloat16\"}");
  EXPECT_EQ(withDType("{\"torch_dtype\" : \"float16\", \"text_config\": "
                      "{\"dtype\":\"float16\"}}",
                      DType::F32),
            "{\"torch_dtype\" : \"float32\", \"text_config\": "
            "{\"dtype\":\"float32\"}}");
  // Values and other keys stay, whatever they say.
  const std::string other = "{\"x\": \"dtype\", \"y\": \"float32\", "
                            "\"compute_dtype\": \"float16\", \"d\\\"\": 1, "
                            "\"dtype\": \"float64\"}";
  EXPECT_EQ(withDType(other, DType::F16),
            "{\"x\": \"dtype\", \"y\": \"float32\", "
            "\"compute_dtype\": \"float16\", \"d\\\"\": 1, "
            "\"dtype\": \"float16\"}");
}

TEST(ModelConfig, ATypeIsAddedWhereNoneIs) {
  EXPECT_EQ(withDType("{\"a\": 1}", DType::F16),
            "{\n  \"torch_dtype\": \"float16\",\"a\": 1}");
  EXPECT_EQ(withDType("{}", DType::BF16),
            "{\n  \"torch_dtype\": \"bfloat16\"\n}");
  EXPECT_EQ(withDType("{ }\n", DType::BF16),
            "{\n  \"torch_dtype\": \"bfloat16\"\n }\n");
  EXPECT_EQ(withDType("{\"dtype\": null}", DType::F32),
            "{\n  \"torch_dtype\": \"float32\",\"dtype\": null}");
  EXPECT_EQ(withDType("{\"dtype\": null, \"float32\": 1}", DType::F16),
            "{\n  \"torch_dtype\": \"float16\",\"dtype\": null, "
            "\"float32\": 1}");
}

TEST(ModelConfig, FactsAreOfTheModelOrItsText) {
  const auto facts = [](const char *text) {
    Expected<BaseFacts> read = factsOf("c", text);
    EXPECT_TRUE(bool(read)) << text;
    return read ? *read : BaseFacts();
  };
  EXPECT_FALSE(facts("{}").tiesHead);
  EXPECT_TRUE(facts("{\"tie_word_embeddings\": true}").tiesHead);
  EXPECT_EQ(facts("{\"vocab_size\": 7}").vocabulary, 7);
  EXPECT_EQ(facts("{\"text_config\": {\"vocab_size\": 8}}").vocabulary, 8);
  EXPECT_FALSE(bool(factsOf("c", "[]")));
  EXPECT_FALSE(bool(factsOf("c", "{")));
}
