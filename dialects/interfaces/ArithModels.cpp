// ArithModels.cpp - expressions, costs, cuts and derivatives of the arith ops
// that tmc accepts on tensors. All are pointwise.

#include "dialects/interfaces/PointwiseModels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace tmc;

namespace {

Value splatLike(OpBuilder &b, Location loc, Value like, double value) {
  auto type = cast<RankedTensorType>(like.getType());
  return arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(
          type, Attribute(b.getFloatAttr(type.getElementType(), value))));
}

struct AddVjp : Vjp<AddVjp, arith::AddFOp> {
  static Grads build(arith::AddFOp op, OpBuilder &b, Value dy) {
    return {dy, dy};
  }
};

struct SubVjp : Vjp<SubVjp, arith::SubFOp> {
  static Grads build(arith::SubFOp op, OpBuilder &b, Value dy) {
    return {dy, arith::NegFOp::create(b, op.getLoc(), dy)};
  }
};

struct MulVjp : Vjp<MulVjp, arith::MulFOp> {
  static Grads build(arith::MulFOp op, OpBuilder &b, Value dy) {
    return {arith::MulFOp::create(b, op.getLoc(), dy, op.getRhs()),
            arith::MulFOp::create(b, op.getLoc(), dy, op.getLhs())};
  }
};

struct DivVjp : Vjp<DivVjp, arith::DivFOp> {
  static Grads build(arith::DivFOp op, OpBuilder &b, Value dy) {
    // y = l / r: dl = dy / r, dr = -(dy / r) y.
    Value dl = arith::DivFOp::create(b, op.getLoc(), dy, op.getRhs());
    Value product = arith::MulFOp::create(b, op.getLoc(), dl, op.getResult());
    return {dl, arith::NegFOp::create(b, op.getLoc(), product)};
  }
};

struct NegVjp : Vjp<NegVjp, arith::NegFOp> {
  static Grads build(arith::NegFOp op, OpBuilder &b, Value dy) {
    return {arith::NegFOp::create(b, op.getLoc(), dy)};
  }
};

/// max and min pass the gradient to the operand with the larger or smaller
/// value. For a tie both operands share it, as in PyTorch for two tensors. A
/// splat gets none for a tie: relu has slope zero at zero.
template <typename OpTy, arith::CmpFPredicate wins>
struct ExtremumVjp : Vjp<ExtremumVjp<OpTy, wins>, OpTy> {
  static Grads build(OpTy op, OpBuilder &b, Value dy) {
    Location loc = op.getLoc();
    Value l = op.getLhs(), r = op.getRhs(), zero = splatLike(b, loc, dy, 0);
    auto isConstant = [](Value v) {
      return v.getDefiningOp<arith::ConstantOp>() != nullptr;
    };
    Value left = arith::CmpFOp::create(b, loc, wins, l, r);
    Value right = arith::CmpFOp::create(b, loc, wins, r, l);
    Value dl = arith::SelectOp::create(b, loc, left, dy, zero);
    Value dr = arith::SelectOp::create(b, loc, right, dy, zero);
    if (isConstant(l) || isConstant(r))
      return {isConstant(l) ? Value() : dl, isConstant(r) ? Value() : dr};
    Value half = arith::MulFOp::create(b, loc, dy, splatLike(b, loc, dy, 0.5));
    Value tie = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, l, r);
    return {arith::SelectOp::create(b, loc, tie, half, dl),
            arith::SelectOp::create(b, loc, tie, half, dr)};
  }
};

struct SelectVjp : Vjp<SelectVjp, arith::SelectOp> {
  static Grads build(arith::SelectOp op, OpBuilder &b, Value dy) {
    Location loc = op.getLoc();
    Value zero = splatLike(b, loc, dy, 0), condition = op.getCondition();
    return {Value(), arith::SelectOp::create(b, loc, condition, dy, zero),
            arith::SelectOp::create(b, loc, condition, zero, dy)};
  }
};

template <typename OpTy, typename BackOp>
struct CastVjp : Vjp<CastVjp<OpTy, BackOp>, OpTy> {
  static Grads build(OpTy op, OpBuilder &b, Value dy) {
    return {BackOp::create(b, op.getLoc(), op.getIn().getType(), dy)};
  }
};

/// Constants cost nothing and are equal for all parts of a batch.
struct ConstantCost
    : CostOpInterface::ExternalModel<ConstantCost, arith::ConstantOp> {
  int64_t getFlops(Operation *) const { return 0; }
  int64_t getBytesMoved(Operation *) const { return 0; }
};
/// Its value is an attribute, and pieces have the whole's attributes.
struct ConstantCut
    : CutOpInterface::ExternalModel<ConstantCut, arith::ConstantOp> {
  OpCuts getCuts(Operation *op) const { return {op, "it has no operand"}; }
};

} // namespace

void tmc::registerArithModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *ctx, arith::ArithDialect *) {
    using namespace arith;
    attachPointwise<Infix<"+">, AddFOp, AddIOp>(ctx);
    attachPointwise<Infix<"-">, SubFOp, SubIOp>(ctx);
    attachPointwise<Infix<"*">, MulFOp, MulIOp>(ctx);
    attachPointwise<Costing<Infix<"/">, kDivisionCost>, DivFOp>(ctx);
    attachPointwise<Infix<"/">, DivSIOp>(ctx);
    attachPointwise<Infix<"%">, RemSIOp>(ctx);
    attachPointwise<Bits<"&">, AndIOp>(ctx);
    attachPointwise<Bits<"|">, OrIOp>(ctx);
    attachPointwise<Bits<"^">, XOrIOp>(ctx);
    attachPointwise<Exact<Prefix<"-">>, NegFOp>(ctx);
    attachPointwise<Exact<Call<"max">>, MaximumFOp, MaxSIOp>(ctx);
    attachPointwise<Exact<Call<"min">>, MinimumFOp, MinSIOp>(ctx);
    attachPointwise<Exact<Special<SelectOp>>, SelectOp>(ctx);
    attachPointwise<Prefix<"">, ExtFOp, TruncFOp>(ctx);
    attachSpecial<CmpFOp, CmpIOp, SIToFPOp, UIToFPOp, FPToSIOp, ExtSIOp,
                  ExtUIOp, TruncIOp>(ctx);
    attachLinear<NegFOp, ExtFOp, TruncFOp, SIToFPOp, UIToFPOp, ExtSIOp, ExtUIOp,
                 TruncIOp>(ctx);
    AddFOp::attachInterface<AddVjp>(*ctx);
    SubFOp::attachInterface<SubVjp>(*ctx);
    MulFOp::attachInterface<MulVjp>(*ctx);
    DivFOp::attachInterface<DivVjp>(*ctx);
    NegFOp::attachInterface<NegVjp>(*ctx);
    MaximumFOp::attachInterface<ExtremumVjp<MaximumFOp, CmpFPredicate::OGT>>(
        *ctx);
    MinimumFOp::attachInterface<ExtremumVjp<MinimumFOp, CmpFPredicate::OLT>>(
        *ctx);
    SelectOp::attachInterface<SelectVjp>(*ctx);
    ExtFOp::attachInterface<CastVjp<ExtFOp, TruncFOp>>(*ctx);
    TruncFOp::attachInterface<CastVjp<TruncFOp, ExtFOp>>(*ctx);
    ConstantOp::attachInterface<ConstantCost, ConstantCut>(*ctx);
  });
}
