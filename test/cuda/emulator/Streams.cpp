//===- Streams.cpp - queued work, run late and in random orders -----------===//

#include "test/cuda/emulator/Streams.h"

#include "test/cuda/emulator/Graphs.h"
#include "test/cuda/emulator/Memory.h"
#include "test/cuda/emulator/Report.h"
#include "test/cuda/emulator/Runtime.h"
#include "test/cuda/emulator/Schedule.h"
#include "test/cuda/emulator/Shadow.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace tmc::emulator;

namespace tmc::emulator {

namespace {

/// Of all streams; the one without a name is the first.
std::vector<CUstream_st *> &streams() {
  static auto *all = new std::vector<CUstream_st *>{new CUstream_st};
  return *all;
}
std::set<CUevent_st *> &events() {
  static auto *all = new std::set<CUevent_st *>;
  return *all;
}
/// What the host has waited for.
WorkClock host;
/// What functions on the host were told of. What waits for a thread's word
/// counts as ordered behind all of that: what threads do isn't seen.
WorkClock told;
/// Memory of the host that is registered, by its first byte: copies reach it,
/// in the order of streams and events.
std::map<uintptr_t, size_t> registered;
size_t pinnedLimit = SIZE_MAX;
Wrap wrap = nullptr;
bool runningWork = false, held = false;

bool isReady(const CUstream_st &stream) {
  if (stream.queue.empty())
    return false;
  const Work &work = stream.queue.front();
  if (work.ready)
    return work.ready();
  if (work.word)
    return work.word->load(std::memory_order_acquire) >= work.value;
  return !work.waits || work.waits->done >= work.version;
}

constexpr int kThreadPolls = 60000; // of a millisecond

/// The host waits, and nothing can run now: waits a little for what a thread of
/// the host or another process has still to do. False if no stream waits for
/// such a thing, or the host has waited too long.
bool waitForOthers(int &polls) {
  bool waits = false;
  void (*idle)() = nullptr;
  for (const CUstream_st *stream : streams())
    if (!stream->queue.empty() &&
        (stream->queue.front().word || stream->queue.front().ready)) {
      waits = true;
      if (stream->queue.front().idle)
        idle = stream->queue.front().idle;
    }
  if (!waits || ++polls >= kThreadPolls)
    return false;
  if (idle)
    idle();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return true;
}

/// Runs the first work of some stream; false where none can.
bool runOne() {
  std::vector<CUstream_st *> ready;
  for (CUstream_st *stream : streams())
    if (isReady(*stream))
      ready.push_back(stream);
  if (ready.empty())
    return false;
  CUstream_st &stream = *ready[seed() == 0   ? 0
                               : seed() == 1 ? ready.size() - 1
                                             : draw(ready.size())];
  const Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (work.records) {
    work.records->done = std::max(work.records->done, work.version);
    work.records->seconds =
        std::chrono::duration<double>(
            std::chrono::steady_clock::now().time_since_epoch())
            .count();
  }
  if (work.run) {
    runningWork = true;
    beginWork(stream.index, work.clock);
    work.run();
    runningWork = false;
  }
  endIfFaulty();
  return true;
}

template <typename F> void runUntil(F &&done) {
  for (int polls = 0; !done();) {
    if (runOne()) {
      polls = 0;
    } else if (!waitForOthers(polls)) {
      report(FaultKind::Deadlock, 0,
             "the host waits for streams that wait for each other");
      for (CUstream_st *stream : streams())
        stream->queue.clear();
      endIfFaulty();
      return;
    }
  }
}

/// As much as the seed says, between two calls of the host.
void runSome() {
  if (runningWork || held)
    return;
  if (seed() == 0)
    while (runOne()) {
    }
  else if (seed() > 1 && draw(4) == 0)
    for (uint64_t n = draw(4); n > 0 && runOne(); --n) {
    }
}

/// Queues work, whatever the stream does with it.
void pushNow(CUstream_st *stream, Work work) {
  WorkClock &clock = stream->clock;
  join(clock, host);
  if (work.waits)
    join(clock, work.waits->clock);
  if (work.word)
    join(clock, told);
  clock.resize(std::max(clock.size(), stream->index + 1));
  ++clock[stream->index];
  if (work.records)
    work.records->clock = clock;
  work.clock = clock;
  stream->queue.push_back(std::move(work));
  runSome();
}

/// The host has waited for that.
void learn(const WorkClock &clock) {
  join(host, clock);
  for (const CUstream_st *stream : streams())
    if (!stream->queue.empty() || !isWithin(stream->clock, host))
      return;
  forgetWorks();
}

bool isRegistered(const void *p, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  const auto after = registered.upper_bound(at);
  return after != registered.begin() &&
         at + bytes <= std::prev(after)->first + std::prev(after)->second;
}

uint64_t hashOf(const void *p, size_t bytes) { // FNV-1a
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < bytes; ++i)
    hash = (hash ^ static_cast<const unsigned char *>(p)[i]) * 0x100000001b3u;
  return hash;
}

bool isPinned(const void *p) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  if (!isDevice(at))
    return false;
  const Piece *piece = pieceAt(at);
  return piece && piece->kind == MemoryKind::Pinned;
}

} // namespace

void setPinnedLimit(size_t bytes) { pinnedLimit = bytes; }

CUstream_st *streamOf(cudaStream_t stream) {
  return stream ? stream : streams()[0];
}
bool isStream(cudaStream_t stream) {
  return !stream || std::count(streams().begin(), streams().end(), stream) != 0;
}

void push(CUstream_st *stream, Work work) {
  if (!takesWork(stream, work))
    pushNow(stream, std::move(work));
}
void record(CUevent_st *event, CUstream_st *stream) {
  if (takesRecord(event, stream))
    return;
  Work work{"an event", {}};
  work.records = event;
  work.version = ++event->recorded;
  pushNow(stream, std::move(work));
}
cudaError_t wait(CUstream_st *stream, CUevent_st *event) {
  cudaError_t error = cudaSuccess;
  if (takesWait(stream, event, error))
    return error;
  Work work{"a wait", {}};
  work.waits = event;
  work.version = event->recorded;
  pushNow(stream, std::move(work));
  return cudaSuccess;
}

CUstream_st *newStream() {
  streams().push_back(new CUstream_st);
  return streams().back();
}
CUevent_st *newEvent(bool times) {
  auto *event = new CUevent_st;
  event->times = times;
  events().insert(event);
  return event;
}

void queueWork(cudaStream_t stream, const char *what, WorkKey key,
               std::function<void()> run) {
  if (!isStream(stream)) {
    report(FaultKind::Resource, 0,
           std::string(what) + " on a stream that doesn't exist");
    return;
  }
  push(streamOf(stream),
       {what, wrap ? wrap(std::move(run)) : std::move(run), std::move(key)});
}

void queueWhenReady(cudaStream_t stream, const char *what, WorkKey key,
                    std::function<void()> run, std::function<bool()> ready,
                    void (*idle)()) {
  Work work{what, wrap ? wrap(std::move(run)) : std::move(run), std::move(key)};
  work.ready = std::move(ready);
  work.idle = idle;
  push(streamOf(stream), std::move(work));
}

void runAll() {
  runUntil([] {
    return std::all_of(streams().begin(), streams().end(),
                       [](CUstream_st *s) { return s->queue.empty(); });
  });
  for (const CUstream_st *stream : streams())
    join(host, stream->clock);
  learn(host);
}

void setWrap(Wrap to) { wrap = to; }
void holdWork(bool to) {
  held = to;
  runSome();
}

} // namespace tmc::emulator

namespace {

/// Whether a copy's end on the host races with another's.
bool hostRaces(const void *p, size_t bytes, bool writes) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  const RangeAccess *other = conflictingRange(at, bytes, writes);
  if (other)
    report(FaultKind::Race, 0,
           std::string("a copy ") + (writes ? "writes " : "reads ") +
               std::to_string(bytes) + " bytes of registered memory, which " +
               workName(other->serial) +
               (other->writes ? " writes" : " reads") +
               ", and nothing orders them");
  noteRange(at, bytes, writes);
  return other;
}

void copyNow(void *to, const void *from, size_t bytes) {
  const bool fromDevice =
      isDevice(reinterpret_cast<uintptr_t>(from)) && !isPinned(from);
  const bool toDevice =
      isDevice(reinterpret_cast<uintptr_t>(to)) && !isPinned(to);
  if (fromDevice && !touchAll(from, bytes, Touch::Read, "a copy"))
    return;
  if (toDevice && !touchAll(to, bytes, Touch::Write, "a copy"))
    return;
  for (const auto &[p, writes] : {std::pair<const void *, bool>{from, false},
                                  std::pair<const void *, bool>{to, true}})
    if (isRegistered(p, bytes) && hostRaces(p, bytes, writes))
      return;
  std::memmove(to, from, bytes);
}

} // namespace

extern "C" {

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  if (shouldFail("cudaMemcpyAsync"))
    return cudaErrorInvalidValue;
  if (bytes == 0)
    return cudaSuccess;
  const bool fromDevice =
      isDevice(reinterpret_cast<uintptr_t>(from)) && !isPinned(from);
  const bool toDevice =
      isDevice(reinterpret_cast<uintptr_t>(to)) && !isPinned(to);
  const cudaMemcpyKind is =
      fromDevice ? toDevice ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost
      : toDevice ? cudaMemcpyHostToDevice
                 : cudaMemcpyHostToHost;
  if (kind != is && kind != cudaMemcpyDefault) {
    report(FaultKind::Transfer, 0,
           "a copy whose direction isn't that of its addresses");
    return cudaErrorInvalidValue;
  }
  const WorkKey key = keyOf(to, from, bytes);
  if (isRegistered(fromDevice ? to : from, bytes) || (fromDevice && toDevice)) {
    queueWork(stream, "a copy", key, [=] { copyNow(to, from, bytes); });
  } else if (isRefused(stream)) {
    return cudaErrorStreamCaptureUnsupported;
  } else if (!fromDevice && isPinned(from)) {
    const uint64_t before = hashOf(from, bytes);
    queueWork(stream, "a copy", key, [=] {
      if (hashOf(from, bytes) != before)
        report(FaultKind::Transfer, 0,
               "the host changed pinned memory before the copy of its " +
                   std::to_string(bytes) + " bytes had run");
      copyNow(to, from, bytes);
    });
  } else if (!fromDevice) {
    auto bytesThen = std::make_shared<std::vector<char>>(
        static_cast<const char *>(from),
        static_cast<const char *>(from) + bytes);
    queueWork(stream, "a copy", key,
              [=] { copyNow(to, bytesThen->data(), bytes); });
  } else if (isPinned(to)) {
    std::memset(to, 0xff, bytes);
    queueWork(stream, "a copy", key, [=] {
      const auto *p = static_cast<const unsigned char *>(to);
      if (std::any_of(p, p + bytes, [](unsigned char b) { return b != 0xff; }))
        report(FaultKind::Transfer, 0,
               "the host changed pinned memory before the copy into its " +
                   std::to_string(bytes) + " bytes had run");
      copyNow(to, from, bytes);
    });
  } else {
    queueWork(stream, "a copy", key, [=] { copyNow(to, from, bytes); });
    return cudaStreamSynchronize(stream);
  }
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes,
                            cudaStream_t stream) {
  if (shouldFail("cudaMemsetAsync"))
    return cudaErrorInvalidValue;
  queueWork(stream, "a fill", keyOf(to, value, bytes), [=] {
    if (touchAll(to, bytes, Touch::Write, "a fill"))
      std::memset(to, value, bytes);
  });
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned) {
  if (breaksCapture() || shouldFail("cudaHostRegister") || bytes > pinnedLimit)
    return cudaErrorMemoryAllocation;
  registered[reinterpret_cast<uintptr_t>(p)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void *p) {
  runAll();
  return registered.erase(reinterpret_cast<uintptr_t>(p))
             ? cudaSuccess
             : cudaErrorInvalidValue;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                               void *data) {
  if (shouldFail("cudaLaunchHostFunc"))
    return cudaErrorNotSupported;
  if (!isStream(stream))
    return cudaErrorInvalidResourceHandle;
  if (isRefused(stream))
    return cudaErrorStreamCaptureUnsupported;
  queueWork(stream, "a function of the host", keyOf(function, data),
            [=] { function(data); });
  join(told, streamOf(stream)->clock);
  return cudaSuccess;
}

/// As the driver's, of words in memory that the device reads.
static int waitForValue(cudaStream_t stream, unsigned long long word,
                        uint64_t value, unsigned flags) {
  if (!isStream(stream) || flags != 0 || isRefused(stream) ||
      shouldFail("cuStreamWaitValue64"))
    return 1;
  Work work{"a wait for a word", {}};
  work.word = reinterpret_cast<const std::atomic<uint64_t> *>(word);
  work.value = value;
  push(streamOf(stream), std::move(work));
  return 0;
}

cudaError_t
cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned,
                                 unsigned long long,
                                 cudaDriverEntryPointQueryResult *result) {
  const bool found = !std::strcmp(symbol, "cuStreamWaitValue64");
  *function = found ? reinterpret_cast<void *>(waitForValue) : nullptr;
  *result =
      found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  *stream = newStream();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!stream || !isStream(stream))
    return cudaErrorInvalidResourceHandle;
  cudaStreamSynchronize(stream); // it is destroyed when its work is done
  streams().erase(std::find(streams().begin(), streams().end(), stream));
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (!isStream(stream) || shouldFail("cudaStreamSynchronize"))
    return cudaErrorInvalidResourceHandle;
  if (isRefused(stream))
    return cudaErrorStreamCaptureUnsupported;
  runUntil([&] { return streamOf(stream)->queue.empty(); });
  learn(streamOf(stream)->clock);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) {
  if (shouldFail("cudaDeviceSynchronize"))
    return cudaErrorLaunchFailure;
  if (breaksCapture())
    return cudaErrorStreamCaptureUnsupported;
  runAll();
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned) {
  if (!isStream(stream) || !events().count(event))
    return cudaErrorInvalidResourceHandle;
  return wait(streamOf(stream), event);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  if (shouldFail("cudaEventCreateWithFlags"))
    return cudaErrorMemoryAllocation;
  *event = newEvent(!(flags & cudaEventDisableTiming));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (!events().count(event))
    return cudaErrorInvalidResourceHandle;
  runUntil([&] { return event->done >= event->recorded; });
  events().erase(event);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (!isStream(stream) || !events().count(event) ||
      shouldFail("cudaEventRecord"))
    return cudaErrorInvalidResourceHandle;
  record(event, streamOf(stream));
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (!events().count(event) || shouldFail("cudaEventSynchronize"))
    return cudaErrorInvalidResourceHandle;
  if (event->capture) {
    breaksCapture();
    return cudaErrorCapturedEvent;
  }
  runUntil([&] { return event->done >= event->recorded; });
  learn(event->clock);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  // A host that asks again and again must come to an end.
  int polls = 0;
  if (event->done < event->recorded && !runOne())
    waitForOthers(polls);
  if (event->done < event->recorded)
    return cudaErrorNotReady;
  learn(event->clock);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin,
                                 cudaEvent_t end) {
  if (shouldFail("cudaEventElapsedTime"))
    return cudaErrorInvalidValue;
  for (const cudaEvent_t event : {begin, end})
    if (!events().count(event) || !event->times || event->recorded == 0)
      return cudaErrorInvalidResourceHandle;
  for (const cudaEvent_t event : {begin, end})
    if (event->done < event->recorded)
      return cudaErrorNotReady;
  *milliseconds = float((end->seconds - begin->seconds) * 1e3);
  return cudaSuccess;
}
}
