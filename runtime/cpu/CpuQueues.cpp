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
      engines_[i] =
          std::make_unique<EngineThread>(Engine(i), context_, needs.depth);
      if (Status s = engines_[i]->start(); !s)
        return s;
    }
  return Status::ok();
}

Work *CpuQueues::next(Engine engine, Work::Kind kind, int64_t launch) {
  EngineThread *thread = of(engine);
  if (!thread) {
    context_.fault.set(unnamedEngine(engine));
    return nullptr;
  }
  return &thread->next(kind, launch);
}

void CpuQueues::copy(int64_t launch, Engine engine, void *to, const void *from,
                     int64_t bytes) {
  if (Work *work = next(engine, Work::Kind::Copy, launch)) {
    work->setTransfer(to, from, 0, bytes);
    of(engine)->commit();
  }
  started(launch);
}

void CpuQueues::writeFile(int64_t launch, int64_t fileOffset, const void *from,
                          int64_t bytes) {
  if (Work *work = next(Engine::FileWrite, Work::Kind::Write, launch)) {
    work->setTransfer(nullptr, from, fileOffset, bytes);
    of(Engine::FileWrite)->commit();
  }
  started(launch);
}

void CpuQueues::readFile(int64_t launch, void *to, int64_t fileOffset,
                         int64_t bytes) {
  if (Work *work = next(Engine::FileRead, Work::Kind::Read, launch)) {
    work->setTransfer(to, nullptr, fileOffset, bytes);
    of(Engine::FileRead)->commit();
  }
  started(launch);
}

void CpuQueues::onHost(int64_t launch, Kernel &kernel, In ins, Out outs,
                       void *scratch, bool accumulate) {
  if (Work *work = next(Engine::Host, Work::Kind::OnHost, launch)) {
    if (work->setKernel(kernel, ins, outs, scratch, accumulate))
      of(Engine::Host)->commit();
    else
      context_.fault.set(tooManyOperands());
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
  // What is first in its own queue needs no wait.
  EngineThread *thread = of(engine);
  if (thread && reached.counter != &thread->completed())
    thread->wait(*reached.counter, reached.number);
}

void CpuQueues::drain() {
  for (const std::unique_ptr<EngineThread> &thread : engines_)
    if (thread)
      thread->drain();
}

} // namespace tmc
