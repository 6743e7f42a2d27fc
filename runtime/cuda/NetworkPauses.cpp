//===- NetworkPauses.cpp - kernels that wait for the network --------------===//

#include "runtime/cuda/NetworkPauses.h"

namespace tmc::cuda {

NetworkPauses::~NetworkPauses() {
  // Nothing can be done about an error here.
  for (const Pause &pause : pauses_)
    for (cudaEvent_t event : {pause.begin, pause.end})
      if (event)
        (void)cudaEventDestroy(event);
}

void NetworkPauses::begin(cudaStream_t stream, int64_t launch) {
  if (count_ == pauses_.size()) {
    Pause made;
    for (cudaEvent_t *event : {&made.begin, &made.end})
      if (cudaEventCreateWithFlags(event, cudaEventDefault) != cudaSuccess) {
        *event = nullptr;
        (void)cudaGetLastError(); // later calls start clean
      }
    pauses_.push_back(made);
  }
  Pause &pause = pauses_[count_++];
  pause.launch = launch;
  if (pause.begin)
    (void)cudaEventRecord(pause.begin, stream);
}

void NetworkPauses::end(cudaStream_t stream) {
  if (cudaEvent_t event = pauses_[count_ - 1].end)
    (void)cudaEventRecord(event, stream);
}

int64_t NetworkPauses::current() {
  // Pauses end in their order.
  auto isReached = [](cudaEvent_t event) {
    return !event || cudaEventQuery(event) != cudaErrorNotReady;
  };
  while (ended_ < count_ && isReached(pauses_[ended_].end))
    ++ended_;
  const bool waits = ended_ < count_ && isReached(pauses_[ended_].begin);
  (void)cudaGetLastError(); // "Not ready" is no error.
  return waits ? pauses_[ended_].launch : -1;
}

double NetworkPauses::finish() {
  double seconds = 0;
  for (size_t i = 0; i < count_; ++i) {
    const Pause &pause = pauses_[i];
    float milliseconds = 0;
    if (pause.begin && pause.end &&
        cudaEventElapsedTime(&milliseconds, pause.begin, pause.end) ==
            cudaSuccess)
      seconds += double(milliseconds) * 1e-3;
  }
  count_ = ended_ = 0;
  return seconds;
}

} // namespace tmc::cuda
