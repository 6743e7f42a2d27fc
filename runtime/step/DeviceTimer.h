//===- DeviceTimer.h - launches timed by the device -------------*- C++ -*-===//
//
// On cuda the caller runs ahead of the device, so the caller's clock can't time
// a launch. The device takes a time before and after each launch instead, and
// the caller reads the times after the step. A timed step waits nowhere for
// the device. An entry of the step has no, one or several launches:
//
//     caller    adamw.run | launched(7) | adamw.run | launched(8)
//     device    |-adamw-|addParts|..|-adamw-|addParts|
//     entries   7: launches 0, 1    8: launches 2, 3
//
// On cpu a launch has finished when its call returns. That backend has no
// timer: a profile and a trace read the caller's clock (Profile.h, Trace.h).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_DEVICETIMER_H
#define TMC_RUNTIME_STEP_DEVICETIMER_H

#include "runtime/kernels/Queues.h"
#include "runtime/kernels/Status.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tmc {

/// One launch on the device: a kernel, a call of a library or a fill.
struct DeviceLaunch {
  /// The name of the __global__ function without namespaces and arguments;
  /// "cublasLt", "cudnn" or "fill". Lives as long as the timer.
  const char *name = "";
  double begin = 0, end = 0; // seconds of std::chrono::steady_clock

  double seconds() const { return end - begin; }
};

/// One run of an entry of the step.
struct TimedEntry {
  int64_t entry = 0; // index into StepProgram::launches
  /// Its launches: [first, first + count) of StepTimes::launches.
  size_t first = 0, count = 0;
};

/// The times of one step, in the order of the compute stream.
struct StepTimes {
  std::vector<DeviceLaunch> launches;
  std::vector<TimedEntry> entries;

  /// From the begin of the first launch to the end of the last one.
  double wallSeconds() const {
    return launches.empty() ? 0 : launches.back().end - launches.front().begin;
  }
};

/// It must be the first observer of the queues: it assigns to each entry the
/// launches since the entry before.
class DeviceTimer : public LaunchObserver {
public:
  /// `next`, if not null, also receives each entry.
  void setNext(LaunchObserver *next) { next_ = next; }

  /// Begins a step and discards the times of the last one.
  virtual Status start() = 0;
  /// Ends a step, after Device::synchronize(), and reads its times. The first
  /// error of the timer during the step is returned here.
  virtual Status finish() = 0;
  /// The step that finish() ended.
  const StepTimes &times() const { return times_; }

  void launched(Queues &queues, int64_t launch) final {
    close(launch);
    if (next_)
      next_->launched(queues, launch);
  }
  void started(Queues &queues, int64_t launch) final {
    if (next_)
      next_->started(queues, launch);
  }
  void done(Queues &queues, int64_t launch) final {
    if (next_)
      next_->done(queues, launch);
  }
  void recorded(EngineKind engine, int32_t event) final {
    if (next_)
      next_->recorded(engine, event);
  }
  void waiting(EngineKind engine, int32_t event) final {
    if (next_)
      next_->waiting(engine, event);
  }

protected:
  /// The launches since the last call belong to `entry`.
  virtual void close(int64_t entry) = 0;

  StepTimes times_;

private:
  LaunchObserver *next_ = nullptr;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_DEVICETIMER_H
