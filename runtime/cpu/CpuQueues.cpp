//===- CpuQueues.cpp - the engines of the cpu backend ---------------------===//

#include "runtime/cpu/CpuQueues.h"

#include <algorithm>
#include <thread>

namespace tmc {

Status CpuQueues::start(const QueueNeeds &needs, const DeviceOptions &options,
                        int computeThreads) {
  context_.file = needs.file;
  context_.linkBytesPerSecond = options.linkBytesPerSecond;
  events_.resize(size_t(std::max(needs.events, 0)));
  if (needs.engines[int(Engine::Host)]) {
    const int cores = int(std::thread::hardware_concurrency());
    hostPool_ = std::make_unique<ThreadPool>(
        options.hostThreads > 0 ? options.hostThreads
                                : std::max(1, cores - computeThreads));
    hostStream_ = Stream(hostPool_.get());
    context_.hostStream = &hostStream_;
  }
  for (int i = 1; i < kEngineCount; ++i)
    if (needs.engines[i]) {
      threads_[i] =
          std::make_unique<EngineThread>(Engine(i), context_, needs.depth);
      if (Status s = threads_[i]->start(); !s)
        return s;
    }
  return Status::ok();
}

void CpuQueues::copy(int64_t launch, Engine engine, void *to, const void *from,
                     int64_t bytes) {
  if (Work *work = next(engine, Work::Kind::Copy, launch)) {
    work->setTransfer(to, from, 0, bytes);
    of(engine)->commit();
  }
  started(launch);
}

void CpuQueues::recordEvent(Engine engine, int32_t event) {
  const EngineThread *thread = of(engine);
  events_[size_t(event)] =
      thread ? Event{&thread->completed(), thread->queued()} : Event{};
}

void CpuQueues::waitForEvent(Engine engine, int32_t event) {
  const Event &reached = events_[size_t(event)];
  if (!reached.counter)
    return;
  if (engine == Engine::Compute)
    return reached.counter->waitFor(reached.number);
  // Work of the same queue is already in order.
  EngineThread *thread = of(engine);
  if (thread && reached.counter != &thread->completed())
    thread->wait(*reached.counter, reached.number);
}

} // namespace tmc
