//===- Fused.h - runs a fused body on cuda --------------------*- C++ -*-===//
#ifndef TMC_RUNTIME_CUDA_FUSED_H
#define TMC_RUNTIME_CUDA_FUSED_H

#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/LaunchText.h"
#include "runtime/kernels/Fused.h"
#include "runtime/kernels/Stream.h"

namespace tmc {

namespace detail {
/// Queues `kernel`; an error goes to the device with the queue's name.
template <typename... P, typename... A>
void launchFused(cuda::Queue &queue, void (*kernel)(P...), dim3 grid,
                 dim3 block, A... arguments) {
  TMC_LAUNCH(kernel, grid, block, 0, queue.native(), arguments...);
  queue.check(cudaGetLastError());
}

template <typename Body>
__global__ void __launch_bounds__(kCudaBlockThreads)
    runRows(Body body, FusedTiling tiling, float *scratch, bool aligned) {
  constexpr int rowsPerBlock =
      kCudaBlockThreads / cudaRowThreads(Body::shape.cols);
  constexpr int64_t kept = keptFloats<Body>;
  alignas(16) __shared__ float keptValues[kept > 0 ? rowsPerBlock * kept : 1];
  const int64_t tile = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (tile >= tiling.tiles()) // a whole warp, or a whole block
    return;
  const int64_t rowTile = tile / tiling.colTiles;
  const int64_t begin = tile % tiling.colTiles * tiling.colsPerTile;
  RowOf<Body> row;
  row.begin = begin;
  row.end = least(begin + tiling.colsPerTile, Body::shape.cols);
  row.thread = threadIdx.x;
  row.threads = blockDim.x;
  row.aligned = aligned;
  row.keptValues = keptValues + threadIdx.y * kept;
  row.keptStride = keptStride(Body::shape.cols);
  const Sums sums{scratch + rowTile * tiling.partialFloats, tiling,
                  Body::shape.columnSums};
  if constexpr (hasSums<Body>)
    body.start(row, sums);
  const int64_t last =
      least((rowTile + 1) * tiling.rowsPerTile, Body::shape.rows);
  for (row.index = rowTile * tiling.rowsPerTile; row.index != last; ++row.index)
    body.row(row, sums);
}

template <typename Body>
__global__ void __launch_bounds__(kCudaBlockThreads)
    runFinish(Body body, FusedTiling tiling, float *scratch, bool aligned) {
  RowOf<Body> row;
  row.index = 0;
  row.begin = int64_t(blockIdx.x) * kCudaBlockColumns;
  row.end = least(row.begin + kCudaBlockColumns, Body::shape.cols);
  row.thread = threadIdx.x;
  row.threads = blockDim.x;
  row.aligned = aligned;
  row.keptValues = nullptr;
  row.keptStride = 0;
  body.finish(row, Sums{scratch, tiling, Body::shape.columnSums});
}

inline bool allAligned(In ins, Out outs) {
  for (const void *p : ins)
    if (reinterpret_cast<uintptr_t>(p) % 16)
      return false;
  for (void *p : outs)
    if (reinterpret_cast<uintptr_t>(p) % 16)
      return false;
  return true;
}
} // namespace detail

template <typename Body> class Fused final : public Kernel {
public:
  using Params = FusedParams;
  explicit Fused(const Params &params) : params_(params) {}

  Status prepare(Device &device) override {
    device_ = &cuda::deviceOf(device);
    return detail::checkFusedScratch(tilingOf(Body::shape, Backend::Cuda),
                                     params_.scratchBytes);
  }

  void run(Stream &stream, In ins, Out outs, void *scratch,
           bool = false) override {
    if (Body::shape.rows == 0 || Body::shape.cols == 0)
      return;
    constexpr FusedTiling t = tilingOf(Body::shape, Backend::Cuda);
    constexpr int threads = cudaRowThreads(Body::shape.cols);
    constexpr int rowsPerBlock = kCudaBlockThreads / threads;
    const Body body(ins, outs, params_.streams);
    cuda::Queue queue(*device_, stream, Body::name);
    // The assignment of columns to threads doesn't depend on the alignment.
    const bool aligned =
        Body::shape.cols % 4 == 0 && detail::allAligned(ins, outs);
    auto *partials = static_cast<float *>(scratch);
    detail::launchFused(queue, detail::runRows<Body>,
                        dim3(unsigned(ceilDiv(t.tiles(), rowsPerBlock))),
                        dim3(threads, rowsPerBlock), body, t, partials,
                        aligned);
    if constexpr (Body::shape.finish) {
      constexpr int64_t blocks = ceilDiv(Body::shape.cols, kCudaBlockColumns);
      detail::launchFused(queue, detail::runFinish<Body>,
                          dim3(unsigned(blocks)), dim3(kCudaBlockThreads), body,
                          t, partials, aligned);
    }
  }

private:
  Params params_;
  cuda::CudaDevice *device_ = nullptr;
};

} // namespace tmc

#endif // TMC_RUNTIME_CUDA_FUSED_H
