//===- Cuda.h - the cuda backend's device -----------------------*- C++ -*-===//
//
// What the sources of runtime/cuda share on the host: the device behind the
// Device interface, and refusals in one wording. Launch.h adds what kernels
// need.
//
// Errors: run() can't return one. The first that a launch or a library call
// meets is kept by the device and returned by its next synchronize().
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_CUDA_H
#define TMC_RUNTIME_CUDA_CUDA_H

#include "runtime/cuda/CudaQueues.h"
#include "runtime/kernels/Kernel.h"
#include "runtime/step/Device.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>

namespace tmc::cuda {

/// The first fault that a kernel met (see IndexFault), in device memory.
struct DeviceFault {
  int set;
  int64_t row, value, limit;
};

/// Pinned host memory that transfers pass through.
struct Staging;

class CudaDevice final : public Device {
public:
  explicit CudaDevice(const DeviceOptions &options);
  ~CudaDevice() override;
  /// Creates context, stream and staging on the current device.
  Status open();

  const char *name() const override { return "cuda"; }
  /// Fails with Code::World where the arena and the reserve don't fit into what
  /// is free.
  Status allocateArena(int64_t bytes) override;
  Status checkReserve() override;
  char *arena() const override { return arena_; }
  /// Mapped, then registered with the driver once.
  Status allocateHostArena(int64_t bytes) override;
  char *hostArena() const override { return hostArena_; }

  /// The bytes are copied when the call returns; they arrive in the order of
  /// the compute stream, so that launches that follow see them.
  void upload(void *to, const void *from, int64_t bytes) override;
  void download(void *to, const void *from, int64_t bytes) override;
  void poison(void *device, int64_t bytes) override;

  Stream &compute() override { return *stream_; }
  Queues &queues() override { return *queues_; }
  Status startQueues(const QueueNeeds &needs) override {
    queues_->place(arena_, hostArena_);
    return queues_->start(needs, options_);
  }
  /// Of the engines that are threads.
  void observeWork(WorkObserver *observer) override {
    queues_->observe(observer);
  }
  Status synchronize() override;
  /// The arena is taken whole from the driver, which doesn't tell what of it
  /// was touched.
  int64_t highWaterBytes() const override { return arenaBytes_; }
  int64_t hostHighWaterBytes() const override { return hostArenaBytes_; }

  /// Where kernels report an index outside its table.
  DeviceFault *fault() const { return fault_; }
  int64_t multiprocessors() const { return multiprocessors_; }
  /// Shared memory that a block may have: 64 KiB on sm_75, 99 KiB or more on
  /// what came later.
  int64_t sharedBytes() const { return sharedBytes_; }
  /// 75 of sm_75.
  int computeCapability() const { return computeCapability_; }

  /// Keeps the first error for synchronize().
  void fail(Code code, const std::string &message);
  void check(cudaError_t error, const char *what) {
    if (error != cudaSuccess)
      fail(Code::World, std::string(what) + ": " + cudaGetErrorString(error));
  }

  /// Handles of libraries, made when first asked for, so that a step links
  /// only what its kernels use. The pointers' deleters free them.
  std::shared_ptr<void> blas, dnn;

private:
  cudaStream_t native_ = nullptr;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<CudaQueues> queues_;
  std::unique_ptr<Staging> staging_;
  DeviceFault *fault_ = nullptr;
  char *arena_ = nullptr, *hostArena_ = nullptr;
  int64_t arenaBytes_ = 0, hostArenaBytes_ = 0;
  size_t hostMappedBytes_ = 0;
  DeviceOptions options_;
  int64_t freeBytes_ = 0; // when there was a context, and nothing else of ours
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

/// One call of a kernel object's run(): launches on a stream, errors to the
/// device under the kernel's name.
class Queue {
public:
  Queue(CudaDevice &device, Stream &stream, const char *name)
      : device_(device), stream_(nativeOf(stream)), name_(name) {}

  void fill(void *to, int byte, int64_t bytes) {
    if (bytes > 0)
      check(cudaMemsetAsync(to, byte, size_t(bytes), stream_));
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

/// What most kernels remember from prepare().
struct Prepared {
  CudaDevice *device = nullptr;
};

//===----------------------------------------------------------------------===//
// Refusals
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
