// PadConcatSplit.h - tensors concatenated, split and padded.

#ifndef TMC_FRONTENDS_COMMON_OPS_PADCONCATSPLIT_H
#define TMC_FRONTENDS_COMMON_OPS_PADCONCATSPLIT_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// `x` from `start` in steps of `step`, `length` elements along `dim`. The
/// caller checks that these elements exist.
mlir::FailureOr<Val> strided(Site &s, const Val &x, int64_t dim, int64_t start,
                             int64_t step, int64_t length);

/// `x[start:end:step]` along `axis`, by Python's rule: ends outside are
/// clamped, negative ones count from the end.
mlir::FailureOr<Val> slice(Site &s, const Val &x, int64_t axis, int64_t start,
                           int64_t end, int64_t step);

/// `parts` concatenated along `axis`.
mlir::FailureOr<Val> concat(Site &s, llvm::ArrayRef<Val> parts, int64_t axis);

/// `x` with `fill` around it, `low` elements before and `high` after, per
/// dimension; negative numbers cut elements off.
mlir::FailureOr<Val> pad(Site &s, const Val &x, Dims low, Dims high,
                         double fill);

/// The same with elements of `x` itself: reflected at its ends, the end
/// elements repeated, or elements from the opposite end.
enum class PadMode { Reflect, Edge, Wrap };
mlir::FailureOr<Val> padWithSelf(Site &s, const Val &x, Dims low, Dims high,
                                 PadMode mode);

/// The pieces of `x` along `axis` with these lengths, which sum to its size.
mlir::FailureOr<llvm::SmallVector<Val>> cut(Site &s, const Val &x, int64_t axis,
                                            llvm::ArrayRef<int64_t> lengths);
/// Lengths of pieces of `length` elements each, the last one shorter. An error
/// if there are more than 65,536: each piece becomes an op.
mlir::FailureOr<Dims> evenPieces(Site &s, int64_t total, int64_t length);

/// A sequence from which a later node takes elements.
Val sequenceOf(llvm::ArrayRef<Val> elements);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_PADCONCATSPLIT_H
