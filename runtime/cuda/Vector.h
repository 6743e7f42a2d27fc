//===- Vector.h - eight neighbouring floats of a thread ---------*- C++ -*-===//
//
// Kernels on channels-last tensors give a thread kVector neighbouring channels.
// A vector is `whole` if it has kVector elements and starts at a multiple of 16
// bytes: then it is read and written with accesses of 16 bytes, else element by
// element. The assignment of elements to threads doesn't depend on that, so
// results have the same bits in both cases.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_VECTOR_H
#define TMC_RUNTIME_CUDA_VECTOR_H

#include "runtime/cuda/Launch.h"
#include "runtime/kernels/Storage.h"

#include <type_traits>

namespace tmc::cuda {

constexpr int kVector = 8;

__host__ __device__ inline bool isAligned(const void *p) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}

/// Widens kVector elements at p. If not Whole, elements from `count` on are 0.
template <bool Whole, typename T>
__device__ __forceinline__ void loadVector(const T *p, int count,
                                           float (&v)[kVector]) {
  if constexpr (!Whole) {
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      v[i] = i < count ? loadLanes<1>(p + i) : 0;
  } else if constexpr (std::is_same_v<T, float>) {
    const Lanes<float, kVector> raw = loadRaw<kVector, true>(p);
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      v[i] = raw[i];
  } else {
    const Lanes<uint16_t, kVector> raw =
        loadRaw<kVector, true>(reinterpret_cast<const uint16_t *>(p));
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      v[i] = widenBits<T>(uint32_t(raw[i]));
  }
}

/// Rounds kVector values to p. If not Whole, only the first `count`.
template <bool Whole, typename T>
__device__ __forceinline__ void storeVector(T *p, int count,
                                            const float (&v)[kVector]) {
  if constexpr (!Whole) {
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      if (i < count)
        storeLanes<1>(p + i, v[i]);
  } else if constexpr (std::is_same_v<T, float>) {
    Lanes<float, kVector> raw;
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      raw[i] = v[i];
    storeRaw<kVector, true>(p, raw);
  } else {
    Lanes<uint16_t, kVector> raw;
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      raw[i] = uint16_t(narrowBits<T>(v[i]));
    storeRaw<kVector, true>(reinterpret_cast<uint16_t *>(p), raw);
  }
}

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_VECTOR_H
