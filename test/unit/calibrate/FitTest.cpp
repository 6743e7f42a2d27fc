// FitTest.cpp - rooflines are found again from what they explain.

#include "driver/calibrate/Fit.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace tmc;

namespace {

/// Launches of many sizes, under `truth`; `noise` as a share of each time.
std::vector<MeasuredLaunch> launchesUnder(const Roofline &truth, double noise) {
  std::vector<MeasuredLaunch> launches;
  double sign = 1;
  for (double bytes = 1e3; bytes < 1e9; bytes *= 4)
    for (double intensity : {0.25, 4.0, 64.0}) {
      double flops = bytes * intensity;
      launches.push_back({"Matmul", flops, bytes,
                          truth.seconds(flops, bytes) * (1 + sign * noise)});
      sign = -sign;
    }
  return launches;
}

} // namespace

TEST(Fit, FindsTheRooflineAgain) {
  for (const Roofline &truth :
       {Roofline{2e-6, 150e9, 12e9}, Roofline{5e-6, 2e13, 1.5e12},
        Roofline{1e-7, 8e9, 30e9}}) {
    Roofline found = fitRoofline(launchesUnder(truth, 0));
    EXPECT_NEAR(found.flopsPerSecond / truth.flopsPerSecond, 1, 0.01);
    EXPECT_NEAR(found.bytesPerSecond / truth.bytesPerSecond, 1, 0.01);
    EXPECT_NEAR(found.launchSeconds / truth.launchSeconds, 1, 0.1);
  }
}

TEST(Fit, LivesWithNoise) {
  const Roofline truth{2e-6, 150e9, 12e9};
  std::vector<MeasuredLaunch> launches = launchesUnder(truth, 0.1);
  Roofline found = fitRoofline(launches);
  EXPECT_NEAR(found.flopsPerSecond / truth.flopsPerSecond, 1, 0.1);
  EXPECT_NEAR(found.bytesPerSecond / truth.bytesPerSecond, 1, 0.1);
  EXPECT_NEAR(predictedRatio(found, launches), 1, 0.05);
}

TEST(Fit, WhatNobodyAsksForBoundsNothing) {
  std::vector<MeasuredLaunch> copies = {{"Concat", 0, 1e6, 1e-4},
                                        {"Concat", 0, 8e6, 8e-4}};
  Roofline found = fitRoofline(copies);
  EXPECT_NEAR(found.seconds(1e6, 1e6), found.seconds(0, 1e6), 1e-9);
  EXPECT_NEAR(predictedRatio(found, copies), 1, 0.02);
}

TEST(Fit, OneLaunchIsExplainedExactly) {
  std::vector<MeasuredLaunch> launches = {{"Fill", 0, 1e6, 1e-4}};
  EXPECT_NEAR(predictedRatio(fitRoofline(launches), launches), 1, 0.02);
}

/// A card's 16-bit products were far from what was measured, and f32 was all
/// that a calibration measured: 16-bit ones fell to the rate of fused kernels.
TEST(Fit, RatesOfOtherTypesStay) {
  const Roofline products{4e-6, 5e13, 2e12}, fused{4e-6, 1e12, 2e12};
  for (const char *name : {"cuda:h100", "cpu:v4"}) {
    const Target builtin = *findTarget(name);
    Target measured = builtin;
    fitFamilies({{"Matmul", {{ProductType::F32, launchesUnder(products, 0)}}},
                 {"Fused", {{ProductType::F32, launchesUnder(fused, 0)}}}},
                measured);
    measured = *targetFromJson(targetToJson(measured), "here.json");
    auto rate = [&](const char *family, ProductType type) {
      return measured.rooflineOf(family, type).flopsPerSecond;
    };
    EXPECT_NEAR(rate("Matmul", ProductType::F32) / 5e13, 1, 0.01);
    EXPECT_NEAR(rate("Fused", ProductType::F32) / 1e12, 1, 0.01);
    EXPECT_NEAR(rate("Conv", ProductType::F32) / 1e12, 1, 0.01);
    for (ProductType type :
         {ProductType::TF32, ProductType::Bits16, ProductType::Bits8}) {
      const auto known = builtin.rooflines.find(type);
      const bool isKnown = known != builtin.rooflines.end();
      EXPECT_EQ(rate("Matmul", type), isKnown
                                          ? known->second.flopsPerSecond
                                          : rate("Matmul", ProductType::F32))
          << name << ", " << nameOf(type);
    }
  }
}

/// Products of each measured type get their own rate, and those of a type that
/// wasn't measured keep theirs.
TEST(Fit, EachTypeHasItsOwnRate) {
  const Roofline f32{4e-6, 5e13, 2e12}, halves{4e-6, 1e14, 2e12},
      fused{4e-6, 1e12, 2e12};
  const Target builtin = *findTarget("cuda:h100");
  Target measured = builtin;
  fitFamilies({{"Matmul",
                {{ProductType::F32, launchesUnder(f32, 0)},
                 {ProductType::Bits16, launchesUnder(halves, 0)}}},
               {"Fused", {{ProductType::F32, launchesUnder(fused, 0)}}}},
              measured);
  measured = *targetFromJson(targetToJson(measured), "here.json");
  auto rate = [&](ProductType type) {
    return measured.rooflineOf("Matmul", type).flopsPerSecond;
  };
  EXPECT_NEAR(rate(ProductType::F32) / 5e13, 1, 0.01);
  EXPECT_NEAR(rate(ProductType::Bits16) / 1e14, 1, 0.01);
  for (ProductType type : {ProductType::TF32, ProductType::Bits8})
    EXPECT_EQ(rate(type), builtin.rooflines.at(type).flopsPerSecond);
}
