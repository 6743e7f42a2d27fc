//===- CpuQueues.cpp - the engines of the cpu backend ---------------------===//

#include "runtime/cpu/CpuQueues.h"

#include "runtime/kernels/Ranks.h"

#include <algorithm>
#include <thread>

namespace tmc {

Status CpuQueues::start(const QueueNeeds &needs, const DeviceOptions &options,
                        int computeThreads) {
  context_.file = needs.file;
  context_.linkBytesPerSecond = options.linkBytesPerSecond;
  events_.resize(size_t(std::max(needs.events, 0)));
  if (needs.engines[EngineKind::Host]) {
    const int cores = int(std::thread::hardware_concurrency());
    hostPool_ = std::make_unique<ThreadPool>(
        options.hostThreads > 0 ? options.hostThreads
                                : std::max(1, cores - computeThreads));
    hostStream_ = Stream(hostPool_.get());
    context_.streams[EngineKind::Host] = &hostStream_;
  }
  context_.streams[EngineKind::Network] = &networkStream_;
  context_.peers = options.peers;
  for (auto [engine, isNeeded] : needs.engines) {
    if (!isNeeded)
      continue;
    std::unique_ptr<EngineThread> &thread = threads_[engine.kind];
    thread = std::make_unique<EngineThread>(engine.kind, context_, needs.depth);
    if (Status s = thread->start(); !s)
      return s;
  }
  return Status::ok();
}

void CpuQueues::recordEvent(EngineKind engine, int32_t event) {
  const EngineThread *thread = of(engine);
  events_[size_t(event)] =
      thread ? Event{&thread->completed(), thread->queued()} : Event{};
}

void CpuQueues::holdKernels(const Event &until) {
  const EngineThread *network = of(EngineKind::Network);
  const bool isTold =
      context_.peers && network && until.counter == &network->completed();
  const double begin = isTold ? secondsNow() : 0;
  until.counter->waitFor(until.number);
  if (isTold)
    context_.peers->waited(secondsNow() - begin);
}

void CpuQueues::waitForEvent(EngineKind engine, int32_t event) {
  const Event &reached = events_[size_t(event)];
  if (!reached.counter)
    return;
  if (engine == EngineKind::Compute)
    return holdKernels(reached);
  // Work of the same queue is already in order.
  EngineThread *thread = of(engine);
  if (thread && reached.counter != &thread->completed())
    thread->wait(*reached.counter, reached.number);
}

} // namespace tmc
