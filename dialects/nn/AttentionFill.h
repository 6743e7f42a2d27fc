// AttentionFill.h - keys hidden by a finite number, in rows without visible
// keys.
//
// A hidden key has the score -inf, so a query without visible keys gets zeros.
// A model that hides keys by a large finite number instead, such as -1e9, has
// other results for such a query. The fill of nn.attention and of its gradient
// is that number:
//
//     nn.attention %q, %k, %v mask(%m)
//         {causal, scale = 0.125, nn.fill = -1.0e9, nn.fill_kind = 2 : i64}
//
// Beside a visible key, exp(fill) is 0 and changes no bit. For a query that
// sees no key, or only keys hidden by the mask's own numbers (at most -5000),
// `nn.fill_kind` defines the scores:
//
//     0  fill is added to the scores of hidden keys
//     1  fill replaces cap(scale * q k^T); mask and bias are added
//     2  fill replaces the whole score
//
// The sum of fill and score is rounded to f32 (f64 for f64), as in the model.
// The op's lse covers the visible keys; for such a query it is -inf.

#ifndef TMC_DIALECTS_NN_ATTENTIONFILL_H
#define TMC_DIALECTS_NN_ATTENTIONFILL_H

#include "runtime/kernels/Attention.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace tmc::nn {

struct AttentionFill {
  /// At most -1e4; 0: keys are hidden by minus infinity.
  double number = 0;
  FillKind kind = FillKind::Adds;
};

inline AttentionFill fillOf(mlir::Operation *op) {
  AttentionFill fill;
  if (auto number = op->getAttrOfType<mlir::FloatAttr>("nn.fill"))
    fill.number = number.getValueAsDouble();
  if (auto kind = op->getAttrOfType<mlir::IntegerAttr>("nn.fill_kind"))
    fill.kind = FillKind(kind.getInt());
  return fill;
}

inline void setFill(mlir::Operation *op, AttentionFill fill) {
  if (fill.number == 0)
    return;
  mlir::MLIRContext *context = op->getContext();
  op->setAttr("nn.fill", mlir::FloatAttr::get(mlir::Float64Type::get(context),
                                              fill.number));
  if (fill.kind != FillKind::Adds)
    op->setAttr("nn.fill_kind",
                mlir::IntegerAttr::get(mlir::IntegerType::get(context, 64),
                                       int64_t(fill.kind)));
}

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_ATTENTIONFILL_H
