// TargetFileTest.cpp - descriptions as files, and what is wrong with them.

#include "compiler/target/Target.h"

#include <gtest/gtest.h>

using namespace tmc;

namespace {

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Target measured() {
  Target target = *findTarget("cpu");
  target.name = "cpu (measured)";
  target.families["Matmul"][ProductType::F32] = {1e-6, 2e11, 3e10};
  return target;
}

} // namespace

TEST(TargetFile, ComesBackAsItWas) {
  for (const char *name : {"cpu", "cuda:h200", "cuda:t4"}) {
    Target target = *findTarget(name);
    target.families["Matmul"][ProductType::Bits16] = {1e-6, 2e11, 3e10};
    absl::StatusOr<Target> again =
        targetFromJson(targetToJson(target), "t.json");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(targetToJson(*again), targetToJson(target));
    for (ProductType type : kProductTypes)
      EXPECT_EQ(again->picoseconds("Matmul", type, 1 << 30, 1 << 20),
                target.picoseconds("Matmul", type, 1 << 30, 1 << 20));
    EXPECT_EQ(again->memoryBytes, target.memoryBytes);
  }
}

TEST(TargetFile, AFamilyHasItsOwnRoofline) {
  Target target = measured();
  // 2e11 flops at 2e11 a second; bytes don't count beside them.
  EXPECT_EQ(target.picoseconds("Matmul", ProductType::F32, 200'000'000'000, 8),
            1'000'001'000'000);
  // The cpu's launch.
  EXPECT_EQ(target.picoseconds("Conv", ProductType::F32, 0, 0), 1'000'000);
  // Nothing is known of others on the cpu: as fast as f32.
  EXPECT_EQ(target.picoseconds("Conv", ProductType::Bits16, 1 << 30, 0),
            target.picoseconds("Conv", ProductType::F32, 1 << 30, 0));
}

/// What a second is enough for, from the data sheets.
TEST(Target, ARateForEachTypeOfProducts) {
  auto rate = [](const char *name, ProductType type) {
    return findTarget(name)->rooflineOf("Matmul", type).flopsPerSecond;
  };
  EXPECT_EQ(rate("cuda:h200", ProductType::F32), 67e12);
  EXPECT_EQ(rate("cuda:h200", ProductType::TF32), 494.5e12);
  EXPECT_EQ(rate("cuda:h200", ProductType::Bits16), 989e12);
  EXPECT_EQ(rate("cuda:sm_90", ProductType::Bits8), 1979e12);
  EXPECT_EQ(rate("cuda:a100-80", ProductType::F32), 19.5e12);
  // Cards without units for a type have no roofline of it.
  EXPECT_FALSE(findTarget("cuda:a100-80")->rooflines.count(ProductType::Bits8));
  EXPECT_FALSE(findTarget("cuda:t4")->rooflines.count(ProductType::TF32));
}

TEST(Target, OperandsChooseTheRate) {
  EXPECT_EQ(productTypeOf(DType::F32), ProductType::F32);
  EXPECT_EQ(productTypeOf(DType::F64), ProductType::F32);
  EXPECT_EQ(productTypeOf(DType::BF16), ProductType::Bits16);
  EXPECT_EQ(productTypeOf(DType::F16), ProductType::Bits16);
  EXPECT_EQ(productTypeOf(DType::F8E4M3), ProductType::Bits8);
  EXPECT_EQ(productTypeOf(DType::I16), ProductType::F32);
}

/// Files that were measured before a target had rates by type.
TEST(TargetFile, ReadsSchemaOne) {
  absl::StatusOr<Target> target = targetFromJson(
      R"({"schema": 1, "name": "here", "backend": "cpu", "arch": "",
          "memory_bytes": null, "reserved_bytes": 0, "arena_alignment": 64,
          "host_bytes_per_second": 1e10,
          "roofline": {"launch_seconds": 0.5, "flops_per_second": 1e9,
                       "bytes_per_second": 1e9},
          "families": {"Matmul": {"launch_seconds": 0, "flops_per_second": 2e9,
                                  "bytes_per_second": 1e9}}})",
      "old.json");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->seconds("Matmul", ProductType::F32, 2'000'000'000, 0), 1);
  EXPECT_EQ(target->seconds("Conv", ProductType::F32, 1'000'000'000, 0), 1.5);
}

TEST(TargetFile, NamesWhatIsWrong) {
  const std::string good = targetToJson(measured());
  auto why = [](const std::string &text) {
    absl::StatusOr<Target> target = targetFromJson(text, "t.json");
    EXPECT_FALSE(target.ok());
    return std::string(target.status().message());
  };
  EXPECT_EQ(why("[]"), "'t.json' is no target description: it isn't an object");
  // Which instructions were measured is part of the description.
  const std::string arch = "\"arch\": \"" + defaultCpuArch() + "\"";
  EXPECT_EQ(why(replaced(good, arch, "\"arch\": \"\"")),
            "'t.json' is no target description: 'arch' isn't one of v3, v4, "
            "v4-bf16, v4-amx: the instruction set that was measured");
  EXPECT_NE(why("{").find("'t.json' is no target description: "),
            std::string::npos);
  EXPECT_EQ(why(replaced(good, "\"schema\": 2", "\"schema\": 9")),
            "'t.json' is no target description: its schema is 9; this tmc "
            "reads 1 and 2");
  EXPECT_EQ(why(replaced(good, "\"rooflines\"", "\"roofs\"")),
            "'t.json' is no target description: 'rooflines' isn't an object");
  EXPECT_EQ(why(replaced(good, "\"backend\": \"cpu\"", "\"backend\": \"tpu\"")),
            "'t.json' is no target description: 'backend' isn't cpu or cuda");
  EXPECT_EQ(
      why(replaced(good, "\"arena_alignment\": 64", "\"arena_alignment\": 48")),
      "'t.json' is no target description: 'arena_alignment' isn't a power "
      "of two");
  EXPECT_EQ(why(replaced(good, "30000000000", "-1")),
            "'t.json' is no target description: "
            "'families.Matmul.f32.bytes_per_second' isn't a positive number");
}

TEST(Target, TheCpuIsAnInstructionSet) {
  for (const char *arch : {"v3", "v4", "v4-bf16", "v4-amx"}) {
    absl::StatusOr<Target> target = findTarget(std::string("cpu:") + arch);
    ASSERT_TRUE(target.ok()) << target.status();
    EXPECT_EQ(target->arch, arch);
    EXPECT_EQ(target->name, std::string("cpu:") + arch);
    EXPECT_EQ(target->compiledFor(), target->name);
    // The plan is the same for all of them.
    auto cost = [](const Target &of) {
      return of.picoseconds("Matmul", ProductType::F32, 1 << 30, 1 << 20);
    };
    EXPECT_EQ(cost(*target), cost(*findTarget("cpu")));
  }
  EXPECT_EQ(findTarget("cpu")->name, "cpu:" + defaultCpuArch());
  Target target = measured();
  target.arch = "v4-bf16";
  EXPECT_EQ(target.compiledFor(), "cpu:v4-bf16");
  EXPECT_EQ(targetFromJson(targetToJson(target), "t.json")->compiledFor(),
            "cpu:v4-bf16");
}

TEST(Target, ASimilarNameIsFound) {
  EXPECT_EQ(similarTarget("cpu:v5"), "cpu:v3");
  EXPECT_EQ(similarTarget("cpu:bf16"), "cpu:v4-bf16");
  EXPECT_EQ(similarTarget("cpu-v4"), "cpu:v4");
  EXPECT_EQ(similarTarget("cuda:rtx306"), "cuda:rtx3060");
  EXPECT_EQ(similarTarget("sm90"), "");
  EXPECT_EQ(similarTarget("elephant"), "");
}

TEST(Target, AnUnknownNameIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(findTarget("cpu:v5").status()));
  EXPECT_TRUE(absl::IsNotFound(findTarget("cpu:").status()));
  EXPECT_TRUE(absl::IsNotFound(findTarget("cuda:sm_1").status()));
  EXPECT_TRUE(absl::IsUnavailable(findTarget("./no/such.json").status()));
}
