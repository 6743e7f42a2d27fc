//===- StepRecorder.h - steps that are queued as a whole --------*- C++ -*-===//
//
// A step queues the same work each time: the addresses of its arenas, the
// kernel objects and the trip counts of its loops never change. Numbers that do
// change (the batch, the step's number, the learning rate, seeds, scales) are
// in tensors, which are written before the step. So a backend may record the
// work of one step and queue all of it by one call from then on.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_STEPRECORDER_H
#define TMC_RUNTIME_STEP_STEPRECORDER_H

#include "runtime/kernels/Queues.h"

namespace tmc {

class StepRecorder {
public:
  virtual ~StepRecorder() = default;

  /// Records what `run` queues, and runs nothing. Called once, when a first
  /// step is over. Records nothing if a part of the step can't be recorded.
  virtual void record(void (*run)(Queues &, void *), void *kernels) = 0;
  /// Queues the recorded step. If there is none, queues nothing and returns
  /// false.
  virtual bool replay() = 0;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_STEPRECORDER_H
