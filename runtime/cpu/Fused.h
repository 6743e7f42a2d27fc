//===- Fused.h - runs a fused body on the cpu ------------------*- C++ -*-===//
#ifndef TMC_RUNTIME_CPU_FUSED_H
#define TMC_RUNTIME_CPU_FUSED_H

#include "runtime/cpu/Parallel.h"
#include "runtime/kernels/Fused.h"

namespace tmc {

namespace detail {
template <typename Body>
constexpr int fewColumns = Body::shape.cols <= kFewColumns
                               ? int(Body::shape.cols)
                               : 0;
template <typename Body>
using CpuRow = Row<isRagged<Body>, 0, 1, 4, 0, fewColumns<Body>>;
} // namespace detail

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
      detail::CpuRow<Body> row;
      row.begin = tile % t.colTiles * t.colsPerTile;
      row.end = detail::least(row.begin + t.colsPerTile, Body::shape.cols);
      row.keptValues = keptValues;
      row.keptStride = keptStride(Body::shape.cols);
      const Sums sums{partials + rowTile * t.partialFloats, t,
                      Body::shape.columnSums};
      if constexpr (detail::hasSums<Body>)
        detail::startSums<Body>(row, sums);
      const int64_t last =
          detail::least((rowTile + 1) * t.rowsPerTile, Body::shape.rows);
      for (row.index = rowTile * t.rowsPerTile; row.index != last; ++row.index)
        body.row(row, sums);
    });
    if constexpr (Body::shape.finish)
      parallelFor(stream, ceilDiv(Body::shape.cols, kSumColumns),
                  [&](int64_t tile, int64_t) {
                    detail::CpuRow<Body> row;
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

} // namespace tmc

#endif // TMC_RUNTIME_CPU_FUSED_H
