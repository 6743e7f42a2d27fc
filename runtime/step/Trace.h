//===- Trace.h - a step over time, as predicted and as measured -*- C++ -*-===//
//
// Keeps when each entry of the last step ran on its engine, and, beside it,
// when the plan says that it should have: each entry takes its predicted time,
// begins when its engine is free, after what its engine was told to wait for,
// and not before the caller has come to it.
//
//     measured    compute |--gelu--|----matmul----|..|--gelu grad--|
//                 d2h              |---stash---|
//     predicted   compute |--gelu--|---matmul---|--gelu grad--|
//                 d2h              |--stash--|
//
// The file is in the format of Chrome's traces, which Perfetto reads: one
// process for what was measured and one for what was predicted, a thread for
// each engine. On cuda compute is stamped after a synchronization, as in a
// profile: what it shows of overlap there is what is left of it then.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_TRACE_H
#define TMC_RUNTIME_STEP_TRACE_H

#include "runtime/step/Device.h"
#include "runtime/step/Program.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

class Trace final : public LaunchObserver, public WorkObserver {
public:
  /// `next`, where there is one, is told of each entry too.
  Trace(const StepProgram &program, LaunchObserver *next);

  /// Begins a step; what was kept of the last one is forgotten.
  void start();

  void launched(Queues &queues, int64_t launch) override;
  void started(Queues &queues, int64_t launch) override;
  void done(Queues &queues, int64_t launch) override;
  void recorded(Engine engine, int32_t event) override;
  void waiting(Engine engine, int32_t event) override;
  void ran(Engine engine, int64_t launch, double beginSeconds,
           double endSeconds) override;

  /// One step's entries; all engines are idle.
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
  void predict(Engine engine, int64_t launch);

  const StepProgram &program_;
  LaunchObserver *next_;
  /// By engine; those of work are filled by its thread.
  std::vector<Span> measured_[kEngineCount], predicted_[kEngineCount];
  double begin_ = 0, last_ = 0;
  // Of the prediction: when each engine is free, and when each event is
  // reached.
  double free_[kEngineCount] = {};
  std::vector<double> events_;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_TRACE_H
