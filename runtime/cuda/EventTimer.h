//===- EventTimer.h - launches timed by events ------------------*- C++ -*-===//
//
// Records one event before and one after each launch on the launch's own
// stream, and reads all of them after the step:
//
//     origin .. [e0 adamw e1] [e2 addParts e3] ...
//
// The origin is recorded before the step's first launch. The caller waits for
// it and reads the host's clock then: this maps the device's times to that
// clock. Afterwards no call of the timer waits until the step is over.
//
// Events come from a pool, which grows when a step has more launches than any
// step before it: the first step creates all of them. The time between two
// events includes the start of the launch by the device, so a very short
// kernel seems longer than it is.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_EVENTTIMER_H
#define TMC_RUNTIME_CUDA_EVENTTIMER_H

#include "runtime/step/DeviceTimer.h"

#include <cuda_runtime.h>

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace tmc::cuda {

class EventTimer final : public DeviceTimer {
public:
  explicit EventTimer(cudaStream_t compute) : compute_(compute) {}
  ~EventTimer() override;

  Status start() override;
  Status finish() override;

  /// Surround one launch on `stream`. Outside of a step, and after an error,
  /// they do nothing. `kernel` is a __global__ function; if it's null, `name`
  /// is the launch's name, a literal.
  void begin(cudaStream_t stream, const void *kernel, const char *name);
  void end(cudaStream_t stream);

private:
  /// What was launched between two events.
  struct Label {
    const void *kernel;
    const char *name;
  };
  void close(int64_t entry) override;
  /// Keeps the first error of the step and ends the timing of its launches.
  void check(cudaError_t error, const char *what);
  bool grow(size_t events);
  const char *nameOf(const Label &label);

  cudaStream_t compute_;
  bool isTiming_ = false; // within a step without an error
  Status status_;
  cudaEvent_t origin_ = nullptr;
  double originSeconds_ = 0; // of the host's clock
  /// Launch i lies between the events 2 i and 2 i + 1.
  std::vector<cudaEvent_t> events_;
  std::vector<Label> labels_;
  std::unordered_map<const void *, const char *> nameOfKernel_;
  std::set<std::string> names_; // owns the names of kernels
};

/// Times one launch, from construction to destruction. Without a timer it costs
/// a test of a pointer.
class TimedLaunch {
public:
  /// `kernel`: a __global__ function.
  template <typename... P>
  TimedLaunch(EventTimer *timer, cudaStream_t stream, void (*kernel)(P...))
      : timer_(timer), stream_(stream) {
    if (timer_)
      timer_->begin(stream, reinterpret_cast<const void *>(kernel), nullptr);
  }
  /// `name`: a literal, for work that isn't a kernel of this backend.
  TimedLaunch(EventTimer *timer, cudaStream_t stream, const char *name)
      : timer_(timer), stream_(stream) {
    if (timer_)
      timer_->begin(stream, nullptr, name);
  }
  ~TimedLaunch() {
    if (timer_)
      timer_->end(stream_);
  }
  TimedLaunch(const TimedLaunch &) = delete;
  TimedLaunch &operator=(const TimedLaunch &) = delete;

private:
  EventTimer *const timer_;
  const cudaStream_t stream_;
};

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_EVENTTIMER_H
