// ProfileLaunchesTest.cpp - launches and their types of products, from
// profiles.

#include "driver/calibrate/ProfileLaunches.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace tmc;
namespace json = llvm::json;

TEST(ProfileLaunches, TheFastestRunOfEachCounts) {
  std::vector<MeasuredLaunch> launches;
  auto profile = [](const char *first, const char *second) {
    return std::string(R"({"schema": 3, "objects": {
        "m_0": "Matmul lhs=BF16 rhs=BF16 out=F32 m=8",
        "a_0": "AdamW param=F32 grad=F32"},
      "launches": [
        {"family": "Matmul", "kernel": "m_0", "flops": 10, "bytes": 20,
         "least_seconds": )") +
           first + R"(},
        {"family": "AdamW", "kernel": "a_0", "flops": 1, "bytes": 2,
         "together": 3, "least_seconds": )" +
           second + R"(},
        {"family": "AdamW", "kernel": "a_1", "flops": 3, "bytes": 4,
         "least_seconds": 0},
        {"family": "AdamW", "kernel": "a_0", "flops": 5, "bytes": 6,
         "least_seconds": 0},
        {"family": "Move", "kernel": "", "flops": 0, "bytes": 7,
         "least_seconds": 0.5}]})";
  };
  for (const auto &[first, second] :
       {std::pair("4", "0"), {"2", "8"}, {"3", "9"}})
    ASSERT_TRUE(bool(keepFastest(profile(first, second), launches)));
  ASSERT_EQ(launches.size(), 5u);
  EXPECT_EQ(launches[0].family, "Matmul");
  EXPECT_EQ(launches[0].seconds, 2);
  EXPECT_EQ(launches[0].products, ProductType::Bits16);
  // Three updates in one launch.
  EXPECT_EQ(launches[1].seconds, 8);
  EXPECT_EQ(launches[1].flops, 9);
  EXPECT_EQ(launches[1].bytes, 12);
  EXPECT_EQ(launches[1].products, ProductType::F32);
  EXPECT_EQ(launches[2].seconds, 0);
  EXPECT_EQ(launches[3].seconds, 0);
  EXPECT_EQ(launches[4].bytes, 7);
  EXPECT_FALSE(bool(keepFastest("{}", launches)));
  EXPECT_FALSE(bool(keepFastest("[", launches)));
  EXPECT_FALSE(bool(keepFastest(R"({"launches": [1]})", launches)));
}

/// An H200's measurements, by family and type: 396 kernels of six steps. Their
/// types were found by other code (bench/gpu/prices.py).
TEST(ProfileLaunches, AnH200HasItsRatesByType) {
  auto file = llvm::MemoryBuffer::getFile(
      TMC_SOURCES "/bench/gpu/measured/h200/kernels.json");
  ASSERT_TRUE(bool(file));
  llvm::Expected<json::Value> read = json::parse((*file)->getBuffer());
  ASSERT_TRUE(bool(read));
  MeasuredFamilies launches;
  for (const json::Value &value : *read->getAsObject()->getArray("rows")) {
    const json::Object &row = *value.getAsObject();
    MeasuredLaunch launch;
    launch.family = row.getString("family")->str();
    launch.flops = *row.getNumber("flops");
    launch.bytes = *row.getNumber("bytes");
    launch.seconds = *row.getNumber("seconds");
    const std::string object = row.getString("object")->str();
    launch.products = productsOf(object);
    EXPECT_EQ(nameOf(launch.products), row.getString("products")->str())
        << object;
    launches[launch.family][launch.products].push_back(launch);
  }
  const Target builtin = *findTarget("cuda:h200");
  Target target = builtin;
  fitFamilies(launches, target);
  auto rate = [&](const char *family, ProductType type) {
    return target.rooflineOf(family, type).flopsPerSecond;
  };
  // A type's large products decide its rate.
  for (ProductType type : {ProductType::TF32, ProductType::Bits16}) {
    const double peak = builtin.rooflines.at(type).flopsPerSecond;
    EXPECT_GT(rate("Matmul", type), 0.4 * peak) << nameOf(type);
    EXPECT_LT(rate("Matmul", type), peak) << nameOf(type);
    EXPECT_NEAR(predictedRatio(target.rooflineOf("Matmul", type),
                               launches["Matmul"][type]),
                1, 0.1)
        << nameOf(type);
  }
  EXPECT_GT(rate("Attention", ProductType::Bits16),
            3 * rate("Attention", ProductType::F32));
  // No step had products of 8 bits, or any of f32.
  for (ProductType type : {ProductType::F32, ProductType::Bits8})
    EXPECT_FALSE(launches["Matmul"].contains(type));
  EXPECT_EQ(rate("Matmul", ProductType::Bits8),
            builtin.rooflines.at(ProductType::Bits8).flopsPerSecond);
}
