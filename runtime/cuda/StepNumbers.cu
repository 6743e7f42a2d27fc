//===- StepNumbers.cu - numbers that the end of a step brings -------------===//

#include "runtime/cuda/Launch.h"

namespace tmc::cuda {

namespace {

/// An argument of the kernel.
struct Places {
  const void *at[kStepNumbers]; // null: left out
  bool isWide[kStepNumbers];    // 8 bytes, else 4
};

/// One thread.
__global__ void gatherPlaces(Places places, uint64_t *to) {
#pragma unroll
  for (int i = 0; i < kStepNumbers; ++i)
    if (const void *at = places.at[i])
      to[i] = places.isWide[i] ? *static_cast<const uint64_t *>(at)
                               : *static_cast<const uint32_t *>(at);
}

} // namespace

void gatherNumbers(cudaStream_t stream, const StepNumbers &numbers,
                   uint64_t *to) {
  Places places = {};
  for (int i = 0; i < kStepNumbers; ++i) {
    places.at[i] = numbers[size_t(i)].at;
    places.isWide[i] = numbers[size_t(i)].bytes == 8;
  }
  TMC_LAUNCH(gatherPlaces, dim3(1), dim3(1), 0, stream, places, to);
}

} // namespace tmc::cuda
