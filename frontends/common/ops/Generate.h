// Generate.h - tensors made only from numbers, and sums over triangles.

#ifndef TMC_FRONTENDS_COMMON_OPS_GENERATE_H
#define TMC_FRONTENDS_COMMON_OPS_GENERATE_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// start, start + step, ... before `limit`.
mlir::FailureOr<Val> range(Site &s, ElementType type, double start,
                           double limit, double step);

/// The index of each element of `dims` along `dim`.
Array iota(llvm::ArrayRef<int64_t> dims, int64_t dim);

/// True if column minus row is at least `low` and at most `high`; one bound may
/// be absent. The result is a constant, or for large matrices a comparison of
/// positions.
mlir::FailureOr<Val> band(Site &s, int64_t rows, int64_t columns,
                          std::optional<int64_t> low,
                          std::optional<int64_t> high);

/// The elements of matrices on and above the diagonal `k`, or, if not `upper`,
/// on and below; zeros elsewhere.
mlir::FailureOr<Val> triangle(Site &s, const Val &x, bool upper, int64_t k);

/// Ones where the column is the row plus `k`, zeros elsewhere.
mlir::FailureOr<Val> diagonal(Site &s, int64_t rows, int64_t columns, int64_t k,
                              ElementType type);

/// Sums from the start along an axis, as sums over a masked triangle.
struct CumulativeSum {
  int64_t axis = 0;
  bool exclusive = false, reverse = false;
};
mlir::FailureOr<Val> cumulativeSum(Site &s, const Val &x,
                                   const CumulativeSum &how);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_GENERATE_H
