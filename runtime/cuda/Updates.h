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
#include "runtime/cuda/Vector.h"
#include "runtime/kernels/Stochastic.h"

namespace tmc::cuda {

/// Queues *out = the sum of squares of x, if `out` isn't null: one block per
/// kCudaUpdatePart elements, then addSquareParts().
template <typename T>
void squareSum(Queue &queue, const T *x, int64_t count, void *scratch,
               float *out);
extern template void squareSum(Queue &, const float *, int64_t, void *,
                               float *);
extern template void squareSum(Queue &, const bf16 *, int64_t, void *, float *);
extern template void squareSum(Queue &, const f16 *, int64_t, void *, float *);

/// Queues *out = the sum of the parts' squares by a fixed tree, if `out` isn't
/// null and there are several parts.
void addSquareParts(Queue &queue, int64_t count, void *scratch, float *out);

/// The place of a gradient's sum of squares, which blocks of an update make in
/// passing; null: it isn't wanted.
struct Squares {
  double *partial;
  float *out;
  Squares(void *scratch, void *out)
      : partial(static_cast<double *>(scratch)),
        out(static_cast<float *>(out)) {}
};

namespace {

constexpr int kBlock = 256;
/// Elements of one block of an update.
constexpr int64_t kPiece = kCudaUpdatePart;
static_assert(kPiece == 16 * kBlock);

/// The square root of an element, or of each of a run.
struct Root {
  template <typename V> __device__ V operator()(V x) const {
    return lanewise(x, [](float v) { return sqrtf(v); });
  }
};

/// The block's part of a sum of squares: thread t adds the runs of four t, t +
/// 256, ... in order, then threads combine in halves. Called by all threads.
template <typename T>
__device__ void squarePart(const T *x, int64_t count, const Squares &squares) {
  if (!squares.out)
    return;
  __shared__ double shared[kBlock];
  const int64_t begin = int64_t(blockIdx.x) * kPiece;
  const int64_t end = begin + kPiece < count ? begin + kPiece : count;
  float sum = 0;
  auto add = [&](float value) { sum = fmaf(value, value, sum); };
  const bool aligned = isAligned(x);
#pragma unroll
  for (int64_t i = begin + 4 * int64_t(threadIdx.x); i < begin + kPiece;
       i += 4 * kBlock) {
    if (aligned && i + 4 <= end) {
      const Floats<4> run = loadLanes<4, true>(x + i);
      for (int e = 0; e < 4; ++e)
        add(run[e]);
    } else {
      for (int e = 0; e < 4; ++e)
        if (i + e < end)
          add(loadLanes<1>(x + i + e));
    }
  }
  const double total = blockReduce(double(sum), shared, AddOp{});
  if (threadIdx.x != 0)
    return;
  if (gridDim.x == 1)
    *squares.out = float(total);
  else
    squares.partial[blockIdx.x] = total;
}

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
  __device__ uint16_t rounded(int which, int element, float x) const {
    const uint32_t chance =
        words[which].w[element / 2] >> (element % 2 * 16) & 0xffffu;
    return uint16_t(stochasticBits(x, chance));
  }
  __device__ void store(int, int, float *p, float x) const { *p = x; }
  __device__ void store(int which, int element, bf16 *p, float x) const {
    p->bits = rounded(which, element, x);
  }
  /// A whole run, by accesses of 16 bytes.
  __device__ void storeRun(int, float *p, Floats<kRun> x) const {
    storeLanes<kRun, true>(p, x);
  }
  __device__ void storeRun(int which, bf16 *p, Floats<kRun> x) const {
    Lanes<uint16_t, kRun> bits;
#pragma unroll
    for (int e = 0; e < kRun; ++e)
      bits[e] = rounded(which, e, x[e]);
    storeRaw<kRun, true>(reinterpret_cast<uint16_t *>(p), bits);
  }
};

/// Without rounding.
template <> struct Chance<0> {
  static constexpr int kRun = 4;

  __device__ void draw(const Philox &, int64_t) {}
  __device__ void store(int, int, float *p, float x) const { *p = x; }
  __device__ void storeRun(int, float *p, Floats<kRun> x) const {
    storeLanes<kRun, true>(p, x);
  }
};

/// Calls run(chance, i) for the whole runs of the block's piece if `aligned`,
/// and one(chance, i, element of a run) for the other elements.
template <int Count, typename R, typename F>
__device__ void eachRun(int64_t count, int64_t stream, const int64_t *step,
                        bool aligned, R &&run, F &&one) {
  constexpr int kRun = Chance<Count>::kRun;
  const Philox draws = roundingDraws(stream, *step);
  const int64_t begin = int64_t(blockIdx.x) * kPiece;
  const int64_t end = begin + kPiece < count ? begin + kPiece : count;
  for (int64_t i = begin + int64_t(threadIdx.x) * kRun; i < end;
       i += kBlock * kRun) {
    Chance<Count> chance;
    chance.draw(draws, i / kRun);
    if (aligned && i + kRun <= end) {
      run(chance, i);
      continue;
    }
#pragma unroll
    for (int element = 0; element < kRun; ++element)
      if (i + element < end)
        one(chance, i + element, element);
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
