// Matchers.h - what the matchers of -tmc-raise share.
//
// A matcher looks at structure only. It sees through what doesn't change a
// value (views, widening and narrowing casts) and through every way of writing
// a constant; ViewMap.h does the same for changes of layout.

#ifndef TMC_PASSES_RAISE_MATCHERS_H
#define TMC_PASSES_RAISE_MATCHERS_H

#include "dialects/nn/NN.h"

#include "mlir/IR/PatternMatch.h"

#include <optional>
#include <vector>

namespace tmc {

/// The number that every element of `value` is, if constants alone make it:
/// seen through views, casts and arithmetic.
std::optional<double> constantNumber(mlir::Value value);

/// The elements of `value`, in row-major order, if it is made of integer
/// constants by views, slices, sums and products, and isn't too large to tell.
std::optional<std::vector<int64_t>> integerConstants(mlir::Value value);

/// `value` before changes of its float type.
mlir::Value skipCasts(mlir::Value value);

/// `value` as x times a number: x, and the number multiplied onto `factor`.
/// Returns `value` itself where it isn't a product with a constant.
mlir::Value skipFactor(mlir::Value value, double &factor);

/// True if `a` is `b` but for rounding to the few digits that exporters write.
bool isNear(double a, double b, double tolerance = 1e-5);

/// The operands of a commutative op `OpTy` that defines `value`, one way round
/// and the other; none if something else defines it.
template <typename OpTy>
llvm::SmallVector<std::pair<mlir::Value, mlir::Value>, 2>
bothWays(mlir::Value value) {
  auto op = value.getDefiningOp<OpTy>();
  if (!op)
    return {};
  return {{op->getOperand(0), op->getOperand(1)},
          {op->getOperand(1), op->getOperand(0)}};
}

/// One number per row of the innermost dimension, repeated along it: the value
/// with the rows' numbers, whose elements are as many as `value` has rows and
/// in their order; constant factors on the way are multiplied onto `factor`.
/// Null where `value` isn't that.
mlir::Value rowNumbers(mlir::Value value, double &factor);

/// If `value` is the mean of the rows of something, one number per row or
/// already repeated along them: that something, else null.
mlir::Value meanIn(mlir::Value value);

/// True if both are one value, or were computed alike from the same values.
bool isSame(mlir::Value a, mlir::Value b);

/// The vector of the innermost dimension that `value` repeats for every row.
mlir::Value rowVector(mlir::OpBuilder &b, mlir::Value value);
bool isRowVector(mlir::Value value);

/// True if the gradient of the loss by `value` may be wanted: it depends, by
/// floats, on a trainable parameter.
bool dependsOnParameter(mlir::Value value);

/// A pointwise op: all its operands and its result are tensors of one shape.
bool isPointwise(mlir::Operation *op);

/// A copy of the pointwise `op` on other operands, with their shape.
mlir::Value clonePointwise(mlir::OpBuilder &b, mlir::Operation *op,
                           mlir::ValueRange operands);

/// The families of patterns of -tmc-raise.
void populateRaiseActivations(mlir::RewritePatternSet &patterns);
void populateRaiseSigns(mlir::RewritePatternSet &patterns);
void populateRaiseAttention(mlir::RewritePatternSet &patterns);
void populateRaiseLookups(mlir::RewritePatternSet &patterns);
/// The options of -tmc-raise about losses.
struct LossChunks {
  int64_t rows = 0; // 0: none.
  bool ifFree = false;
  int64_t microBatches = 1;
};
void populateRaiseLosses(mlir::RewritePatternSet &patterns, LossChunks chunks);
void populateRaiseMatmul(mlir::RewritePatternSet &patterns);
void populateRaiseNorms(mlir::RewritePatternSet &patterns);
void populateRaiseSoftmax(mlir::RewritePatternSet &patterns);

/// Warns about each softmax between two batched products in `root` that isn't
/// an attention op, with the reason.
void warnAboutUnraisedAttention(mlir::Operation *root);

} // namespace tmc

#endif // TMC_PASSES_RAISE_MATCHERS_H
