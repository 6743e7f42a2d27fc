//===- Cuda.h - the cuda backend's device -----------------------*- C++ -*-===//
//
// The host side of runtime/cuda: the device behind the Device interface, and
// common error messages. Launch.h adds the device side.
//
// Errors: run() can't return one. The device keeps the first error of a launch
// or a library call, and its next synchronize() returns it.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_CUDA_H
#define TMC_RUNTIME_CUDA_CUDA_H

#include "runtime/cuda/CudaQueues.h"
#include "runtime/cuda/EventTimer.h"
#include "runtime/cuda/StepGraph.h"
#include "runtime/kernels/Kernel.h"
#include "runtime/step/Device.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>

namespace tmc::cuda {

/// The first index fault of a kernel (see IndexFault), in device memory.
struct DeviceFault {
  int set;
  int64_t row, value, limit;
};

/// One copy brings it to the host at the end of a step.
struct DeviceReport {
  DeviceFault fault;
  uint64_t numbers[kStepNumbers];
};
/// Queues one kernel that writes the bits of the numbers to `to`.
void gatherNumbers(cudaStream_t stream, const StepNumbers &numbers,
                   uint64_t *to);

/// Pinned host memory for transfers.
struct Staging;
class RankTransfers;

class CudaDevice final : public Device {
public:
  explicit CudaDevice(const DeviceOptions &options);
  ~CudaDevice() override;
  /// Creates context, stream and staging on the current device.
  Status open();

  const char *name() const override { return "cuda"; }
  /// On the device: fails with Code::World if the arena and the reserve don't
  /// fit the free memory. Elsewhere: the memory is mapped, then registered with
  /// the driver once.
  Status allocateArena(SpaceKind space, int64_t bytes) override;
  Status checkReserve() override;
  char *arena(SpaceKind space) const override { return arenas_[space]; }

  /// The bytes are copied when the call returns. They arrive in the order of
  /// the compute stream, so later launches see them.
  void upload(void *to, const void *from, int64_t bytes) override;
  void download(void *to, const void *from, int64_t bytes) override;
  void poison(void *device, int64_t bytes) override;

  Stream &compute() override { return *stream_; }
  Queues &queues() override { return *queues_; }
  Status startQueues(const QueueNeeds &needs) override;
  /// Observes the engines that are threads.
  void observeWork(WorkObserver *observer) override {
    queues_->observe(observer);
  }
  DeviceTimer *timeLaunches() override;
  StepRecorder *recordSteps() override { return &graph_; }
  Status synchronize(StepNumbers *numbers = nullptr) override;
  /// The arena's size: the driver doesn't report which part was touched.
  int64_t highWaterBytes(SpaceKind space) const override {
    return arenaBytes_[space];
  }

  /// Kernels report an index outside its table here.
  DeviceFault *fault() const { return &report_->fault; }
  int64_t multiprocessors() const { return multiprocessors_; }
  /// Shared memory of a block, in bytes: 64 KiB on sm_75, at least 99 KiB on
  /// later cards.
  int64_t sharedBytes() const { return sharedBytes_; }
  /// For example 75 for sm_75.
  int computeCapability() const { return computeCapability_; }

  /// Keeps the first error for synchronize().
  void fail(Code code, const std::string &message);
  void check(cudaError_t error, const char *what) {
    if (error != cudaSuccess)
      fail(Code::World, std::string(what) + ": " + cudaGetErrorString(error));
  }

  /// Handles of libraries, created at the first request, so that a step links
  /// only the libraries of its kernels. The pointers' deleters free them.
  std::shared_ptr<void> blas, dnn;
  /// For kernels that move bytes between ranks.
  std::unique_ptr<RankTransfers> transfers;
  /// Null unless steps are timed.
  std::unique_ptr<EventTimer> timer;
  /// If not null, products are timed when they are prepared.
  AlgorithmTuning *tuning = nullptr;

private:
  friend class StepGraph;
  Status allocateOnDevice(SpaceKind space, int64_t bytes);

  cudaStream_t native_ = nullptr;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<CudaQueues> queues_;
  std::unique_ptr<Staging> staging_;
  DeviceReport *report_ = nullptr; // in device memory
  PerSpace<char *> arenas_;
  PerSpace<int64_t> arenaBytes_;
  PerSpace<size_t> mappedBytes_; // of arenas in the host's memory
  DeviceOptions options_;
  StepGraph graph_{*this};
  int64_t freeBytes_ = 0; // after the context exists, before other allocations
  int64_t multiprocessors_ = 1, sharedBytes_ = 0;
  int computeCapability_ = 0;
  Status error_;
};

inline CudaDevice &deviceOf(Device &device) {
  return static_cast<CudaDevice &>(device);
}
inline cudaStream_t nativeOf(Stream &stream) {
  return static_cast<cudaStream_t>(stream.native());
}

/// One call of a kernel object's run(): it launches on a stream and passes
/// errors to the device with the kernel's name.
class Queue {
public:
  Queue(CudaDevice &device, Stream &stream, const char *name)
      : device_(device), stream_(nativeOf(stream)), name_(name) {}

  void fill(void *to, int byte, int64_t bytes) {
    if (bytes <= 0)
      return;
    const TimedLaunch timed = time("fill");
    check(cudaMemsetAsync(to, byte, size_t(bytes), stream_));
  }

  /// Times what is queued before its result's destruction as one launch. `what`
  /// is a __global__ function, or a literal.
  template <typename T> TimedLaunch time(T what) const {
    return {device_.timer.get(), stream_, what};
  }

  void check(cudaError_t error) { device_.check(error, name_); }
  cudaStream_t native() const { return stream_; }
  CudaDevice &device() const { return device_; }
  const char *name() const { return name_; }

private:
  CudaDevice &device_;
  cudaStream_t stream_;
  const char *name_;
};

/// The prepared state of most kernels.
struct Prepared {
  CudaDevice *device = nullptr;
};

//===----------------------------------------------------------------------===//
// Error messages
//===----------------------------------------------------------------------===//

inline Status requireScratch(const char *kernel, int64_t wanted,
                             int64_t planned) {
  if (wanted <= planned)
    return Status::ok();
  return {Code::OverBudget, std::string(kernel) + " on cuda wants " +
                                std::to_string(wanted) + " bytes of scratch; " +
                                std::to_string(planned) + " were planned"};
}

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_CUDA_H
