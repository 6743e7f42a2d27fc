//===- ThreadQueues.h - queues whose engines are threads --------*- C++ -*-===//
//
// The common part of the backends' queues: the engines that are threads of the
// process (runtime/step/EngineThread.h), and the entries for those engines
// only. On the cpu backend these are all engines except compute; on cuda, those
// of the file and of the host.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_THREADQUEUES_H
#define TMC_RUNTIME_STEP_THREADQUEUES_H

#include "runtime/step/EngineThread.h"

#include <memory>

namespace tmc {

class ThreadQueues : public Queues {
public:
  void place(const PerSpace<char *> &arenas) {
    setArenas(arenas);
    context_.arenas = arenas;
  }
  void observe(WorkObserver *observer) { context_.observer = observer; }
  /// The first error of the queued work; call it when all engines are idle.
  Status takeFault() { return context_.fault.take(); }

  void copy(int64_t launch, EngineKind engine, int64_t to, int64_t from,
            int64_t bytes) override;
  void beside(int64_t launch, EngineKind engine, Kernel &kernel, In ins,
              Out outs, void *scratch, bool accumulate) override;

protected:
  explicit ThreadQueues(Stream &compute) : Queues(compute) {}

  /// Null if the program didn't request the engine.
  EngineThread *of(EngineKind engine) { return threads_[engine].get(); }
  /// The next entry of an engine's thread. If there is no thread, sets the
  /// fault and returns null.
  Work *next(EngineKind engine, Work::Kind kind, int64_t launch);
  /// Called before the caller waits for a thread's full queue.
  virtual void beforeWaiting() {}

  void drainThreads();
  /// For destructors, as their first call: ends the threads before the objects
  /// that they use.
  void endThreads();

  EngineContext context_;
  PerEngine<std::unique_ptr<EngineThread>> threads_;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_THREADQUEUES_H
