// Order.h - the indices of extremes, and sorted elements.
//
// There is no op that sorts: an element's rank is the number of elements before
// it, and entry r of the sorted ones is the element with rank r. Both are sums
// over comparisons that one kernel makes, without a table in memory: n * n
// comparisons for each n sorted elements.

#ifndef TMC_FRONTENDS_COMMON_OPS_ORDER_H
#define TMC_FRONTENDS_COMMON_OPS_ORDER_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// The index along `axis` of the largest or smallest element; among equal ones,
/// the first or the last. The result keeps `axis`, with size 1.
mlir::FailureOr<Val> placeOfExtreme(Site &s, const Val &x, int64_t axis,
                                    bool isLargest, bool isLast = false);

struct Ordered {
  Val values, places;
};
/// The first `count` elements along `axis` in descending or ascending order;
/// equal ones keep their order.
mlir::FailureOr<Ordered> ordered(Site &s, const Val &x, int64_t axis,
                                 int64_t count, bool isDescending);

/// The product of the elements along `axis`, or the products up to each.
mlir::FailureOr<Val> productAlong(Site &s, const Val &x, int64_t axis);
mlir::FailureOr<Val> runningProduct(Site &s, const Val &x, int64_t axis);

/// The logarithms of the sums of exp(x) up to each element along `axis`.
mlir::FailureOr<Val> runningLogSum(Site &s, const Val &x, int64_t axis);

/// The largest or smallest element up to each one along `axis`, and its index:
/// among equal ones, the last.
mlir::FailureOr<Ordered> runningExtreme(Site &s, const Val &x, int64_t axis,
                                        bool isLargest);

/// The quantiles `at` (0 to 1) of the elements along `axis`, one result for
/// each; between two elements, `how` decides. The results keep `axis`, with
/// size 1.
enum class Between { Linear, Lower, Higher, Midpoint, Nearest };
mlir::FailureOr<llvm::SmallVector<Val>> quantiles(Site &s, const Val &x,
                                                  int64_t axis,
                                                  llvm::ArrayRef<double> at,
                                                  Between how);

/// The number of elements of `x` in each of `bins` equal parts of [low, high].
mlir::FailureOr<Val> histogram(Site &s, const Val &x, int64_t bins, double low,
                               double high);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_ORDER_H
