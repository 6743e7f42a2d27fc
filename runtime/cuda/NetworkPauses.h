//===- NetworkPauses.h - kernels that wait for the network ------*- C++ -*-===//
//
// Two events around each wait of compute for the network: between them kernels
// stand still. After the step their distances say how long that was, and
// during it they say for which call kernels wait.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_NETWORKPAUSES_H
#define TMC_RUNTIME_CUDA_NETWORKPAUSES_H

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tmc::cuda {

class NetworkPauses {
public:
  ~NetworkPauses();

  /// Surround a wait on `stream` for the call of the entry `launch`. Events
  /// come from a pool, which the first step fills. A pause without events isn't
  /// measured.
  void begin(cudaStream_t stream, int64_t launch);
  void end(cudaStream_t stream);
  /// The entry for whose call kernels wait now; -1: for none.
  int64_t current();
  /// The seconds of all pauses, which have ended. The next step begins.
  double finish();

private:
  struct Pause {
    cudaEvent_t begin = nullptr, end = nullptr;
    int64_t launch = -1;
  };
  std::vector<Pause> pauses_;
  size_t count_ = 0, ended_ = 0; // of this step
};

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_NETWORKPAUSES_H
