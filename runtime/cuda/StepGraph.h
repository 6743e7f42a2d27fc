//===- StepGraph.h - a step as one graph of the device ----------*- C++ -*-===//
//
// The streams record a step instead of running it, and the graph of its
// kernels, copies and fills is queued by one call:
//
//     compute    fork | k0 | k1 ...... wait | k2 | join      the recorded
//     h2d          '---- copy | record ---'        '         streams
//
//     each step  uploads, one launch of the graph, numbers of its end
//
// Not recorded is a step with work for threads of the host, and one that is
// observed or timed. The first step runs without a graph: kernels are loaded
// then, which a recording doesn't allow. A call that can't be recorded (a wait,
// an allocation, an algorithm of a library) makes the recording fail. Nothing
// has run by then, and steps are queued as before. The graph's memory counts
// against the plan's reserve: a graph that doesn't fit is given up.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_STEPGRAPH_H
#define TMC_RUNTIME_CUDA_STEPGRAPH_H

#include "runtime/step/StepRecorder.h"

#include <cuda_runtime.h>

namespace tmc::cuda {

class CudaDevice;

class StepGraph final : public StepRecorder {
public:
  explicit StepGraph(CudaDevice &device) : device_(device) {}
  ~StepGraph() override { drop(); }

  void record(void (*run)(Queues &, void *), void *kernels) override;
  bool replay() override;
  /// The recorded addresses are no longer those of the step.
  void drop();

private:
  /// False if a call failed; there may be a graph then.
  bool tryRecord(void (*run)(Queues &, void *), void *kernels);

  CudaDevice &device_;
  cudaGraphExec_t graph_ = nullptr;
};

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_STEPGRAPH_H
