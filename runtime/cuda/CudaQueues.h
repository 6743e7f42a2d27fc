//===- CudaQueues.h - the engines of the cuda backend -----------*- C++ -*-===//
//
// Each engine that copies to or from the device has its own stream, and so has
// the network. The others are threads (runtime/step/EngineThread.h), and the
// network has one, too, if its library moves bytes of the host
// (RankTransfers.h). The caller runs ahead of all engines. Waits:
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
#include "runtime/cuda/NetworkPauses.h"
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
  /// A kernel of the network queues its work on the network's stream.
  void beside(int64_t launch, EngineKind engine, Kernel &kernel, In ins,
              Out outs, void *scratch, bool accumulate) override;
  /// The network's thread runs `call` on memory of the host, behind what the
  /// network's stream has so far, and the stream goes on behind it.
  Status callFromStream(Kernel &call, const void *from, void *to);
  /// Makes compute wait for the copies and calls that are queued.
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
    int64_t launch = -1;                     // the network's latest entry
  };
  /// A stream that informs a thread of events.
  struct Teller {
    cudaStream_t stream = nullptr;
    uint64_t told = 0; // requested notifications
    WorkCounter heard; // received notifications
  };
  struct Stamp;
  using WaitValue = int (*)(cudaStream_t, unsigned long long, uint64_t,
                            unsigned);

  /// Later waits don't see the records of events so far.
  void forgetEvents();
  /// The device runs the engines that touch its bytes.
  static bool isThread(EngineKind engine) { return !touchesDevice(engine); }
  /// Records a fault of the step, with the device's error text.
  void check(cudaError_t error, const char *what);
  /// Surround work of a stream that an observer times; null: there is none.
  Stamp *stampBegin(EngineKind engine, int64_t launch);
  void stampEnd(Stamp *stamp);
  void hold(EngineThread &thread, const WorkCounter &counter, uint64_t number);
  /// Called before the caller waits for a thread: completes all notifications.
  void beforeWaiting() override;
  void streamWaitsForThread(cudaStream_t stream, const EngineThread &thread,
                            uint64_t number);
  /// Waits for compute. Ends all calls of the network if one of them fails.
  void waitForCompute();
  void threadWaitsForStream(EngineKind engine, const Event &event);

  std::unique_ptr<ThreadPool> hostPool_;
  Stream hostStream_, networkHost_, network_; // the last one is the card's
  PerEngine<cudaStream_t> streams_; // of compute, the copies and the network
  int64_t networkLaunch_ = -1;      // its latest entry
  NetworkPauses pauses_;            // of compute
  std::vector<Event> events_;
  cudaEvent_t joined_ = nullptr; // of join()
  PerEngine<bool> isAhead_;      // of copies and calls: since the last join()
  PerEngine<Teller> tellers_;
  char *counters_ = nullptr; // of the threads, in pinned memory
  WaitValue waitValue_ = nullptr;
};

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_CUDAQUEUES_H
