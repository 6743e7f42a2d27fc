// PadConcatSplit.h - tensors side by side, cut apart and padded.

#ifndef TMC_FRONTENDS_COMMON_OPS_PADCONCATSPLIT_H
#define TMC_FRONTENDS_COMMON_OPS_PADCONCATSPLIT_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// `x` from `start` in steps of `step`, `length` elements along `dim`. The
/// caller checks that they are there.
mlir::FailureOr<Val> strided(Site &s, const Val &x, int64_t dim, int64_t start,
                             int64_t step, int64_t length);

/// `x[start:end:step]` along `axis`, by Python's rule: ends that lie outside
/// are clamped, negative ones count from the end.
mlir::FailureOr<Val> slice(Site &s, const Val &x, int64_t axis, int64_t start,
                           int64_t end, int64_t step);

/// `parts` side by side along `axis`.
mlir::FailureOr<Val> concat(Site &s, llvm::ArrayRef<Val> parts, int64_t axis);

/// `x` with `fill` around it, `low` elements before and `high` after, per
/// dimension; where these are negative, that many are cut off.
mlir::FailureOr<Val> pad(Site &s, const Val &x, Dims low, Dims high,
                         double fill);

/// The same with elements of `x` itself: mirrored at its ends, those repeated,
/// or from the other end.
enum class PadMode { Reflect, Edge, Wrap };
mlir::FailureOr<Val> padWithSelf(Site &s, const Val &x, Dims low, Dims high,
                                 PadMode mode);

/// The pieces of `x` along `axis` with these lengths, which sum to its size.
mlir::FailureOr<llvm::SmallVector<Val>> cut(Site &s, const Val &x, int64_t axis,
                                            llvm::ArrayRef<int64_t> lengths);
/// Lengths of pieces of `length` elements each, the last one shorter.
Dims evenPieces(int64_t total, int64_t length);

/// Tensors that a later node takes one of.
Val sequenceOf(llvm::ArrayRef<Val> elements);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_PADCONCATSPLIT_H
