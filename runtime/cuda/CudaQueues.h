//===- CudaQueues.h - the engines of the cuda backend -----------*- C++ -*-===//
//
// Each engine that copies to or from the device has its own stream. The others
// are threads (runtime/step/EngineThread.h). The caller runs ahead of
// all engines. Waits:
//
//     stream for stream   cudaStreamWaitEvent
//     thread for thread   the other thread's counter
//     thread for stream   a stream per thread waits for the event and then
//                         calls the host, which raises a counter: the thread
//                         waits for that
//     stream for thread   the device waits until the thread's counter, in
//                         pinned memory, has come far enough; where the driver
//                         can't, the caller waits
//
// A function that the driver calls on the host never blocks: the driver may
// call such functions one after the other, even if their streams differ.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_CUDAQUEUES_H
#define TMC_RUNTIME_CUDA_CUDAQUEUES_H

#include "runtime/cpu/Parallel.h"
#include "runtime/step/ThreadQueues.h"

#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

namespace tmc::cuda {

class CudaQueues final : public ThreadQueues {
public:
  explicit CudaQueues(Stream &compute);
  ~CudaQueues() override;

  /// Creates streams, events and threads.
  Status start(const QueueNeeds &needs, const DeviceOptions &options);

  void copy(int64_t launch, EngineKind engine, int64_t to, int64_t from,
            int64_t bytes) override;
  /// Makes compute wait for the copies that are queued.
  void join();
  /// Queues what `run` queues, on compute and on streams that begin behind it
  /// and that it ends behind.
  void queueForked(void (*run)(Queues &, void *), void *kernels);
  /// True if threads of the host run a part of the step.
  bool hasThreads() const;
  /// Blocks the caller until compute and all threads are idle.
  void finish();
  void drain() override;

private:
  void recordEvent(EngineKind engine, int32_t event) override;
  void waitForEvent(EngineKind engine, int32_t event) override;

  struct Event {
    cudaEvent_t native = nullptr; // of the streams
    bool isRecorded = false;
    EngineKind engine = EngineKind::Compute; // of the latest record
    uint64_t number = 0;                     // of a thread's work
  };
  /// A stream that informs a thread of events.
  struct Teller {
    cudaStream_t stream = nullptr;
    uint64_t told = 0; // requested notifications
    WorkCounter heard; // received notifications
  };
  using WaitValue = int (*)(cudaStream_t, unsigned long long, uint64_t,
                            unsigned);

  /// Later waits don't see the records of events so far.
  void forgetEvents();
  /// The device runs the engines that touch its bytes.
  static bool isThread(EngineKind engine) { return !touchesDevice(engine); }
  /// Records a fault of the step, with the device's error text.
  void check(cudaError_t error, const char *what);
  void hold(EngineThread &thread, const WorkCounter &counter, uint64_t number);
  /// Called before the caller waits for a thread: completes all notifications.
  void beforeWaiting() override;
  void streamWaitsForThread(EngineKind engine, const Event &event);
  void threadWaitsForStream(EngineKind engine, const Event &event);

  std::unique_ptr<ThreadPool> hostPool_;
  Stream hostStream_;
  PerEngine<cudaStream_t> streams_; // of compute and the copies
  std::vector<Event> events_;
  cudaEvent_t joined_ = nullptr; // of join()
  PerEngine<bool> isAhead_;      // of copies: since the last join()
  PerEngine<Teller> tellers_;
  char *counters_ = nullptr; // of the threads, in pinned memory
  WaitValue waitValue_ = nullptr;
};

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_CUDAQUEUES_H
