//===- AlgorithmsTest.cpp - measured algorithms of products ---------------===//
//
// A measurement finds the fastest way, and a step's table chooses it: for its
// product, its card and its version of the library, and else the heuristic
// does.
//
//===----------------------------------------------------------------------===//

#include "Testing.h"
#include "TinyProgram.h"

#include "runtime/cuda/Gemm.h"
#include "runtime/kernels/AlgorithmFields.h"
#include "runtime/step/Step.h"
#include "test/cuda/emulator/Counts.h"
#include "test/cuda/emulator/CublasLtAlgorithm.h"

#include <array>

using namespace tmc;
using namespace tmc::test;
using emulator::Way;

namespace {

constexpr Way kAll[] = {Way::Whole, Way::Parts, Way::Blocks};

Matmul::Params shape() {
  return {.lhs = DType::BF16,
          .rhs = DType::BF16,
          .out = DType::F32,
          .batch = 1,
          .m = 8,
          .n = 16,
          .k = 96,
          .transposeLhs = false,
          .transposeRhs = true,
          .bias = false,
          .tf32 = false,
          .scratchBytes = 1 << 20};
}
constexpr char kProduct[] =
    "Matmul lhs=BF16 rhs=BF16 out=F32 batch=1 m=8 n=16 k=96 "
    "transposeLhs=false transposeRhs=true bias=false tf32=false";

ProductAlgorithm numbersOf(Way way) {
  const emulator::AlgorithmOptions its = emulator::optionsOf(way);
  return {its.id,
          int32_t(its.tile),
          int32_t(its.stages),
          int32_t(its.splitK),
          int32_t(its.reduction),
          int32_t(its.swizzle),
          int32_t(its.custom),
          its.innerShape,
          its.clusterShape};
}

std::unique_ptr<Device> makeDevice(const DeviceOptions &options,
                                   int64_t arenaBytes) {
  std::unique_ptr<Device> device;
  EXPECT_TRUE(createDevice(options, device));
  EXPECT_TRUE(device->allocateArena(SpaceKind::Device, arenaBytes));
  return device;
}

AlgorithmTuning tune(const Matmul::Params &params, int64_t arenaBytes) {
  AlgorithmTuning tuning;
  DeviceOptions options;
  options.tuning = &tuning;
  auto device = makeDevice(options, arenaBytes);
  for (int again = 0; again < 2; ++again) { // A product is measured once.
    Matmul kernel(params);
    const Status s = kernel.prepare(*device);
    EXPECT_TRUE(s) << s.message();
  }
  return tuning;
}

/// The way by which a step with `table` multiplies, and the device's warning.
struct Chosen {
  Way way;
  std::string warning;
};
Chosen runWith(const AlgorithmTable &table, Matmul::Params params = shape()) {
  DeviceOptions options;
  options.algorithms = &table;
  auto device = makeDevice(options, 1);
  Matmul kernel(params);
  EXPECT_TRUE(kernel.prepare(*device));
  // The bits of 1/2 and 2, so that each way's sum is exact.
  Buffer<uint16_t> lhs(params.m * params.k, uint16_t(0x3f00)),
      rhs(params.k * params.n, uint16_t(0x4000));
  Floats out(params.m * params.n), scratch(params.scratchBytes / 4);
  const emulator::Counts before = emulator::counts();
  kernel.run(device->compute(), {lhs, rhs}, {out}, scratch);
  EXPECT_TRUE(device->synchronize());
  for (int64_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], float(params.k)) << i;
  for (Way way : kAll)
    if (emulator::counts().productsByWay[size_t(way)] !=
        before.productsByWay[size_t(way)])
      return {way, device->algorithms.warning()};
  ADD_FAILURE() << "no product was run";
  return {};
}

/// The heuristic's way, and two others.
std::array<Way, 3> waysFrom(Way first) {
  return {first, Way((int(first) + 1) % 3), Way((int(first) + 2) % 3)};
}

AlgorithmTable tableOf(const AlgorithmRow &row) {
  return {"emulator", 130100, &row, 1};
}

} // namespace

TEST(Algorithms, TheFastestIsMeasured) {
  for (Way fast : kAll) {
    for (Way way : kAll)
      emulator::slowProducts(way, way == fast ? 0 : 0.004);
    const AlgorithmTuning tuning = tune(shape(), 4 << 20);
    EXPECT_EQ(tuning.device, "emulator");
    EXPECT_EQ(tuning.library, 130100);
    EXPECT_TRUE(tuning.skipped.empty());
    ASSERT_EQ(tuning.products.size(), 1u);
    const TunedProduct &product = tuning.products[0];
    EXPECT_EQ(product.product, kProduct);
    EXPECT_EQ(product.candidates, 3);
    EXPECT_EQ(product.algorithm, numbersOf(fast));
    EXPECT_LT(product.seconds, 0.004);
    EXPECT_GE(product.firstSeconds, product.seconds);
  }
  for (Way way : kAll)
    emulator::slowProducts(way, 0);
}

TEST(Algorithms, EachKindOfProductIsMeasured) {
  std::vector<Matmul::Params> all(4, shape());
  all[0].bias = true;
  all[1].lhs = all[1].rhs = DType::F32;
  all[1].tf32 = true;
  all[2].lhs = all[2].rhs = all[2].out = DType::F64;
  all[3].lhs = all[3].rhs = DType::F8E4M3;
  all[3].scaled = true;
  for (const Matmul::Params &params : all)
    EXPECT_EQ(tune(params, 4 << 20).products.size(), 1u);
}

TEST(Algorithms, ProductsLargerThanTheArenaAreSkipped) {
  const AlgorithmTuning tuning = tune(shape(), 1 << 20);
  EXPECT_TRUE(tuning.products.empty());
  EXPECT_EQ(tuning.skipped, std::vector<std::string>{kProduct});
  EXPECT_EQ(tuning.summary(),
            "0 products, once each: 0.000 ms by the heuristic, 0.000 ms by the "
            "fastest; 1 couldn't be measured");
}

TEST(Algorithms, ATableChooses) {
  for (Way way : kAll) {
    const AlgorithmRow row{kProduct, numbersOf(way)};
    const Chosen run = runWith(tableOf(row));
    EXPECT_EQ(run.way, way);
    EXPECT_EQ(run.warning, "");
  }
}

TEST(Algorithms, ATableOfAnotherCardOrLibraryIsNotUsed) {
  const Way first = runWith({}).way;
  for (Way way : waysFrom(first)) {
    const AlgorithmRow row{kProduct, numbersOf(way)};
    const Chosen card = runWith({"another", 130100, &row, 1});
    EXPECT_EQ(card.way, first);
    EXPECT_EQ(card.warning,
              "none of the 1 algorithms of --algorithms is used: they were "
              "measured on another with cuBLASLt 130100, and this is emulator "
              "with cuBLASLt 130100");
    const Chosen library = runWith({"emulator", 130000, &row, 1});
    EXPECT_EQ(library.way, first);
    EXPECT_EQ(library.warning,
              "none of the 1 algorithms of --algorithms is used: they were "
              "measured on emulator with cuBLASLt 130000, and this is emulator "
              "with cuBLASLt 130100");
  }
}

TEST(Algorithms, AnotherProductIsNotUsed) {
  const Way first = runWith({}).way;
  const std::string product = kProduct;
  for (const auto &[from, to] : {std::pair("m=8", "m=16"),
                                 {"lhs=BF16", "lhs=F16"},
                                 {"=true", "=false"},
                                 {"bias=false", "bias=true"},
                                 {"batch=1", "batch=2"}})
    for (Way way : waysFrom(first)) {
      std::string other = product;
      other.replace(other.find(from), std::string(from).size(), to);
      const AlgorithmRow row{other.c_str(), numbersOf(way)};
      const Chosen run = runWith(tableOf(row));
      EXPECT_EQ(run.way, first) << other;
      EXPECT_EQ(run.warning,
                "1 of the 1 algorithms of --algorithms aren't used: 1 of "
                "products that the step doesn't have");
    }
}

TEST(Algorithms, WhatTheLibraryRefusesIsNotUsed) {
  const Way first = runWith({}).way;
  const char *refused =
      "1 of the 1 algorithms of --algorithms aren't used: 1 that the library "
      "refuses within the planned memory";
  for (const AlgorithmField &field : kAlgorithmFields) {
    AlgorithmRow row{kProduct, numbersOf(waysFrom(first)[1])};
    ++(row.algorithm.*field.number);
    const Chosen run = runWith(tableOf(row));
    EXPECT_EQ(run.way, first) << field.name;
    EXPECT_EQ(run.warning, refused) << field.name;
  }
  // The library would take parts that are added up in place.
  AlgorithmRow inPlace{kProduct, numbersOf(Way::Parts)};
  inPlace.algorithm.reduction = CUBLASLT_REDUCTION_SCHEME_INPLACE;
  emulator::AlgorithmOptions options = emulator::optionsOf(Way::Parts);
  options.reduction = CUBLASLT_REDUCTION_SCHEME_INPLACE;
  EXPECT_TRUE(emulator::wayOf(options));
  EXPECT_EQ(runWith(tableOf(inPlace)).way, first);
  EXPECT_EQ(runWith(tableOf(inPlace)).warning, refused);
  // Parts need more memory than was planned.
  Matmul::Params large = shape();
  large.m = 128;
  large.n = 128;
  large.scratchBytes = 100 << 10;
  std::string product = kProduct;
  product.replace(product.find("m=8 n=16"), 8, "m=128 n=128");
  const AlgorithmRow parts{product.c_str(), numbersOf(Way::Parts)};
  const Chosen run = runWith(tableOf(parts), large);
  EXPECT_NE(run.way, Way::Parts);
  EXPECT_EQ(run.warning, refused);
}

TEST(Algorithms, AMeasuredStepUsesItsTable) {
  AlgorithmTuning tuning;
  StepOptions options;
  options.device.tuning = &tuning;
  std::unique_ptr<Step> step;
  Status s = Step::create(tiny::program(), options, step);
  ASSERT_TRUE(s) << s.message();
  ASSERT_FALSE(tuning.products.empty());
  EXPECT_TRUE(tuning.skipped.empty());
  std::vector<AlgorithmRow> rows;
  for (const TunedProduct &its : tuning.products)
    rows.push_back({its.product.c_str(), its.algorithm});
  StepProgram program = tiny::program();
  program.algorithms = {tuning.device.c_str(), tuning.library, rows.data(),
                        int64_t(rows.size())};
  options.device.tuning = nullptr;
  s = Step::create(program, options, step);
  ASSERT_TRUE(s) << s.message();
  EXPECT_EQ(step->device().algorithms.warning(), "");
  rows.push_back({"Matmul", {}});
  program.algorithms.rows = rows.data();
  ++program.algorithms.count;
  s = Step::create(program, options, step);
  ASSERT_TRUE(s) << s.message();
  const std::string all = std::to_string(rows.size());
  EXPECT_EQ(step->device().algorithms.warning(),
            "1 of the " + all +
                " algorithms of --algorithms aren't used: 1 "
                "of products that the step doesn't have");
}
