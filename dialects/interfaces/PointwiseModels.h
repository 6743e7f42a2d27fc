// PointwiseModels.h - common code of the external models of upstream's
// pointwise ops.
//
// Such an op needs one line for its expression, and one for its derivative.
//
//     attachPointwise<Infix<"+">, AddFOp, AddIOp>(context);
//     AddFOp::attachInterface<AddVjp>(*context);

#ifndef TMC_DIALECTS_INTERFACES_POINTWISEMODELS_H
#define TMC_DIALECTS_INTERFACES_POINTWISEMODELS_H

#include "dialects/interfaces/Expressions.h"

#include <algorithm>

namespace tmc {

/// One flop per element.
template <typename OpTy>
struct PointwiseCost
    : CostOpInterface::ExternalModel<PointwiseCost<OpTy>, OpTy> {
  int64_t getFlops(mlir::Operation *op) const {
    auto type =
        llvm::dyn_cast<mlir::RankedTensorType>(op->getResult(0).getType());
    return type ? type.getNumElements() : 1;
  }
};

template <typename OpTy>
struct PointwiseCut : CutOpInterface::ExternalModel<PointwiseCut<OpTy>, OpTy> {
  OpCuts getCuts(mlir::Operation *op) const { return pointwiseCuts(op); }
};

using Grads = llvm::SmallVector<mlir::Value>;

/// A derivative written as `static Grads build(OpTy, OpBuilder &, Value dy)`.
template <typename Derived, typename OpTy>
struct Vjp : DifferentiableOpInterface::ExternalModel<Derived, OpTy> {
  llvm::SmallVector<mlir::Value> buildVjp(mlir::Operation *op,
                                          mlir::OpBuilder &b,
                                          llvm::ArrayRef<mlir::Value> grads,
                                          llvm::ArrayRef<bool>) const {
    return Derived::build(llvm::cast<OpTy>(op), b, grads[0]);
  }
};

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

/// Text as a template argument.
template <size_t N> struct Word {
  char text[N];
  constexpr Word(const char (&word)[N]) { std::copy_n(word, N, text); }
};

/// The cost of an element, in simple vector operations.
constexpr unsigned kDivisionCost = 8, kSeriesCost = 16;

/// Forms of an op's expression: the text, its cost, and whether its result must
/// be rounded if the type is narrower than f32. The first question for an
/// operand's text prints what the operand is computed with: two operands are
/// named one after the other, not in one expression, whose order C++ leaves
/// open.
struct Spelling {
  static constexpr unsigned cost = 1;
  static constexpr bool rounds = true;
};

/// a + b
template <Word sign> struct Infix : Spelling {
  static std::string expression(mlir::Operation *, const OperandText &text) {
    // One after the other: only the first operand may be a literal.
    std::string a = text.mixed(0), b = text.mixed(1);
    return a + " " + sign.text + " " + b;
  }
};

/// The same for operands that may be masks.
template <Word sign> struct Bits : Infix<sign> {
  static std::string expression(mlir::Operation *op, const OperandText &text) {
    auto type = llvm::cast<mlir::RankedTensorType>(op->getResult(0).getType());
    if (!type.getElementType().isInteger(1))
      return Infix<sign>::expression(op, text);
    std::string b = text.lanes(1), a = text.lanes(0);
    return "asMask(" + a + " " + sign.text + " " + b + ")";
  }
};

/// -a, and "" for a itself
template <Word sign> struct Prefix : Spelling {
  static std::string expression(mlir::Operation *, const OperandText &text) {
    std::string operand = text.lanes(0);
    bool isNegative = !operand.empty() && operand[0] == '-'; // a literal
    return sign.text + (isNegative ? "(" + operand + ")" : operand);
  }
};

/// f(a, b, ...)
template <Word function> struct Call : Spelling {
  static std::string expression(mlir::Operation *op, const OperandText &text) {
    std::string call = function.text;
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      call += (i ? ", " : "(") + text.lanes(i);
    return call + ")";
  }
};

/// By `expressionOf` in Expressions.h.
template <typename OpTy> struct Special : Spelling {
  static std::string expression(mlir::Operation *op, const OperandText &text) {
    return expressionOf(llvm::cast<OpTy>(op), text);
  }
};

template <typename How, unsigned elementCost> struct Costing : How {
  static constexpr unsigned cost = elementCost;
};

/// The result needs no rounding: it is one of the operands, except for its
/// sign.
template <typename How> struct Exact : How {
  static constexpr bool rounds = false;
};

template <typename How, typename OpTy>
struct PointwiseElement
    : PointwiseOpInterface::ExternalModel<PointwiseElement<How, OpTy>, OpTy> {
  std::string getExpression(mlir::Operation *op,
                            const OperandText &text) const {
    return How::expression(op, text);
  }
  bool roundsResult(mlir::Operation *) const { return How::rounds; }
  unsigned getElementCost(mlir::Operation *) const { return How::cost; }
};

template <typename OpTy>
struct Linear : LinearOpInterface::ExternalModel<Linear<OpTy>, OpTy> {};

template <typename How, typename... OpTys>
void attachPointwise(mlir::MLIRContext *context) {
  (OpTys::template attachInterface<PointwiseCost<OpTys>, PointwiseCut<OpTys>,
                                   PointwiseElement<How, OpTys>>(*context),
   ...);
}
template <typename... OpTys> void attachSpecial(mlir::MLIRContext *context) {
  (attachPointwise<Special<OpTys>, OpTys>(context), ...);
}
template <typename... OpTys> void attachLinear(mlir::MLIRContext *context) {
  (OpTys::template attachInterface<Linear<OpTys>>(*context), ...);
}

} // namespace tmc

#endif // TMC_DIALECTS_INTERFACES_POINTWISEMODELS_H
