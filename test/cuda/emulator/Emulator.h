//===- Emulator.h - CUDA kernels on a machine without a GPU -----*- C++ -*-===//
//
// Lets g++ compile runtime/cuda/*.cu (without <<<>>>, see Launch.h) and run the
// kernels as they stand: blocks one after the other, each thread of a block a
// fiber that gives way at __syncthreads() and at warp exchanges.
//
// It is stricter than a device where it can be: shared memory and new device
// memory start as NaNs, limits of grids, blocks and shared memory are those of
// the smallest supported device, and what is written behind dynamic shared
// memory is noticed. Threads and blocks can run in the reverse order: a result
// that then differs has a race.
//
// It isn't a simulator: it says nothing about speed, alignment of vector
// accesses in device memory, or registers.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_EMULATOR_H
#define TMC_TEST_CUDA_EMULATOR_EMULATOR_H

#ifdef __CUDACC__
#error "the emulator stands in for nvcc"
#endif

#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <functional>

namespace tmc::emulator {

struct Position {
  uint3 thread, block;
  dim3 blockSize, gridSize;
};
/// Of the fiber that runs.
extern Position current;

/// Runs `body` once per thread. Failures are what cudaGetLastError returns.
void launch(const void *kernel, dim3 grid, dim3 block, size_t sharedBytes,
            const std::function<void()> &body);
unsigned char *dynamicShared();

void syncBlock();
float exchange(float value, int laneMask);

/// Blocks and threads from the last to the first; the default where
/// TMC_EMULATOR_REVERSE is in the environment.
void setReverse(bool reverse);
/// cudaMalloc refuses more than this.
void setMemoryLimit(size_t bytes);
/// The next call of a kind ("cudaMemcpyAsync", "launch") fails.
void failNext(const char *call);

} // namespace tmc::emulator

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)

#define threadIdx (tmc::emulator::current.thread)
#define blockIdx (tmc::emulator::current.block)
#define blockDim (tmc::emulator::current.blockSize)
#define gridDim (tmc::emulator::current.gridSize)

inline void __syncthreads() { tmc::emulator::syncBlock(); }
inline float __shfl_xor_sync(unsigned, float value, int laneMask) {
  return tmc::emulator::exchange(value, laneMask);
}
inline int atomicCAS(int *at, int expected, int value) {
  const int old = *at;
  if (old == expected)
    *at = value;
  return old;
}

#endif // TMC_TEST_CUDA_EMULATOR_EMULATOR_H
