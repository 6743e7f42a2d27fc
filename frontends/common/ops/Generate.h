// Generate.h - tensors made from numbers alone, and sums over triangles.

#ifndef TMC_FRONTENDS_COMMON_OPS_GENERATE_H
#define TMC_FRONTENDS_COMMON_OPS_GENERATE_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// start, start + step, ... before `limit`.
mlir::FailureOr<Val> range(Site &s, ElementType type, double start,
                           double limit, double step);

/// The number of row or column of each element of `dims`.
Array iota(llvm::ArrayRef<int64_t> dims, int64_t dim);

/// True where the column is no less than `low` ahead of the row, and no more
/// than `high`; one of them may be absent. A constant, or of large matrices a
/// comparison of positions.
mlir::FailureOr<Val> band(Site &s, int64_t rows, int64_t columns,
                          std::optional<int64_t> low,
                          std::optional<int64_t> high);

/// The elements of matrices on and above the diagonal `k`, or, if not `upper`,
/// on and below; zeros elsewhere.
mlir::FailureOr<Val> triangle(Site &s, const Val &x, bool upper, int64_t k);

/// Ones where the column is the row plus `k`, zeros elsewhere.
mlir::FailureOr<Val> diagonal(Site &s, int64_t rows, int64_t columns, int64_t k,
                              ElementType type);

/// Sums from the start along an axis, as a sum over a triangle.
struct CumulativeSum {
  int64_t axis = 0;
  bool exclusive = false, reverse = false;
};
mlir::FailureOr<Val> cumulativeSum(Site &s, const Val &x,
                                   const CumulativeSum &how);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_GENERATE_H
