//===- OffloadTest.cpp - a step over three spaces -------------------------===//
//
// The tiny step with moves against the one without: equal bits, in every mode,
// through checkpoints of either; and what becomes of it when its file fails.
//
//===----------------------------------------------------------------------===//

#include "QueuesTesting.h"
#include "Testing.h"
#include "TinyOffload.h"

#include "runtime/step/AllocationCounter.h"
#include "runtime/step/Step.h"
#include "test/unit/TemporaryDirectory.h"

#include <cmath>
#include <fstream>

using namespace tmc;
using namespace tmc::test;

extern "C" AllocationCounter *tmc_link_allocation_hook();

namespace {

const StepProgram &plain() {
  static const StepProgram program = tiny::program();
  return program;
}
const StepProgram &moving() {
  static const StepProgram program = tiny::offloadProgram();
  return program;
}

std::unique_ptr<Step> make(const StepProgram &program,
                           const std::string &directory,
                           StepOptions options = {}) {
  options.device.threads = 1;
  options.nvmeDirectory = directory;
  std::unique_ptr<Step> step;
  const Status s = Step::create(program, options, step);
  EXPECT_TRUE(s) << s.message();
  return step;
}

Status run(Step &step, int count, unsigned firstSeed, double *last = nullptr) {
  for (int i = 0; i < count; ++i) {
    test::Longs tokens =
        randomLongs(tiny::kRows, tiny::kVocabulary, firstSeed + unsigned(i));
    for (const char *name : {"tokens", "labels"})
      if (Status s =
              step.write(*step.find(name), tokens, step.find(name)->bytes());
          !s)
        return s;
    double loss = 0;
    if (Status s = step.run(loss); !s)
      return s;
    if (last)
      *last = loss;
  }
  return Status::ok();
}

std::vector<float> values(Step &step, const char *name) {
  const TensorInfo &info = *step.find(name);
  std::vector<float> v(size_t(info.elements()));
  const Status s = step.read(info, v.data(), info.bytes());
  EXPECT_TRUE(s) << s.message();
  return v;
}

/// Whether everything that a step leaves behind is the same in both.
bool areEqual(Step &a, Step &b) {
  for (const char *name : {"embed", "head", "embed.m", "embed.v", "head.m",
                           "head.v", "loss", "grad_norm"})
    if (values(a, name) != values(b, name))
      return false;
  return true;
}

std::string bytesOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

TEST(Offload, MovesChangeNoBit) {
  tmc_link_allocation_hook();
  TemporaryDirectory directory;
  auto reference = make(plain(), "");
  ASSERT_TRUE(reference->initRandom(3));
  ASSERT_TRUE(run(*reference, 6, 1));
  for (int mode = 0; mode < 6; ++mode) {
    StepOptions options;
    options.poison = mode == 1 || mode == 3;
    options.checkFinite = mode == 2 || mode == 3;
    options.profile = mode == 4;
    options.trace = mode == 5;
    options.device.hostThreads = 1 + mode % 2;
    auto step = make(moving(), directory.path, options);
    RandomDelays delays{unsigned(mode)};
    if (!options.trace)
      step->device().observeWork(&delays);
    ASSERT_TRUE(step->initRandom(3));
    const Status s = run(*step, 6, 1);
    ASSERT_TRUE(s) << s.message();
    EXPECT_TRUE(areEqual(*step, *reference)) << mode;
    const StepStatistics stats = step->statistics();
    EXPECT_EQ(stats.arenaBytes[SpaceKind::Host], tiny::kHostArena);
    EXPECT_GT(stats.highWaterBytes[SpaceKind::Host], 0);
    EXPECT_LE(stats.highWaterBytes[SpaceKind::Host], tiny::kHostArena);
#ifndef TMC_CUDA_EMULATED // whose queues allocate
    if (mode == 0) {
      EXPECT_EQ(stats.allocations, 0);
    }
#endif
  }
}

TEST(Offload, PoisonReachesEverySpace) {
  TemporaryDirectory directory;
  StepOptions options;
  options.poison = true;
  auto step = make(moving(), directory.path, options);
  ASSERT_TRUE(step->initRandom(3));
  ASSERT_TRUE(run(*step, 1, 1));
  EXPECT_TRUE(std::isnan(floatAt(step->device(), tiny::kDHead)));
  float dead;
  std::memcpy(&dead, step->device().arena(SpaceKind::Host) + tiny::kHostHidden,
              4);
  EXPECT_TRUE(std::isnan(dead));
}

TEST(Offload, EveryWaitIsNeeded) {
  TemporaryDirectory directory;
  auto reference = make(plain(), "");
  ASSERT_TRUE(reference->initRandom(3));
  ASSERT_TRUE(run(*reference, 2, 1));
  const std::pair<tiny::Entry, EngineKind> waits[] = {
      {tiny::FetchEmbed, EngineKind::HostToDevice},
      {tiny::ReadM, EngineKind::FileRead},
      {tiny::StashStep, EngineKind::DeviceToHost},
      {tiny::FetchV, EngineKind::HostToDevice},
      {tiny::StashV, EngineKind::DeviceToHost},
      {tiny::UpdateEmbed, EngineKind::Host},
      {tiny::FetchSquares, EngineKind::HostToDevice}};
  for (const auto &[left, engine] : waits) {
    auto step = make(moving(), directory.path);
    Delay delay(engine, 100, left);
    step->device().observeWork(&delay);
    ASSERT_TRUE(step->initRandom(3));
    tiny::leftOut = left;
    Status s = run(*step, 1, 1);
    // What the last step left where nothing is alive would do, too.
    for (char *dead : {step->device().arena(SpaceKind::Host) + tiny::kStageM,
                       step->device().arena(SpaceKind::Host) + tiny::kStageV,
                       step->device().arena(SpaceKind::Device) + tiny::kHeadM,
                       step->device().arena(SpaceKind::Device) + tiny::kHeadV})
      std::memset(dead, 0x7f, size_t(tiny::kTableBytes));
    if (s)
      s = run(*step, 1, 2);
    tiny::leftOut = -1;
    EXPECT_TRUE(!s || !areEqual(*step, *reference)) << left;
  }
}

TEST(Offload, CheckpointsGoFromAnyPlanToAnyOther) {
  TemporaryDirectory directory, swap;
  auto reference = make(plain(), "");
  ASSERT_TRUE(reference->initRandom(3));
  ASSERT_TRUE(run(*reference, 3, 1));
  ASSERT_TRUE(reference->save(directory / "plain"));
  {
    auto step = make(moving(), swap.path);
    ASSERT_TRUE(step->initRandom(3));
    ASSERT_TRUE(run(*step, 3, 1));
    const Status s = step->save(directory / "moving");
    ASSERT_TRUE(s) << s.message();
  }
  const std::string file = "/checkpoint.safetensors";
  EXPECT_EQ(bytesOf(directory / ("plain" + file)),
            bytesOf(directory / ("moving" + file)));
  ASSERT_TRUE(run(*reference, 3, 4));
  for (const char *from : {"plain", "moving"}) {
    auto step = make(moving(), swap.path);
    const Status s = step->resume(directory / from);
    ASSERT_TRUE(s) << s.message();
    ASSERT_TRUE(run(*step, 3, 4));
    EXPECT_TRUE(areEqual(*step, *reference)) << from;
  }
}

TEST(Offload, EverySpaceIsWrittenAndRead) {
  TemporaryDirectory directory;
  auto step = make(moving(), directory.path);
  ASSERT_TRUE(step->initRandom(3));
  for (const char *name : {"embed", "head", "embed.v", "head.m"}) {
    const TensorInfo &info = *step->find(name);
    std::vector<float> given(size_t(info.elements()));
    for (size_t i = 0; i < given.size(); ++i)
      given[i] = float(i) * 0.25f;
    ASSERT_TRUE(step->write(info, given.data(), info.bytes()));
    EXPECT_EQ(values(*step, name), given) << name;
  }
}

namespace {

/// The write of one step is lost, or an error comes.
class InStep final : public TransferFaults {
public:
  int left = 0, error = 0; // so many writes
  bool lost = false;
  Verdict before(bool writes, int64_t, int64_t bytes) override {
    if (!writes || left == 0)
      return {bytes};
    --left;
    return {bytes, error, lost};
  }
};

} // namespace

TEST(Offload, AFailedTransferEndsTheStepAndKeepsTheCheckpoint) {
  TemporaryDirectory directory, swap;
  for (const bool lost : {false, true}) {
    InStep faults;
    StepOptions options;
    options.file.faults = &faults;
    auto step = make(moving(), swap.path, options);
    ASSERT_TRUE(step->initRandom(3));
    ASSERT_TRUE(run(*step, 2, 1));
    ASSERT_TRUE(step->save(directory.path));
    const std::string saved = bytesOf(directory / kCheckpointFile);
    faults.left = 2; // a page, and what is left of the tensor
    faults.error = lost ? 0 : ENOSPC;
    faults.lost = lost;
    const Status s = run(*step, 2, 3);
    EXPECT_EQ(s.code(), Code::World);
    EXPECT_NE(s.message().find(lost ? "are stale" : "No space left"),
              std::string::npos)
        << s.message();
    EXPECT_NE(s.message().find("go on from a checkpoint"), std::string::npos);
    // Nothing goes on with what is left, and nothing is saved of it.
    for (const Status &after : {run(*step, 1, 9), step->save(directory.path),
                                step->saveWeights(directory.path)})
      EXPECT_EQ(after.message(), s.message());
    EXPECT_EQ(bytesOf(directory / kCheckpointFile), saved);
    // From the checkpoint it does.
    faults.left = 0;
    ASSERT_TRUE(step->resume(directory.path));
    ASSERT_TRUE(run(*step, 2, 3));
    auto reference = make(plain(), "");
    ASSERT_TRUE(reference->initRandom(3));
    ASSERT_TRUE(run(*reference, 4, 1));
    EXPECT_TRUE(areEqual(*step, *reference));
  }
}

TEST(Offload, AProgramWithAFileNeedsADirectory) {
  std::unique_ptr<Step> step;
  const Status s = Step::create(moving(), {}, step);
  EXPECT_EQ(s.code(), Code::Usage);
  EXPECT_NE(s.message().find("--nvme DIR"), std::string::npos) << s.message();
}

TEST(Offload, TheTraceHasBothLanes) {
  TemporaryDirectory directory;
  StepOptions options;
  options.trace = true;
  auto step = make(moving(), directory.path, options);
  ASSERT_TRUE(step->initRandom(3));
  ASSERT_TRUE(run(*step, 2, 1));
  const std::string text = step->trace()->json();
  auto count = [&](const std::string &what) {
    int found = 0;
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at)
      ++found;
    return found;
  };
  // Ten kernels and sixteen pieces of work, twice; dones aren't entries of it.
  EXPECT_EQ(count("\"ph\": \"X\""), 2 * (9 + 16));
  // One device has no network.
  for (const EngineInfo &engine : kEngines)
    EXPECT_EQ(count(std::string("{\"name\": \"") + engine.name + "\"}"),
              engine.kind == EngineKind::Network ? 0 : 2)
        << engine.name;
}
