//===- Device.h - the interface of a backend --------------------*- C++ -*-===//
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
#include "runtime/step/AlgorithmChoice.h"
#include "runtime/step/DeviceTimer.h"
#include "runtime/step/StepRecorder.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace tmc {

class Peers;

struct DeviceOptions {
  int threads = 0;        // cpu: workers; 0: one per core
  bool guardPages = true; // cpu: unmapped pages before and after the arena
  /// cuda: bytes that the plan leaves beside the arena, for context and
  /// libraries.
  int64_t reservedBytes = 0;
  /// Threads of the host engine; 0: the cores that compute doesn't use, at
  /// least 1.
  int hostThreads = 0;
  /// cpu: a copy between the arenas takes at least its bytes at this rate, in
  /// each direction, by sleeping; 0: as fast as the memory is.
  double linkBytesPerSecond = 0;
  /// The other ranks of a step for several devices, or null.
  Peers *peers = nullptr;
  /// cuda: measured algorithms of products, or null.
  const AlgorithmTable *algorithms = nullptr;
  /// cuda: if not null, kernels that are prepared measure the algorithms of
  /// their products in the arena, and add them here.
  AlgorithmTuning *tuning = nullptr;
};

class SwapFile;

/// An engine calls it with the work that ran and the times, on its own thread.
class WorkObserver {
public:
  virtual ~WorkObserver() = default;
  virtual void begins(EngineKind, int64_t /*launch*/) {}
  /// Seconds of std::chrono::steady_clock.
  virtual void ran(EngineKind, int64_t /*launch*/, double /*beginSeconds*/,
                   double /*endSeconds*/) {}
};

/// The engines beside compute that a program needs.
struct QueueNeeds {
  PerEngine<bool> engines; // that of compute is false
  int32_t events = 0;
  /// Entries that a queue can hold; a caller of a full queue waits.
  int64_t depth = 0;
  SwapFile *file = nullptr; // where engines read and write
};

/// A number in the device's arena, and its bits when a step was over.
struct Number {
  const void *at = nullptr; // null: it isn't read
  int64_t bytes = 0;        // 4 or 8
  uint64_t bits = 0;
};
/// The numbers that the end of a step brings to the host.
constexpr int kStepNumbers = 5;
using StepNumbers = std::array<Number, kStepNumbers>;

/// "an arena of 4096 bytes", "a host arena of 4096 bytes"
inline std::string arenaText(SpaceKind space, int64_t bytes) {
  return (onDevice(space) ? std::string("an")
                          : std::string("a ") + nameOf(space)) +
         " arena of " + std::to_string(bytes) + " bytes";
}

class Device {
public:
  virtual ~Device() = default;

  /// The backend's name: "cpu", "cuda".
  virtual const char *name() const = 0;
  /// The same with what its speed depends on: "NVIDIA H200, driver of CUDA
  /// 13.0, CUDA 13.0". Profiles keep it.
  std::string description() const {
    return description_.empty() ? name() : description_;
  }

  /// Maps exactly `bytes` (rounded up to pages) as the arena of a space with
  /// addresses. Fails with Code::World when the machine has too little memory.
  /// The device's arena isn't touched; others are zeroed memory of the host
  /// that copies can reach.
  virtual Status allocateArena(SpaceKind space, int64_t bytes) = 0;
  /// Null if the space has none.
  virtual char *arena(SpaceKind space) const = 0;
  PerSpace<char *> arenas() const {
    PerSpace<char *> all;
    for (auto [space, its] : all)
      its = arena(space.kind);
    return all;
  }
  /// Called after all kernels are prepared. Fails with Code::OverBudget if they
  /// took more device memory than the plan left for them.
  virtual Status checkReserve() { return Status::ok(); }

  /// Transfers between host memory and the arena. They are complete when the
  /// call returns.
  virtual void upload(void *deviceTo, const void *hostFrom, int64_t bytes) = 0;
  virtual void download(void *hostTo, const void *deviceFrom,
                        int64_t bytes) = 0;
  /// Fills arena bytes with a pattern that is a NaN in every float type.
  virtual void poison(void *device, int64_t bytes) = 0;

  virtual Stream &compute() = 0;
  /// The queues of a step. Before startQueues() only compute() works.
  virtual Queues &queues() = 0;
  /// Starts the engines that the program needs. The arenas must exist.
  virtual Status startQueues(const QueueNeeds &needs) = 0;
  /// Call it only while all engines are idle.
  virtual void observeWork(WorkObserver *observer) = 0;
  /// From now on the device times the launches of each step: the result must
  /// observe the queues (DeviceTimer.h). Null if a launch has finished when its
  /// call returns. The device owns the timer.
  virtual DeviceTimer *timeLaunches() { return nullptr; }
  /// Records steps. Null if the backend can't; the device owns it.
  virtual StepRecorder *recordSteps() { return nullptr; }
  /// Waits for all engines and returns their first error. Afterwards
  /// compute().fault holds the index faults of kernels, and `numbers`, if not
  /// null, the bits that the engines left.
  virtual Status synchronize(StepNumbers *numbers = nullptr) = 0;

  /// Bytes of the arena that were ever touched, rounded up to pages (cpu), or
  /// the arena's size where touched pages can't be counted (cuda).
  virtual int64_t highWaterBytes(SpaceKind space) const = 0;
  virtual int threads() const { return 1; }
  /// cuda: the device's number, as the CUDA runtime counts.
  int number() const { return number_; }

  /// cuda: the choice of products' algorithms.
  AlgorithmChoice algorithms;
  /// The other ranks, or null.
  Peers *peers = nullptr;

protected:
  std::string description_; // Empty: its name says all.
  int number_ = 0;
};

Status createDevice(const DeviceOptions &options,
                    std::unique_ptr<Device> &device);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_DEVICE_H
