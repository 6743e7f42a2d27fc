//===- CpuQueues.h - the engines of the cpu backend -------------*- C++ -*-===//
//
// Kernels run in the calling thread. Each other engine that a program needs is
// a thread (runtime/step/EngineThread.h). An event is the number of an engine's
// work; an event of compute is reached when it is recorded.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_CPUQUEUES_H
#define TMC_RUNTIME_CPU_CPUQUEUES_H

#include "runtime/cpu/Parallel.h"
#include "runtime/step/ThreadQueues.h"

#include <memory>
#include <vector>

namespace tmc {

class CpuQueues final : public ThreadQueues {
public:
  explicit CpuQueues(Stream &compute)
      : ThreadQueues(compute), hostStream_(nullptr), networkStream_(nullptr) {}
  ~CpuQueues() override { endThreads(); }

  Status start(const QueueNeeds &needs, const DeviceOptions &options,
               int computeThreads);
  void drain() override { drainThreads(); }

private:
  void recordEvent(EngineKind engine, int32_t event) override;
  void waitForEvent(EngineKind engine, int32_t event) override;
  struct Event {
    const WorkCounter *counter = nullptr; // null: reached
    uint64_t number = 0;
  };
  /// The calling thread waits.
  void holdKernels(const Event &until);

  std::unique_ptr<ThreadPool> hostPool_;
  Stream hostStream_, networkStream_;
  std::vector<Event> events_;
};

} // namespace tmc

#endif // TMC_RUNTIME_CPU_CPUQUEUES_H
