// Builders.h - short forms for building the IR of derivatives and rewrites.
// Every function inserts at the builder's insertion point.

#ifndef TMC_DIALECTS_NN_BUILDERS_H
#define TMC_DIALECTS_NN_BUILDERS_H

#include "dialects/nn/NN.h"

namespace tmc::nn {

/// A tensor of `type` (float or integer elements) whose elements are `value`.
mlir::Value splat(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type,
                  double value);

/// `x`, a tensor of any rank, repeated to `type`: dimension i of `x` becomes
/// dimension `dims[i]`.
mlir::Value broadcastTo(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                        mlir::Type type, llvm::ArrayRef<int64_t> dims);

/// A scalar tensor, or a tensor of `type`'s leading dimensions, repeated to
/// `type`.
mlir::Value broadcastLeading(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value x, mlir::Type type);

/// A vector repeated along all but the innermost dimension of `type`.
mlir::Value broadcastTrailing(mlir::OpBuilder &b, mlir::Location loc,
                              mlir::Value x, mlir::Type type);

/// The vector that `x` repeats so, or null.
mlir::Value repeatedVector(mlir::Value x);

/// Sum of `x` over `dims`; `x` itself if `dims` is empty.
mlir::Value reduceSum(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                      llvm::ArrayRef<int64_t> dims);

/// `x` with `shape`; `x` itself if it has that shape.
mlir::Value reshapeTo(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                      llvm::ArrayRef<int64_t> shape);

/// `x` in another float type, rounded if that is narrower; `x` itself if the
/// type is equal.
mlir::Value convertTo(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                      mlir::Type element);
mlir::Value add(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                mlir::Value y);
mlir::Value sub(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                mlir::Value y);
mlir::Value mul(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                mlir::Value y);
mlir::Value div(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                mlir::Value y);
/// `x` times the number `factor`.
mlir::Value scale(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                  double factor);

/// The value of a splat constant, float or integer, or nothing.
std::optional<double> splatValue(mlir::Value x);

/// 0, 1, ..., n - 1.
llvm::SmallVector<int64_t> firstDims(int64_t n);

inline mlir::RankedTensorType tensorType(mlir::Value x) {
  return mlir::cast<mlir::RankedTensorType>(x.getType());
}

/// f64 for f64, else f32: the type of sums and statistics of `element`.
mlir::Type accumulationType(mlir::Type element);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_BUILDERS_H
