#include "frontends/onnx/ops/Pointwise.h"

#include "frontends/onnx/Importer.h"
#include "frontends/onnx/TorchCall.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

Value tmc::onnx_import::like(OpBuilder &b, Location loc, Value x,
                             double value) {
  return nn::splat(b, loc, x.getType(), value);
}

SmallVector<Val> tmc::onnx_import::inputsOf(Node &n) {
  SmallVector<Val> operands;
  for (int i = 0; i < n.numInputs(); ++i)
    operands.push_back(n.input(i));
  return operands;
}

FailureOr<Dims> tmc::onnx_import::commonShape(Node &n, ArrayRef<Val> operands) {
  Dims shape;
  for (const Val &v : operands) {
    auto joined = broadcastShape(shape, v.dims);
    if (!joined)
      return n.error("shapes " + str(shape) + " and " + str(v.dims) +
                     " don't fit together");
    shape = *joined;
  }
  return shape;
}

LogicalResult tmc::onnx_import::importPointwise(Node &n, ArrayRef<Val> operands,
                                                const Pointwise &p) {
  if (operands.empty() || (p.arity && operands.size() != p.arity))
    return n.error("has " + Twine(operands.size()) + " inputs");
  ElementType type = operands[0].type;
  for (auto [i, v] : llvm::enumerate(operands)) {
    if (v.kind != Val::Tensor && v.kind != Val::Const)
      return n.error("input " + Twine(i) + " is no tensor");
    if (v.type != type)
      return n.error("input 0 has elements of type " + nameOf(type) +
                     ", input " + Twine(i) + " of type " + nameOf(v.type));
  }
  if (isFloat(type) ? !p.floats : !p.ints)
    return n.unsupported("elements of type " + nameOf(type));
  ASSIGN_OR_FAIL(Dims shape, commonShape(n, operands));

  bool allConst =
      llvm::all_of(operands, [](const Val &v) { return v.isConst(); });
  if (allConst) {
    SmallVector<Array> arrays;
    bool constant = true;
    for (const Val &v : operands) {
      ASSIGN_OR_FAIL(Array array, n.arrayOf(v));
      Array wide = array.broadcastTo(shape);
      constant &= wide.distinct() <= kMaxFoldElements;
      arrays.push_back(wide);
    }
    if (constant) {
      ElementType result = p.compares ? ElementType::Bool : type;
      return n.set(isFloat(type) ? Array::mapFloats(result, arrays, p.floats)
                                 : Array::mapInts(result, arrays, p.ints));
    }
  }
  SmallVector<Value> values;
  for (const Val &v : operands) {
    ASSIGN_OR_FAIL(Value value, n.broadcast(v, shape));
    values.push_back(value);
  }
  return n.set(p.build(n.b, n.loc, values));
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

template <typename F, typename I>
static LogicalResult binary(Node &n, FloatFn floats, IntFn ints) {
  return importPointwise(n, inputsOf(n), {floats, ints, build<F, I>});
}

// Integers wrap around, as they do in the IR.
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

static LogicalResult importAdd(Node &n) {
  return binary<arith::AddFOp, arith::AddIOp>(
      n, [](Doubles x) { return x[0] + x[1]; },
      [](Ints x) { return wrapAdd(x[0], x[1]); });
}
static Register add("Add", importAdd);

static LogicalResult importSub(Node &n) {
  return binary<arith::SubFOp, arith::SubIOp>(
      n, [](Doubles x) { return x[0] - x[1]; },
      [](Ints x) { return wrapSub(x[0], x[1]); });
}
static Register sub("Sub", importSub);

static LogicalResult importMul(Node &n) {
  return binary<arith::MulFOp, arith::MulIOp>(
      n, [](Doubles x) { return x[0] * x[1]; },
      [](Ints x) { return wrapMul(x[0], x[1]); });
}
static Register mul("Mul", importMul);

static LogicalResult importDiv(Node &n) {
  return binary<arith::DivFOp, arith::DivSIOp>(
      n, [](Doubles x) { return x[0] / x[1]; },
      [](Ints x) { return safeDiv(x[0], x[1]); });
}
static Register divide("Div", importDiv);

static int64_t floorMod(int64_t a, int64_t b) {
  if (b == 0 || b == -1)
    return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static LogicalResult importMod(Node &n) {
  if (n.intAttr("fmod", 0) && isFloat(n.input(0).type) && !n.foldable({0, 1}))
    return n.unsupported("a value that isn't known when the model is compiled");
  if (n.intAttr("fmod", 0))
    return importPointwise(
        n, inputsOf(n),
        {[](Doubles x) { return std::fmod(x[0], x[1]); },
         [](Ints x) { return x[1] == 0 || x[1] == -1 ? 0 : x[0] % x[1]; },
         [](OpBuilder &b, Location loc, ValueRange v) -> Value {
           return arith::RemSIOp::create(b, loc, v[0], v[1]);
         }});
  // The sign is the divisor's: ((a rem b) + b) rem b.
  return importPointwise(
      n, inputsOf(n),
      {nullptr, [](Ints x) { return floorMod(x[0], x[1]); },
       [](OpBuilder &b, Location loc, ValueRange v) -> Value {
         Value r = arith::RemSIOp::create(b, loc, v[0], v[1]);
         r = arith::AddIOp::create(b, loc, r, v[1]);
         return arith::RemSIOp::create(b, loc, r, v[1]);
       }});
}
static Register mod("Mod", importMod);

/// Any number of operands, combined from the left.
template <typename F, typename I>
static LogicalResult variadic(Node &n, FloatFn floats, IntFn ints,
                              double scale = 1) {
  return importPointwise(
      n, inputsOf(n),
      {floats, ints,
       [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
         Value result = v[0];
         for (Value next : v.drop_front())
           result = build<F, I>(b, loc, {result, next});
         return scale == 1 ? result : nn::scale(b, loc, result, scale);
       },
       false, 0});
}

static LogicalResult importMax(Node &n) {
  return variadic<arith::MaximumFOp, arith::MaxSIOp>(
      n,
      [](Doubles x) {
        double best = x[0];
        for (double v : x)
          best = v > best || v != v ? v : best;
        return best;
      },
      [](Ints x) { return *std::max_element(x.begin(), x.end()); });
}
static Register max("Max", importMax);

static LogicalResult importMin(Node &n) {
  return variadic<arith::MinimumFOp, arith::MinSIOp>(
      n,
      [](Doubles x) {
        double best = x[0];
        for (double v : x)
          best = v < best || v != v ? v : best;
        return best;
      },
      [](Ints x) { return *std::min_element(x.begin(), x.end()); });
}
static Register min("Min", importMin);

static double sumOf(Doubles x) {
  double sum = 0;
  for (double v : x)
    sum += v;
  return sum;
}

static LogicalResult importSum(Node &n) {
  return variadic<arith::AddFOp, arith::AddIOp>(n, sumOf, nullptr);
}
static Register sum("Sum", importSum);

static LogicalResult importMean(Node &n) {
  return variadic<arith::AddFOp, arith::AddIOp>(
      n, [](Doubles x) { return sumOf(x) / x.size(); }, nullptr,
      1.0 / n.numInputs());
}
static Register mean("Mean", importMean);

//===----------------------------------------------------------------------===//
// Powers
//===----------------------------------------------------------------------===//

/// x to a power that a product or a root says exactly, or null.
static Value simplePower(OpBuilder &b, Location loc, Value x, double power) {
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

static LogicalResult importPow(Node &n) {
  SmallVector<Val> operands = inputsOf(n);
  if (operands.size() != 2)
    return n.error("wants 2 inputs");
  if (operands[1].isConst() && operands[1].type != operands[0].type) {
    ASSIGN_OR_FAIL(Array power, n.array(1));
    operands[1] = Val(power.cast(operands[0].type));
  }
  bool isSplat = operands[1].isConst() && operands[1].dims.empty();
  if (operands[0].isTensor() && isSplat && isFloat(operands[0].type)) {
    ASSIGN_OR_FAIL(Array array, n.arrayOf(operands[1]));
    if (Value result =
            simplePower(n.b, n.loc, operands[0].value, array.floats()[0]))
      return n.set(result);
  }
  return importPointwise(
      n, operands,
      {[](Doubles x) { return std::pow(x[0], x[1]); },
       operands[0].isConst() && operands[1].isConst() ? IntFn([](Ints x) {
         return static_cast<int64_t>(std::pow(static_cast<double>(x[0]), x[1]));
       })
                                                      : nullptr,
       [](OpBuilder &b, Location loc, ValueRange v) -> Value {
         return math::PowFOp::create(b, loc, v[0], v[1]);
       }});
}
static Register power("Pow", importPow);

//===----------------------------------------------------------------------===//
// Functions of one operand
//===----------------------------------------------------------------------===//

static LogicalResult unary(Node &n, FloatFn floats, IntFn ints, BuildFn build) {
  return importPointwise(n, {n.input(0)}, {floats, ints, build, false, 1});
}

/// Registers `NAME` as a math op with the function of the same meaning.
#define TMC_UNARY(NAME, OP, EXPRESSION)                                        \
  static LogicalResult import##NAME(Node &n) {                                 \
    return unary(                                                              \
        n,                                                                     \
        [](Doubles v) -> double {                                              \
          double x = v[0];                                                     \
          return EXPRESSION;                                                   \
        },                                                                     \
        nullptr,                                                               \
        [](OpBuilder &b, Location loc, ValueRange v) -> Value {                \
          return OP::create(b, loc, v[0]);                                     \
        });                                                                    \
  }                                                                            \
  static Register register##NAME(#NAME, import##NAME)

TMC_UNARY(Exp, math::ExpOp, std::exp(x));
TMC_UNARY(Log, math::LogOp, std::log(x));
TMC_UNARY(Sqrt, math::SqrtOp, std::sqrt(x));
TMC_UNARY(Tanh, math::TanhOp, std::tanh(x));
TMC_UNARY(Erf, math::ErfOp, std::erf(x));
TMC_UNARY(Sin, math::SinOp, std::sin(x));
TMC_UNARY(Cos, math::CosOp, std::cos(x));

/// Only of what is known at import: there is no kernel, nor a gradient, for it.
static LogicalResult foldOnly(Node &n, FloatFn floats) {
  if (!n.foldable(0))
    return n.unsupported("a value that isn't known when the model is compiled");
  return importPointwise(n, {n.input(0)}, {floats, nullptr, {}, false, 1});
}

static LogicalResult importFloor(Node &n) {
  return foldOnly(n, [](Doubles x) { return std::floor(x[0]); });
}
static Register floorOp("Floor", importFloor);

static LogicalResult importCeil(Node &n) {
  return foldOnly(n, [](Doubles x) { return std::ceil(x[0]); });
}
static Register ceilOp("Ceil", importCeil);

static LogicalResult importNeg(Node &n) {
  return unary(
      n, [](Doubles x) { return -x[0]; },
      [](Ints x) { return wrapSub(0, x[0]); },
      [](OpBuilder &b, Location loc, ValueRange v) -> Value {
        if (isa<FloatType>(getElementTypeOrSelf(v[0].getType())))
          return arith::NegFOp::create(b, loc, v[0]);
        return arith::SubIOp::create(b, loc, like(b, loc, v[0], 0), v[0]);
      });
}
static Register neg("Neg", importNeg);

static LogicalResult importAbs(Node &n) {
  return unary(
      n, [](Doubles x) { return std::fabs(x[0]); },
      [](Ints x) { return x[0] < 0 ? wrapSub(0, x[0]) : x[0]; },
      [](OpBuilder &b, Location loc, ValueRange v) -> Value {
        if (isa<FloatType>(getElementTypeOrSelf(v[0].getType())))
          return math::AbsFOp::create(b, loc, v[0]);
        Value negated =
            arith::SubIOp::create(b, loc, like(b, loc, v[0], 0), v[0]);
        return arith::MaxSIOp::create(b, loc, v[0], negated);
      });
}
static Register absolute("Abs", importAbs);

static LogicalResult importReciprocal(Node &n) {
  return unary(
      n, [](Doubles x) { return 1 / x[0]; }, nullptr,
      [](OpBuilder &b, Location loc, ValueRange v) -> Value {
        return nn::div(b, loc, like(b, loc, v[0], 1), v[0]);
      });
}
static Register reciprocal("Reciprocal", importReciprocal);

/// The one thing that detach() leaves in a file is the exporter's note.
static LogicalResult importIdentity(Node &n) {
  std::optional<TorchCall> call = torchCallOf(n.proto);
  if (call && call->calls("aten.detach"))
    return n.set(n.importer.detached(n.input(0), n.loc));
  return n.set(n.input(0));
}
static Register identity("Identity", importIdentity);
