//===- Vector.h - eight neighbouring floats of a thread ---------*- C++ -*-===//
//
// Kernels give a thread kVector neighbouring elements: channels, or classes.
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

#include <initializer_list>

namespace tmc::cuda {

constexpr int kVector = 8;

__host__ __device__ inline bool isAligned(const void *p) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}

/// True if vectors of rows of `elements` elements, all of them from the first
/// on, are whole in all buffers.
inline bool areWhole(int64_t elements,
                     std::initializer_list<const void *> buffers) {
  bool whole = elements % kVector == 0;
  for (const void *p : buffers)
    whole = whole && isAligned(p);
  return whole;
}

/// Widens kVector elements at p. If not Whole, elements from `count` on are 0.
template <bool Whole, typename T>
__device__ __forceinline__ void loadVector(const T *p, int count,
                                           float (&v)[kVector]) {
  if constexpr (Whole) {
    const Floats<kVector> lanes = loadLanes<kVector, true>(p);
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      v[i] = lanes[i];
  } else {
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      v[i] = i < count ? loadLanes<1>(p + i) : 0;
  }
}

/// Rounds kVector values to p. If not Whole, only the first `count`.
template <bool Whole, typename T>
__device__ __forceinline__ void storeVector(T *p, int count,
                                            const float (&v)[kVector]) {
  if constexpr (Whole) {
    Floats<kVector> lanes;
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      lanes[i] = v[i];
    storeLanes<kVector, true>(p, lanes);
  } else {
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      if (i < count)
        storeLanes<1>(p + i, v[i]);
  }
}

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_VECTOR_H
