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

#ifndef __CUDACC__
#include "runtime/cpu/Parallel.h"
#endif

namespace tmc {

/// Parameters of every fused kernel: its shape is in its body's type.
struct FusedParams {
  int64_t scratchBytes;
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
} // namespace detail

#ifdef __CUDACC__

namespace detail {
/// Threads that share a row: a warp where 32 x 4 columns nearly cover it (then
/// 8 rows share a block), else a block.
constexpr int kBlockThreads = 256;
template <typename Body>
constexpr int rowThreads = (Body::shape.cols <= 512) ? 32 : kBlockThreads;

template <typename Body>
__global__ void __launch_bounds__(kBlockThreads)
    runRows(Body body, FusedTiling tiling, float *scratch, bool aligned) {
  const int64_t tile = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (tile >= tiling.tiles()) // a whole warp, or a whole block
    return;
  const int64_t rowTile = tile / tiling.colTiles;
  const int64_t begin = tile % tiling.colTiles * tiling.colsPerTile;
  const int64_t end =
      detail::least(begin + tiling.colsPerTile, Body::shape.cols);
  detail::RowOf<Body> row{0,      begin, end, int(threadIdx.x), int(blockDim.x),
                          aligned};
  Sums sums{scratch + rowTile * tiling.partialFloats, tiling,
            Body::shape.columnSums};
  if constexpr (hasSums<Body>)
    body.start(row, sums);
  const int64_t last =
      detail::least((rowTile + 1) * tiling.rowsPerTile, Body::shape.rows);
  for (row.index = rowTile * tiling.rowsPerTile; row.index != last; ++row.index)
    body.row(row, sums);
}

template <typename Body>
__global__ void __launch_bounds__(kBlockThreads)
    runFinish(Body body, FusedTiling tiling, float *scratch, bool aligned) {
  const int64_t begin = int64_t(blockIdx.x) * kCudaBlockColumns;
  const int64_t end =
      detail::least(begin + kCudaBlockColumns, Body::shape.cols);
  detail::RowOf<Body> row{0,      begin, end, int(threadIdx.x), int(blockDim.x),
                          aligned};
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
  explicit Fused(const FusedParams &params) : params_(params) {}

  Status prepare(Device &) override {
    return detail::checkFusedScratch(tiling(), params_.scratchBytes);
  }

  void run(Stream &stream, In ins, Out outs, void *scratch,
           bool accumulate = false) override {
    if (Body::shape.rows == 0 || Body::shape.cols == 0)
      return;
    constexpr FusedTiling t = tiling();
    constexpr int threads = detail::rowThreads<Body>;
    constexpr int rowsPerBlock = detail::kBlockThreads / threads;
    const Body body(ins, outs, accumulate);
    auto native = static_cast<cudaStream_t>(stream.native());
    // Which thread takes which column doesn't depend on the alignment.
    const bool aligned =
        Body::shape.cols % 4 == 0 && detail::allAligned(ins, outs);
    auto *partials = static_cast<float *>(scratch);
    detail::runRows<<<unsigned(ceilDiv(t.tiles(), rowsPerBlock)),
                      dim3(threads, rowsPerBlock), 0, native>>>(
        body, t, partials, aligned);
    if constexpr (detail::hasSums<Body>)
      detail::
          runFinish<<<unsigned(ceilDiv(Body::shape.cols, kCudaBlockColumns)),
                      detail::kBlockThreads, 0, native>>>(body, t, partials,
                                                          aligned);
  }

private:
  static constexpr FusedTiling tiling() {
    return tilingOf(Body::shape, Backend::Cuda);
  }
  FusedParams params_;
};

#else

template <typename Body> class Fused final : public Kernel {
public:
  explicit Fused(const FusedParams &params) : params_(params) {}

  Status prepare(Device &) override {
    return detail::checkFusedScratch(tiling(), params_.scratchBytes);
  }

  void run(Stream &stream, In ins, Out outs, void *scratch,
           bool accumulate = false) override {
    if (Body::shape.rows == 0 || Body::shape.cols == 0)
      return;
    constexpr FusedTiling t = tiling();
    const Body body(ins, outs, accumulate);
    auto *partials = static_cast<float *>(scratch);
    parallelFor(stream, t.tiles(), [&](int64_t tile, int64_t) {
      const int64_t rowTile = tile / t.colTiles;
      const int64_t begin = tile % t.colTiles * t.colsPerTile;
      detail::RowOf<Body> row{
          0, begin, detail::least(begin + t.colsPerTile, Body::shape.cols)};
      Sums sums{partials, t, Body::shape.columnSums};
      if constexpr (detail::hasSums<Body>) {
        sums.partials += rowTile * t.partialFloats;
        body.start(row, sums);
      }
      const int64_t last =
          detail::least((rowTile + 1) * t.rowsPerTile, Body::shape.rows);
      for (row.index = rowTile * t.rowsPerTile; row.index != last; ++row.index)
        body.row(row, sums);
    });
    if constexpr (detail::hasSums<Body>)
      parallelFor(stream, ceilDiv(Body::shape.cols, kSumColumns),
                  [&](int64_t tile, int64_t) {
                    const int64_t begin = tile * kSumColumns;
                    detail::RowOf<Body> row{
                        0, begin,
                        detail::least(begin + kSumColumns, Body::shape.cols)};
                    body.finish(row, Sums{partials, t, Body::shape.columnSums});
                  });
  }

private:
  static constexpr FusedTiling tiling() {
    return tilingOf(Body::shape, Backend::Cpu);
  }
  FusedParams params_;
};

#endif

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_FUSED_H
