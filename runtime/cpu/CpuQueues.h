//===- CpuQueues.h - the engines of the cpu backend -------------*- C++ -*-===//
//
// Kernels run in the calling thread; each other engine that a program needs is
// a thread (runtime/step/EngineThread.h). An event is the number of an engine's
// work; one of compute has been reached when it is recorded.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_CPUQUEUES_H
#define TMC_RUNTIME_CPU_CPUQUEUES_H

#include "runtime/cpu/Parallel.h"
#include "runtime/step/EngineThread.h"

#include <memory>
#include <vector>

namespace tmc {

class CpuQueues final : public Queues {
public:
  explicit CpuQueues(Stream &compute) : Queues(compute), hostStream_(nullptr) {}

  Status start(const QueueNeeds &needs, const DeviceOptions &options,
               int computeThreads);
  void place(char *device, char *host) { setArenas(device, host); }
  void observe(WorkObserver *observer) { context_.observer = observer; }

  void copy(int64_t launch, Engine engine, void *to, const void *from,
            int64_t bytes) override;
  void writeFile(int64_t launch, int64_t fileOffset, const void *from,
                 int64_t bytes) override;
  void readFile(int64_t launch, void *to, int64_t fileOffset,
                int64_t bytes) override;
  void onHost(int64_t launch, Kernel &kernel, In ins, Out outs, void *scratch,
              bool accumulate) override;
  void drain() override;
  Status takeFault() { return context_.fault.take(); }

private:
  void recordEvent(Engine engine, int32_t event) override;
  void waitForEvent(Engine engine, int32_t event) override;
  struct Event {
    const WorkCounter *counter = nullptr; // null: reached
    uint64_t number = 0;
  };
  EngineThread *of(Engine engine) { return engines_[int(engine)].get(); }
  /// The next entry of an engine; null, with the fault set, where the program
  /// didn't say that it needs the engine.
  Work *next(Engine engine, Work::Kind kind, int64_t launch);

  EngineContext context_;
  std::unique_ptr<ThreadPool> hostPool_;
  Stream hostStream_;
  std::vector<Event> events_;
  /// After what they use: they end first.
  std::unique_ptr<EngineThread> engines_[kEngineCount];
};

} // namespace tmc

#endif // TMC_RUNTIME_CPU_CPUQUEUES_H
