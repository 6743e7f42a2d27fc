// Shape.h - tensors in other shapes, and in another order.

#ifndef TMC_FRONTENDS_COMMON_OPS_SHAPE_H
#define TMC_FRONTENDS_COMMON_OPS_SHAPE_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// `x` in the shape `dims`, which must have the same number of elements.
mlir::FailureOr<Val> reshaped(Site &s, const Val &x,
                              llvm::ArrayRef<int64_t> dims);
/// The same, but one of `dims` may be -1: it is inferred.
mlir::FailureOr<Val> viewed(Site &s, const Val &x, Dims dims);
/// `x` without `axes`; if `axes` is absent, without all dimensions of size 1.
mlir::FailureOr<Val> squeeze(Site &s, const Val &x, std::optional<Dims> axes);
/// `x` with new dimensions of size 1, at `axes` of the result.
mlir::FailureOr<Val> unsqueeze(Site &s, const Val &x,
                               llvm::ArrayRef<int64_t> axes);
mlir::FailureOr<Val> transpose(Site &s, const Val &x,
                               llvm::ArrayRef<int64_t> perm);
/// `x` repeated to the common shape of `x` and `dims`.
mlir::FailureOr<Val> expand(Site &s, const Val &x,
                            llvm::ArrayRef<int64_t> dims);
/// `x` as a whole repeated, `times` along each dimension.
mlir::FailureOr<Val> tile(Site &s, const Val &x, llvm::ArrayRef<int64_t> times);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_SHAPE_H
