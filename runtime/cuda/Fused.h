//===- Fused.h - runs a fused body on cuda --------------------*- C++ -*-===//
#ifndef TMC_RUNTIME_CUDA_FUSED_H
#define TMC_RUNTIME_CUDA_FUSED_H

#include "runtime/cuda/Cuda.h"
#include "runtime/cuda/LaunchText.h"
#include "runtime/kernels/Fused.h"
#include "runtime/kernels/Stream.h"

namespace tmc {

namespace detail {
constexpr int kWarp = 32;

/// Queues `kernel`; an error goes to the device with the queue's name.
template <typename... P, typename... A>
void launchFused(cuda::Queue &queue, void (*kernel)(P...), dim3 grid,
                 dim3 block, A... arguments) {
  const cuda::TimedLaunch timed = queue.time(kernel);
  TMC_LAUNCH(kernel, grid, block, 0, queue.native(), arguments...);
  queue.check(cudaGetLastError());
}

/// Steps of a thread over the columns of a tile.
template <typename Body>
constexpr int
    stepsOf = int(ceilDiv(tilingOf(Body::shape, Backend::Cuda).colsPerTile,
                          4 * cudaRowThreads(Body::shape.cols)));

/// True if a tile's sums over rows are in registers.
template <typename Body>
constexpr bool sumsInRegisters =
    hasSums<Body> &&Body::shape.columnSums *stepsOf<Body> <= kCudaRegisterSums;

template <typename Body, bool Aligned>
__global__ void __launch_bounds__(kCudaBlockThreads)
    runRows(Body body, FusedTiling tiling, float *scratch) {
  constexpr int threads = cudaRowThreads(Body::shape.cols);
  constexpr int rowsPerBlock = kCudaBlockThreads / threads;
  constexpr int64_t kept = keptFloats<Body>;
  alignas(16) __shared__ float keptValues[kept > 0 ? rowsPerBlock * kept : 1];
  const int64_t tile = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (tile >= tiling.tiles()) // a whole warp, or a whole block
    return;
  const int64_t rowTile = tile / tiling.colTiles;
  const int64_t begin = tile % tiling.colTiles * tiling.colsPerTile;
  Row<isRagged<Body>, sumsInRegisters<Body> ? stepsOf<Body> : 0> row;
  row.begin = begin;
  row.end = least(begin + tiling.colsPerTile, Body::shape.cols);
  row.thread = threadIdx.x;
  row.threads = threads;
  row.aligned = Aligned;
  row.keptValues = keptValues + threadIdx.y * kept;
  row.keptStride = keptStride(Body::shape.cols);
  const Sums partials{scratch + rowTile * tiling.partialFloats, tiling,
                      Body::shape.columnSums};
  const int64_t last =
      least((rowTile + 1) * tiling.rowsPerTile, Body::shape.rows);
  auto rows = [&](const auto &sums) {
    if constexpr (hasSums<Body>)
      body.start(row, sums);
    for (row.index = rowTile * tiling.rowsPerTile; row.index != last;
         ++row.index)
      body.row(row, sums);
  };
  if constexpr (sumsInRegisters<Body>) {
    constexpr int columnSums = Body::shape.columnSums,
                  totals = Body::shape.totals;
    RegisterSums<columnSums, totals, stepsOf<Body>> sums;
    rows(sums);
    if constexpr (columnSums > 0)
      row.each([&](auto c) {
#pragma unroll
        for (int k = 0; k < columnSums; ++k)
          c.store(partials.column(k), c.inRegisters(sums.column(k)));
      });
    if (row.isFirst())
      for (int k = 0; k < totals; ++k)
        *partials.total(k) = sums.totals[k];
  } else {
    rows(partials);
  }
}

/// Columns of a block of the finish. One block has them all if numbers of a row
/// are finished: one may be in the place of an operand of all columns.
template <typename Body>
constexpr int64_t finishColumns =
    Body::shape.totals > 0 ? kCudaBlockColumns : kCudaFinishColumns;

template <typename Body, bool Aligned>
__global__ void __launch_bounds__(kCudaBlockThreads)
    runFinish(Body body, FusedTiling tiling, float *scratch) {
  Row<isRagged<Body>, 0, kWarp> row;
  row.index = 0;
  row.begin = int64_t(blockIdx.x) * finishColumns<Body>;
  row.end = least(row.begin + finishColumns<Body>, Body::shape.cols);
  row.thread = threadIdx.y;
  row.threads = kCudaBlockThreads / kWarp;
  row.line = threadIdx.x;
  row.aligned = Aligned;
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
    const Body body(ins, outs, params_.streams);
    cuda::Queue queue(*device_, stream, Body::name);
    auto *partials = static_cast<float *>(scratch);
    // The assignment of columns to threads doesn't depend on the alignment.
    if constexpr (Body::shape.cols % 4 == 0)
      if (detail::allAligned(ins, outs))
        return launch<true>(queue, body, partials);
    launch<false>(queue, body, partials);
  }

private:
  template <bool Aligned>
  static void launch(cuda::Queue &queue, const Body &body, float *partials) {
    constexpr FusedTiling t = tilingOf(Body::shape, Backend::Cuda);
    constexpr int threads = cudaRowThreads(Body::shape.cols);
    constexpr int rowsPerBlock = kCudaBlockThreads / threads;
    detail::launchFused(queue, detail::runRows<Body, Aligned>,
                        dim3(unsigned(ceilDiv(t.tiles(), rowsPerBlock))),
                        dim3(threads, rowsPerBlock), body, t, partials);
    if constexpr (Body::shape.finish) {
      constexpr int64_t blocks =
          ceilDiv(Body::shape.cols, detail::finishColumns<Body>);
      detail::launchFused(
          queue, detail::runFinish<Body, Aligned>, dim3(unsigned(blocks)),
          dim3(detail::kWarp, kCudaBlockThreads / detail::kWarp), body, t,
          partials);
    }
  }

  Params params_;
  cuda::CudaDevice *device_ = nullptr;
};

} // namespace tmc

#endif // TMC_RUNTIME_CUDA_FUSED_H
