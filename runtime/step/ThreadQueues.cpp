//===- ThreadQueues.cpp - queues whose engines are threads ----------------===//

#include "runtime/step/ThreadQueues.h"

namespace tmc {

Work *ThreadQueues::next(Engine engine, Work::Kind kind, int64_t launch) {
  EngineThread *thread = of(engine);
  if (!thread) {
    context_.fault.set(unnamedEngine(engine));
    return nullptr;
  }
  if (thread->isFull())
    beforeWaiting();
  return &thread->next(kind, launch);
}

void ThreadQueues::writeFile(int64_t launch, int64_t fileOffset,
                             const void *from, int64_t bytes) {
  if (Work *work = next(Engine::FileWrite, Work::Kind::Write, launch)) {
    work->setTransfer(nullptr, from, fileOffset, bytes);
    of(Engine::FileWrite)->commit();
  }
  started(launch);
}

void ThreadQueues::readFile(int64_t launch, void *to, int64_t fileOffset,
                            int64_t bytes) {
  if (Work *work = next(Engine::FileRead, Work::Kind::Read, launch)) {
    work->setTransfer(to, nullptr, fileOffset, bytes);
    of(Engine::FileRead)->commit();
  }
  started(launch);
}

void ThreadQueues::onHost(int64_t launch, Kernel &kernel, In ins, Out outs,
                          void *scratch, bool accumulate) {
  if (Work *work = next(Engine::Host, Work::Kind::OnHost, launch)) {
    if (work->setKernel(kernel, ins, outs, scratch, accumulate))
      of(Engine::Host)->commit();
    else
      context_.fault.set(tooManyOperands());
  }
  started(launch);
}

void ThreadQueues::drainThreads() {
  for (const std::unique_ptr<EngineThread> &thread : threads_)
    if (thread)
      thread->drain();
}

void ThreadQueues::endThreads() {
  for (std::unique_ptr<EngineThread> &thread : threads_)
    thread.reset();
}

} // namespace tmc
