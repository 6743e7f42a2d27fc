// TargetFileTest.cpp - descriptions as files, and what is wrong with them.

#include "compiler/target/Target.h"

#include "compiler/analysis/HostMoves.h"

#include <gtest/gtest.h>

using namespace tmc;

namespace {

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

int64_t picoseconds(const Target &target, const char *family, ProductType type,
                    int64_t flops, int64_t bytes) {
  KernelWork work;
  work.family = family;
  work.products = type;
  work.flops = flops, work.bytes = bytes;
  return target.price(work).picoseconds;
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
      EXPECT_EQ(picoseconds(*again, "Matmul", type, 1 << 30, 1 << 20),
                picoseconds(target, "Matmul", type, 1 << 30, 1 << 20));
    EXPECT_EQ(again->memoryBytes, target.memoryBytes);
  }
}

/// Every field of host and file has a number of its own.
TEST(TargetFile, HostAndFileComeBack) {
  Target target = *findTarget("cuda:t4");
  target.memoryBytes[SpaceKind::Host] = 1 << 30;
  target.memoryBytes[SpaceKind::File] = 1 << 20;
  target.copies[engine("d2h")] = {1, 2};
  target.copies[engine("h2d")] = {3, 4};
  target.copies[engine("file-read")] = {0, 11};
  target.copies[engine("file-write")] = {8, 9};
  target.updates = {5, 6, 7};
  absl::StatusOr<Target> again = targetFromJson(targetToJson(target), "t.json");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->memoryBytes, target.memoryBytes);
  EXPECT_EQ(again->copies[engine("d2h")].seconds(4), 1 + 2);
  EXPECT_EQ(again->copies[engine("h2d")].seconds(4), 3 + 1);
  EXPECT_EQ(again->copies[engine("file-read")].seconds(22), 2);
  EXPECT_EQ(again->copies[engine("file-write")].seconds(18), 8 + 2);
  EXPECT_EQ(again->updates.seconds(12, 0), 5 + 2);
  EXPECT_EQ(again->updates.seconds(0, 21), 5 + 3);
}

TEST(TargetFile, TheNetworkComesBack) {
  Target target = *findTarget("cuda:t4");
  target.network = {{"bridge", 2, {1, 2}},
                    {"pcie", 4, {3, 4}},
                    {"rdma", NetworkLevel::kAnyRanks, {0, 6}}};
  const std::string good = targetToJson(target);
  absl::StatusOr<Target> again = targetFromJson(good, "t.json");
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->network.size(), 3u);
  for (int i : {0, 1, 2}) {
    EXPECT_EQ(again->network[i].name, target.network[i].name);
    EXPECT_EQ(again->network[i].ranks, target.network[i].ranks);
    EXPECT_EQ(again->network[i].channel.seconds(12),
              target.network[i].channel.seconds(12));
  }
  auto why = [&](const std::string &from, const std::string &to) {
    return std::string(
        targetFromJson(replaced(good, from, to), "t.json").status().message());
  };
  const std::string no = "'t.json' is no target description: ";
  EXPECT_EQ(why("\"network\"", "\"net\""),
            no + "'network' isn't a list of levels");
  EXPECT_EQ(why("\"ranks\": 4", "\"ranks\": 1"),
            no + "'network[1].ranks' isn't a number above one");
  EXPECT_EQ(why("\"ranks\": 4", "\"ranks\": null"),
            no + "'network[1].ranks' isn't a number above one");
  EXPECT_EQ(why("\"ranks\": null", "\"ranks\": 9"),
            no + "'network[2].ranks' isn't null in the outermost level");
  EXPECT_EQ(why("\"name\": \"pcie\"", "\"name\": \"\""),
            no + "'network[1].name' isn't text");
  EXPECT_EQ(why("\"latency_seconds\": 3", "\"latency_seconds\": -3"),
            no + "'network[1].latency_seconds' isn't a positive number");
  target.network.clear();
  EXPECT_EQ(
      std::string(
          targetFromJson(targetToJson(target), "t.json").status().message()),
      no + "'network' isn't a list of levels");
}

/// Files that were measured before a target had a network.
TEST(TargetFile, OlderFilesHaveTheNetworkOfTheirCard) {
  auto older = [](const Target &target) {
    return *targetFromJson(
        replaced(targetToJson(target), "\"schema\": 7", "\"schema\": 6"),
        "old.json");
  };
  Target target = *findTarget("cuda:a100-40");
  target.network = networkOf(Fabric::Ethernet);
  EXPECT_EQ(older(target).network[0].channel.bytesPerSecond, 235e9);
  target.arch = "sm_123";
  EXPECT_EQ(older(target).network[0].channel.bytesPerSecond, 350e9);
  target = *findTarget("cpu:v3");
  target.network = networkOf(Fabric::Nvlink4);
  ASSERT_EQ(older(target).network.size(), 1u);
  EXPECT_EQ(older(target).network[0].name, "ethernet");
}

TEST(TargetFile, AFamilyHasItsOwnRoofline) {
  Target target = measured();
  // 2e11 flops at 2e11 a second; bytes don't count beside them.
  EXPECT_EQ(picoseconds(target, "Matmul", ProductType::F32, 200'000'000'000, 8),
            1'000'001'000'000);
  // The cpu's launch.
  EXPECT_EQ(picoseconds(target, "Conv", ProductType::F32, 0, 0), 1'000'000);
  // Nothing is known of others on the cpu: as fast as f32.
  EXPECT_EQ(picoseconds(target, "Conv", ProductType::Bits16, 1 << 30, 0),
            picoseconds(target, "Conv", ProductType::F32, 1 << 30, 0));
}

TEST(TargetFile, ClassesComeBack) {
  Target target = *findTarget("cuda:a100-40");
  absl::StatusOr<Target> again = targetFromJson(targetToJson(target), "t.json");
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->classes.size(), target.classes.size());
  ASSERT_GT(target.classes.size(), 30u);
  EXPECT_EQ(again->processors, 108);
  EXPECT_TRUE(again->areClassesScaled);
  EXPECT_EQ(again->measuredOn, target.measuredOn);
  EXPECT_EQ(again->measuredDate, target.measuredDate);
  const std::string good = targetToJson(target);
  auto why = [&](const std::string &from, const std::string &to) {
    return std::string(
        targetFromJson(replaced(good, from, to), "t.json").status().message());
  };
  const std::string no = "'t.json' is no target description: ";
  EXPECT_EQ(why("\"bytes<=", "\"<="),
            no + "'kernels.classes[0].where': '<=1048576' is no condition");
  EXPECT_EQ(why("\"processors\": 108", "\"processors\": 0"),
            no + "'kernels.processors' isn't a number above zero");
  EXPECT_EQ(why("\"scaled\": true", "\"scaled\": 1"),
            no + "'kernels.scaled' isn't true or false");
  EXPECT_EQ(why("\"classes\"", "\"kinds\""),
            no + "'kernels.classes' isn't a list");
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

/// What 10 us and a second on the link are enough for: the card's PCI Express.
TEST(Target, ALinkOfTheCardsGeneration) {
  for (auto [name, gigabytes] : {std::pair("cuda:h200", 55),
                                 {"cuda:h100", 55},
                                 {"cuda:a100-80", 25},
                                 {"cuda:a100-40", 25},
                                 {"cuda:l40s", 25},
                                 {"cuda:rtx4090", 25},
                                 {"cuda:rtx3090", 25},
                                 {"cuda:rtx3060", 25},
                                 {"cuda:v100", 12},
                                 {"cuda:t4", 12}}) {
    Target target = *findTarget(name);
    const Channel read = target.copies[engine("file-read")];
    for (const Channel &link :
         {target.copies[engine("d2h")], target.copies[engine("h2d")]})
      EXPECT_EQ(link.seconds(gigabytes * 1e9), 1 + 10e-6) << name;
    // A drive is slower than the link, writing slower than reading; updates
    // are faster than moving what they touch.
    EXPECT_LT(read.bytesPerSecond, gigabytes * 1e9) << name;
    EXPECT_LT(target.copies[engine("file-write")].bytesPerSecond,
              read.bytesPerSecond)
        << name;
    EXPECT_GT(target.updates.bytesPerSecond, gigabytes * 1e9) << name;
  }
}

/// A copy reads and writes the one memory that there is.
TEST(Target, ACpuCopiesAtHalfItsRate) {
  Target target = *findTarget("cpu");
  const Roofline &core = target.rooflineOf("Copy", ProductType::F32);
  EXPECT_EQ(target.copies[engine("d2h")].seconds(1 << 20),
            core.seconds(0, 2 << 20));
  EXPECT_EQ(target.copies[engine("h2d")].seconds(1 << 20),
            core.seconds(0, 2 << 20));
  EXPECT_EQ(target.updates.seconds(0, 1 << 20), core.seconds(0, 1 << 20));
}

TEST(Target, ThePlannerGetsItsHost) {
  Target target = *findTarget("cuda:h200");
  EXPECT_TRUE(target.isHostAssumed);
  EXPECT_EQ(target.memoryBytes[SpaceKind::Host], int64_t(240) << 30);
  EXPECT_EQ(target.memoryBytes[SpaceKind::File], -1);
  target.copies[engine("d2h")] = {1e-6, 2e9};
  target.copies[engine("h2d")] = {3e-6, 4e9};
  target.updates = {5e-6, 6e9, 7e9};
  auto budgets = PerSpace<int64_t>::all(-1);
  budgets[SpaceKind::Host] = 1 << 30;
  planning::MoveOptions moves = moveOptionsOf(target, budgets);
  EXPECT_EQ(moves.toHost.bandwidth, 2'000'000'000);
  EXPECT_EQ(moves.toHost.latency, 1'000'000);
  EXPECT_EQ(moves.toDevice.bandwidth, 4'000'000'000);
  EXPECT_EQ(moves.toDevice.latency, 3'000'000);
  EXPECT_EQ(moves.update.bandwidth, 7'000'000'000);
  EXPECT_EQ(moves.update.latency, 5'000'000);
  EXPECT_EQ(moves.hostBudget, 1 << 30);
  EXPECT_EQ(moves.hostBandwidth, 245'760'000'000); // 0.8 of the memory's peak.
  // Rates of files can be anything.
  budgets[SpaceKind::Host] = -1;
  target.copies[engine("d2h")] = {1e30, 1e300};
  target.copies[engine("h2d")] = {0, 1e-3};
  moves = moveOptionsOf(target, budgets);
  EXPECT_EQ(moves.toHost.bandwidth, 1'000'000'000'000'000);
  EXPECT_EQ(moves.toHost.latency, 1'000'000'000'000'000);
  EXPECT_EQ(moves.toDevice.bandwidth, 1);
  EXPECT_EQ(moves.hostBudget, -1);
  target.hostBytesPerSecond = 1e30;
  EXPECT_EQ(moveOptionsOf(target, budgets).hostBandwidth,
            1'000'000'000'000'000);
  target.hostBytesPerSecond = 0; // No limit.
  EXPECT_EQ(moveOptionsOf(target, budgets).hostBandwidth, 0);
}

TEST(TargetFile, TheRateOfTheHostsMemoryIsKept) {
  const Target target = *findTarget("cuda:rtx3060");
  EXPECT_DOUBLE_EQ(target.hostBytesPerSecond, 0.8 * 51.2e9);
  const std::string text = targetToJson(target);
  EXPECT_EQ(targetFromJson(text, "t.json")->hostBytesPerSecond,
            target.hostBytesPerSecond);
  // Without it, and in files of older schemas, there is no limit.
  Target free = target;
  free.hostBytesPerSecond = 0;
  EXPECT_EQ(targetFromJson(targetToJson(free), "t.json")->hostBytesPerSecond,
            0);
  EXPECT_EQ(findTarget("cpu:v3")->hostBytesPerSecond, 0);
  const absl::StatusOr<Target> wrong =
      targetFromJson(replaced(text, "host_memory_bytes_per_second\": 4",
                              "host_memory_bytes_per_second\": -4"),
                     "t.json");
  EXPECT_EQ(wrong.status().message(),
            "'t.json' is no target description: "
            "'host_memory_bytes_per_second' isn't a positive number");
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
  EXPECT_EQ(picoseconds(*target, "Matmul", ProductType::F32, 2'000'000'000, 0),
            1'000'000'000'000);
  EXPECT_EQ(picoseconds(*target, "Conv", ProductType::F32, 1'000'000'000, 0),
            1'500'000'000'000);
  EXPECT_EQ(target->copies[engine("h2d")].bytesPerSecond, 1e10);
}

/// Files that were measured before a target had a host: one rate for both ways,
/// the rest as the built-in target of the same architecture has it.
TEST(TargetFile, ReadsSchemaTwo) {
  auto of = [](const std::string &backend, const std::string &arch) {
    absl::StatusOr<Target> target =
        targetFromJson(R"({"schema": 2, "name": "here", "backend": ")" +
                           backend + R"(", "arch": ")" + arch +
                           R"(", "memory_bytes": null, "reserved_bytes": 0,
            "arena_alignment": 64, "host_bytes_per_second": 1e10,
            "rooflines": {"f32": {"launch_seconds": 0, "flops_per_second": 1e9,
                                  "bytes_per_second": 1e9}}, "families": {}})",
                       "old.json");
    EXPECT_TRUE(target.ok()) << target.status();
    return *target;
  };
  for (auto [backend, arch, builtin] :
       {std::tuple("cuda", "sm_80", "cuda:a100-80"),
        {"cuda", "sm_75", "cuda:t4"},
        {"cuda", "sm_123", "cuda:h200"},
        {"cuda", "no/path.json", "cuda:h200"},
        {"cpu", "v3", "cpu"}}) {
    Target old = of(backend, arch), known = *findTarget(builtin);
    for (const char *link : {"d2h", "h2d"}) {
      const EngineKind kind = findEngine(link)->kind;
      EXPECT_EQ(old.copies[kind].bytesPerSecond, 1e10) << arch;
      old.copies[kind] = known.copies[kind];
    }
    // The rest of the description aside.
    Target same = old;
    same.copies = known.copies;
    same.updates = known.updates;
    EXPECT_EQ(targetToJson(old), targetToJson(same)) << arch;
  }
}

/// Files that were measured before figures had the names of spaces and engines.
TEST(TargetFile, ReadsSchemaThree) {
  const std::string channel = R"({"latency_seconds": 0, "bytes_per_second": )";
  const std::string roofline =
      R"({"launch_seconds": 0, "flops_per_second": 1e9,
          "bytes_per_second": 1e9})";
  absl::StatusOr<Target> target = targetFromJson(
      R"({"schema": 3, "name": "here", "backend": "cuda", "arch": "sm_80",
          "memory_bytes": 5, "reserved_bytes": 0, "arena_alignment": 64,
          "host": {"memory_bytes": 6, "to_host": )" +
          channel + "1}, \"to_device\": " + channel + "2}, \"updates\": " +
          roofline + R"(}, "file": {"bytes": null, "write": )" + channel +
          "3}, \"read\": " + channel +
          "4}}, \"rooflines\": {\"f32\": " + roofline + "}, \"families\": {}}",
      "old.json");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->memoryBytes.device(), 5);
  EXPECT_EQ(target->memoryBytes[SpaceKind::Host], 6);
  EXPECT_EQ(target->memoryBytes[SpaceKind::File], -1);
  double rate = 0;
  for (const char *name : {"d2h", "h2d", "file-write", "file-read"})
    EXPECT_EQ(target->copies[findEngine(name)->kind].bytesPerSecond, ++rate);
  EXPECT_EQ(target->updates.bytesPerSecond, 1e9);
  EXPECT_EQ(target->network[0].channel.bytesPerSecond, 235e9); // An A100's.
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
  EXPECT_EQ(why(replaced(good, "\"schema\": 7", "\"schema\": 9")),
            "'t.json' is no target description: its schema is 9; this tmc "
            "reads 1 to 7");
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
  EXPECT_EQ(why(replaced(good, "\"h2d\"", "\"h2c\"")),
            "'t.json' is no target description: 'engines.h2d' isn't an object");
  EXPECT_EQ(why(replaced(good, "\"device\"", "\"card\"")),
            "'t.json' is no target description: 'memory_bytes.device' isn't a "
            "number of bytes");
  EXPECT_EQ(why(replaced(good, "2000000000,", "0,")),
            "'t.json' is no target description: "
            "'engines.file-write.bytes_per_second' "
            "isn't a positive number");
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
      return picoseconds(of, "Matmul", ProductType::F32, 1 << 30, 1 << 20);
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
  EXPECT_EQ(similarTarget("sm90"), "cuda:sm_90");
  EXPECT_EQ(similarTarget("elephant"), "");
}

TEST(Target, AnUnknownNameIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(findTarget("cpu:v5").status()));
  EXPECT_TRUE(absl::IsNotFound(findTarget("cpu:").status()));
  EXPECT_TRUE(absl::IsNotFound(findTarget("cuda:sm_1").status()));
  EXPECT_TRUE(absl::IsUnavailable(findTarget("./no/such.json").status()));
}

TEST(TargetFile, HostileFilesAreRefused) {
  for (const char *open : {"[", "{\"a\":"}) {
    std::string deep;
    for (int i = 0; i < 40000; ++i)
      deep += open;
    absl::StatusOr<Target> target = targetFromJson(deep, "deep.json");
    ASSERT_FALSE(target.ok());
    EXPECT_EQ(target.status().message(),
              "'deep.json' is no target description: it is nested more than "
              "200 deep");
  }
  Target target = *findTarget("cpu:v3");
  target.name = "a\n\u202eb";
  absl::StatusOr<Target> again = targetFromJson(targetToJson(target), "x.json");
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().message(),
            "'x.json' is no target description: 'name' holds the control "
            "character 0x0a at byte 1");
  // What isn't seen is escaped where it is shown.
  target.name = "\u202e*/\\";
  EXPECT_EQ(targetFromJson(targetToJson(target), "x.json")->name, target.name);
}
