//===- GraphsTest.cpp - steps that are one graph, emulated ----------------===//
//
// A step that reads a batch and its number, moves values to the host and back
// and changes a parameter, with a graph and without one: the same bits, and how
// many calls. Then steps that a graph can't repeat, and faults of graphs.
//
//     0  c = h                   1  done         copy; h is at home on the host
//     2  a = x + batch * step + c; c dies        kernel
//     3  host = a                4  done: a dies copy
//     5  b = host                6  done         copy
//     7  x = b / 2, y = b; b dies                fill and kernel
//     8  h = y                                   copy; nothing waits for it
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Cuda.h"
#include "runtime/step/Step.h"
#include "test/cuda/Faults.h"
#include "test/cuda/emulator/Counts.h"
#include "test/cuda/emulator/Steps.h"

#include <iterator>
#include <type_traits>

using namespace tmc::emulator;
using namespace tmc::test;
using tmc::EngineKind;
using tmc::SpaceKind;

namespace {

constexpr int kCount = 64, kBytes = 4 * kCount;
constexpr int kSteps = 5;
enum Place { X, Batch, Number, A, B, C, Y, Places };
/// Offsets in the host's arena, in bytes.
constexpr int64_t kMoved = 0, kHome = kBytes;

tmc::TensorInfo tensor(const char *name, Place place, tmc::Role role,
                       tmc::Feed feed = tmc::Feed::None) {
  tmc::TensorInfo info = {.name = name,
                          .type = tmc::DType::F32,
                          .rank = 1,
                          .dims = {kCount},
                          .offset = place * kBytes,
                          .role = role};
  info.feed = feed;
  if (feed == tmc::Feed::Step) {
    info.type = tmc::DType::I64;
    info.rank = 0;
  }
  return info;
}
const tmc::TensorInfo tensors[] = {
    tensor("x", X, tmc::Role::Param),
    tensor("batch", Batch, tmc::Role::Batch, tmc::Feed::Data),
    tensor("step", Number, tmc::Role::Scalar, tmc::Feed::Step),
    tensor("y", Y, tmc::Role::Output),
    {.name = "h",
     .type = tmc::DType::F32,
     .rank = 1,
     .dims = {kCount},
     .offset = kHome,
     .role = tmc::Role::Param,
     .space = SpaceKind::Host}};
tmc::Region at(Place place) {
  return {place * kBytes, kBytes, tmc::DType::F32};
}
const tmc::Region a = at(A), b = at(B), c = at(C), results[] = {at(X), at(Y)};
/// The start of a copy, which makes `made`, or its done, at which `dead` dies.
tmc::LaunchInfo copyEntry(EngineKind engine, const tmc::Region *made,
                          int64_t startedBy = -1,
                          const tmc::Region *dead = nullptr) {
  tmc::LaunchInfo info = {"copy", "", made, made ? 1 : 0, dead, dead ? 1 : 0};
  info.engine = engine;
  info.startedBy = startedBy;
  return info;
}
constexpr EngineKind kToHost = EngineKind::DeviceToHost,
                     kToDevice = EngineKind::HostToDevice;
const tmc::LaunchInfo launches[] = {
    copyEntry(kToDevice, &c),           copyEntry(kToDevice, nullptr, 0),
    {"first", "", &a, 1, &c, 1},        copyEntry(kToHost, nullptr),
    copyEntry(kToHost, nullptr, 3, &a), copyEntry(kToDevice, &b),
    copyEntry(kToDevice, nullptr, 5),   {"second", "", results, 2, &b, 1},
    copyEntry(kToHost, nullptr)};

__global__ void firstOfStep(const float *x, const float *batch,
                            const int64_t *step, float scale, const float *c,
                            float *to) {
  const int i = int(threadIdx.x);
  to[i] = x[i] + batch[i] * float(*step) * scale + c[i];
}
__global__ void secondOfStep(const float *from, float *x, float *y) {
  const int i = int(threadIdx.x);
  x[i] = from[i] / 2;
  y[i] = from[i];
}
__global__ void fillOnes(float *to) {
  to[threadIdx.x] = 1; // FAULT fillOnes
}

template <typename... A>
void launchOne(void (*kernel)(A...), cudaStream_t stream,
               std::type_identity_t<A>... arguments) {
  TMC_LAUNCH(kernel, dim3(1), dim3(kCount), 0, stream, arguments...);
}

/// Faults of a step.
struct Planted {
  bool changesAddress = false; // x is read in place of the batch
  bool changesNumber = false;  // an argument by value
  bool changesSize = false;    // a launch more
  bool leavesOutWait = false;  // not in the first step
  bool synchronizes = false;
  bool allocates = false;
} planted;
/// The device of the running step.
tmc::Device *device = nullptr;
/// Calls of run(): by steps and, in the emulator, by comparisons.
int runs = 0;

void runStep(tmc::Queues &q, void *) {
  ++runs;
  const auto stream = static_cast<cudaStream_t>(q.compute().native());
  char *arena = q.arena(SpaceKind::Device);
  auto place = [&](Place p) {
    return reinterpret_cast<float *>(arena + p * kBytes);
  };
  const auto *step = reinterpret_cast<const int64_t *>(place(Number));
  q.wait(kToDevice, 4); // of the step before
  q.copy(0, kToDevice, C * kBytes, kHome, kBytes);
  q.record(kToDevice, 0);
  q.wait(EngineKind::Compute, 0);
  q.done(1);
  launchOne(firstOfStep, stream, place(X),
            place(planted.changesAddress && runs % 2 ? X : Batch), step,
            planted.changesNumber ? float(runs) : 1.0f, place(C), place(A));
  if (planted.changesSize && runs % 2)
    launchOne(fillOnes, stream, place(A));
  q.launched(2);
  if (planted.synchronizes)
    cudaStreamSynchronize(stream);
  void *more = nullptr;
  if (planted.allocates && cudaMalloc(&more, 64) == cudaSuccess)
    cudaFree(more);
  q.record(EngineKind::Compute, 1);
  q.wait(kToHost, 1);
  q.copy(3, kToHost, kMoved, A * kBytes, kBytes);
  q.record(kToHost, 2);
  q.wait(EngineKind::Compute, 2);
  q.done(4);
  q.wait(kToDevice, 2);
  q.copy(5, kToDevice, B * kBytes, kMoved, kBytes);
  q.record(kToDevice, 3);
  if (!planted.leavesOutWait || runs == 1)
    q.wait(EngineKind::Compute, 3);
  q.done(6);
  tmc::cuda::Queue(tmc::cuda::deviceOf(*device), q.compute(), "second")
      .fill(place(Y), 0, kBytes);
  launchOne(secondOfStep, stream, place(B), place(X), place(Y));
  q.launched(7);
  q.record(EngineKind::Compute, 1);
  q.wait(kToHost, 1);
  q.copy(8, kToHost, kHome, Y * kBytes, kBytes);
  q.record(kToHost, 4);
}

const tmc::StepProgram &program(bool isWatched) {
  static const tmc::StepProgram made = [] {
    tmc::StepProgram p{};
    p.version = tmc::kProgramVersion;
    p.backend = tmc::Backend::Cuda;
    p.model = "graph";
    p.fingerprint = "graph-1";
    p.arenaBytes.device() = Places * kBytes;
    p.arenaBytes[SpaceKind::Host] = 4096;
    p.eventCount = 5;
    p.tensors = tensors;
    p.tensorCount = std::size(tensors);
    p.launches = launches;
    p.launchCount = std::size(launches);
    p.lossTensor = 3;
    p.gradNormTensor = -1;
    p.createKernels = []() -> void * { return nullptr; };
    p.destroyKernels = [](void *) {};
    p.visitKernels = [](void *, void *,
                        void (*)(void *, const char *, tmc::Kernel &)) {};
    p.run = runStep;
    return p;
  }();
  return isWatched ? *watch(&made) : made;
}

/// A step, trained from the same values with the same batches.
class Trained {
public:
  explicit Trained(bool graph, bool isWatched = true,
                   tmc::StepOptions options = {}) {
    runs = 0;
    options.graph = graph;
    const tmc::Status s = tmc::Step::create(program(isWatched), options, step_);
    EXPECT_TRUE(s) << s.message();
    device = &step_->device();
    write("x", 0);
    write("h", 50);
  }
  tmc::Status run() {
    write("batch", ++number_);
    double loss = 0;
    const tmc::Status s = step_->run(loss);
    losses.push_back(loss);
    return s;
  }
  /// The parameters.
  std::vector<float> values() {
    std::vector<float> values(2 * kCount);
    EXPECT_TRUE(step_->read(*step_->find("x"), values.data(), kBytes));
    EXPECT_TRUE(step_->read(*step_->find("h"), values.data() + kCount, kBytes));
    return values;
  }
  tmc::Step &step() { return *step_; }
  std::vector<double> losses;

private:
  void write(const char *name, int number) {
    std::vector<float> values(kCount);
    for (int i = 0; i < kCount; ++i)
      values[size_t(i)] = float((i * 37 + number * 101) % 64) / 7;
    EXPECT_TRUE(step_->write(*step_->find(name), values.data(), kBytes));
  }
  std::unique_ptr<tmc::Step> step_;
  int number_ = 0;
};

/// The calls of the runtime's interface that a step makes, and those that wait.
struct Calls {
  int64_t all, waits, kernels;

  static Calls now() {
    auto of = [](std::initializer_list<const char *> calls) {
      int64_t count = 0;
      for (const char *call : calls)
        count += callsOf(call);
      return count;
    };
    const int64_t waits = of({"cudaStreamSynchronize", "cudaDeviceSynchronize",
                              "cudaEventSynchronize"});
    return {waits + of({"launch", "cudaMemsetAsync", "cudaMemcpyAsync",
                        "cudaEventRecord", "cudaStreamWaitEvent",
                        "cudaGraphLaunch", "cublasLtMatmul"}),
            waits, counts().kernels};
  }
  Calls since(const Calls &before) const {
    return {all - before.all, waits - before.waits, kernels - before.kernels};
  }
};

int64_t graphs() { return counts().graphs; }

/// Runs all steps; the launches of graphs that they made.
int64_t runAll(Trained &trained) {
  const int64_t before = graphs();
  for (int i = 0; i < kSteps; ++i) {
    const tmc::Status s = trained.run();
    EXPECT_TRUE(s) << s.message();
  }
  return graphs() - before;
}

void expectFaultyGraph(FaultKind kind, const std::string &name, Planted plants,
                       bool onHost) {
  planted = plants;
  expectFault(
      kind, name,
      [] {
        Trained trained(true);
        for (int i = 0; i < 3; ++i)
          (void)trained.run().isOk();
      },
      onHost, __FILE__);
  planted = {};
}

} // namespace

TEST(CudaGraphs, TheSameBitsWithAndWithout) {
  Trained first(false, false);
  EXPECT_EQ(runAll(first), 0);
  const std::vector<float> wanted = first.values();
  for (bool isWatched : {false, true})
    for (bool graph : {false, true})
      expectClean([&] {
        Trained trained(graph, isWatched);
        EXPECT_EQ(runAll(trained), graph ? kSteps - 1 : 0);
        EXPECT_EQ(trained.losses, first.losses);
        EXPECT_EQ(trained.values(), wanted);
      });
}

TEST(CudaGraphs, AStepHasOneWaitAndFewCalls) {
  Calls direct{}, replayed{};
  for (bool graph : {false, true}) {
    Trained trained(graph, false);
    for (int i = 0; i < kSteps; ++i) {
      const Calls before = Calls::now();
      double loss = 0;
      if (i == 0)
        ASSERT_TRUE(trained.run());
      else // no batch is written
        ASSERT_TRUE(trained.step().run(loss));
      (graph ? replayed : direct) = Calls::now().since(before);
    }
  }
  // One upload, of the step's number, waits for its place in pinned memory.
  EXPECT_EQ(direct.waits, 2);
  EXPECT_EQ(replayed.waits, 2);
  EXPECT_EQ(direct.kernels, 3); // and the numbers of the end
  EXPECT_EQ(replayed.kernels, 3);
  EXPECT_EQ(direct.all, 21);
  EXPECT_EQ(replayed.all, 7);
}

TEST(CudaGraphs, AStepThatIsObservedHasNone) {
  for (int mode = 0; mode < 4; ++mode) {
    tmc::StepOptions options;
    options.profile = mode == 0;
    options.trace = mode == 1;
    options.poison = mode == 2;
    options.checkFinite = mode == 3;
    Trained trained(true, false, options);
    EXPECT_EQ(runAll(trained), 0) << mode;
  }
}

TEST(CudaGraphs, AStepThatCantBeRecordedRunsAsBefore) {
  Trained wanted(false, false);
  runAll(wanted);
  for (bool allocates : {false, true}) {
    planted.synchronizes = !allocates;
    planted.allocates = allocates;
    Trained trained(true, false);
    EXPECT_EQ(runAll(trained), 0);
    EXPECT_EQ(trained.losses, wanted.losses);
    EXPECT_EQ(trained.values(), wanted.values());
    planted = {};
  }
  for (const char *call :
       {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaEventRecord",
        "cudaGraphInstantiate", "cudaGraphUpload", "launch", "cudaMemcpyAsync",
        "cudaMemsetAsync"}) {
    Trained trained(true, false);
    ASSERT_TRUE(trained.run());
    auto *recorder = trained.step().device().recordSteps();
    failNext(call);
    recorder->record(runStep, nullptr);
    failNext("");
    const int64_t before = graphs();
    EXPECT_FALSE(recorder->replay()) << call;
    EXPECT_TRUE(trained.step().device().synchronize()) << call;
    EXPECT_EQ(graphs(), before);
  }
}

TEST(CudaGraphs, AStepThatIsObservedLaterRunsWithout) {
  struct Observer : tmc::LaunchObserver {
    void launched(tmc::Queues &, int64_t) override {}
  } observer;
  Trained wanted(false, false), trained(true, false);
  runAll(wanted);
  runAll(wanted);
  device = &trained.step().device();
  runAll(trained);
  device->queues().setObserver(&observer);
  EXPECT_EQ(runAll(trained), 0);
  device->queues().setObserver(nullptr);
  EXPECT_EQ(trained.losses, wanted.losses);
  EXPECT_EQ(trained.values(), wanted.values());
}

TEST(CudaGraphs, AGraphBeyondTheReserveIsGivenUp) {
  Trained trained(true, false);
  ASSERT_TRUE(trained.run());
  setMemoryLimit((size_t(1) << 34) - (size_t(1) << 20));
  EXPECT_EQ(runAll(trained), 0);
  setMemoryLimit(size_t(1) << 34);
}

TEST(CudaGraphs, ALaunchThatFailsIsTheStepsError) {
  Trained trained(true, false);
  ASSERT_TRUE(trained.run());
  failNext("cudaGraphLaunch");
  const tmc::Status s = trained.run();
  EXPECT_EQ(s.code(), tmc::Code::World);
  EXPECT_EQ(s.message().find("a step's graph: an emulated failure; step 2"), 0u)
      << s.message();
}

TEST(CudaGraphs, ACaptureRefusesCalls) {
  Device<float> buffer(kCount);
  cudaStream_t one = nullptr, two = nullptr;
  cudaEvent_t before = nullptr, within = nullptr;
  for (cudaStream_t *stream : {&one, &two})
    cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
  for (cudaEvent_t *event : {&before, &within})
    cudaEventCreateWithFlags(event, cudaEventDisableTiming);
  cudaEventRecord(before, two);
  cudaGraph_t graph = nullptr;
  auto begin = [&] {
    EXPECT_EQ(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal),
              cudaSuccess);
  };
  // An event of before.
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(one, before, 0),
            cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaStreamEndCapture(one, &graph),
            cudaErrorStreamCaptureInvalidated);
  // A stream that the first one doesn't wait for.
  begin();
  cudaEventRecord(within, one);
  EXPECT_EQ(cudaStreamWaitEvent(two, within, 0), cudaSuccess);
  launchOne(fillOnes, two, buffer.get());
  EXPECT_EQ(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureUnjoined);
  // The event of a capture that is over.
  EXPECT_EQ(cudaStreamWaitEvent(two, within, 0), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaEventSynchronize(within), cudaErrorCapturedEvent);
  for (cudaEvent_t event : {before, within})
    cudaEventDestroy(event);
  for (cudaStream_t stream : {one, two})
    cudaStreamDestroy(stream);
}

TEST(CudaGraphFaults, AnAddressThatChanges) {
  expectFaultyGraph(FaultKind::Stale, "an address", {.changesAddress = true},
                    true);
}

TEST(CudaGraphFaults, ANumberThatChanges) {
  expectFaultyGraph(FaultKind::Stale, "a number", {.changesNumber = true},
                    true);
}

TEST(CudaGraphFaults, ALaunchMore) {
  expectFaultyGraph(FaultKind::Stale, "a launch", {.changesSize = true}, true);
}

TEST(CudaGraphFaults, AWaitThatIsLeftOut) {
  expectFaultyGraph(FaultKind::Race, "a wait", {.leavesOutWait = true}, true);
}

TEST(CudaGraphFaults, AnOldAddress) {
  // As if the runtime had kept the graph of a buffer that is gone.
  expectFault(FaultKind::OutOfBounds, "fillOnes", [] {
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    Device<float> buffer(kCount);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    launchOne(fillOnes, stream, buffer.get());
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
    EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    cudaStreamSynchronize(stream);
    buffer.free();
    EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    cudaGraphExecDestroy(exec);
    cudaStreamDestroy(stream);
  });
}
