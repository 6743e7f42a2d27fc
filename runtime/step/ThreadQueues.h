//===- ThreadQueues.h - queues whose engines are threads --------*- C++ -*-===//
//
// What the backends' queues share: the engines that are threads of the process
// (runtime/step/EngineThread.h), and the entries that only those take. On the
// cpu backend all engines but compute are such threads; on cuda those of the
// file and of the host are.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_THREADQUEUES_H
#define TMC_RUNTIME_STEP_THREADQUEUES_H

#include "runtime/step/EngineThread.h"

#include <memory>

namespace tmc {

class ThreadQueues : public Queues {
public:
  void place(char *device, char *host) { setArenas(device, host); }
  void observe(WorkObserver *observer) { context_.observer = observer; }
  /// The first error of what was queued here, when all engines are idle.
  Status takeFault() { return context_.fault.take(); }

  void writeFile(int64_t launch, int64_t fileOffset, const void *from,
                 int64_t bytes) final;
  void readFile(int64_t launch, void *to, int64_t fileOffset,
                int64_t bytes) final;
  void onHost(int64_t launch, Kernel &kernel, In ins, Out outs, void *scratch,
              bool accumulate) final;

protected:
  explicit ThreadQueues(Stream &compute) : Queues(compute) {}

  /// Null where the program didn't say that it needs the engine.
  EngineThread *of(Engine engine) { return threads_[int(engine)].get(); }
  /// The next entry of an engine's thread; null, with the fault set, where
  /// there is none.
  Work *next(Engine engine, Work::Kind kind, int64_t launch);
  /// A thread's queue is full: called before the caller waits for it.
  virtual void beforeWaiting() {}

  void drainThreads();
  /// For destructors, first of all: ends the threads before what they use.
  void endThreads();

  EngineContext context_;
  std::unique_ptr<EngineThread> threads_[kEngineCount];
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_THREADQUEUES_H
