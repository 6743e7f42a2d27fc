//===- LaunchTimesTest.cpp - profiles and traces of the cuda backend ------===//
//
// A profiled or traced step waits nowhere, has two events around each launch on
// the device, and ends with a clear error where an event fails.
//
//===----------------------------------------------------------------------===//

#include "Testing.h"
#include "TinyProgram.h"

#include "runtime/cuda/Cuda.h"
#include "runtime/step/EngineThread.h"
#include "runtime/step/Step.h"
#include "test/cuda/emulator/Orders.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <sstream>

using namespace tmc;
using namespace tmc::test;

namespace {

/// The calls of the runtime that a program made in its latest step.
struct Calls {
  int64_t waits, events, records, launches;

  static Calls now() {
    auto of = [](std::initializer_list<const char *> calls) {
      int64_t count = 0;
      for (const char *call : calls)
        count += emulator::callsOf(call);
      return count;
    };
    return {of({"cudaStreamSynchronize", "cudaDeviceSynchronize",
                "cudaEventSynchronize"}),
            of({"cudaEventCreateWithFlags"}), of({"cudaEventRecord"}),
            of({"launch", "cudaMemsetAsync", "cublasLtMatmul"})};
  }
  Calls since(const Calls &before) const {
    return {waits - before.waits, events - before.events,
            records - before.records, launches - before.launches};
  }
};
Calls latest;
/// The call that fails in the next step.
const char *failing = nullptr;

const StepProgram &countedProgram() {
  static const StepProgram program = [] {
    StepProgram made = tiny::program();
    made.run = [](Queues &queues, void *kernels) {
      if (failing)
        emulator::failNext(failing);
      failing = nullptr;
      const Calls before = Calls::now();
      tiny::run(queues, kernels);
      latest = Calls::now().since(before);
    };
    return made;
  }();
  return program;
}

/// The tiny step beside a copy of its tokens to the host, which no launch of
/// the step waits for.
const StepProgram &copyingProgram() {
  static const std::vector<LaunchInfo> launches = [] {
    std::vector<LaunchInfo> all(std::begin(tiny::kLaunches),
                                std::end(tiny::kLaunches));
    LaunchInfo copy = {"tokens", "", nullptr, 0, nullptr, 0};
    copy.engine = EngineKind::DeviceToHost;
    all.push_back(copy);
    copy.startedBy = int64_t(all.size()) - 1;
    all.push_back(copy);
    return all;
  }();
  static const StepProgram program = [] {
    StepProgram made = tiny::program();
    made.launches = launches.data();
    made.launchCount = int64_t(launches.size());
    made.eventCount = 2;
    made.arenaBytes[SpaceKind::Host] = 4096;
    made.run = [](Queues &q, void *kernels) {
      const int64_t start = int64_t(launches.size()) - 2;
      q.record(EngineKind::Compute, 0);
      q.wait(EngineKind::DeviceToHost, 0);
      q.copy(start, EngineKind::DeviceToHost, 0, tiny::kTokens,
             tiny::kRows * 8);
      q.record(EngineKind::DeviceToHost, 1);
      tiny::run(q, kernels);
      q.wait(EngineKind::Compute, 1);
      q.done(start + 1);
    };
    return made;
  }();
  return program;
}

std::unique_ptr<Step> make(const StepProgram &program,
                           const StepOptions &options) {
  std::unique_ptr<Step> step;
  Status s = Step::create(program, options, step);
  EXPECT_TRUE(s) << s.message();
  s = step->initRandom(3);
  EXPECT_TRUE(s) << s.message();
  return step;
}

Status run(Step &step) {
  Longs tokens = randomLongs(tiny::kRows, tiny::kVocabulary, 1);
  for (const char *name : {"tokens", "labels"})
    if (Status s =
            step.write(*step.find(name), tokens, step.find(name)->bytes());
        !s)
      return s;
  double loss = 0;
  return step.run(loss);
}

struct Span {
  double begin, end; // microseconds since the step began
  bool overlaps(const Span &other) const {
    return begin < other.end && other.begin < end;
  }
};

/// The measured spans of an engine.
std::vector<Span> spansOf(const std::string &trace, EngineKind engine) {
  std::vector<Span> spans;
  std::istringstream lines(trace);
  const std::string place =
      "\"pid\": 1, \"tid\": " + std::to_string(int(engine)) + ", \"ts\": ";
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(place);
    double begin = 0, length = 0;
    if (at != std::string::npos &&
        std::sscanf(line.c_str() + at + place.size(), "%lf, \"dur\": %lf",
                    &begin, &length) == 2)
      spans.push_back({begin, begin + length});
  }
  return spans;
}

} // namespace

TEST(CudaLaunchTimes, AStepHasTwoEventsALaunchAndWaitsNowhere) {
  StepOptions options;
  ASSERT_TRUE(run(*make(countedProgram(), options)));
  const int64_t launches = latest.launches;
  EXPECT_GT(launches, tiny::program().launchCount);
  EXPECT_EQ(latest.records, 0);
  for (int mode = 1; mode < 4; ++mode) {
    options.profile = mode & 1;
    options.trace = mode & 2;
    auto step = make(countedProgram(), options);
    for (int i = 0; i < 3; ++i) {
      const Status s = run(*step);
      ASSERT_TRUE(s) << s.message();
      EXPECT_EQ(latest.launches, launches);
      EXPECT_EQ(latest.waits, 0);
      EXPECT_EQ(latest.records, 2 * launches);
      // The first step creates the events of all.
      EXPECT_EQ(latest.events, i == 0 ? 2 * launches : 0);
    }
  }
}

TEST(CudaLaunchTimes, TheProfileHasARowForEachLaunchOfALoss) {
  StepOptions options;
  options.profile = true;
  auto step = make(countedProgram(), options);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(run(*step));
  const std::string table = step->profile()->table();
  EXPECT_EQ(table.find("profile of 2 steps after the first: device busy "), 0u)
      << table;
  // The object's rows, and the sum of their losses.
  size_t at = table.find("\nloss                            1 ");
  ASSERT_NE(at, std::string::npos) << table;
  at = table.find('\n', at + 1);
  std::string rows;
  while (table.compare(at, 3, "\n  ") == 0) {
    const size_t next = table.find('\n', at + 1);
    const std::string row = table.substr(at + 3, next - at - 3);
    rows += row.substr(0, row.find(' ')) + "\n";
    EXPECT_EQ(row.substr(22, 9), "        1") << table;
    at = next;
  }
  for (const char *name : {"lossOfRow\n", "sumOfLosses\n"})
    EXPECT_NE(rows.find(name), std::string::npos) << table;
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 2) << table;

  const std::string json = step->profile()->json();
  EXPECT_NE(json.find("{\"name\": \"cublasLt\", \"runs\": 2, "),
            std::string::npos)
      << json;
  EXPECT_NE(json.find("{\"name\": \"fill\", \"runs\": 2, "), std::string::npos)
      << json;
  // Each launch of the two counted steps is in one list.
  int64_t runs = 0;
  const std::string list = "\"device_launches\": [", run = "\"runs\": ";
  for (size_t from = 0; (from = json.find(list, from)) != std::string::npos;) {
    const size_t end = json.find(']', from);
    while ((from = json.find(run, from)) < end)
      runs += std::atoi(json.c_str() + (from += run.size()));
    from = end;
  }
  EXPECT_EQ(runs, 2 * latest.launches) << json;
}

TEST(CudaLaunchTimes, SixtyThousandLaunchesShareOnePool) {
  constexpr int64_t kRuns = 20000; // of an entry of one launch and one of two
  auto device = makeDevice(1);
  Buffer<char> bytes(8);
  cuda::Queue queue(cuda::deviceOf(*device), device->compute(), "test");
  DeviceTimer *timer = device->timeLaunches();
  ASSERT_NE(timer, nullptr);
  Queues &queues = device->queues();
  queues.setObserver(timer);
  queue.fill(bytes, 1, 8); // not within a step
  for (int step = 0; step < 2; ++step) {
    const Calls before = Calls::now();
    ASSERT_TRUE(timer->start());
    for (int64_t i = 0; i < kRuns; ++i) {
      queue.fill(bytes, 2, 8);
      queues.launched(0);
      queue.fill(bytes, 3, 4);
      queue.fill(bytes + 4, 4, 4);
      queues.launched(1);
    }
    ASSERT_TRUE(device->synchronize());
    const Status s = timer->finish();
    ASSERT_TRUE(s) << s.message();
    EXPECT_EQ(Calls::now().since(before).events,
              step == 0 ? 1 + 2 * 3 * kRuns : 0);
  }
  queues.setObserver(nullptr);
  const StepTimes &times = timer->times();
  ASSERT_EQ(times.launches.size(), size_t(3 * kRuns));
  ASSERT_EQ(times.entries.size(), size_t(2 * kRuns));
  EXPECT_EQ(times.entries.back().entry, 1);
  EXPECT_EQ(times.entries.back().first, size_t(3 * kRuns - 2));
  EXPECT_EQ(times.entries.back().count, 2u);
  double busy = 0;
  for (size_t i = 0; i < times.launches.size(); ++i) {
    const DeviceLaunch &launch = times.launches[i];
    EXPECT_STREQ(launch.name, "fill");
    EXPECT_LE(launch.begin, launch.end);
    // A float has 24 bits: the times of a step of a second are 0.1 us apart.
    EXPECT_LE(i ? times.launches[i - 1].end : 0, launch.begin + 1e-5);
    busy += launch.seconds();
  }
  EXPECT_LE(busy, times.wallSeconds() + 1e-5);
}

TEST(CudaLaunchTimes, ATraceShowsComputeBesideACopy) {
  const uint64_t seed = emulator::seed();
  int overlaps = 0;
  for (uint64_t drawn = 2; drawn < 12; ++drawn) {
    emulator::setSeed(drawn);
    StepOptions options;
    options.trace = true;
    auto step = make(copyingProgram(), options);
    const double before = secondsNow();
    const Status s = run(*step);
    const double longest = (secondsNow() - before) * 1e6;
    ASSERT_TRUE(s) << s.message();
    const std::string json = step->trace()->json();
    const std::vector<Span> compute = spansOf(json, EngineKind::Compute),
                            copies = spansOf(json, EngineKind::DeviceToHost);
    ASSERT_EQ(compute.size(), std::size(tiny::kLaunches)) << json;
    ASSERT_EQ(copies.size(), 1u) << json;
    for (size_t i = 0; i < compute.size(); ++i) {
      // A float of milliseconds rounds by less than a microsecond.
      EXPECT_GE(compute[i].begin, i ? compute[i - 1].end - 1 : 0) << json;
      EXPECT_LE(compute[i].begin, compute[i].end) << json;
      // The host may read its clock late, when the first event is reached.
      EXPECT_LE(compute[i].end, longest + 1e5) << json;
      overlaps += compute[i].overlaps(copies[0]);
    }
  }
  emulator::setSeed(seed);
  EXPECT_GT(overlaps, 0);
}

TEST(CudaLaunchTimes, AnEventThatFailsIsOneError) {
  StepOptions options;
  options.profile = true;
  auto step = make(countedProgram(), options);
  // Before the step: nothing has run.
  emulator::failNext("cudaEventCreateWithFlags");
  Status s = run(*step);
  EXPECT_EQ(s.code(), Code::World);
  EXPECT_EQ(s.message(),
            "can't create an event that times a step: out of memory");
  EXPECT_EQ(step->steps(), 0);
  // Within it: the step is done, without times.
  const struct {
    const char *call, *message;
  } cases[] = {
      {"cudaEventCreateWithFlags",
       "can't create an event that times a launch: out of memory"},
      {"cudaEventRecord",
       "can't time the begin of a launch: an emulated failure"},
      {"cudaEventElapsedTime",
       "can't read the begin of a launch: an emulated failure"},
  };
  for (int64_t i = 0; i < 3; ++i) {
    failing = cases[i].call;
    s = run(*step);
    EXPECT_EQ(s.code(), Code::World);
    EXPECT_EQ(s.message(), cases[i].message);
    EXPECT_EQ(step->steps(), i + 1);
    EXPECT_EQ(step->profile()->table(), "");
  }
  // The error isn't kept.
  for (int i = 0; i < 2; ++i) {
    s = run(*step);
    EXPECT_TRUE(s) << s.message();
  }
  EXPECT_EQ(step->profile()->steps(), 1);
}
