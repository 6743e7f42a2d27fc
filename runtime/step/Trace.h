//===- Trace.h - a step over time, predicted and measured -------*- C++ -*-===//
//
// Keeps the time at which each entry of the last step ran on its engine, and
// the time that the plan predicts: each entry takes its predicted time and
// begins when its engine is free, when the events that its engine waits for are
// reached, and not before the caller has queued it.
//
//     measured    compute |--gelu--|----matmul----|..|--gelu grad--|
//                 d2h              |---stash---|
//     predicted   compute |--gelu--|---matmul---|--gelu grad--|
//                 d2h              |--stash--|
//
// The file is in the format of Chrome's traces, which Perfetto reads: one
// process for the measured times and one for the predicted ones, a thread for
// each engine. On cuda the device times the entries of compute (DeviceTimer.h),
// and the trace reads the times when the step is over. So the step overlaps as
// it does without a trace. An entry there lasts from the begin of its first
// launch to the end of its last one.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_TRACE_H
#define TMC_RUNTIME_STEP_TRACE_H

#include "runtime/step/Device.h"
#include "runtime/step/DeviceTimer.h"
#include "runtime/step/Program.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

class Trace final : public LaunchObserver, public WorkObserver {
public:
  /// `next`, if not null, also receives each entry. `byDevice`: the device
  /// times the entries of compute, see add().
  Trace(const StepProgram &program, LaunchObserver *next, bool byDevice);

  /// Begins a step and discards the spans of the last one.
  void start();
  /// Adds the device's times of the step.
  void add(const StepTimes &step);

  void launched(Queues &queues, int64_t launch) override;
  void started(Queues &queues, int64_t launch) override;
  void done(Queues &queues, int64_t launch) override;
  void recorded(EngineKind engine, int32_t event) override;
  void waiting(EngineKind engine, int32_t event) override;
  void ran(EngineKind engine, int64_t launch, double beginSeconds,
           double endSeconds) override;

  /// The entries of one step; all engines must be idle.
  std::string json() const;
  Status write(const std::string &path) const;

private:
  struct Span {
    int64_t launch;
    double begin, end; // seconds since the step began
  };
  bool isEntry(int64_t launch) const {
    return launch >= 0 && launch < program_.launchCount;
  }
  void predict(EngineKind engine, int64_t launch);

  const StepProgram &program_;
  LaunchObserver *next_;
  const bool byDevice_;
  /// By engine; the spans of other engines are filled by their threads.
  PerEngine<std::vector<Span>> measured_, predicted_;
  double begin_ = 0, last_ = 0;
  // For the prediction: the time at which each engine is free, and at which
  // each event is reached.
  PerEngine<double> free_;
  std::vector<double> events_;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_TRACE_H
