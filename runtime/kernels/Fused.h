//===- Fused.h - fused bodies on every backend ------------------*- C++ -*-===//
//
// `Fused<Body>` (runtime/cpu/Fused.h, runtime/cuda/Fused.h) runs a generated
// body over its rows and columns. The compiler prints a body as a struct like
// this one:
//
//     struct residual_norm {
//       static constexpr const char *name = "residual_norm"; // in messages
//       static constexpr tmc::FusedShape shape{.rows = 256, .cols = 768, ...};
//       const float *x, *scale;
//       float *y;
//       residual_norm(tmc::In in, tmc::Out out) : x(...), ... {}
//       using ColumnSums = tmc::Combine<tmc::Sum>; // the kinds of sums over
//       rows using Totals = tmc::Combine<>; template <typename R> TMC_HD void
//       row(const R &, Sums) const; template <typename R> TMC_HD void
//       finish(const R &, Sums) const;
//     };
//
// `row` is called for each row (or piece of a row, if no row is reduced). If
// the shape has sums, `finish` is called after all rows, with a "row" that
// walks the columns once.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_FUSED_H
#define TMC_RUNTIME_KERNELS_FUSED_H

#include "runtime/kernels/Generated.h"
#include "runtime/kernels/Row.h"

namespace tmc {
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

/// Begins the sums over a tile's rows.
template <typename Body, typename R, typename S>
TMC_HD TMC_INLINE void startSums(const R &row, const S &sums) {
  using Columns = typename Body::ColumnSums;
  using Totals = typename Body::Totals;
  if constexpr (Columns::count > 0)
    row.each([&](auto c) {
      for (int k = 0; k < Columns::count; ++k)
        c.store(sums.column(k), c.spread(Columns::init(k)));
    });
  for (int k = 0; k < Totals::count; ++k)
    row.store(sums.total(k), Totals::init(k));
}

/// True if a body's columns don't fill whole vectors.
template <typename Body>
constexpr bool isRagged = Body::shape.cols % kWholeColumns != 0;

/// Floats of a row's kept values.
template <typename Body>
constexpr int64_t keptFloats = Body::shape.kept *keptStride(Body::shape.cols);
} // namespace detail

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_FUSED_H
