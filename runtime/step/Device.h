//===- Device.h - what a backend offers -------------------------*- C++ -*-===//
//
// The internal interface of the backends (runtime/cpu, runtime/cuda): arenas on
// the device and the host, transfers, a compute stream, the engines beside it,
// and measurements. One process links one backend; `createDevice` is its entry
// point.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_DEVICE_H
#define TMC_RUNTIME_STEP_DEVICE_H

#include "runtime/kernels/Queues.h"
#include "runtime/kernels/Status.h"

#include <cstdint>
#include <memory>

namespace tmc {

struct DeviceOptions {
  int threads = 0;        // cpu: workers; 0: one per core
  bool guardPages = true; // cpu: unmapped pages before and after the arena
  /// cuda: what the plan leaves beside the arena, for context and libraries.
  int64_t reservedBytes = 0;
  /// Of the host engine; 0: the cores that compute doesn't use, at least 1.
  int hostThreads = 0;
  /// cpu: a copy between the arenas takes at least its bytes at this rate, in
  /// each direction, by sleeping; 0: as fast as the memory is.
  double linkBytesPerSecond = 0;
};

class FileArena;

/// Is told by an engine what it ran, and when, on the engine's own thread.
class WorkObserver {
public:
  virtual ~WorkObserver() = default;
  virtual void begins(Engine, int64_t /*launch*/) {}
  /// Seconds are of std::chrono::steady_clock.
  virtual void ran(Engine, int64_t /*launch*/, double /*beginSeconds*/,
                   double /*endSeconds*/) {}
};

/// What a program asks of the engines beside compute.
struct QueueNeeds {
  bool engines[kEngineCount] = {};
  int32_t events = 0;
  /// Entries that a queue holds before its caller waits.
  int64_t depth = 0;
  FileArena *file = nullptr; // where engines read and write
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
  /// The same of host memory that copies can reach; none where it isn't asked
  /// for. Zeroed.
  virtual Status allocateHostArena(int64_t bytes) = 0;
  virtual char *hostArena() const = 0;
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
  /// What a step is given. Before startQueues() only its compute() works.
  virtual Queues &queues() = 0;
  /// Starts the engines that the program needs; both arenas are there.
  virtual Status startQueues(const QueueNeeds &needs) = 0;
  /// While all engines are idle.
  virtual void observeWork(WorkObserver *observer) = 0;
  /// Waits for all engines; reports their first error. Index faults of kernels
  /// are in compute().fault after it.
  virtual Status synchronize() = 0;

  /// Bytes of the arena that were ever touched, page-rounded (cpu), or its size
  /// where that can't be seen (cuda).
  virtual int64_t highWaterBytes() const = 0;
  virtual int64_t hostHighWaterBytes() const = 0;
  virtual int threads() const { return 1; }
};

Status createDevice(const DeviceOptions &options,
                    std::unique_ptr<Device> &device);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_DEVICE_H
