//===- HostUpdates.cpp - the cpu backend's updates, beside cuda's ---------===//

#include "runtime/cuda/HostUpdates.h"

// Headers that both backends share. The other runtime headers are compiled
// again below, as the cpu backend compiles them.
#include "runtime/cpu/Checks.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/kernels/DType.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <type_traits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Kernels of the emulated backend use another Vec.h.
#undef TMC_CUDA_EMULATED

namespace tmc::host {

/// Adds sums of squares in the order of this backend's kernels.
#define TMC_SUMS_OF_CUDA
// The `namespace tmc` of these files becomes tmc::host::tmc.
#include "runtime/cpu/Adafactor.cpp"
#include "runtime/cpu/Adam4bit.cpp"
#include "runtime/cpu/Lion.cpp"
#include "runtime/cpu/Optimizer.cpp"

bool canRun() {
#ifdef __AVX2__
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

template <typename K> std::unique_ptr<Kernel> make(const void *params) {
  return std::make_unique<K>(*static_cast<const typename K::Params *>(params));
}

#define TMC_MAKE(NAME)                                                         \
  std::unique_ptr<Kernel> make##NAME(const void *params) {                     \
    return make<tmc::NAME>(params);                                            \
  }
TMC_FOR_EACH_ON_HOST(TMC_MAKE)
#undef TMC_MAKE

} // namespace tmc::host
