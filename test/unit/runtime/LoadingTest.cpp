//===- LoadingTest.cpp - the memory that loading takes --------------------===//
//
// A step with one large parameter in codes is loaded from a file twice. The
// second time every page of its arena is touched already, so the process grows
// by what loading itself takes.
//
//===----------------------------------------------------------------------===//

#include "Testing.h"
#include "TinyProgram.h"

#include "runtime/kernels/FrozenCodes.h"
#include "runtime/step/Safetensors.h"
#include "runtime/step/Step.h"
#include "test/unit/TemporaryDirectory.h"

#include <filesystem>
#include <fstream>
#include <malloc.h>

using namespace tmc;
using namespace tmc::test;

namespace {

constexpr int64_t kRowsOfBig = 16384, kBig = kRowsOfBig * 8192; // 128 Mi
constexpr int64_t kBlocks = kBig / frozen::kBlock;
constexpr int64_t kPage = 4096;
constexpr int64_t kCodesAt = (tiny::kArena + kPage - 1) / kPage * kPage;
constexpr int64_t kMaximaAt = kCodesAt + kBig / 2;
constexpr int64_t kNestedAt = kMaximaAt + kBlocks;
constexpr int64_t kWhole = kNestedAt + (int64_t(1) << 20);
constexpr int64_t kCodesIndex = std::size(tiny::kTensors);

/// The tiny step with a parameter of kBig numbers that no kernel reads.
const StepProgram &bigProgram() {
  static const StoredInfo stored{2,
                                 {kRowsOfBig, kBig / kRowsOfBig},
                                 /*byRows=*/false,
                                 kCodesIndex + 1,
                                 kCodesIndex + 2};
  static const std::vector<TensorInfo> tensors = [] {
    std::vector<TensorInfo> all(std::begin(tiny::kTensors),
                                std::end(tiny::kTensors));
    auto add = [&](const char *name, DType type, int64_t count, int64_t at) {
      all.push_back({.name = name,
                     .type = type,
                     .rank = 1,
                     .dims = {count},
                     .offset = at,
                     .role = Role::Param});
    };
    add("big", DType::I8, kBig / 2, kCodesAt);
    all.back().stored = &stored;
    add("big.absmax", DType::I8, kBlocks, kMaximaAt);
    all.back().maximaOf = kCodesIndex;
    add("big.nested", DType::F32, frozen::nestedFloats(kBlocks), kNestedAt);
    all.back().maximaOf = kCodesIndex;
    return all;
  }();
  static const StepProgram program = [] {
    StepProgram p = tiny::program();
    p.tensors = tensors.data();
    p.tensorCount = int64_t(tensors.size());
    p.arenaBytes.device() = kWhole;
    return p;
  }();
  return program;
}

/// A file with the step's parameters; its tensors are zeros, and its bytes are
/// a hole.
std::string writeFile(const TemporaryDirectory &dir) {
  const std::string path = dir / "weights.safetensors";
  const std::vector<int64_t> table = {tiny::kVocabulary, tiny::kChannels};
  std::vector<std::pair<std::string, SafeTensor>> tensors = {
      {"big", {DType::BF16, {kRowsOfBig, kBig / kRowsOfBig}, 0, 0}},
      {"embed", {DType::F32, table, 0, 0}},
      {"head", {DType::F32, table, 0, 0}}};
  const std::string header = safetensorsHeader(tensors, {});
  std::ofstream(path, std::ios::binary) << header;
  std::filesystem::resize_file(path, header.size() +
                                         size_t(tensors.back().second.end));
  return path;
}

/// A field of /proc/self/status in bytes.
int64_t fieldBytes(const std::string &key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, key.size() + 1, key + ":") == 0)
      return std::atoll(line.c_str() + key.size() + 1) * 1024;
  return -1;
}

TEST(Loading, TakesASixteenthOfAByteForANumberOfTheLargestMatrix) {
  TemporaryDirectory dir;
  const std::string path = writeFile(dir);
  std::unique_ptr<Step> step;
  const Status made = Step::create(bigProgram(), {}, step);
  ASSERT_TRUE(made) << made.message();
  const Status first = step->load(path);
  ASSERT_TRUE(first) << first.message();

  malloc_trim(0);
  std::ofstream reset("/proc/self/clear_refs");
  reset << 5 << std::flush; // The peak becomes what is used now.
  if (!reset)
    GTEST_SKIP() << "the peak of this process can't be reset";
  const int64_t before = fieldBytes("VmRSS");
  ASSERT_TRUE(step->load(path));
  const int64_t grown = fieldBytes("VmHWM") - before;
  // Slots between host and card take the other 4 MiB of load_staging_bytes.
  constexpr int64_t kPieces = int64_t(4) << 20;
  EXPECT_GT(grown, kBig / 16 / 2) << "the maxima are held";
  EXPECT_LE(grown, kBig / 16 + kPieces);
}

} // namespace
