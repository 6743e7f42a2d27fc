// Reduce.h - sums, means and extremes over dimensions.
//
// `dims` are in ascending order; with `keep`, they stay as dimensions of size
// 1.

#ifndef TMC_FRONTENDS_COMMON_OPS_REDUCE_H
#define TMC_FRONTENDS_COMMON_OPS_REDUCE_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// `x` reduced over `dims`, which disappear. Kernels reduce floats: integers
/// are converted to f32, which is exact up to 2^24.
mlir::Value reduceAlong(Site &s, mlir::Value x, nn::ReduceKind kind,
                        llvm::ArrayRef<int64_t> dims);

mlir::FailureOr<Val> reduceSum(Site &s, const Val &x,
                               llvm::ArrayRef<int64_t> dims, bool keep);
mlir::FailureOr<Val> reduceMean(Site &s, const Val &x,
                                llvm::ArrayRef<int64_t> dims, bool keep);
mlir::FailureOr<Val> reduceMax(Site &s, const Val &x,
                               llvm::ArrayRef<int64_t> dims, bool keep);
mlir::FailureOr<Val> reduceMin(Site &s, const Val &x,
                               llvm::ArrayRef<int64_t> dims, bool keep);
/// `after` of the sum of `before` of the elements.
mlir::FailureOr<Val>
reduceSumOf(Site &s, const Val &x, llvm::ArrayRef<int64_t> dims, bool keep,
            llvm::function_ref<mlir::Value(mlir::Value)> before,
            llvm::function_ref<mlir::Value(mlir::Value)> after);
/// log(sum(exp(x))).
mlir::FailureOr<Val> logSumExp(Site &s, const Val &x,
                               llvm::ArrayRef<int64_t> dims, bool keep);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_REDUCE_H
