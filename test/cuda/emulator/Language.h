//===- Language.h - what nvcc knows and g++ doesn't -------------*- C++ -*-===//
//
// The words and functions of CUDA's language that kernels may use, for g++.
//
//   __shared__   a static variable in a slot of its own, see Image.h; what it
//                held is gone when a block starts
//   shuffles     of every type of 4 or 8 bytes, and of 2 bytes for halves
//   atomics      deleted: no result of ours may depend on an order. The one
//                exception is the atomicCAS by which a kernel reports the first
//                bad index; it counts as atomic, so that it races only with
//                accesses that aren't
//
// Left out, because a card rounds them in its own way or they tell about the
// order of threads: __expf and its like, rsqrtf, clock(), __activemask().
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_LANGUAGE_H
#define TMC_TEST_CUDA_EMULATOR_LANGUAGE_H

#include "test/cuda/emulator/Schedule.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __shared__ static __attribute__((aligned(65536)))
#define __launch_bounds__(...)

#define threadIdx (tmc::emulator::current.thread)
#define blockIdx (tmc::emulator::current.block)
#define blockDim (tmc::emulator::current.blockSize)
#define gridDim (tmc::emulator::current.gridSize)
constexpr int warpSize = 32;

namespace tmc::emulator {
int compareAndSwap(int *at, int expected, int value);

template <typename T>
TMC_EMULATOR_INLINE T shuffle(unsigned mask, T value, int source, int width) {
  static_assert(std::is_trivially_copyable_v<T> &&
                    (sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8),
                "a shuffle moves 2, 4 or 8 bytes");
  (void)width;
  T result;
  warpShuffle(mask, &value, source, &result, sizeof result);
  return result;
}
} // namespace tmc::emulator

//===----------------------------------------------------------------------===//
// Barriers, votes, shuffles
//===----------------------------------------------------------------------===//

TMC_EMULATOR_INLINE void __syncthreads() {
  tmc::emulator::blockBarrier(tmc::emulator::BlockOp::Sync, false);
}
TMC_EMULATOR_INLINE int __syncthreads_count(int predicate) {
  return tmc::emulator::blockBarrier(tmc::emulator::BlockOp::Count, predicate);
}
TMC_EMULATOR_INLINE int __syncthreads_and(int predicate) {
  return tmc::emulator::blockBarrier(tmc::emulator::BlockOp::And, predicate);
}
TMC_EMULATOR_INLINE int __syncthreads_or(int predicate) {
  return tmc::emulator::blockBarrier(tmc::emulator::BlockOp::Or, predicate);
}
TMC_EMULATOR_INLINE void __syncwarp(unsigned mask = 0xffffffffu) {
  tmc::emulator::warpVote(tmc::emulator::WarpOp::Sync, mask, false);
}
TMC_EMULATOR_INLINE unsigned __ballot_sync(unsigned mask, int predicate) {
  return tmc::emulator::warpVote(tmc::emulator::WarpOp::Vote, mask, predicate);
}
TMC_EMULATOR_INLINE int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
TMC_EMULATOR_INLINE int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, !predicate) == 0;
}

/// Of lane `source` of this lane's segment of `width` lanes.
template <typename T>
TMC_EMULATOR_INLINE T __shfl_sync(unsigned mask, T value, int source,
                                  int width = 32) {
  const int lane = tmc::emulator::laneId();
  return tmc::emulator::shuffle(
      mask, value, lane / width * width + (source & (width - 1)), width);
}
/// From a lower lane; a lane that has none keeps its own.
template <typename T>
TMC_EMULATOR_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta,
                                     int width = 32) {
  const int lane = tmc::emulator::laneId(), source = lane - int(delta);
  return tmc::emulator::shuffle(
      mask, value, source < lane / width * width ? lane : source, width);
}
/// From a higher lane; a lane that has none keeps its own.
template <typename T>
TMC_EMULATOR_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta,
                                       int width = 32) {
  const int lane = tmc::emulator::laneId(), source = lane + int(delta);
  return tmc::emulator::shuffle(
      mask, value, source >= (lane / width + 1) * width ? lane : source, width);
}
/// Of lane ^ distance; beyond the segment a lane keeps its own, except that
/// earlier segments can be read.
template <typename T>
TMC_EMULATOR_INLINE T __shfl_xor_sync(unsigned mask, T value, int distance,
                                      int width = 32) {
  const int lane = tmc::emulator::laneId(), source = lane ^ distance;
  return tmc::emulator::shuffle(
      mask, value, source >= (lane / width + 1) * width ? lane : source, width);
}

//===----------------------------------------------------------------------===//
// Atomics: one, for reporting
//===----------------------------------------------------------------------===//

TMC_EMULATOR_INLINE int atomicCAS(int *at, int expected, int value) {
  return tmc::emulator::compareAndSwap(at, expected, value);
}
template <typename... T> void atomicAdd(T...) = delete;
template <typename... T> void atomicSub(T...) = delete;
template <typename... T> void atomicExch(T...) = delete;
template <typename... T> void atomicMin(T...) = delete;
template <typename... T> void atomicMax(T...) = delete;
template <typename... T> void atomicInc(T...) = delete;
template <typename... T> void atomicDec(T...) = delete;
template <typename... T> void atomicAnd(T...) = delete;
template <typename... T> void atomicOr(T...) = delete;
template <typename... T> void atomicXor(T...) = delete;

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i)
    r |= (x >> i & 1) << (31 - i);
  return r;
}
inline int __float_as_int(float x) {
  int r;
  std::memcpy(&r, &x, 4);
  return r;
}
inline unsigned __float_as_uint(float x) { return unsigned(__float_as_int(x)); }
inline float __int_as_float(int x) {
  float r;
  std::memcpy(&r, &x, 4);
  return r;
}
inline float __uint_as_float(unsigned x) { return __int_as_float(int(x)); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return unsigned((uint64_t)a * b >> 32);
}
/// Byte i of the result is the byte of b:a that nibble i of `select` names.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned select) {
  const uint64_t both = uint64_t(b) << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; ++i)
    r |= (unsigned(both >> 8 * (select >> 4 * i & 7)) & 0xff) << 8 * i;
  return r;
}
template <typename T> TMC_EMULATOR_INLINE T __ldg(const T *p) { return *p; }

// Rounded to nearest, never contracted.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }

#endif // TMC_TEST_CUDA_EMULATOR_LANGUAGE_H
