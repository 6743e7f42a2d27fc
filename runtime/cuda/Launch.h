//===- Launch.h - launches and device functions of cuda kernels -*- C++ -*-===//
//
// A launch with error checks, and the device code that kernels share.
//
// Kernels are launched by `launch`, never by <<<>>>, and declare their dynamic
// shared memory by TMC_DYNAMIC_SHARED (LaunchText.h). In a profiled step,
// `launch` times each of them (EventTimer.h).
//
// Determinism: each result is written by one thread, and sums follow fixed
// trees that depend on the shape. Products are contracted only by an explicit
// fmaf.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_LAUNCH_H
#define TMC_RUNTIME_CUDA_LAUNCH_H

#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/LaunchText.h"
#include "runtime/kernels/Portable.h"

namespace tmc::cuda {

/// Queues `kernel` over grid x block threads; an error goes to the device. An
/// empty grid is no launch.
template <typename... P, typename... A>
void launch(Queue &queue, void (*kernel)(P...), dim3 grid, dim3 block,
            int64_t sharedBytes, A... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0)
    return;
  const TimedLaunch timed = queue.time(kernel);
  TMC_LAUNCH(kernel, grid, block, sharedBytes, queue.native(), P(arguments)...);
  queue.check(cudaGetLastError());
}

/// Raises a kernel's limit of dynamic shared memory to `bytes`.
template <typename... P>
Status allowShared(const CudaDevice &device, const std::string &name,
                   void (*kernel)(P...), int64_t bytes) {
  if (bytes > device.sharedBytes())
    return {Code::Unsupported,
            name + " on cuda needs " + std::to_string(bytes) +
                " bytes of shared memory for a block; this device has " +
                std::to_string(device.sharedBytes()) +
                ": take one of compute capability 8.0 or newer"};
  const cudaError_t error = cudaFuncSetAttribute(
      reinterpret_cast<const void *>(kernel),
      cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
  if (error == cudaSuccess)
    return Status::ok();
  (void)cudaGetLastError();
  return {Code::Unsupported,
          name + " needs " + std::to_string(bytes) +
              " bytes of shared memory: " + cudaGetErrorString(error)};
}

//===----------------------------------------------------------------------===//
// In kernels
//===----------------------------------------------------------------------===//

constexpr int kWarp = 32;

TMC_HD constexpr int64_t ceilDivide(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// Blocks of `threads` that give each of `count` elements a thread. A grid has
/// at most 2^31 - 1 blocks in x.
inline dim3 blocksFor(int64_t count, int64_t threads) {
  return dim3(unsigned(ceilDivide(count, threads)));
}

__device__ inline int64_t globalThread() {
  return int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}

/// Element i of an index buffer of either type.
__device__ inline int64_t indexAt(const void *indices, DType type, int64_t i) {
  return type == DType::I64 ? static_cast<const int64_t *>(indices)[i]
                            : static_cast<const int32_t *>(indices)[i];
}

/// Reports an index outside its table. This is the only atomic of the backend.
/// The reported fault may vary if there are several; results don't depend on
/// it.
__device__ inline void reportFault(DeviceFault *fault, int64_t row,
                                   int64_t value, int64_t limit) {
  if (atomicCAS(&fault->set, 0, 1) == 0) {
    fault->row = row;
    fault->value = value;
    fault->limit = limit;
  }
}

struct AddOp {
  template <typename T> __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct MaxOp {
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

/// Combines one value per thread over the threads of a one-dimensional block,
/// whose size is a power of two of at most 1024: i with i + n/2, then n/4, ...
/// Every thread gets the result. `shared` has room for a value per thread.
template <typename T, typename Op>
__device__ T blockReduce(T value, T *shared, Op op) {
  const int i = int(threadIdx.x);
  __syncthreads(); // of an earlier use of `shared`
  shared[i] = value;
  __syncthreads();
  for (int step = int(blockDim.x) / 2; step > 0; step /= 2) {
    if (i < step)
      shared[i] = op(shared[i], shared[i + step]);
    __syncthreads();
  }
  return shared[0];
}

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_LAUNCH_H
