//===- Device.h - what a backend offers -------------------------*- C++ -*-===//
//
// The internal interface of the backends (runtime/cpu, runtime/cuda): an arena,
// transfers to and from it, a compute stream, and measurements. One process
// links one backend; `createDevice` is its entry point.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_DEVICE_H
#define TMC_RUNTIME_STEP_DEVICE_H

#include "runtime/kernels/Status.h"
#include "runtime/kernels/Stream.h"

#include <cstdint>
#include <memory>

namespace tmc {

struct DeviceOptions {
  int threads = 0;        // cpu: workers; 0: one per core
  bool guardPages = true; // cpu: unmapped pages before and after the arena
  /// cuda: what the plan leaves beside the arena, for context and libraries.
  int64_t reservedBytes = 0;
};

class Device {
public:
  virtual ~Device() = default;

  /// The backend's name: "cpu", "cuda".
  virtual const char *name() const = 0;

  /// Maps exactly `bytes` (rounded up to pages) as the one arena. Nothing is
  /// touched. Fails with Code::World when the machine has too little memory.
  virtual Status allocateArena(int64_t bytes) = 0;
  virtual char *arena() const = 0;
  /// Called when all kernels are prepared. Fails with Code::OverBudget where
  /// that took more memory of the device than the plan left for it.
  virtual Status checkReserve() { return Status::ok(); }

  /// Transfers between host memory and the arena. They are complete when the
  /// call returns.
  virtual void upload(void *deviceTo, const void *hostFrom, int64_t bytes) = 0;
  virtual void download(void *hostTo, const void *deviceFrom,
                        int64_t bytes) = 0;
  /// Fills arena bytes with a pattern that is a NaN in every float type.
  virtual void poison(void *device, int64_t bytes) = 0;

  virtual Stream &compute() = 0;
  /// Waits for all streams; reports an error of the device. Index faults of
  /// kernels are in compute().fault after it.
  virtual Status synchronize() = 0;

  /// Bytes of the arena that were ever touched, page-rounded (cpu), or its size
  /// where that can't be seen (cuda).
  virtual int64_t highWaterBytes() const = 0;
  virtual int threads() const { return 1; }
};

Status createDevice(const DeviceOptions &options,
                    std::unique_ptr<Device> &device);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_DEVICE_H
