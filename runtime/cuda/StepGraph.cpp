//===- StepGraph.cpp - a step as one graph of the device ------------------===//

#include "runtime/cuda/StepGraph.h"

#include "runtime/cuda/Cuda.h"

namespace tmc::cuda {

void StepGraph::drop() {
  // Nothing can be done about an error here.
  if (graph_)
    (void)cudaGraphExecDestroy(graph_);
  graph_ = nullptr;
}

bool StepGraph::tryRecord(void (*run)(Queues &, void *), void *kernels) {
  const cudaStream_t stream = device_.native_;
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) !=
      cudaSuccess)
    return false;
  device_.queues_->queueForked(run, kernels);
  cudaGraph_t recorded = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &recorded);
  const bool isWhole = cudaGetLastError() == cudaSuccess &&
                       ended == cudaSuccess && device_.error_.isOk() &&
                       device_.queues_->takeFault().isOk();
  const bool isMade =
      isWhole && cudaGraphInstantiate(&graph_, recorded, 0) == cudaSuccess &&
      cudaGraphUpload(graph_, stream) == cudaSuccess &&
      cudaStreamSynchronize(stream) == cudaSuccess;
  if (recorded)
    (void)cudaGraphDestroy(recorded);
  return isMade && device_.checkReserve().isOk();
}

void StepGraph::record(void (*run)(Queues &, void *), void *kernels) {
  if (device_.timer || device_.queues_->observer() ||
      device_.queues_->hasThreads() || !device_.error_)
    return;
  if (tryRecord(run, kernels))
    return;
  // Nothing has run: the errors aren't those of a step.
  drop();
  (void)cudaGetLastError();
  (void)(device_.error_ = Status::ok());
  (void)device_.queues_->takeFault().isOk();
}

bool StepGraph::replay() {
  if (!graph_ || device_.timer || device_.queues_->observer())
    return false;
  device_.check(cudaGraphLaunch(graph_, device_.native_), "a step's graph");
  return true;
}

} // namespace tmc::cuda
