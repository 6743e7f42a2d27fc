// MathModels.cpp - expressions, costs, cuts and derivatives of the math ops
// that tmc accepts on tensors. All are pointwise.

#include "dialects/interfaces/PointwiseModels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectRegistry.h"

#include <cmath>

using namespace mlir;
using namespace tmc;

namespace {

/// A function that is computed by a polynomial.
template <Word function> using Series = Costing<Call<function>, kSeriesCost>;

/// Short forms for building derivatives.
struct Spell {
  OpBuilder &b;
  Location loc;

  Value constant(Value like, double value) const {
    auto type = cast<RankedTensorType>(like.getType());
    return arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(
            type, Attribute(b.getFloatAttr(type.getElementType(), value))));
  }
  Value mul(Value x, Value y) const {
    return arith::MulFOp::create(b, loc, x, y);
  }
  Value mul(Value x, double y) const { return mul(x, constant(x, y)); }
  Value div(Value x, Value y) const {
    return arith::DivFOp::create(b, loc, x, y);
  }
  Value sub(Value x, Value y) const {
    return arith::SubFOp::create(b, loc, x, y);
  }
  Value oneMinusSquare(Value y) const {
    Value square = mul(y, y);
    return sub(constant(y, 1), square);
  }
  Value neg(Value x) const { return arith::NegFOp::create(b, loc, x); }
};

struct ExpVjp : Vjp<ExpVjp, math::ExpOp> {
  static Grads build(math::ExpOp op, OpBuilder &b, Value dy) {
    return {Spell{b, op.getLoc()}.mul(dy, op.getResult())};
  }
};

struct LogVjp : Vjp<LogVjp, math::LogOp> {
  static Grads build(math::LogOp op, OpBuilder &b, Value dy) {
    return {Spell{b, op.getLoc()}.div(dy, op.getOperand())};
  }
};

struct Log1pVjp : Vjp<Log1pVjp, math::Log1pOp> {
  static Grads build(math::Log1pOp op, OpBuilder &b, Value dy) {
    Spell s{b, op.getLoc()};
    return {s.div(dy, arith::AddFOp::create(b, op.getLoc(), op.getOperand(),
                                            s.constant(dy, 1)))};
  }
};

struct TanhVjp : Vjp<TanhVjp, math::TanhOp> {
  static Grads build(math::TanhOp op, OpBuilder &b, Value dy) {
    Spell s{b, op.getLoc()};
    return {s.mul(dy, s.oneMinusSquare(op.getResult()))};
  }
};

struct ErfVjp : Vjp<ErfVjp, math::ErfOp> {
  static Grads build(math::ErfOp op, OpBuilder &b, Value dy) {
    Spell s{b, op.getLoc()};
    Value x = op.getOperand();
    Value bell = math::ExpOp::create(b, op.getLoc(), s.neg(s.mul(x, x)));
    return {s.mul(dy, s.mul(bell, 2 / std::sqrt(M_PI)))};
  }
};

struct SqrtVjp : Vjp<SqrtVjp, math::SqrtOp> {
  static Grads build(math::SqrtOp op, OpBuilder &b, Value dy) {
    Spell s{b, op.getLoc()};
    return {s.div(s.mul(dy, 0.5), op.getResult())};
  }
};

struct RsqrtVjp : Vjp<RsqrtVjp, math::RsqrtOp> {
  static Grads build(math::RsqrtOp op, OpBuilder &b, Value dy) {
    // y = x^(-1/2): dx = -dy y^3 / 2.
    Spell s{b, op.getLoc()};
    Value y = op.getResult();
    Value cube = s.mul(y, s.mul(y, y));
    return {s.mul(s.mul(dy, -0.5), cube)};
  }
};

struct SinVjp : Vjp<SinVjp, math::SinOp> {
  static Grads build(math::SinOp op, OpBuilder &b, Value dy) {
    return {Spell{b, op.getLoc()}.mul(
        dy, math::CosOp::create(b, op.getLoc(), op.getOperand()))};
  }
};

struct CosVjp : Vjp<CosVjp, math::CosOp> {
  static Grads build(math::CosOp op, OpBuilder &b, Value dy) {
    Spell s{b, op.getLoc()};
    return {
        s.neg(s.mul(dy, math::SinOp::create(b, op.getLoc(), op.getOperand())))};
  }
};

struct AtanVjp : Vjp<AtanVjp, math::AtanOp> {
  static Grads build(math::AtanOp op, OpBuilder &b, Value dy) {
    Spell s{b, op.getLoc()};
    Value x = op.getOperand();
    Value one = s.constant(x, 1), square = s.mul(x, x);
    return {s.div(dy, arith::AddFOp::create(b, op.getLoc(), square, one))};
  }
};

struct AbsVjp : Vjp<AbsVjp, math::AbsFOp> {
  static Grads build(math::AbsFOp op, OpBuilder &b, Value dy) {
    // The sign of x, and zero at zero.
    Spell s{b, op.getLoc()};
    Value x = op.getOperand(), zero = s.constant(x, 0);
    auto is = [&](arith::CmpFPredicate predicate) -> Value {
      return arith::CmpFOp::create(b, op.getLoc(), predicate, x, zero);
    };
    Value negative = s.neg(dy);
    Value below = arith::SelectOp::create(
        b, op.getLoc(), is(arith::CmpFPredicate::OLT), negative, zero);
    return {arith::SelectOp::create(b, op.getLoc(),
                                    is(arith::CmpFPredicate::OGT), dy, below)};
  }
};

struct PowVjp : Vjp<PowVjp, math::PowFOp> {
  static Grads build(math::PowFOp op, OpBuilder &b, Value dy) {
    // y = x^p: dx = dy p x^(p-1), dp = dy y log(x).
    Spell s{b, op.getLoc()};
    Value x = op.getLhs(), p = op.getRhs();
    Value less =
        math::PowFOp::create(b, op.getLoc(), x, s.sub(p, s.constant(p, 1)));
    Value dx = s.mul(dy, s.mul(p, less));
    // The factors must be finite at 0: the gradient of 0^p with respect to p,
    // and of x^0 with respect to x, is zero.
    DenseFPElementsAttr exponents;
    const bool isConstant = matchPattern(p, m_Constant(&exponents));
    if (isConstant && exponents.isSplat() &&
        !exponents.getSplatValue<APFloat>().isZero())
      return {dx, Value()};
    Location loc = op.getLoc();
    auto isZero = [&](Value v) -> Value {
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, v,
                                   s.constant(v, 0));
    };
    auto zeroWhere = [&](Value condition, Value v) -> Value {
      return arith::SelectOp::create(b, loc, condition, s.constant(v, 0), v);
    };
    dx = zeroWhere(isZero(p), dx);
    if (isConstant)
      return {dx, Value()};
    Value log = math::LogOp::create(b, loc, x);
    Value grown = s.mul(op.getResult(), log);
    Value dp = zeroWhere(isZero(x), grown);
    return {dx, s.mul(dy, dp)};
  }
};

} // namespace

void tmc::registerMathModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *ctx, math::MathDialect *) {
    using namespace math;
    attachPointwise<Series<"math::exp">, ExpOp>(ctx);
    attachPointwise<Series<"math::log">, LogOp>(ctx);
    attachPointwise<Series<"math::log1p">, Log1pOp>(ctx);
    attachPointwise<Series<"math::tanh">, TanhOp>(ctx);
    attachPointwise<Series<"math::erf">, ErfOp>(ctx);
    attachPointwise<Series<"math::sin">, SinOp>(ctx);
    attachPointwise<Series<"math::cos">, CosOp>(ctx);
    attachPointwise<Series<"math::atan">, AtanOp>(ctx);
    attachPointwise<Series<"math::pow">, PowFOp>(ctx);
    attachPointwise<Costing<Call<"sqrt">, kDivisionCost>, SqrtOp>(ctx);
    attachPointwise<Costing<Call<"math::rsqrt">, kDivisionCost>, RsqrtOp>(ctx);
    attachPointwise<Exact<Call<"math::abs">>, AbsFOp>(ctx);
    attachPointwise<Exact<Call<"math::floor">>, FloorOp>(ctx);
    ExpOp::attachInterface<ExpVjp>(*ctx);
    LogOp::attachInterface<LogVjp>(*ctx);
    Log1pOp::attachInterface<Log1pVjp>(*ctx);
    TanhOp::attachInterface<TanhVjp>(*ctx);
    ErfOp::attachInterface<ErfVjp>(*ctx);
    SqrtOp::attachInterface<SqrtVjp>(*ctx);
    RsqrtOp::attachInterface<RsqrtVjp>(*ctx);
    SinOp::attachInterface<SinVjp>(*ctx);
    CosOp::attachInterface<CosVjp>(*ctx);
    AtanOp::attachInterface<AtanVjp>(*ctx);
    AbsFOp::attachInterface<AbsVjp>(*ctx);
    PowFOp::attachInterface<PowVjp>(*ctx);
  });
}
