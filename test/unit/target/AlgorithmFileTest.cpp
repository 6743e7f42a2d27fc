// AlgorithmFileTest.cpp - tables of products' algorithms, and what is wrong
// with them.

#include "compiler/target/AlgorithmFile.h"
#include "runtime/step/AlgorithmChoice.h"

#include <gtest/gtest.h>

using namespace tmc;

namespace {

/// A trainer's table, with names that JSON has to escape.
AlgorithmTuning tuned() {
  AlgorithmTuning tuning;
  tuning.device = "NVIDIA \"H200\"";
  tuning.library = 130100;
  tuning.products = {
      {"Matmul m=8", {66, 24, 35, 1, 0, 1, 2, 3, 4}, 1e-5, 2e-5, 8},
      {"Matmul m=16", {67, 20, 35, 3, 2, 0, 0, 65535, 0}, 1e-6, 1e-6, 1}};
  return tuning;
}

std::string faultOf(const std::string &text) {
  return std::string(algorithmsFromJson(text, "a.json").status().message());
}

} // namespace

TEST(AlgorithmFile, ReadsWhatTheTrainerWrites) {
  const AlgorithmTuning tuning = tuned();
  const auto file = algorithmsFromJson(tuning.json(), "a.json");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->device, tuning.device);
  EXPECT_EQ(file->library, tuning.library);
  ASSERT_EQ(file->products.size(), 2u);
  for (const TunedProduct &its : tuning.products)
    EXPECT_EQ(file->products.at(its.product), its.algorithm);
  EXPECT_TRUE(
      algorithmsFromJson(AlgorithmTuning{"a", 1, {}, {}}.json(), "a").ok());
}

TEST(AlgorithmFile, ItsHashIsThatOfItsBytes) {
  const auto file = algorithmsFromJson(
      R"({"schema": 1, "device": "a", "library": 1, "products": []})", "a");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->sha256,
            "425453ae6fa573b19df0687551514ef53371146787b49545d06c3f09d136b7d4");
}

TEST(AlgorithmFile, SaysWhatIsWrong) {
  const std::string text = tuned().json();
  auto why = [&](const std::string &from, const std::string &to) {
    std::string wrong = text;
    const size_t at = wrong.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return faultOf(wrong.replace(at, from.size(), to));
  };
  const std::string none = "'a.json' is no table of algorithms: ";
  EXPECT_EQ(why("1,", "2,"), none + "its schema is 2; this tmc reads 1");
  EXPECT_EQ(why("\"schema\"", "\"schemas\""),
            none + "its schema is missing; this tmc reads 1");
  for (const char *key : {"\"device\"", "\"library\"", "\"products\""})
    EXPECT_EQ(why(key, "\"other\""),
              none + "it lacks its device, library or products");
  EXPECT_EQ(why("130100", "-1"),
            none + "it lacks its device, library or products");
  EXPECT_EQ(why("130100", "1e300"),
            none + "it lacks its device, library or products");
  EXPECT_EQ(why("Matmul m=8", ""), none + "a product lacks its text");
  EXPECT_EQ(why("Matmul m=8", "Matmul\\nm=8"),
            none + "a product lacks its text");
  EXPECT_EQ(why("Matmul m=8", std::string(513, 'm')),
            none + "a product lacks its text");
  EXPECT_EQ(why("\"splitK\": 1", "\"splitK\": -1"),
            none + "'Matmul m=8' has no splitK from 0 to 2147483647");
  EXPECT_EQ(why("\"stages\"", "\"phases\""),
            none + "'Matmul m=8' has no stages from 0 to 2147483647");
  EXPECT_EQ(why("65535", "65536"),
            none + "'Matmul m=16' has no innerShape from 0 to 65535");
  EXPECT_EQ(why("\"tile\": 24", "\"tile\": 2147483648"),
            none + "'Matmul m=8' has no tile from 0 to 2147483647");
  EXPECT_EQ(why("\"reduction\": 2", "\"reduction\": 1"),
            none + "the sums of 'Matmul m=16' have no fixed order with "
                   "reduction 1");
  EXPECT_EQ(why("m=16", "m=8"), none + "it has 'Matmul m=8' twice");
  std::string many =
      R"({"schema": 1, "device": "a", "library": 1, "products": [0)";
  for (int i = 0; i < 4096; ++i)
    many += ",0";
  EXPECT_EQ(faultOf(many + "]}"), none + "it has more than 4096 products");
  EXPECT_EQ(faultOf("[]"), none + "it isn't an object");
}

TEST(AlgorithmFile, AnyDamageIsNoticedOrHarmless) {
  const std::string text = tuned().json();
  for (size_t at = 0; at < text.size(); ++at) {
    EXPECT_TRUE(at + 2 > text.size() ||
                !algorithmsFromJson(text.substr(0, at), "a").ok())
        << at;
    for (const char to : {'\0', '"', '\\', '{', '[', '9', '-', '\xff'}) {
      std::string wrong = text;
      wrong[at] = to;
      const auto file = algorithmsFromJson(wrong, "a");
      for (const auto &[product, algorithm] :
           file.ok() ? file->products
                     : std::map<std::string, ProductAlgorithm>()) {
        EXPECT_TRUE(isReproducible(algorithm));
        EXPECT_LE(product.size(), 512u);
      }
    }
  }
}
