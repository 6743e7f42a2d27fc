//===- CudaQueues.cpp - the engines of the cuda backend -------------------===//

#include "runtime/cuda/CudaQueues.h"

#include "runtime/cuda/HostUpdates.h"
#include "runtime/kernels/Ranks.h"

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

namespace tmc::cuda {

namespace {

/// Counters in pinned memory, a cache line each.
constexpr size_t kCounterBytes = 64;
/// CU_STREAM_WAIT_VALUE_GEQ: waits until the word is at least the value.
constexpr unsigned kWaitAtLeast = 0;
/// Between two questions for the error of a call that a library has queued.
constexpr double kAskSeconds = 0.01;

void raise(void *counter) { static_cast<WorkCounter *>(counter)->raise(); }

Status worldError(const char *what, cudaError_t error) {
  return {Code::World, std::string(what) + ": " + cudaGetErrorString(error)};
}

} // namespace

/// The times of a copy or a call, for an observer.
struct CudaQueues::Stamp {
  WorkObserver *observer;
  EngineKind engine;
  int64_t launch;
  double begin = 0;
};

CudaQueues::Stamp *CudaQueues::stampBegin(EngineKind engine, int64_t launch) {
  if (!context_.observer)
    return nullptr; // Such a step's allocations count.
  auto begins = [](void *opaque) {
    auto &stamp = *static_cast<Stamp *>(opaque);
    stamp.observer->begins(stamp.engine, stamp.launch);
    stamp.begin = secondsNow();
  };
  auto *stamp = new Stamp{context_.observer, engine, launch};
  check(cudaLaunchHostFunc(streams_[engine], begins, stamp),
        "a word to the host");
  return stamp;
}

void CudaQueues::stampEnd(Stamp *stamp) {
  if (!stamp)
    return;
  auto ran = [](void *opaque) {
    const std::unique_ptr<Stamp> its(static_cast<Stamp *>(opaque));
    its->observer->ran(its->engine, its->launch, its->begin, secondsNow());
  };
  check(cudaLaunchHostFunc(streams_[stamp->engine], ran, stamp),
        "a word to the host");
}

CudaQueues::CudaQueues(Stream &compute)
    : ThreadQueues(compute), hostStream_(nullptr), networkHost_(nullptr),
      network_(nullptr) {
  streams_[EngineKind::Compute] = static_cast<cudaStream_t>(compute.native());
}

CudaQueues::~CudaQueues() {
  endThreads();
  // Nothing can be done about an error here.
  for (Event &event : events_)
    if (event.native)
      (void)cudaEventDestroy(event.native);
  if (joined_)
    (void)cudaEventDestroy(joined_);
  for (auto [engine, stream] : streams_)
    if (engine.kind != EngineKind::Compute && stream)
      (void)cudaStreamDestroy(stream);
  for (Teller &teller : tellers_.of)
    if (teller.stream)
      (void)cudaStreamDestroy(teller.stream);
  if (counters_)
    (void)cudaFreeHost(counters_);
}

Status CudaQueues::start(const QueueNeeds &needs,
                         const DeviceOptions &options) {
  if (needs.engines == PerEngine<bool>())
    return Status::ok();
  context_.file = needs.file;
  auto stream = [](cudaStream_t &made) {
    return cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
  };
  for (auto [engine, its] : streams_) {
    const bool isUsed = engine.copies && !isThread(engine.kind);
    const bool isNetwork =
        engine.kind == EngineKind::Network && needs.engines[engine.kind];
    if (isUsed || isNetwork)
      if (cudaError_t e = stream(its); e != cudaSuccess)
        return worldError("can't create a stream for copies", e);
  }
  auto event = [](cudaEvent_t &made) {
    return cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
  };
  if (cudaError_t e = event(joined_); e != cudaSuccess)
    return worldError("can't create an event", e);
  events_.resize(size_t(std::max(needs.events, 0)));
  for (Event &its : events_)
    if (cudaError_t e = event(its.native); e != cudaSuccess)
      return worldError("can't create an event", e);
  if (cudaError_t e =
          cudaHostAlloc(reinterpret_cast<void **>(&counters_),
                        kEngineCount * kCounterBytes, cudaHostAllocDefault);
      e != cudaSuccess)
    return worldError("can't pin the engines' counters", e);
  void *found = nullptr;
  cudaDriverEntryPointQueryResult result;
  // Since CUDA 12: any memory word that the device can read is allowed.
#if CUDART_VERSION >= 12050
  const cudaError_t asked = cudaGetDriverEntryPointByVersion(
      "cuStreamWaitValue64", &found, 12000, cudaEnableDefault, &result);
#else
  const cudaError_t asked = cudaGetDriverEntryPoint(
      "cuStreamWaitValue64", &found, cudaEnableDefault, &result);
#endif
  if (asked == cudaSuccess && result == cudaDriverEntryPointSuccess)
    waitValue_ = reinterpret_cast<WaitValue>(found);
  if (needs.engines[EngineKind::Host]) {
    if (!host::canRun())
      return {Code::World,
              "updates on the host need a processor with AVX2 and FMA"};
    const int cores = int(std::thread::hardware_concurrency());
    // The thread that queues compute's work takes one core.
    hostPool_ = std::make_unique<ThreadPool>(
        options.hostThreads > 0 ? options.hostThreads : std::max(1, cores - 1));
    hostStream_ = Stream(hostPool_.get());
    context_.streams[EngineKind::Host] = &hostStream_;
  }
  context_.peers = options.peers;
  context_.streams[EngineKind::Network] = &networkHost_;
  network_ = Stream(streams_[EngineKind::Network]);
  for (auto [engine, isNeeded] : needs.engines) {
    const EngineKind kind = engine.kind;
    const bool calls = kind == EngineKind::Network && options.peers &&
                       !options.peers->queues();
    if (!isNeeded || !(isThread(kind) || calls))
      continue;
    if (isThread(kind))
      if (cudaError_t e = stream(tellers_[kind].stream); e != cudaSuccess)
        return worldError("can't create a stream for events", e);
    auto *counter =
        new (counters_ + size_t(kind) * kCounterBytes) std::atomic<uint64_t>(0);
    threads_[kind] =
        std::make_unique<EngineThread>(kind, context_, needs.depth, counter);
    if (Status s = threads_[kind]->start(); !s)
      return s;
  }
  return Status::ok();
}

void CudaQueues::check(cudaError_t error, const char *what) {
  if (error != cudaSuccess)
    context_.fault.set(worldError(what, error));
}

void CudaQueues::hold(EngineThread &thread, const WorkCounter &counter,
                      uint64_t number) {
  if (thread.isFull())
    beforeWaiting();
  thread.wait(counter, number);
}

void CudaQueues::copy(int64_t launch, EngineKind engine, int64_t to,
                      int64_t from, int64_t bytes) {
  if (isThread(engine))
    return ThreadQueues::copy(launch, engine, to, from, bytes);
  isAhead_[engine] = streams_[engine] != nullptr;
  if (!streams_[engine]) {
    context_.fault.set(unnamedEngine(engine));
  } else if (!context_.fault.isSet()) {
    Stamp *stamp = stampBegin(engine, launch);
    check(cudaMemcpyAsync(arena(infoOf(engine).writes) + to,
                          arena(infoOf(engine).reads) + from, size_t(bytes),
                          cudaMemcpyDefault, streams_[engine]),
          "a copy between device and host");
    stampEnd(stamp);
  }
  started(launch);
}

void CudaQueues::beside(int64_t launch, EngineKind engine, Kernel &kernel,
                        In ins, Out outs, void *scratch, bool accumulate) {
  if (engine != EngineKind::Network)
    return ThreadQueues::beside(launch, engine, kernel, ins, outs, scratch,
                                accumulate);
  isAhead_[engine] = streams_[engine] != nullptr;
  if (!streams_[engine]) {
    context_.fault.set(unnamedEngine(engine));
  } else if (!context_.fault.isSet()) {
    Stamp *stamp = stampBegin(engine, launch);
    networkLaunch_ = launch;
    kernel.run(network_, ins, outs, scratch, accumulate);
    stampEnd(stamp);
  }
  started(launch);
}

Status CudaQueues::callFromStream(Kernel &call, const void *from, void *to) {
  const cudaStream_t stream = streams_[EngineKind::Network];
  EngineThread *thread = of(EngineKind::Network);
  if (!thread)
    return unnamedEngine(EngineKind::Network);
  Teller &teller = tellers_[EngineKind::Network];
  if (cudaError_t e = cudaLaunchHostFunc(stream, raise, &teller.heard);
      e != cudaSuccess)
    return worldError("a word to the host", e);
  hold(*thread, teller.heard, ++teller.told);
  Work *work = next(EngineKind::Network, Work::Kind::Kernel, networkLaunch_);
  if (!work->setKernel(call, {from}, {to}, nullptr, false))
    return tooManyOperands();
  thread->commit();
  streamWaitsForThread(stream, *thread, thread->queued());
  return Status::ok();
}

void CudaQueues::recordEvent(EngineKind engine, int32_t index) {
  Event &event = events_[size_t(index)];
  event.engine = engine;
  event.isRecorded = true;
  event.launch = networkLaunch_;
  if (!isThread(engine))
    check(cudaEventRecord(event.native, streams_[engine]),
          "an event of a stream");
  else if (const EngineThread *thread = of(engine))
    event.number = thread->queued();
}

void CudaQueues::waitForEvent(EngineKind engine, int32_t index) {
  const Event &event = events_[size_t(index)];
  if (!event.isRecorded || event.engine == engine)
    return;
  if (isThread(engine)) {
    if (!of(engine))
      return;
    if (!isThread(event.engine))
      return threadWaitsForStream(engine, event);
    if (const EngineThread *other = of(event.engine))
      hold(*of(engine), other->completed(), event.number);
  } else if (isThread(event.engine)) {
    if (const EngineThread *thread = of(event.engine))
      streamWaitsForThread(streams_[engine], *thread, event.number);
  } else {
    const bool pauses = engine == EngineKind::Compute && context_.peers &&
                        event.engine == EngineKind::Network;
    if (pauses)
      pauses_.begin(streams_[engine], event.launch);
    check(cudaStreamWaitEvent(streams_[engine], event.native, 0),
          "a wait for an event");
    if (pauses)
      pauses_.end(streams_[engine]);
  }
}

void CudaQueues::threadWaitsForStream(EngineKind engine, const Event &event) {
  Teller &teller = tellers_[engine];
  check(cudaStreamWaitEvent(teller.stream, event.native, 0),
        "a wait for an event");
  const cudaError_t error =
      cudaLaunchHostFunc(teller.stream, raise, &teller.heard);
  check(error, "a word to the host");
  if (error == cudaSuccess)
    hold(*of(engine), teller.heard, ++teller.told);
}

void CudaQueues::streamWaitsForThread(cudaStream_t stream,
                                      const EngineThread &thread,
                                      uint64_t number) {
  // Also if the thread has already reached the number: the order of streams
  // must not depend on the thread's speed.
  const auto word =
      reinterpret_cast<unsigned long long>(&thread.completed().place());
  if (waitValue_ && waitValue_(stream, word, number, kWaitAtLeast) == 0)
    return;
  waitValue_ = nullptr; // the driver or the device can't
  if (thread.completed().get() >= number)
    return;
  beforeWaiting();
  thread.completed().waitFor(number);
}

void CudaQueues::beforeWaiting() {
  for (const Teller &teller : tellers_.of)
    if (teller.stream)
      check(cudaStreamSynchronize(teller.stream), "the step");
  // The network's thread hears of its own stream.
  if (of(EngineKind::Network))
    check(cudaStreamSynchronize(streams_[EngineKind::Network]), "the step");
}

void CudaQueues::join() {
  // One stream after the other, so that one event is enough.
  bool isRecorded = false;
  auto wait = [&](cudaStream_t stream) {
    if (isRecorded)
      check(cudaStreamWaitEvent(stream, joined_, 0), "a wait for an event");
  };
  for (auto [engine, stream] : streams_) {
    if (!std::exchange(isAhead_[engine.kind], false))
      continue;
    wait(stream);
    check(cudaEventRecord(joined_, stream), "an event of a stream");
    isRecorded = true;
  }
  wait(streams_[EngineKind::Compute]);
}

bool CudaQueues::hasThreads() const {
  return std::any_of(std::begin(threads_.of), std::end(threads_.of),
                     [](const auto &thread) { return bool(thread); });
}

void CudaQueues::forgetEvents() {
  for (Event &event : events_)
    event.isRecorded = false;
}

void CudaQueues::queueForked(void (*run)(Queues &, void *), void *kernels) {
  // Recorded streams can't wait for events of before, nor others for theirs.
  forgetEvents();
  for (auto [engine, stream] : streams_) {
    if (!engine.copies || !stream)
      continue;
    check(cudaEventRecord(joined_, streams_[EngineKind::Compute]),
          "an event of a stream");
    check(cudaStreamWaitEvent(stream, joined_, 0), "a wait for an event");
    isAhead_[engine.kind] = true;
  }
  run(*this, kernels);
  join();
  forgetEvents();
}

void CudaQueues::waitForCompute() {
  const cudaStream_t compute = streams_[EngineKind::Compute];
  if (streams_[EngineKind::Network] && context_.peers &&
      context_.peers->queues()) {
    // A call whose rank is gone never ends by itself.
    check(cudaEventRecord(joined_, compute), "an event of a stream");
    double asked = secondsNow();
    while (cudaEventQuery(joined_) == cudaErrorNotReady) {
      std::this_thread::yield();
      if (secondsNow() - asked < kAskSeconds)
        continue;
      asked = secondsNow();
      context_.peers->waits(pauses_.current());
      if (Status s = context_.peers->queuedFault(); !s)
        context_.fault.set(s);
    }
    (void)cudaGetLastError(); // "Not ready" is no error.
    context_.peers->waits(-1);
  }
  check(cudaStreamSynchronize(compute), "the step");
  if (context_.peers)
    context_.peers->waited(pauses_.finish());
}

void CudaQueues::finish() {
  // Streams first: they raise the counters that threads wait for.
  waitForCompute();
  beforeWaiting();
  drainThreads();
}

void CudaQueues::drain() {
  join();
  finish();
}

} // namespace tmc::cuda
