//===- Updates.h - common parts of updates on cuda --------------*- C++ -*-===//
//
// The elements of a block of threads, the random bits that round them, and the
// sums of squares of the updates.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_UPDATES_H
#define TMC_RUNTIME_CUDA_UPDATES_H

#include "runtime/kernels/Optimizer.h"

#include "runtime/cuda/Launch.h"
#include "runtime/kernels/Stochastic.h"

namespace tmc::cuda {

/// Queues *out = the sum of squares of x, if `out` isn't null: one block per
/// kUpdateTile elements; a last block adds the partial sums by a fixed tree.
template <typename T>
void squareSum(Queue &queue, const T *x, int64_t count, void *scratch,
               float *out);
extern template void squareSum(Queue &, const float *, int64_t, void *,
                               float *);
extern template void squareSum(Queue &, const bf16 *, int64_t, void *, float *);
extern template void squareSum(Queue &, const f16 *, int64_t, void *, float *);

namespace {

constexpr int kBlock = 256;
/// Elements of one block of an update.
constexpr int64_t kPiece = 16 * kBlock;

struct Root {
  __device__ float operator()(float x) const { return sqrtf(x); }
};

/// The random bits by which a thread rounds a run of elements; `Count` values
/// for each element.
template <int Count> struct Chance {
  static constexpr int kRun = kRoundedElements;
  PhiloxWords words[Count];

  __device__ void draw(const Philox &draws, int64_t run) {
#pragma unroll
    for (int which = 0; which < Count; ++which)
      words[which] = draws.quad(uint64_t(kRoundedValues * run + which));
  }
  __device__ void store(int, int, float *p, float x) const { *p = x; }
  __device__ void store(int which, int element, bf16 *p, float x) const {
    const uint32_t chance =
        words[which].w[element / 2] >> (element % 2 * 16) & 0xffffu;
    p->bits = uint16_t(stochasticBits(x, chance));
  }
};

/// Without rounding.
template <> struct Chance<0> {
  static constexpr int kRun = 1;

  __device__ void draw(const Philox &, int64_t) {}
  __device__ void store(int, int, float *p, float x) const { *p = x; }
};

/// Calls body(chance, i, element of a run) for the elements of the block's
/// piece.
template <int Count, typename F>
__device__ void eachElement(int64_t count, int64_t stream, const int64_t *step,
                            F &&body) {
  constexpr int kRun = Chance<Count>::kRun;
  const Philox draws = roundingDraws(stream, *step);
  const int64_t begin = int64_t(blockIdx.x) * kPiece;
  const int64_t end = begin + kPiece < count ? begin + kPiece : count;
  for (int64_t i = begin + int64_t(threadIdx.x) * kRun; i < end;
       i += kBlock * kRun) {
    Chance<Count> chance;
    chance.draw(draws, i / kRun);
#pragma unroll
    for (int element = 0; element < kRun; ++element)
      if (i + element < end)
        body(chance, i + element, element);
  }
}

inline float *floats(void *p) { return static_cast<float *>(p); }
inline const float *floats(const void *p) {
  return static_cast<const float *>(p);
}
inline int64_t *longs(void *p) { return static_cast<int64_t *>(p); }
inline const int64_t *longs(const void *p) {
  return static_cast<const int64_t *>(p);
}

} // namespace
} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_UPDATES_H
