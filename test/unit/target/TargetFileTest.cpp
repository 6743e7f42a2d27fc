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
  target.families["Matmul"] = {1e-6, 2e11, 3e10};
  return target;
}

} // namespace

TEST(TargetFile, ComesBackAsItWas) {
  for (const char *name : {"cpu", "cuda:h200", "cuda:t4"}) {
    Target target = *findTarget(name);
    target.families["Matmul"] = {1e-6, 2e11, 3e10};
    absl::StatusOr<Target> again =
        targetFromJson(targetToJson(target), "t.json");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(targetToJson(*again), targetToJson(target));
    EXPECT_EQ(again->picoseconds("Matmul", 1 << 30, 1 << 20),
              target.picoseconds("Matmul", 1 << 30, 1 << 20));
    EXPECT_EQ(again->memoryBytes, target.memoryBytes);
  }
}

TEST(TargetFile, AFamilyHasItsOwnRoofline) {
  Target target = measured();
  // 2e11 flops at 2e11 a second; bytes don't count beside them.
  EXPECT_EQ(target.picoseconds("Matmul", 200'000'000'000, 8),
            1'000'001'000'000);
  EXPECT_EQ(target.picoseconds("Conv", 0, 0), 1'000'000); // The cpu's launch.
}

TEST(TargetFile, NamesWhatIsWrong) {
  const std::string good = targetToJson(measured());
  auto why = [](const std::string &text) {
    absl::StatusOr<Target> target = targetFromJson(text, "t.json");
    EXPECT_FALSE(target.ok());
    return std::string(target.status().message());
  };
  EXPECT_EQ(why("[]"), "'t.json' is no target description: it isn't an object");
  EXPECT_NE(why("{").find("'t.json' is no target description: "),
            std::string::npos);
  EXPECT_EQ(why(replaced(good, "\"schema\": 1", "\"schema\": 9")),
            "'t.json' is no target description: its schema isn't 1");
  EXPECT_EQ(why(replaced(good, "\"backend\": \"cpu\"", "\"backend\": \"tpu\"")),
            "'t.json' is no target description: 'backend' isn't cpu or cuda");
  EXPECT_EQ(
      why(replaced(good, "\"arena_alignment\": 64", "\"arena_alignment\": 48")),
      "'t.json' is no target description: 'arena_alignment' isn't a power "
      "of two");
  EXPECT_EQ(why(replaced(good, "30000000000", "-1")),
            "'t.json' is no target description: "
            "'families.Matmul.bytes_per_second' isn't a positive number");
}

TEST(Target, AnUnknownNameIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(findTarget("cuda:sm_1").status()));
  EXPECT_TRUE(absl::IsUnavailable(findTarget("./no/such.json").status()));
}
