#include "frontends/common/ops/Pointwise.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

Value tmc::frontend::like(OpBuilder &b, Location loc, Value x, double value) {
  return nn::splat(b, loc, x.getType(), value);
}

FailureOr<Dims> tmc::frontend::commonShape(Site &s, ArrayRef<Val> operands) {
  Dims shape;
  for (const Val &v : operands) {
    auto joined = broadcastShape(shape, v.dims);
    if (!joined)
      return s.error("shapes " + str(shape) + " and " + str(v.dims) +
                     " don't fit together");
    shape = *joined;
  }
  return shape;
}

FailureOr<Val> tmc::frontend::pointwise(Site &s, ArrayRef<Val> operands,
                                        const Pointwise &p) {
  if (operands.empty() || (p.arity && operands.size() != p.arity))
    return s.error("has " + Twine(operands.size()) + " inputs");
  ElementType type = operands[0].type;
  for (auto [i, v] : llvm::enumerate(operands)) {
    if (v.kind != Val::Tensor && v.kind != Val::Const)
      return s.error("input " + Twine(i) + " is no tensor");
    if (v.type != type)
      return s.error("input 0 has elements of type " + nameOf(type) +
                     ", input " + Twine(i) + " of type " + nameOf(v.type));
  }
  if (isFloat(type) ? !p.floats : !p.ints)
    return s.unsupported("elements of type " + nameOf(type));
  ASSIGN_OR_FAIL(Dims shape, commonShape(s, operands));

  bool allConst =
      llvm::all_of(operands, [](const Val &v) { return v.isConst(); });
  if (allConst) {
    SmallVector<Array> arrays;
    for (const Val &v : operands) {
      ASSIGN_OR_FAIL(Array array, s.arrayOf(v));
      arrays.push_back(array.broadcastTo(shape));
    }
    if (mappedElements(arrays) <= kMaxFoldElements) {
      ElementType result = p.compares ? ElementType::Bool : type;
      return Val(isFloat(type) ? mapFloats(result, arrays, p.floats)
                               : mapInts(result, arrays, p.ints));
    }
  }
  SmallVector<Value> values;
  for (const Val &v : operands) {
    ASSIGN_OR_FAIL(Value value, s.broadcast(v, shape));
    values.push_back(value);
  }
  return Val(p.build(s.b, s.loc, values));
}

//===----------------------------------------------------------------------===//
// Arithmetic on two operands
//===----------------------------------------------------------------------===//

/// Builds `F` on floats and `I` on integers.
template <typename F, typename I>
static Value build(OpBuilder &b, Location loc, ValueRange v) {
  if (isa<FloatType>(getElementTypeOrSelf(v[0].getType())))
    return F::create(b, loc, v[0], v[1]);
  return I::create(b, loc, v[0], v[1]);
}

// Integers wrap around, as in the IR.
static int64_t wrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b));
}
static int64_t wrapSub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) -
                              static_cast<uint64_t>(b));
}
static int64_t wrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) *
                              static_cast<uint64_t>(b));
}
static int64_t safeDiv(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? wrapSub(0, a) : a / b;
}

/// Defines NAME as F on floats and I on integers; FLOATS and INTS compute it
/// from `x`.
#define TMC_BINARY(NAME, F, I, FLOATS, INTS)                                   \
  FailureOr<Val> tmc::frontend::NAME(Site &s, Operands two) {                  \
    return pointwise(s, two,                                                   \
                     {[](Doubles x) -> double { return FLOATS; },              \
                      [](Ints x) -> int64_t { return INTS; }, build<F, I>});   \
  }

TMC_BINARY(add, arith::AddFOp, arith::AddIOp, x[0] + x[1], wrapAdd(x[0], x[1]))
TMC_BINARY(subtract, arith::SubFOp, arith::SubIOp, x[0] - x[1],
           wrapSub(x[0], x[1]))
TMC_BINARY(multiply, arith::MulFOp, arith::MulIOp, x[0] * x[1],
           wrapMul(x[0], x[1]))
TMC_BINARY(divide, arith::DivFOp, arith::DivSIOp, x[0] / x[1],
           safeDiv(x[0], x[1]))

static int64_t floorMod(int64_t a, int64_t b) {
  if (b == 0 || b == -1)
    return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

FailureOr<Val> tmc::frontend::wholeRemainder(Site &s, Operands two) {
  return pointwise(
      s, two,
      {[](Doubles x) { return std::fmod(x[0], x[1]); },
       [](Ints x) { return x[1] == 0 || x[1] == -1 ? 0 : x[0] % x[1]; },
       [](OpBuilder &b, Location loc, ValueRange v) -> Value {
         return arith::RemSIOp::create(b, loc, v[0], v[1]);
       }});
}

FailureOr<Val> tmc::frontend::wholeModulo(Site &s, Operands two) {
  // ((a rem b) + b) rem b.
  return pointwise(s, two,
                   {nullptr, [](Ints x) { return floorMod(x[0], x[1]); },
                    [](OpBuilder &b, Location loc, ValueRange v) -> Value {
                      Value r = arith::RemSIOp::create(b, loc, v[0], v[1]);
                      r = arith::AddIOp::create(b, loc, r, v[1]);
                      return arith::RemSIOp::create(b, loc, r, v[1]);
                    }});
}

/// Any number of operands, combined from the left.
template <typename F, typename I>
static FailureOr<Val> variadic(Site &s, Operands any, FloatFn floats,
                               IntFn ints, double scale = 1) {
  return pointwise(s, any,
                   {floats, ints,
                    [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                      Value result = v[0];
                      for (Value next : v.drop_front())
                        result = build<F, I>(b, loc, {result, next});
                      return scale == 1 ? result
                                        : nn::scale(b, loc, result, scale);
                    },
                    false, 0});
}

FailureOr<Val> tmc::frontend::maximum(Site &s, Operands any) {
  return variadic<arith::MaximumFOp, arith::MaxSIOp>(
      s, any,
      [](Doubles x) {
        double best = x[0];
        for (double v : x)
          best = v > best || v != v ? v : best;
        return best;
      },
      [](Ints x) { return *std::max_element(x.begin(), x.end()); });
}

FailureOr<Val> tmc::frontend::minimum(Site &s, Operands any) {
  return variadic<arith::MinimumFOp, arith::MinSIOp>(
      s, any,
      [](Doubles x) {
        double best = x[0];
        for (double v : x)
          best = v < best || v != v ? v : best;
        return best;
      },
      [](Ints x) { return *std::min_element(x.begin(), x.end()); });
}

static double sumOf(Doubles x) {
  double sum = 0;
  for (double v : x)
    sum += v;
  return sum;
}

FailureOr<Val> tmc::frontend::sum(Site &s, Operands any) {
  return variadic<arith::AddFOp, arith::AddIOp>(s, any, sumOf, nullptr);
}

FailureOr<Val> tmc::frontend::mean(Site &s, Operands any) {
  return variadic<arith::AddFOp, arith::AddIOp>(
      s, any, [](Doubles x) { return sumOf(x) / x.size(); }, nullptr,
      1.0 / any.size());
}

//===----------------------------------------------------------------------===//
// Powers
//===----------------------------------------------------------------------===//

/// x to a power that equals a product or a root exactly, or null.
static Value simplePower(OpBuilder &b, Location loc, Value x, double power) {
  if (power == 0)
    return like(b, loc, x, 1);
  if (power == 1)
    return x;
  if (power == 2)
    return nn::mul(b, loc, x, x);
  if (power == 3)
    return nn::mul(b, loc, nn::mul(b, loc, x, x), x);
  if (power == 0.5)
    return math::SqrtOp::create(b, loc, x);
  if (power == -0.5)
    return math::RsqrtOp::create(b, loc, x);
  if (power == -1)
    return nn::div(b, loc, like(b, loc, x, 1), x);
  return {};
}

FailureOr<Val> tmc::frontend::power(Site &s, Operands two) {
  SmallVector<Val> operands(two);
  if (operands.size() != 2)
    return s.error("wants 2 inputs");
  if (operands[1].isConst() && operands[1].type != operands[0].type) {
    ASSIGN_OR_FAIL(Array power, s.arrayOf(operands[1]));
    operands[1] = Val(power.cast(operands[0].type));
  }
  bool isSplat = operands[1].isConst() && operands[1].dims.empty();
  if (operands[0].isTensor() && isSplat && isFloat(operands[0].type)) {
    ASSIGN_OR_FAIL(Array array, s.arrayOf(operands[1]));
    if (Value result =
            simplePower(s.b, s.loc, operands[0].value, array.floats()[0]))
      return Val(result);
  }
  return pointwise(
      s, operands,
      {[](Doubles x) { return std::pow(x[0], x[1]); },
       operands[0].isConst() && operands[1].isConst() ? IntFn([](Ints x) {
         return static_cast<int64_t>(std::pow(static_cast<double>(x[0]), x[1]));
       })
                                                      : nullptr,
       [](OpBuilder &b, Location loc, ValueRange v) -> Value {
         return math::PowFOp::create(b, loc, v[0], v[1]);
       }});
}

//===----------------------------------------------------------------------===//
// Functions of one operand
//===----------------------------------------------------------------------===//

static FailureOr<Val> unary(Site &s, const Val &x, FloatFn floats, IntFn ints,
                            BuildFn build) {
  return pointwise(s, {x}, {floats, ints, build, false, 1});
}

/// Defines NAME as a math op, with a function of the same meaning for
/// constants.
#define TMC_UNARY(NAME, OP, EXPRESSION)                                        \
  FailureOr<Val> tmc::frontend::NAME(Site &s, const Val &x) {                  \
    return unary(                                                              \
        s, x,                                                                  \
        [](Doubles v) -> double {                                              \
          double x = v[0];                                                     \
          return EXPRESSION;                                                   \
        },                                                                     \
        nullptr,                                                               \
        [](OpBuilder &b, Location loc, ValueRange v) -> Value {                \
          return OP::create(b, loc, v[0]);                                     \
        });                                                                    \
  }

TMC_UNARY(exponential, math::ExpOp, std::exp(x))
TMC_UNARY(logarithm, math::LogOp, std::log(x))
TMC_UNARY(log1p, math::Log1pOp, std::log1p(x))
TMC_UNARY(squareRoot, math::SqrtOp, std::sqrt(x))
TMC_UNARY(reciprocalRoot, math::RsqrtOp, 1 / std::sqrt(x))
TMC_UNARY(hyperbolicTangent, math::TanhOp, std::tanh(x))
TMC_UNARY(errorFunction, math::ErfOp, std::erf(x))
TMC_UNARY(sine, math::SinOp, std::sin(x))
TMC_UNARY(cosine, math::CosOp, std::cos(x))
TMC_UNARY(arcTangent, math::AtanOp, std::atan(x))

FailureOr<Val> tmc::frontend::floorOf(Site &s, const Val &x) {
  return unary(
      s, x, [](Doubles v) { return std::floor(v[0]); },
      [](Ints v) { return v[0]; },
      [](OpBuilder &b, Location loc, ValueRange v) -> Value {
        if (!isa<FloatType>(getElementTypeOrSelf(v[0].getType())))
          return v[0];
        Value fixed = nn::DetachOp::create(b, loc, v[0]);
        return math::FloorOp::create(b, loc, fixed);
      });
}

FailureOr<Val> tmc::frontend::negate(Site &s, const Val &x) {
  return unary(
      s, x, [](Doubles v) { return -v[0]; },
      [](Ints v) { return wrapSub(0, v[0]); },
      [](OpBuilder &b, Location loc, ValueRange v) -> Value {
        if (isa<FloatType>(getElementTypeOrSelf(v[0].getType())))
          return arith::NegFOp::create(b, loc, v[0]);
        return arith::SubIOp::create(b, loc, like(b, loc, v[0], 0), v[0]);
      });
}

FailureOr<Val> tmc::frontend::absolute(Site &s, const Val &x) {
  return unary(
      s, x, [](Doubles v) { return std::fabs(v[0]); },
      [](Ints v) { return v[0] < 0 ? wrapSub(0, v[0]) : v[0]; },
      [](OpBuilder &b, Location loc, ValueRange v) -> Value {
        if (isa<FloatType>(getElementTypeOrSelf(v[0].getType())))
          return math::AbsFOp::create(b, loc, v[0]);
        Value negated =
            arith::SubIOp::create(b, loc, like(b, loc, v[0], 0), v[0]);
        return arith::MaxSIOp::create(b, loc, v[0], negated);
      });
}

FailureOr<Val> tmc::frontend::reciprocal(Site &s, const Val &x) {
  return unary(
      s, x, [](Doubles v) { return 1 / v[0]; }, nullptr,
      [](OpBuilder &b, Location loc, ValueRange v) -> Value {
        return nn::div(b, loc, like(b, loc, v[0], 1), v[0]);
      });
}
