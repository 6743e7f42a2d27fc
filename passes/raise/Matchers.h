// Matchers.h - common functions of the matchers of -tmc-raise.
//
// A matcher looks at structure only. It sees through ops that don't change a
// value (views, widening and narrowing casts) and through every way of writing
// a constant; ViewMap.h does the same for changes of layout.

#ifndef TMC_PASSES_RAISE_MATCHERS_H
#define TMC_PASSES_RAISE_MATCHERS_H

#include "dialects/nn/NN.h"

#include "mlir/IR/PatternMatch.h"

#include <optional>
#include <vector>

namespace tmc {

/// The number that every element of `value` equals, if it is computed from
/// constants only; looks through views, casts and arithmetic.
std::optional<double> constantNumber(mlir::Value value);

/// The elements of `value`, in row-major order, if it is computed from integer
/// constants by views, slices, sums and products, and isn't too large to
/// evaluate.
std::optional<std::vector<int64_t>> integerConstants(mlir::Value value);

/// `value` before casts of its float type.
mlir::Value skipCasts(mlir::Value value);

/// If `value` is x times a number: returns x, and multiplies `factor` by the
/// number. Else returns `value` itself.
mlir::Value skipFactor(mlir::Value value, double &factor);

/// True if `a` equals `b` up to the few digits that exporters write.
bool isNear(double a, double b, double tolerance = 1e-5);

/// The operands of a commutative op `OpTy` that defines `value`, in both
/// orders; none if another op defines it.
template <typename OpTy>
llvm::SmallVector<std::pair<mlir::Value, mlir::Value>, 2>
bothWays(mlir::Value value) {
  auto op = value.getDefiningOp<OpTy>();
  if (!op)
    return {};
  return {{op->getOperand(0), op->getOperand(1)},
          {op->getOperand(1), op->getOperand(0)}};
}

/// If `value` repeats one number per row along the innermost dimension: the
/// value with the rows' numbers, one element per row in the order of rows.
/// Multiplies `factor` by constant factors on the way. Else null.
mlir::Value rowNumbers(mlir::Value value, double &factor);

/// If `value` is the mean of the rows of another value, one number per row or
/// repeated along them: that value, else null.
mlir::Value meanIn(mlir::Value value);

/// True if both are one value, or are computed by equal ops from the same
/// values.
bool isSame(mlir::Value a, mlir::Value b);

/// The vector of the innermost dimension that `value` repeats for every row.
mlir::Value rowVector(mlir::OpBuilder &b, mlir::Value value);
bool isRowVector(mlir::Value value);

/// True if the gradient of the loss with respect to `value` may be needed:
/// `value` depends, through floats, on a trainable parameter.
bool dependsOnParameter(mlir::Value value);

/// A pointwise op: all its operands and its result are tensors of one shape.
bool isPointwise(mlir::Operation *op);

/// A copy of the pointwise `op` on other operands, with their shape.
mlir::Value clonePointwise(mlir::OpBuilder &b, mlir::Operation *op,
                           mlir::ValueRange operands);

/// The families of patterns of -tmc-raise.
void populateRaiseActivations(mlir::RewritePatternSet &patterns);
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
/// For after all that reads a sum with a bias.
void populateRaiseBias(mlir::RewritePatternSet &patterns);
void populateRaiseNorms(mlir::RewritePatternSet &patterns);
void populateRaiseRotary(mlir::RewritePatternSet &patterns);
void populateRaiseSoftmax(mlir::RewritePatternSet &patterns);

/// Warns about each softmax between two batched products in `root` that isn't
/// part of an attention op, with the reason.
void warnAboutUnraisedAttention(mlir::Operation *root);

} // namespace tmc

#endif // TMC_PASSES_RAISE_MATCHERS_H
