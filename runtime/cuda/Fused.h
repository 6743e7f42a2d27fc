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
  const cuda::TimedLaunch timed = queue.time(kernel);
  TMC_LAUNCH(kernel, grid, block, 0, queue.native(), arguments...);
  queue.check(cudaGetLastError());
}

template <typename Body>
constexpr FusedTiling tiles = tilingOf(Body::shape, Backend::Cuda);
template <typename Body> constexpr int rowThreads = cudaRowThreads(Body::shape);
template <typename Body> constexpr int lanesAtOnce = cudaLanes(Body::shape);
/// Steps of a thread over the columns of a tile.
template <typename Body>
constexpr int stepsOf = int(ceilDiv(tiles<Body>.colsPerTile,
                                    lanesAtOnce<Body> *rowThreads<Body>));
/// Rows that a block has at once: one for each warp, or one.
template <typename Body>
constexpr int rowsAtOnce = kCudaBlockThreads / rowThreads<Body>;

/// True if a tile's sums over rows are in registers. A warp's sums always are.
template <typename Body>
constexpr bool sumsInRegisters =
    hasSums<Body> &&Body::shape.columnSums *stepsOf<Body> *lanesAtOnce<Body> <=
    kCudaRegisterFloats;

/// True if a row's kept values are in registers, and not in shared memory.
template <typename Body>
constexpr bool keptInRegisters = Body::shape.kept > 0 &&
                                 rowThreads<Body> ==
                                     kCudaWarp &&
                                         cudaKeepsInRegisters(Body::shape);

/// Floats of a block's kept values in shared memory.
template <typename Body>
constexpr int64_t keptShared =
    keptInRegisters<Body> ? 0 : keptFloats<Body> *rowsAtOnce<Body>;

/// The walk over a tile's rows. Steps are only unrolled where something of them
/// is in registers, or where there are few.
template <typename Body>
constexpr int unrolledSteps =
    sumsInRegisters<Body> || keptInRegisters<Body> || stepsOf<Body> <= 4
        ? stepsOf<Body>
        : 0;
template <typename Body>
using RowOf = Row<isRagged<Body>, unrolledSteps<Body>, 1, lanesAtOnce<Body>,
                  keptInRegisters<Body> ? Body::shape.kept : 0>;
template <typename Body>
using RegisterSumsOf = RegisterSums<Body::shape.columnSums, Body::shape.totals,
                                    stepsOf<Body>, lanesAtOnce<Body>>;

/// Adds the warps' sums of a block in order, in shared memory, and stores them.
template <typename Body>
__device__ void storeWarpSums(const RegisterSumsOf<Body> &sums,
                              const Sums &partials) {
  using ColumnKinds = typename Body::ColumnSums;
  using TotalKinds = typename Body::Totals;
  constexpr int lanes = lanesAtOnce<Body>, warps = rowsAtOnce<Body>,
                columns = lanes * kCudaWarp;
  constexpr int64_t whole = Body::shape.cols / lanes * lanes;
  alignas(16) __shared__ float parts[warps][columns];
  const int lane = threadIdx.x, warp = threadIdx.y,
            thread = warp * kCudaWarp + lane;
  auto total = [&](auto &&combine, int column) {
    float sum = parts[0][column];
    for (int w = 1; w < warps; ++w)
      sum = combine(sum, parts[w][column]);
    return sum;
  };
#pragma unroll
  for (int k = 0; k < Body::shape.columnSums; ++k) {
    auto combine = [&](float a, float b) { return ColumnKinds::one(k, a, b); };
#pragma unroll
    for (int step = 0; step < stepsOf<Body>; ++step) {
      __syncthreads(); // The parts before have been read.
      storeLanes<lanes, true>(&parts[warp][lane * lanes],
                              sums.columns[k][step]);
      __syncthreads();
      const int64_t column = int64_t(step) * columns + thread;
      if (thread < columns && column < whole)
        partials.column(k)[column] = total(combine, thread);
    }
    if constexpr (whole < Body::shape.cols) {
      __syncthreads();
      parts[warp][lane] = sums.tails[k];
      __syncthreads();
      if (whole + thread < Body::shape.cols)
        partials.column(k)[whole + thread] = total(combine, thread);
    }
  }
  for (int k = 0; k < Body::shape.totals; ++k) {
    __syncthreads();
    if (lane == 0)
      parts[warp][0] = sums.totals[k];
    __syncthreads();
    if (thread == 0)
      *partials.total(k) =
          total([&](float a, float b) { return TotalKinds::one(k, a, b); }, 0);
  }
}

/// Blocks that a multiprocessor holds at once, at least: the registers of a
/// thread are limited so.
template <typename Body>
constexpr int residentBlocks = rowsAtOnce<Body> > 1 ? 2 : 1;

template <typename Body, bool Aligned>
__global__ void __launch_bounds__(kCudaBlockThreads, residentBlocks<Body>)
    runRows(Body body, float *scratch) {
  constexpr FusedTiling tiling = tiles<Body>;
  constexpr int64_t kept = keptShared<Body>;
  alignas(16) __shared__ float keptValues[kept > 0 ? kept : 1];
  const int64_t rowTile = int64_t(blockIdx.x) / tiling.colTiles;
  RowOf<Body> row;
  row.begin = int64_t(blockIdx.x) % tiling.colTiles * tiling.colsPerTile;
  row.end = least(row.begin + tiling.colsPerTile, Body::shape.cols);
  row.thread = threadIdx.x;
  row.threads = rowThreads<Body>;
  row.aligned = Aligned;
  row.keptValues = keptValues;
  if constexpr (kept > 0)
    row.keptValues += threadIdx.y * keptFloats<Body>;
  row.keptStride = keptStride(Body::shape.cols);
  const Sums partials{scratch + rowTile * tiling.partialFloats, tiling,
                      Body::shape.columnSums};
  const int64_t last =
      least((rowTile + 1) * tiling.rowsPerTile, Body::shape.rows);
  auto rows = [&](const auto &sums) {
    if constexpr (hasSums<Body>)
      startSums<Body>(row, sums);
    for (row.index = rowTile * tiling.rowsPerTile + threadIdx.y;
         last > row.index; row.index += rowsAtOnce<Body>)
      body.row(row, sums);
  };
  if constexpr (sumsInRegisters<Body>) {
    RegisterSumsOf<Body> sums;
    rows(sums);
    if constexpr (rowsAtOnce < Body >> 1) {
      storeWarpSums<Body>(sums, partials);
    } else {
      if constexpr (Body::shape.columnSums > 0)
        row.each([&](auto c) {
#pragma unroll
          for (int k = 0; k < Body::shape.columnSums; ++k)
            c.store(partials.column(k), c.load(sums.column(k)));
        });
      if (row.isFirst())
        for (int k = 0; k < Body::shape.totals; ++k)
          *partials.total(k) = sums.totals[k];
    }
  } else {
    rows(partials);
  }
}

/// Columns of a block of the finish. One block has them all if numbers of a row
/// are finished: one may be in the place of an operand of all columns.
template <typename Body>
constexpr int64_t finishColumns =
    Body::shape.totals > 0 ? kCudaTotalColumns : kCudaFinishColumns;

template <typename Body, bool Aligned>
__global__ void __launch_bounds__(kCudaBlockThreads)
    runFinish(Body body, float *scratch) {
  constexpr FusedTiling tiling = tiles<Body>;
  Row<isRagged<Body>, 0, kCudaWarp> row;
  row.index = 0;
  row.begin = int64_t(blockIdx.x) * finishColumns<Body>;
  row.end = least(row.begin + finishColumns<Body>, Body::shape.cols);
  row.thread = threadIdx.y;
  row.threads = kCudaBlockThreads / kCudaWarp;
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
    detail::launchFused(
        queue, detail::runRows<Body, Aligned>,
        dim3(unsigned(detail::tiles<Body>.tiles())),
        dim3(detail::rowThreads<Body>, detail::rowsAtOnce<Body>), body,
        partials);
    if constexpr (Body::shape.finish) {
      constexpr int64_t blocks =
          ceilDiv(Body::shape.cols, detail::finishColumns<Body>);
      detail::launchFused(
          queue, detail::runFinish<Body, Aligned>, dim3(unsigned(blocks)),
          dim3(kCudaWarp, kCudaBlockThreads / kCudaWarp), body, partials);
    }
  }

  Params params_;
  cuda::CudaDevice *device_ = nullptr;
};

} // namespace tmc

#endif // TMC_RUNTIME_CUDA_FUSED_H
