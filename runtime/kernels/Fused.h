//===- Fused.h - the kernel class around a fused body -----------*- C++ -*-===//
//
// `Fused<Body>` runs a generated body over its rows and columns. A body is a
// struct like this one, which the compiler prints:
//
//     struct residual_norm {
//       static constexpr tmc::FusedShape shape{.rows = 256, .cols = 768, ...};
//       const float *x, *scale;
//       float *y;
//       residual_norm(tmc::In in, tmc::Out out) : x(...), ... {}
//       template <typename R> TMC_HD void row(const R &row, Sums sums) const;
//       template <typename R> TMC_HD void finish(const R &row, Sums sums)
//       const;
//     };
//
// `row` is called for each row (or piece of one, where no row is reduced);
// `finish`, if the shape has sums, when all rows are done, with a "row" that
// walks the columns once.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_FUSED_H
#define TMC_RUNTIME_KERNELS_FUSED_H

#include "runtime/kernels/Row.h"
#include "runtime/step/Stream.h"

#ifndef TMC_CUDA
#include "runtime/cpu/Parallel.h"
#endif

namespace tmc {

/// Random numbers of how many streams a fused kernel may draw.
constexpr int kMostStreams = 8;

/// Parameters of every fused kernel; its shape is in its body's type. One body
/// serves several ops that draw from different streams.
struct FusedParams {
  int64_t streams[kMostStreams] = {};
  int64_t scratchBytes = 0;
};

namespace detail {
TMC_HD constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

inline Status checkFusedScratch(const FusedTiling &tiling, int64_t planned) {
  if (tiling.scratchBytes() <= planned)
    return Status::ok();
  return {Code::OverBudget, "a fused kernel wants " +
                                std::to_string(tiling.scratchBytes()) +
                                " bytes of scratch; " +
                                std::to_string(planned) + " were planned"};
}

template <typename Body>
constexpr bool hasSums = (Body::shape.columnSums + Body::shape.totals) > 0;

/// Rows of a body: ragged where the columns don't fill whole vectors.
template <typename Body>
using RowOf = Row<(Body::shape.cols % kWholeColumns != 0)>;

/// Floats of a row's kept values, and of one row's share of them.
template <typename Body>
constexpr int64_t keptFloats = Body::shape.kept *keptStride(Body::shape.cols);
} // namespace detail

#ifdef TMC_CUDA

namespace detail {
template <typename... P, typename... A>
void launchFused(void (*kernel)(P...), dim3 grid, dim3 block,
                 cudaStream_t stream, A... arguments) {
#ifdef __CUDACC__
  kernel<<<grid, block, 0, stream>>>(arguments...);
#else
  (void)stream;
  emulator::launch(reinterpret_cast<const void *>(kernel), grid, block, 0,
                   [=] { kernel(arguments...); });
#endif
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

  Status prepare(Device &) override {
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
    auto native = static_cast<cudaStream_t>(stream.native());
    // Which thread takes which column doesn't depend on the alignment.
    const bool aligned =
        Body::shape.cols % 4 == 0 && detail::allAligned(ins, outs);
    auto *partials = static_cast<float *>(scratch);
    detail::launchFused(
        detail::runRows<Body>, dim3(unsigned(ceilDiv(t.tiles(), rowsPerBlock))),
        dim3(threads, rowsPerBlock), native, body, t, partials, aligned);
    if constexpr (Body::shape.finish) {
      constexpr int64_t blocks = ceilDiv(Body::shape.cols, kCudaBlockColumns);
      detail::launchFused(detail::runFinish<Body>, dim3(unsigned(blocks)),
                          dim3(kCudaBlockThreads), native, body, t, partials,
                          aligned);
    }
  }

private:
  Params params_;
};

#else

template <typename Body> class Fused final : public Kernel {
public:
  using Params = FusedParams;
  explicit Fused(const Params &params) : params_(params) {}

  Status prepare(Device &) override {
    return detail::checkFusedScratch(tilingOf(Body::shape, Backend::Cpu),
                                     params_.scratchBytes);
  }

  void run(Stream &stream, In ins, Out outs, void *scratch,
           bool = false) override {
    if (Body::shape.rows == 0 || Body::shape.cols == 0)
      return;
    constexpr FusedTiling t = tilingOf(Body::shape, Backend::Cpu);
    const Body body(ins, outs, params_.streams);
    auto *partials = static_cast<float *>(scratch);
    parallelFor(stream, t.tiles(), [&](int64_t tile, int64_t) {
      constexpr int64_t kept = detail::keptFloats<Body>;
      alignas(64) float keptValues[kept > 0 ? kept : 1];
      const int64_t rowTile = tile / t.colTiles;
      detail::RowOf<Body> row;
      row.begin = tile % t.colTiles * t.colsPerTile;
      row.end = detail::least(row.begin + t.colsPerTile, Body::shape.cols);
      row.keptValues = keptValues;
      row.keptStride = keptStride(Body::shape.cols);
      const Sums sums{partials + rowTile * t.partialFloats, t,
                      Body::shape.columnSums};
      if constexpr (detail::hasSums<Body>)
        body.start(row, sums);
      const int64_t last =
          detail::least((rowTile + 1) * t.rowsPerTile, Body::shape.rows);
      for (row.index = rowTile * t.rowsPerTile; row.index != last; ++row.index)
        body.row(row, sums);
    });
    if constexpr (Body::shape.finish)
      parallelFor(stream, ceilDiv(Body::shape.cols, kSumColumns),
                  [&](int64_t tile, int64_t) {
                    detail::RowOf<Body> row;
                    row.index = 0;
                    row.begin = tile * kSumColumns;
                    row.end = detail::least(row.begin + kSumColumns,
                                            Body::shape.cols);
                    row.keptValues = nullptr;
                    row.keptStride = 0;
                    body.finish(row, Sums{partials, t, Body::shape.columnSums});
                  });
  }

private:
  Params params_;
};

#endif

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_FUSED_H
