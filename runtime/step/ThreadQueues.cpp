//===- ThreadQueues.cpp - queues whose engines are threads ----------------===//

#include "runtime/step/ThreadQueues.h"

namespace tmc {

Work *ThreadQueues::next(EngineKind engine, Work::Kind kind, int64_t launch) {
  EngineThread *thread = of(engine);
  if (!thread) {
    context_.fault.set(unnamedEngine(engine));
    return nullptr;
  }
  if (thread->isFull())
    beforeWaiting();
  return &thread->next(kind, launch);
}

void ThreadQueues::copy(int64_t launch, EngineKind engine, int64_t to,
                        int64_t from, int64_t bytes) {
  if (Work *work = next(engine, Work::Kind::Copy, launch)) {
    work->to = to;
    work->from = from;
    work->bytes = bytes;
    of(engine)->commit();
  }
  started(launch);
}

void ThreadQueues::beside(int64_t launch, EngineKind engine, Kernel &kernel,
                          In ins, Out outs, void *scratch, bool accumulate) {
  if (Work *work = next(engine, Work::Kind::Kernel, launch)) {
    if (work->setKernel(kernel, ins, outs, scratch, accumulate))
      of(engine)->commit();
    else
      context_.fault.set(tooManyOperands());
  }
  started(launch);
}

void ThreadQueues::drainThreads() {
  for (const std::unique_ptr<EngineThread> &thread : threads_.of)
    if (thread)
      thread->drain();
}

void ThreadQueues::endThreads() {
  for (std::unique_ptr<EngineThread> &thread : threads_.of)
    thread.reset();
}

} // namespace tmc
