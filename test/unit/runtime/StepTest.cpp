//===- StepTest.cpp - a whole step, its arena and its checkpoints ---------===//

#include "Testing.h"
#include "TinyProgram.h"

#include "runtime/kernels/Storage.h"
#include "runtime/step/AllocationCounter.h"
#include "runtime/step/Safetensors.h"
#include "runtime/step/Step.h"
#include "runtime/tmc.h"
#include "test/unit/TemporaryDirectory.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sys/resource.h>

using namespace tmc;
using namespace tmc::test;
namespace fs = std::filesystem;

/// The C interface and the trainer find the step by this name.
extern "C" const StepProgram *tmc_step_program() {
  static const StepProgram program = tiny::program();
  return &program;
}
const tmc::CompiledFor tmc_step_compiled_for = {"cpu:v3", tmc::kInstructions};
extern "C" AllocationCounter *tmc_link_allocation_hook();

namespace {

std::unique_ptr<Step> makeStep(int threads = 1, bool poison = false,
                               bool checkFinite = false) {
  StepOptions options;
  options.device.threads = threads;
  options.poison = poison;
  options.checkFinite = checkFinite;
  std::unique_ptr<Step> step;
  const Status s = Step::create(*tmc_step_program(), options, step);
  EXPECT_TRUE(s) << s.message();
  return step;
}

void writeBatch(Step &step, unsigned seed) {
  test::Longs tokens = randomLongs(tiny::kRows, tiny::kVocabulary, seed);
  for (const char *name : {"tokens", "labels"}) {
    const TensorInfo &info = *step.find(name);
    const Status s = step.write(info, tokens, info.bytes());
    EXPECT_TRUE(s) << s.message();
  }
}

double runSteps(Step &step, int count, unsigned firstSeed) {
  double loss = 0;
  for (int i = 0; i < count; ++i) {
    writeBatch(step, firstSeed + unsigned(i));
    const Status s = step.run(loss);
    EXPECT_TRUE(s) << s.message();
  }
  return loss;
}

std::vector<float> values(Step &step, const char *name) {
  const TensorInfo &info = *step.find(name);
  std::vector<float> v(size_t(info.elements()));
  EXPECT_TRUE(step.read(info, v.data(), info.bytes()));
  return v;
}

/// The tiny program, one of its tensors changed.
struct ChangedProgram {
  StepProgram program = tiny::program();
  std::vector<TensorInfo> tensors;

  template <typename F> ChangedProgram(const std::string &name, F &&change) {
    tensors.assign(program.tensors, program.tensors + program.tensorCount);
    for (TensorInfo &tensor : tensors)
      if (tensor.name == name)
        change(tensor);
    program.tensors = tensors.data();
  }
};

} // namespace

TEST(Step, TrainsAndCountsItsMemory) {
  tmc_link_allocation_hook();
  auto step = makeStep();
  ASSERT_TRUE(step->initRandom(1));
  double first = 0, last = 0;
  step->setLearningRate(0.05);
  for (int i = 0; i < 30; ++i) {
    writeBatch(*step, 5);
    ASSERT_TRUE(step->run(i ? last : first));
  }
  EXPECT_NEAR(first, std::log(100.0), 0.01);
  EXPECT_LT(last, 0.5);
  const StepStatistics s = step->statistics();
  EXPECT_EQ(s.arenaBytes.device(), tiny::kArena);
  EXPECT_EQ(s.steps, 30);
  EXPECT_GT(s.gradNorm, 0);
  EXPECT_EQ(s.allocations, 0);
  EXPECT_EQ(s.largestAllocationBytes, 0);
}

TEST(Step, FeedsItsScalars) {
  StepOptions options;
  options.device.threads = 1;
  options.seed = 0x123456789abcdef;
  std::unique_ptr<Step> step;
  ASSERT_TRUE(Step::create(*tmc_step_program(), options, step));
  ASSERT_TRUE(step->initRandom(1));
  step->setLearningRate(0.125);
  runSteps(*step, 3, 1);
  auto longs = [&](const char *name) {
    const TensorInfo &info = *step->find(name);
    std::vector<int64_t> v(size_t(info.elements()));
    EXPECT_TRUE(step->read(info, v.data(), info.bytes()));
    return v;
  };
  EXPECT_EQ(longs("step"), std::vector<int64_t>{3});
  EXPECT_EQ(longs("seed"), (std::vector<int64_t>{0x123456789abcdef, 3}));
  EXPECT_EQ(longs("samples"), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(values(*step, "lr"), std::vector<float>{0.125f});
}

TEST(Step, HighWaterCountsTouchedPagesOnly) {
  std::unique_ptr<Device> device = makeDevice(1);
  const int64_t page = 4096;
  ASSERT_TRUE(device->allocateArena(SpaceKind::Device, 100 * page - 5));
  EXPECT_EQ(device->highWaterBytes(SpaceKind::Device), 0);
  device->arena(SpaceKind::Device)[0] = 1;
  device->arena(SpaceKind::Device)[50 * page + 7] = 1;
  device->arena(SpaceKind::Device)[100 * page - 6] = 1;
  EXPECT_EQ(device->highWaterBytes(SpaceKind::Device), 3 * page);
}

TEST(StepDeathTest, GuardPagesStopAnOverrun) {
  std::unique_ptr<Device> device = makeDevice(1);
  ASSERT_TRUE(device->allocateArena(SpaceKind::Device, 8192));
  volatile char *arena = device->arena(SpaceKind::Device);
  arena[8191] = 1;
  EXPECT_DEATH(arena[8192] = 1, "");
  EXPECT_DEATH(arena[-1] = 1, "");
}

TEST(Step, TheAllocationHookSeesAnAllocation) {
  AllocationCounter *counter = allocationCounter();
  ASSERT_TRUE(counter);
  counter->large = 0;
  counter->largestBytes = 0;
  counter->counting = true;
  void *volatile block = std::malloc(5000);
  std::free(block);
  block = std::malloc(100);
  std::free(block);
  counter->counting = false;
  EXPECT_EQ(counter->large, 1);
  EXPECT_EQ(counter->largestBytes, 5000);
}

TEST(Step, PoisonAndThreadsChangeNoBit) {
  auto plain = makeStep(1), poisoned = makeStep(1, true), two = makeStep(2);
  for (Step *step : {plain.get(), poisoned.get(), two.get()}) {
    ASSERT_TRUE(step->initRandom(3));
    runSteps(*step, 5, 1);
  }
  for (const char *name : {"embed", "head", "head.v"}) {
    EXPECT_EQ(values(*plain, name), values(*poisoned, name));
    EXPECT_EQ(values(*plain, name), values(*two, name));
  }
  // The poison is really there: the logits died after their last use.
  EXPECT_TRUE(std::isnan(floatAt(poisoned->device(), tiny::kLogits)));
}

TEST(Step, AProfileCountsEachLaunchAndChangesNoBit) {
  std::unique_ptr<Step> plain = makeStep();
  StepOptions options;
  options.device.threads = 2;
  options.poison = true; // both observers see each launch
  options.profile = true;
  std::unique_ptr<Step> profiled;
  ASSERT_TRUE(Step::create(*tmc_step_program(), options, profiled));
  ASSERT_TRUE(plain->initRandom(3));
  ASSERT_TRUE(profiled->initRandom(3));
  EXPECT_EQ(plain->profile(), nullptr);
  const Profile *profile = profiled->profile();
  ASSERT_NE(profile, nullptr);
  EXPECT_EQ(profile->table(), "");
  EXPECT_EQ(runSteps(*plain, 4, 1), runSteps(*profiled, 4, 1));
  EXPECT_EQ(profile->steps(), 3);
  // The two updates are one kernel, launched twice a step.
  const std::string table = profile->table();
  const size_t update = table.find("\nupdate ");
  ASSERT_NE(update, std::string::npos) << table;
  EXPECT_EQ(std::strtol(table.c_str() + update + 7, nullptr, 10), 2) << table;
  // Each launch ran in each of the three steps.
  const std::string json = profile->json();
  const std::string kernel = "\"kernel\": \"", runs = "\", \"runs\": 3,";
  int64_t count = 0;
  for (size_t at = 0; (at = json.find(kernel, at)) != std::string::npos;) {
    at = json.find('"', at + kernel.size());
    count += json.compare(at, runs.size(), runs) == 0;
  }
  EXPECT_EQ(count, tmc_step_program()->launchCount) << json;
}

TEST(Step, CheckFiniteNamesTheLaunch) {
  auto step = makeStep(1, false, true);
  ASSERT_TRUE(step->initRandom(1));
  writeBatch(*step, 1);
  double loss;
  ASSERT_TRUE(step->run(loss));
  std::vector<float> head = values(*step, "head");
  head[5 * 16] = INFINITY;
  const TensorInfo &info = *step->find("head");
  ASSERT_TRUE(step->write(info, head.data(), info.bytes()));
  writeBatch(*step, 1);
  const Status s = step->run(loss);
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_EQ(s.message().find("head (model.py:7) makes a"), 0u) << s.message();
}

TEST(Step, RandomInitializationFollowsItsRules) {
  auto a = makeStep(), b = makeStep(2);
  ASSERT_TRUE(a->initRandom(7));
  ASSERT_TRUE(b->initRandom(7));
  EXPECT_EQ(values(*a, "embed"), values(*b, "embed"));
  EXPECT_NE(values(*a, "embed"), values(*a, "head"));
  double mean = 0, square = 0;
  for (float x : values(*a, "embed")) {
    mean += x / 1600;
    square += x * x / 1600;
  }
  EXPECT_NEAR(mean, 0, 0.002);
  EXPECT_NEAR(std::sqrt(square), 0.02, 0.002);
  for (float x : values(*a, "head.m"))
    ASSERT_EQ(x, 0);
  ASSERT_TRUE(b->initRandom(8));
  EXPECT_NE(values(*a, "embed"), values(*b, "embed"));
}

TEST(Step, RefusesBadTokensBeforeItRuns) {
  auto step = makeStep();
  ASSERT_TRUE(step->initRandom(1));
  test::Longs tokens(tiny::kRows, 3);
  const TensorInfo &input = *step->find("tokens");
  const TensorInfo &labels = *step->find("labels");
  tokens[9] = 100;
  Status s = step->write(input, tokens, input.bytes());
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_NE(s.message().find("element 9 of 'tokens' is 100"),
            std::string::npos);
  tokens[9] = -100;
  EXPECT_FALSE(step->write(input, tokens, input.bytes()));
  EXPECT_TRUE(step->write(labels, tokens, labels.bytes()));
  EXPECT_EQ(step->write(input, tokens, 8).code(), Code::Usage);
}

TEST(Step, ChecksEachBoxOfAnInputByItself) {
  // Columns 0 and 2 to 6 in steps of 2 index tables of 5 rows and of 7, with
  // -1 ignored; the other columns are no indices.
  static const IndexRange ranges[] = {
      {{0, 0}, {tiny::kBatch, 1}, {1, 1}, 5},
      {{0, 2}, {tiny::kBatch, 3}, {1, 2}, 7, true, -1},
  };
  std::vector<TensorInfo> tensors(std::begin(tiny::kTensors),
                                  std::end(tiny::kTensors));
  for (TensorInfo &tensor : tensors)
    if (std::string(tensor.name) == "tokens") {
      tensor.limit = 0;
      tensor.ranges = ranges;
      tensor.rangeCount = 2;
    }
  StepProgram program = tiny::program();
  program.tensors = tensors.data();
  std::unique_ptr<Step> step;
  ASSERT_TRUE(Step::create(program, {}, step));
  const TensorInfo &input = *step->find("tokens");
  auto write = [&](int64_t row, int64_t column, int64_t value) {
    test::Longs tokens(tiny::kRows, 0);
    tokens[row * tiny::kTime + column] = value;
    return step->write(input, tokens, input.bytes());
  };
  EXPECT_TRUE(write(3, 0, 4));
  EXPECT_TRUE(write(3, 2, 6));
  EXPECT_TRUE(write(3, 4, -1));
  EXPECT_TRUE(write(3, 3, 1000));
  EXPECT_TRUE(write(3, 7, -5));
  EXPECT_EQ(write(3, 0, 5).message(),
            "element 24 of 'tokens' is 5, outside [0, 5)");
  EXPECT_EQ(write(1, 6, 7).message(),
            "element 14 of 'tokens' is 7, outside [0, 7)");
  EXPECT_EQ(write(0, 0, -1).code(), Code::BadInput);
}

TEST(Step, ReportsAnIndexThatNoLimitCaught) {
  // The same program, whose table doesn't say how many tokens there are.
  std::vector<TensorInfo> tensors(std::begin(tiny::kTensors),
                                  std::end(tiny::kTensors));
  for (TensorInfo &tensor : tensors)
    tensor.limit = 0;
  StepProgram program = tiny::program();
  program.tensors = tensors.data();
  std::unique_ptr<Step> step;
  ASSERT_TRUE(Step::create(program, {}, step));
  ASSERT_TRUE(step->initRandom(1));
  writeBatch(*step, 1);
  double loss;
  ASSERT_TRUE(step->run(loss));
  test::Longs tokens(tiny::kRows, 3);
  tokens[9] = 200;
  const TensorInfo &input = *step->find("tokens");
  ASSERT_TRUE(step->write(input, tokens, input.bytes()));
  const Status s = step->run(loss);
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_EQ(s.message(), "an index is 200 in row 9, outside [0, 100)");
  EXPECT_EQ(step->steps(), 1);
}

TEST(Step, NothingRunsBeforeThereAreParameters) {
  auto step = makeStep();
  double loss;
  EXPECT_EQ(step->run(loss).code(), Code::Usage);
  EXPECT_EQ(step->save("/nowhere").code(), Code::Usage);
  const std::vector<float> some(size_t(tiny::kTable), 0.25f);
  const TensorInfo &embed = *step->find("embed");
  ASSERT_TRUE(step->write(embed, some.data(), embed.bytes()));
  EXPECT_EQ(step->run(loss).message(),
            "'head' has no value yet: load or initialize it first");
}

TEST(Step, NothingRunsBeforeThereAreInputs) {
  auto step = makeStep();
  ASSERT_TRUE(step->initRandom(1));
  double loss;
  Status s = step->run(loss);
  EXPECT_EQ(s.code(), Code::Usage);
  EXPECT_EQ(s.message(), "'tokens', 'labels' were never written: a step takes "
                         "its inputs before it runs");
  const test::Longs tokens(tiny::kRows, 3);
  const TensorInfo &info = *step->find("tokens");
  ASSERT_TRUE(step->write(info, tokens, info.bytes()));
  EXPECT_EQ(step->run(loss).message().find("'labels' was never written"), 0u);
  const TensorInfo &labels = *step->find("labels");
  ASSERT_TRUE(step->write(labels, tokens, labels.bytes()));
  EXPECT_TRUE(step->run(loss));
  EXPECT_TRUE(step->run(loss)) << "inputs stay as they are";
}

TEST(Step, WhatIsFrozenIsNotDrawn) {
  ChangedProgram frozen("head", [](TensorInfo &t) { t.trainable = false; });
  std::unique_ptr<Step> step;
  ASSERT_TRUE(Step::create(frozen.program, {}, step));
  const std::vector<float> some(size_t(tiny::kTable), 0.25f);
  const TensorInfo &head = *step->find("head");
  ASSERT_TRUE(step->write(head, some.data(), head.bytes()));
  ASSERT_TRUE(step->initRandom(1));
  EXPECT_EQ(values(*step, "head"), some);
  EXPECT_NE(values(*step, "embed"), some);
}

namespace {

/// Makes the loss, and so each gradient, no number.
void overflow(Step &step) {
  const std::vector<float> most(size_t(tiny::kTable), 3e38f);
  for (const char *name : {"embed", "head"}) {
    const TensorInfo &info = *step.find(name);
    ASSERT_TRUE(step.write(info, most.data(), info.bytes()));
  }
}

const char *const kMoved[] = {"embed",  "head",   "embed.m", "embed.v",
                              "head.m", "head.v", "seen"};

} // namespace

TEST(Step, NothingMovesWhereTheNormIsNoNumber) {
  const StepProgram program = tiny::clippedProgram();
  std::unique_ptr<Step> step, other;
  ASSERT_TRUE(Step::create(program, {}, step));
  ASSERT_TRUE(Step::create(program, {}, other));
  ASSERT_TRUE(step->initRandom(1));
  runSteps(*step, 2, 1);
  std::map<std::string, std::vector<float>> good, before;
  for (const char *name : kMoved)
    good[name] = values(*step, name);
  overflow(*step);
  for (const char *name : kMoved)
    before[name] = values(*step, name);
  EXPECT_TRUE(std::isnan(runSteps(*step, 1, 3)));
  for (const char *name : kMoved)
    EXPECT_EQ(values(*step, name), before[name]) << name;
  EXPECT_EQ(step->statistics().steps, 3);
  EXPECT_EQ(step->statistics().skippedSteps, 1);
  EXPECT_EQ(step->batches(), 3);
  // The next update is the third, as if there had been no step between.
  for (const char *name : {"embed", "head"})
    ASSERT_TRUE(step->write(*step->find(name), good[name].data(),
                            step->find(name)->bytes()));
  ASSERT_TRUE(other->initRandom(1));
  runSteps(*other, 2, 1);
  EXPECT_EQ(runSteps(*step, 1, 9), runSteps(*other, 1, 9));
  for (const char *name : kMoved)
    EXPECT_EQ(values(*step, name), values(*other, name)) << name;
  // A resumed run counts as one that went on.
  TemporaryDirectory dir;
  ASSERT_TRUE(step->save(dir / "c"));
  ASSERT_TRUE(other->resume(dir / "c"));
  EXPECT_EQ(other->statistics().skippedSteps, 1);
  EXPECT_EQ(runSteps(*step, 1, 4), runSteps(*other, 1, 4));
  EXPECT_EQ(values(*step, "embed"), values(*other, "embed"));
}

TEST(Checkpoint, WhatIsFiniteIsNotReplacedByWhatIsNot) {
  TemporaryDirectory dir;
  auto step = makeStep();
  ASSERT_TRUE(step->initRandom(1));
  runSteps(*step, 1, 1);
  ASSERT_TRUE(step->save(dir / "c"));
  ASSERT_TRUE(step->saveWeights(dir / "c"));
  const std::string path = dir / "c/checkpoint.safetensors";
  auto bytes = [](const std::string &file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string before = bytes(path);
  const std::string model = bytes(dir / "c/model.safetensors");
  overflow(*step);
  runSteps(*step, 1, 2);
  const Status s = step->save(dir / "c");
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_EQ(s.message(),
            "'embed', 'head', 'embed.m' and 3 more aren't finite after step 2; "
            "'" +
                path + "' is, and stays as it was");
  EXPECT_FALSE(step->saveWeights(dir / "c"));
  EXPECT_EQ(bytes(path), before);
  EXPECT_EQ(bytes(dir / "c/model.safetensors"), model);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir / "c"), {}), 2);
  // Where there is none, or one that isn't better, it is written.
  EXPECT_TRUE(step->save(dir / "d"));
  EXPECT_TRUE(step->save(dir / "d"));
}

TEST(Checkpoint, HoldsWhatIsTrainedAndKnowsItsBase) {
  TemporaryDirectory dir;
  ChangedProgram frozen("head", [](TensorInfo &t) { t.trainable = false; });
  std::unique_ptr<Step> step, back;
  ASSERT_TRUE(Step::create(frozen.program, {}, step));
  ASSERT_TRUE(Step::create(frozen.program, {}, back));
  ASSERT_TRUE(step->initRandom(1));
  runSteps(*step, 2, 1);
  ASSERT_TRUE(step->save(dir / "c"));
  ASSERT_TRUE(step->saveWeights(dir / "c"));
  SafetensorsFile file;
  ASSERT_TRUE(SafetensorsFile::open(dir / "c/checkpoint.safetensors", file));
  EXPECT_EQ(file.find("head"), nullptr);
  EXPECT_NE(file.find("embed"), nullptr);
  // The base comes from no file.
  const Status without = back->resume(dir / "c");
  EXPECT_EQ(without.code(), Code::BadInput);
  EXPECT_NE(without.message().find("'head' must come from the base"),
            std::string::npos)
      << without.message();
  // Another base: the last element alone differs.
  const TensorInfo &head = *back->find("head");
  std::vector<float> base = values(*step, "head");
  base.back() += 1;
  ASSERT_TRUE(back->write(head, base.data(), head.bytes()));
  const Status other = back->resume(dir / "c");
  EXPECT_EQ(other.code(), Code::BadInput);
  EXPECT_NE(other.message().find("was trained on another base: 'head' differs"),
            std::string::npos)
      << other.message();
  // Its own, and from a file beside.
  base.back() = values(*step, "head").back();
  ASSERT_TRUE(back->write(head, base.data(), head.bytes()));
  ASSERT_TRUE(back->resume(dir / "c"));
  EXPECT_EQ(values(*back, "embed"), values(*step, "embed"));
  ASSERT_TRUE(Step::create(frozen.program, {}, back));
  ASSERT_TRUE(back->resume(dir / "c", dir / "c/model.safetensors"));
  EXPECT_EQ(runSteps(*step, 2, 3), runSteps(*back, 2, 3));
  EXPECT_EQ(values(*back, "embed"), values(*step, "embed"));
}

TEST(Checkpoint, EveryChangedByteIsSeen) {
  TemporaryDirectory dir;
  auto step = makeStep(), back = makeStep();
  ASSERT_TRUE(step->initRandom(1));
  runSteps(*step, 2, 1);
  ASSERT_TRUE(step->save(dir / "c"));
  ASSERT_TRUE(back->resume(dir / "c"));
  const std::string path = dir / "c/checkpoint.safetensors";
  std::string bytes;
  {
    std::ifstream in(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  const size_t headerEnd = bytes.find("}}") + 2;
  std::mt19937 random(7);
  for (int i = 0; i < 400; ++i) {
    // Half of them in the header, where less is.
    const size_t at = random() % (i % 2 ? bytes.size() : headerEnd);
    const auto mask = char(1 << random() % 8);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(std::streamoff(at)).put(char(bytes[at] ^ mask));
    file.close();
    const Status s = back->resume(dir / "c");
    EXPECT_EQ(s.code(), Code::BadInput) << "byte " << at;
    if (at > headerEnd + 8) {
      EXPECT_NE(s.message().find("is damaged: its bytes don't have its "
                                 "checksum"),
                std::string::npos)
          << s.message();
      EXPECT_EQ(back->load(path).code(), Code::BadInput);
    }
    file.open(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(std::streamoff(at)).put(bytes[at]);
  }
  EXPECT_TRUE(back->resume(dir / "c"));
}

TEST(Checkpoint, CountsThatAreNoneAreRefused) {
  TemporaryDirectory dir;
  auto step = makeStep(), back = makeStep();
  ASSERT_TRUE(step->initRandom(1));
  ASSERT_TRUE(step->save(dir / "c"));
  SafetensorsFile file;
  const std::string path = dir / "c/checkpoint.safetensors";
  ASSERT_TRUE(SafetensorsFile::open(path, file));
  std::vector<std::pair<std::string, SafeTensor>> tensors(
      file.tensors().begin(), file.tensors().end());
  std::sort(tensors.begin(), tensors.end(), [](const auto &a, const auto &b) {
    return a.second.begin < b.second.begin;
  });
  const std::string body(file.data(tensors[0].second),
                         size_t(tensors.back().second.end));
  // As a file of before there was a checksum.
  std::map<std::string, std::string> plain = file.metadata();
  plain.erase("checksum");
  plain["format"] = "tmc-checkpoint-1";
  auto resume = [&](const char *key, const char *value) {
    std::map<std::string, std::string> metadata = plain;
    metadata.erase(key);
    if (value)
      metadata[key] = value;
    std::ofstream(path, std::ios::binary)
        << safetensorsHeader(tensors, metadata) << body;
    return back->resume(dir / "c");
  };
  EXPECT_TRUE(resume("step", "7"));
  EXPECT_EQ(back->steps(), 7);
  EXPECT_TRUE(resume("data_position", "9"));
  EXPECT_EQ(back->batches(), 9);
  for (const char *key : {"step", "data_position"})
    for (const char *value :
         {static_cast<const char *>(nullptr), "", "-1", "x", "1 ", "0x10",
          "9007199254740993", "9223372036854775807", "9223372036854775808",
          "18446744073709551615", "99999999999999999999"}) {
      const Status s = resume(key, value);
      EXPECT_EQ(s.code(), Code::BadInput)
          << key << " " << (value ? value : "missing");
      EXPECT_NE(s.message().find("has no sound"), std::string::npos);
    }
}

TEST(Checkpoint, TheModelIsWhole) {
  // Beside the step: counts of batches, and what no step needs.
  TemporaryDirectory dir;
  ChangedProgram normed("embed.m", [](TensorInfo &t) {
    t.name = "bn.running_mean";
    t.role = Role::State;
  });
  std::unique_ptr<Step> step;
  ASSERT_TRUE(Step::create(normed.program, {}, step));
  std::vector<std::pair<std::string, SafeTensor>> tensors = {
      {"bn.num_batches_tracked", {DType::I64, {}, 0, 0}},
      {"still.num_batches_tracked", {DType::I64, {}, 0, 0}},
      {"head", {DType::F32, {1}, 0, 0}},
      {"unused", {DType::F32, {2}, 0, 0}}};
  const int64_t counts[] = {40, 50};
  const float floats[] = {1, 0.1f, 3};
  const std::string beside = dir / "weights.safetensors";
  std::ofstream(beside, std::ios::binary)
      << safetensorsHeader(tensors, {{"made_by", "tmc compile"},
                                     {"transient", "embed\nnothing\n"}}) +
             std::string(reinterpret_cast<const char *>(counts), 16) +
             std::string(reinterpret_cast<const char *>(floats), 12);
  ASSERT_TRUE(step->initRandom(1));
  runSteps(*step, 3, 1);
  ASSERT_TRUE(step->saveWeights(dir / "w", {DType::BF16, beside}));
  SafetensorsFile file;
  ASSERT_TRUE(SafetensorsFile::open(dir / "w/model.safetensors", file));
  std::string names;
  for (const auto &entry : file.tensors())
    names += entry.first + " ";
  EXPECT_EQ(names, "bn.num_batches_tracked bn.running_mean head "
                   "still.num_batches_tracked unused ");
  auto count = [&](const char *name) {
    int64_t value;
    std::memcpy(&value, file.data(*file.find(name)), 8);
    return value;
  };
  EXPECT_EQ(count("bn.num_batches_tracked"), 43);
  EXPECT_EQ(count("still.num_batches_tracked"), 50);
  EXPECT_EQ(file.find("unused")->type, DType::BF16);
  EXPECT_EQ(file.find("head")->end - file.find("head")->begin,
            tiny::kTable * 2);
  bf16 last;
  std::memcpy(&last, file.data(*file.find("unused")) + 2, 2);
  EXPECT_EQ(widen(last), 3);
}

TEST(Checkpoint, ResumingChangesNoBit) {
  TemporaryDirectory dir;
  auto straight = makeStep(), half = makeStep(), rest = makeStep();
  ASSERT_TRUE(straight->initRandom(3));
  const double want = runSteps(*straight, 8, 1);
  ASSERT_TRUE(half->initRandom(3));
  runSteps(*half, 4, 1);
  ASSERT_TRUE(half->save(dir / "c"));
  const Status s = rest->resume(dir / "c");
  ASSERT_TRUE(s) << s.message();
  EXPECT_EQ(rest->batches(), 4);
  EXPECT_EQ(rest->steps(), 4);
  EXPECT_EQ(runSteps(*rest, 4, 5), want);
  EXPECT_EQ(values(*straight, "embed"), values(*rest, "embed"));
  EXPECT_EQ(values(*straight, "embed.v"), values(*rest, "embed.v"));
  // A checkpoint is a weights file too; moments and the step start anew.
  auto loaded = makeStep();
  ASSERT_TRUE(loaded->load(dir / "c/checkpoint.safetensors"));
  EXPECT_EQ(loaded->steps(), 0);
  for (float x : values(*loaded, "embed.v"))
    ASSERT_EQ(x, 0);
}

TEST(Checkpoint, ATiedWeightHasEachOfItsNames) {
  static const char *const names[] = {"out.weight", "out.tied"};
  StepProgram program = tiny::program();
  std::vector<TensorInfo> tensors(program.tensors,
                                  program.tensors + program.tensorCount);
  for (TensorInfo &info : tensors)
    if (std::string(info.name) == "head") {
      info.aliases = names;
      info.aliasCount = 2;
    }
  program.tensors = tensors.data();
  StepOptions options;
  options.device.threads = 1;
  std::unique_ptr<Step> step, back;
  ASSERT_TRUE(Step::create(program, options, step));
  ASSERT_TRUE(Step::create(program, options, back));
  ASSERT_TRUE(step->initRandom(3));
  TemporaryDirectory dir;
  ASSERT_TRUE(step->saveWeights(dir / "w"));
  SafetensorsFile file;
  ASSERT_TRUE(SafetensorsFile::open(dir / "w/model.safetensors", file));
  EXPECT_EQ(file.tensors().size(), 4u);
  const int64_t bytes = tiny::kTable * 4;
  for (const char *name : {"out.weight", "out.tied"})
    EXPECT_EQ(std::memcmp(file.data(*file.find(name)),
                          file.data(*file.find("head")), size_t(bytes)),
              0);
  // A file may know it by another name alone.
  std::vector<std::pair<std::string, SafeTensor>> kept;
  std::string text, data;
  for (const char *name : {"embed", "out.tied"}) {
    const SafeTensor &tensor = *file.find(name);
    kept.emplace_back(name, tensor);
    data.append(file.data(tensor), size_t(tensor.end - tensor.begin));
  }
  text = safetensorsHeader(kept, {}) + data;
  std::ofstream(dir / "one.safetensors", std::ios::binary) << text;
  ASSERT_TRUE(back->load(dir / "one.safetensors"));
  EXPECT_EQ(values(*back, "head"), values(*step, "head"));
}

TEST(Checkpoint, WeightsAloneAreRoundedOnce) {
  TemporaryDirectory dir;
  auto step = makeStep(), back = makeStep();
  EXPECT_EQ(step->saveWeights(dir / "w").code(), Code::Usage);
  ASSERT_TRUE(step->initRandom(3));
  runSteps(*step, 2, 1);
  const std::vector<float> trained = values(*step, "head");
  for (DType type : {DType::F32, DType::BF16, DType::F16}) {
    ASSERT_TRUE(step->saveWeights(dir / "w", {type}));
    SafetensorsFile file;
    ASSERT_TRUE(SafetensorsFile::open(dir / "w/model.safetensors", file));
    EXPECT_EQ(file.tensors().size(), 2u); // no moments, no states
    EXPECT_EQ(file.metadata().at("format"), "pt");
    EXPECT_EQ(file.find("head")->type, type);
    ASSERT_TRUE(back->load(dir / "w/model.safetensors"));
    const std::vector<float> read = values(*back, "head");
    for (size_t i = 0; i < read.size(); ++i) {
      const float want = type == DType::F32    ? trained[i]
                         : type == DType::BF16 ? widen(narrow<bf16>(trained[i]))
                                               : widen(narrow<f16>(trained[i]));
      ASSERT_EQ(read[i], want) << i;
    }
  }
  // 1e5 is finite, and more than f16 has.
  std::vector<float> large = trained;
  large.back() = 1e5f;
  for (int64_t i = 0; i < step->program().tensorCount; ++i)
    if (step->program().tensors[i].name == std::string("head")) {
      ASSERT_TRUE(step->write(step->program().tensors[i], large.data(),
                              int64_t(large.size() * 4)));
    }
  ASSERT_TRUE(step->saveWeights(dir / "w"));
  const Status s = step->saveWeights(dir / "w", {DType::F16});
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_EQ(s.message(), "'head' has numbers that f16 can't hold; "
                         "'model.safetensors' isn't written");
  ASSERT_TRUE(back->load(dir / "w/model.safetensors"));
  EXPECT_EQ(values(*back, "head"), large);
}

// On a card memory is whatever it was.
TEST(Step, StartsItsMomentsWhereParametersAreWritten) {
  auto drawn = makeStep(), written = makeStep();
  ASSERT_TRUE(drawn->initRandom(3));
  const std::vector<float> some(size_t(tiny::kTable), 0.25f);
  const int64_t bytes = int64_t(some.size() * 4);
  ASSERT_TRUE(drawn->write(*drawn->find("head.v"), some.data(), bytes));
  ASSERT_TRUE(written->write(*written->find("head.v"), some.data(), bytes));
  for (const char *name : {"embed", "head"})
    ASSERT_TRUE(written->write(*written->find(name),
                               values(*drawn, name).data(), bytes));
  EXPECT_EQ(runSteps(*drawn, 2, 1), runSteps(*written, 2, 1));
  for (const char *name : {"embed", "head", "embed.m", "head.v"})
    EXPECT_EQ(values(*drawn, name), values(*written, name)) << name;
}

TEST(Step, StartsItsStatesBeforeAnyValues) {
  ChangedProgram other("embed.m", [](TensorInfo &t) {
    t.init = Init::Constant;
    t.initValue = 65536;
  });
  std::unique_ptr<Step> step;
  ASSERT_TRUE(Step::create(other.program, {}, step));
  for (float x : values(*step, "embed.m"))
    ASSERT_EQ(x, 65536);
  ASSERT_TRUE(step->initRandom(3));
  for (float x : values(*step, "embed.m"))
    ASSERT_EQ(x, 65536);
  for (float x : values(*step, "embed.v"))
    ASSERT_EQ(x, 0);
}

namespace {

/// The tiny program, with a copy of 'head' that no kernel writes.
struct CopyingProgram : ChangedProgram {
  explicit CopyingProgram(DType type) : ChangedProgram("", [](auto &) {}) {
    TensorInfo copy =
        *std::find_if(tensors.begin(), tensors.end(), [](const TensorInfo &t) {
          return t.name == std::string("head");
        });
    copy.name = "head.copy";
    copy.type = type;
    copy.role = Role::Copy;
    copy.init = Init::None;
    copy.trainable = false;
    copy.copyOf = 1;
    copy.offset = program.arenaBytes.device();
    program.arenaBytes.device() += copy.bytes();
    tensors.push_back(copy);
    program.tensors = tensors.data();
    program.tensorCount = int64_t(tensors.size());
  }
};

template <typename T> void expectCopied(Step &step) {
  const std::vector<float> head = values(step, "head");
  std::vector<T> copy(head.size());
  ASSERT_TRUE(step.read(*step.find("head.copy"), copy.data(),
                        int64_t(copy.size() * sizeof(T))));
  int64_t apart = 0;
  for (size_t i = 0; i < head.size(); ++i) {
    ASSERT_EQ(copy[i].bits, narrow<T>(head[i]).bits) << i;
    apart += widen(copy[i]) != head[i];
  }
  EXPECT_GT(apart, 0);
}

template <typename T> void followsItsWeight(DType type) {
  TemporaryDirectory dir;
  CopyingProgram copying(type);
  auto create = [&] {
    std::unique_ptr<Step> step;
    EXPECT_TRUE(Step::create(copying.program, {}, step));
    return step;
  };
  auto step = create();
  ASSERT_TRUE(step->initRandom(3));
  expectCopied<T>(*step);
  std::vector<float> other = values(*step, "head");
  for (float &x : other)
    x *= 1.7f;
  ASSERT_TRUE(step->write(*step->find("head"), other.data(),
                          int64_t(other.size() * 4)));
  expectCopied<T>(*step);
  const Status s = step->write(*step->find("head.copy"), other.data(),
                               step->find("head.copy")->bytes());
  EXPECT_EQ(s.code(), Code::Usage);
  EXPECT_EQ(s.message(), "'head.copy' follows 'head' and can't be written");

  // Files hold the weight alone, so that they are those of a step without
  // copies.
  ASSERT_TRUE(step->save(dir / "c"));
  SafetensorsFile file;
  ASSERT_TRUE(SafetensorsFile::open(dir / "c/checkpoint.safetensors", file));
  EXPECT_FALSE(file.find("head.copy"));
  auto resumed = create(), loaded = create(), plain = makeStep();
  ASSERT_TRUE(resumed->resume(dir / "c"));
  expectCopied<T>(*resumed);
  ASSERT_TRUE(loaded->load(dir / "c/checkpoint.safetensors"));
  expectCopied<T>(*loaded);
  ASSERT_TRUE(plain->resume(dir / "c"));
  ASSERT_TRUE(plain->save(dir / "p"));
  ASSERT_TRUE(resumed->resume(dir / "p"));
  EXPECT_EQ(values(*resumed, "head"), other);
}

} // namespace

TEST(Checkpoint, CopiesFollowTheirWeights) {
  followsItsWeight<bf16>(DType::BF16);
  followsItsWeight<f16>(DType::F16);
}

TEST(Checkpoint, OfAnotherModelIsRefused) {
  TemporaryDirectory dir;
  auto step = makeStep();
  ASSERT_TRUE(step->initRandom(3));
  ASSERT_TRUE(step->save(dir / "c"));
  StepProgram other = tiny::program();
  other.fingerprint = "tiny-2";
  other.model = "other";
  std::unique_ptr<Step> theirs;
  ASSERT_TRUE(Step::create(other, {}, theirs));
  const Status s = theirs->resume(dir / "c");
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_NE(s.message().find("another model ('tiny')"), std::string::npos);
  EXPECT_EQ(step->resume(dir / "missing").code(), Code::BadInput);
  // Truncated.
  fs::resize_file(dir / "c/checkpoint.safetensors", 1000);
  EXPECT_EQ(step->resume(dir / "c").code(), Code::BadInput);
}

TEST(Checkpoint, OfOtherTypesIsNamed) {
  TemporaryDirectory dir;
  auto step = makeStep();
  ASSERT_TRUE(step->initRandom(3));
  ASSERT_TRUE(step->save(dir / "c"));
  ChangedProgram other("head", [](TensorInfo &t) { t.type = DType::BF16; });
  other.program.fingerprint = "tiny-3";
  std::unique_ptr<Step> narrow;
  ASSERT_TRUE(Step::create(other.program, {}, narrow));
  const Status s = narrow->resume(dir / "c");
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_NE(s.message().find("'head' is f32 there and bf16 in this step"),
            std::string::npos)
      << s.message();
  // Its weights are rounded, to nearest.
  ASSERT_TRUE(narrow->load(dir / "c/checkpoint.safetensors"));
  const std::vector<float> wide = values(*step, "head");
  std::vector<uint16_t> kept(wide.size());
  ASSERT_TRUE(narrow->read(*narrow->find("head"), kept.data(),
                           int64_t(kept.size()) * 2));
  for (size_t i = 0; i < kept.size(); ++i) {
    const uint32_t bits = uint32_t(kept[i]) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    EXPECT_LE(std::abs(value - wide[i]), std::ldexp(std::abs(wide[i]), -8));
  }
}

TEST(Checkpoint, AFullDiskKeepsTheOldOne) {
  TemporaryDirectory dir;
  auto step = makeStep();
  ASSERT_TRUE(step->initRandom(3));
  ASSERT_TRUE(step->save(dir / "c"));
  runSteps(*step, 1, 1);
  struct rlimit before, limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  limit = before;
  limit.rlim_cur = 20000;
  std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Status s = step->save(dir / "c");
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(int(s.code()), 74);
  auto back = makeStep();
  ASSERT_TRUE(back->resume(dir / "c"));
  EXPECT_EQ(back->steps(), 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir / "c"), {}), 1);
}

TEST(Step, WeightsAreMatchedByNameAndShape) {
  TemporaryDirectory dir;
  auto step = makeStep();
  const std::string path = dir / "w.safetensors";
  auto file = [&](const char *header, size_t bytes) {
    std::ofstream out(path, std::ios::binary);
    const std::string text = header;
    for (int i = 0; i < 8; ++i)
      out.put(char(text.size() >> (8 * i)));
    out << text << std::string(bytes, '\0');
  };
  file(R"({"embed":{"dtype":"F32","shape":[100,16],"data_offsets":[0,6400]}})",
       6400);
  Status s = step->load(path);
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_NE(s.message().find("has no 'head'"), std::string::npos);
  file(
      R"({"embed":{"dtype":"F32","shape":[100,16],"data_offsets":[0,6400]},)"
      R"("head":{"dtype":"F32","shape":[16,100],"data_offsets":[6400,12800]}})",
      12800);
  s = step->load(path);
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_NE(s.message().find("[16, 100]"), std::string::npos) << s.message();
  file(R"({"embed":{"dtype":"BF16","shape":[100,16],"data_offsets":[0,3200]},)"
       R"("head":{"dtype":"F16","shape":[100,16],"data_offsets":[3200,6400]}})",
       6400);
  s = step->load(path);
  EXPECT_TRUE(s) << s.message();
  // The last element of 'head'.
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-2, std::ios::end)
      .write("\x01\x7c", 2);
  s = step->load(path);
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_EQ(s.message(), "'" + path + "' holds NaN in 'head'");
}

TEST(CInterface, ChecksTheRanksOfAProgram) {
  const tmc_transfer call = [](void *, int32_t, void *, const void *, int64_t,
                               int64_t) { return 0; };
  auto share = [](void *, int32_t, int32_t, void *, int64_t) { return 0; };
  const tmc_peers good = {sizeof good, {1, 1, 1}, {0, 0, 0}, nullptr,
                          call,        call,      share};
  tmc_peers other = good, outside = good, silent = good, small = good;
  other.ranks[0] = 2;
  outside.place[1] = 1;
  silent.exchange = nullptr;
  small.size = 8;
  const struct {
    const tmc_peers &peers;
    const char *fault;
  } cases[] = {
      {other, "tmc_peers is place 0 of 2 along dp, and the step is for dp=1 "
              "tp=1 pp=1"},
      {outside, "tmc_peers is place 1 of 1 along tp, and the step is for dp=1 "
                "tp=1 pp=1"},
      {silent, "tmc_peers lacks gather, exchange or share"},
      {small, "tmc_peers has 64 bytes or more, and size is 8: set it to "
              "sizeof(tmc_peers)"}};
  tmc_options options;
  tmc_options_init(&options, sizeof options);
  tmc_step *step = nullptr;
  for (const auto &[peers, fault] : cases) {
    options.peers = &peers;
    EXPECT_EQ(tmc_step_create(&options, &step), 2);
    EXPECT_STREQ(tmc_last_error(), fault);
  }
  options.peers = &good;
  ASSERT_EQ(tmc_step_create(&options, &step), 0) << tmc_last_error();
  tmc_step_destroy(step);
}

TEST(CInterface, IsAThinCover) {
  tmc_options options;
  tmc_options_init(&options, sizeof options);
  options.threads = 1;
  tmc_step *step = nullptr;
  ASSERT_EQ(tmc_step_create(&options, &step), 0) << tmc_last_error();
  ASSERT_EQ(tmc_step_init_random(step, 1), 0);
  int64_t tokens[tiny::kRows] = {};
  ASSERT_EQ(tmc_step_write(step, "tokens", tokens, sizeof tokens), 0);
  ASSERT_EQ(tmc_step_write(step, "labels", tokens, sizeof tokens), 0);
  EXPECT_EQ(tmc_step_write(step, "nothing", tokens, sizeof tokens), 2);
  EXPECT_STREQ(tmc_last_error(), "no tensor has the name 'nothing'");
  tmc_step_set_learning_rate(step, 0.1);
  double loss = 0;
  ASSERT_EQ(tmc_step_run(step, &loss), 0) << tmc_last_error();
  EXPECT_NEAR(loss, std::log(100.0), 0.1);
  tmc_statistics stats;
  stats.size = sizeof stats;
  ASSERT_EQ(tmc_step_get_statistics(step, &stats), 0);
  EXPECT_EQ(stats.steps, 1);
  EXPECT_LE(stats.high_water_bytes, (stats.arena_bytes + 4095) / 4096 * 4096);
  ASSERT_EQ(tmc_step_space_count(step), int64_t(kSpaceCount));
  tmc_space space;
  space.size = sizeof space;
  ASSERT_EQ(tmc_step_space(step, 0, &space), 0);
  EXPECT_STREQ(space.name, "device");
  EXPECT_EQ(space.arena_bytes, stats.arena_bytes);
  EXPECT_EQ(space.high_water_bytes, stats.high_water_bytes);
  for (size_t i = 1; i < kSpaceCount; ++i) {
    ASSERT_EQ(tmc_step_space(step, int64_t(i), &space), 0);
    EXPECT_STREQ(space.name, kSpaces[i].name);
    EXPECT_EQ(space.arena_bytes, 0);
  }
  EXPECT_EQ(tmc_step_space(step, int64_t(kSpaceCount), &space), 2);
  tmc_tensor info;
  info.size = sizeof info;
  ASSERT_EQ(tmc_step_tensor(step, 0, &info), 0);
  EXPECT_STREQ(info.name, "embed");
  EXPECT_EQ(info.bytes, 6400);
  EXPECT_EQ(tmc_step_tensor(step, 99, &info), 2);
  std::vector<float> embed(1600);
  EXPECT_EQ(tmc_step_read(step, "embed", embed.data(), 6400), 0);
  // An evaluation is no step: the next one has its loss.
  double foretold = 0;
  ASSERT_EQ(tmc_step_evaluate(step, &foretold), 0) << tmc_last_error();
  ASSERT_EQ(tmc_step_evaluate(step, nullptr), 0);
  std::vector<float> after(1600);
  EXPECT_EQ(tmc_step_read(step, "embed", after.data(), 6400), 0);
  EXPECT_EQ(after, embed);
  ASSERT_EQ(tmc_step_get_statistics(step, &stats), 0);
  EXPECT_EQ(stats.steps, 1);
  ASSERT_EQ(tmc_step_run(step, &loss), 0) << tmc_last_error();
  EXPECT_EQ(loss, foretold);
  TemporaryDirectory dir;
  EXPECT_EQ(tmc_step_save_weights(step, (dir / "w").c_str(), "f8e4m3"), 2);
  EXPECT_STREQ(tmc_last_error(),
               "weights are saved in f32, bf16 or f16, not 'f8e4m3'");
  EXPECT_EQ(tmc_step_save_weights(step, (dir / "w").c_str(), nullptr), 0);
  EXPECT_EQ(tmc_step_save_weights(step, (dir / "w").c_str(), "bf16"), 0);
  // Where the data goes on is kept.
  ASSERT_EQ(tmc_step_save(step, (dir / "c").c_str()), 0);
  SafetensorsFile file;
  ASSERT_TRUE(SafetensorsFile::open(dir / "c/checkpoint.safetensors", file));
  EXPECT_EQ(file.metadata().at("data_position"), "2");
  tmc_step_destroy(step);
  EXPECT_EQ(tmc_step_create(&options, nullptr), 2);
  EXPECT_STREQ(tmc_last_error(),
               "tmc_step_create needs a place for the step, and got none");
}
