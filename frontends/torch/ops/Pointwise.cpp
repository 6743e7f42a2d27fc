// Pointwise.cpp - arithmetic, comparisons, logic, choice and functions of one
// operand, with PyTorch's rules for the types of operands.

#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Elementary.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/torch/Importer.h"
#include "frontends/torch/ops/Pointwise.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

FailureOr<Val> tmc::torch_import::selfAs(Call &c, ElementType otherwise) {
  ASSIGN_OR_FAIL(ElementType type, c.type("dtype", otherwise));
  return castTo(c, c.tensor("self"), type);
}

using Binary = FailureOr<Val> (*)(Site &, Operands);

static LogicalResult ofBoth(Call &c, Binary build) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "other"}));
  return c.set(build(c, operands.values));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Operand `i` of `operands` times the argument `alpha`.
static FailureOr<Val> timesAlpha(Call &c, const Promoted &operands, int i) {
  ASSIGN_OR_FAIL(double alpha, c.number("alpha", 1));
  if (alpha == 1)
    return operands.values[i];
  return multiply(
      c, {operands.values[i], Val(Array::splat(operands.type, {}, alpha))});
}

static LogicalResult importAdd(Call &c) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "other"}));
  ASSIGN_OR_FAIL(Val other, timesAlpha(c, operands, 1));
  // The sum of booleans is a disjunction.
  if (operands.type == ElementType::Bool)
    return c.set(disjunction(c, {operands.values[0], other}));
  return c.set(add(c, {operands.values[0], other}));
}
static Register addOp("add", importAdd);

static LogicalResult importSub(Call &c) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "other"}));
  ASSIGN_OR_FAIL(Val other, timesAlpha(c, operands, 1));
  return c.set(subtract(c, {operands.values[0], other}));
}
static Register subOp("sub", importSub);
static Register subtractOp("subtract", importSub);

/// other - alpha * self.
static LogicalResult importRsub(Call &c) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "other"}));
  ASSIGN_OR_FAIL(Val self, timesAlpha(c, operands, 0));
  return c.set(subtract(c, {operands.values[1], self}));
}
static Register rsubOp("rsub", importRsub);

static LogicalResult importMul(Call &c) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "other"}));
  return c.set(operands.type == ElementType::Bool
                   ? conjunction(c, operands.values)
                   : multiply(c, operands.values));
}
static Register mulOp("mul", importMul);
static Register multiplyOp("multiply", importMul);

/// Without a rounding mode, integers are divided as floats.
static LogicalResult importDiv(Call &c) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "other"}));
  ASSIGN_OR_FAIL(std::string rounding, c.text("rounding_mode", ""));
  SmallVector<Val> values = operands.values;
  if (rounding.empty()) {
    if (!isFloat(operands.type))
      for (Val &v : values) {
        ASSIGN_OR_FAIL(v, castTo(c, v, ElementType::F32));
      }
    return c.set(divide(c, values));
  }
  if (rounding != "trunc" && rounding != "floor")
    return c.unsupported("rounding mode '" + rounding + "'");
  if (isFloat(operands.type)) {
    ASSIGN_OR_FAIL(Val quotient, divide(c, values));
    return c.set(rounding == "floor" ? floorOf(c, quotient)
                                     : truncated(c, quotient));
  }
  if (rounding == "trunc")
    return c.set(divide(c, values));
  // (a - the remainder with the divisor's sign) / b.
  ASSIGN_OR_FAIL(Val rest, floorModulo(c, values));
  ASSIGN_OR_FAIL(Val whole, subtract(c, {values[0], rest}));
  return c.set(divide(c, {whole, values[1]}));
}
static Register divOp("div", importDiv);
static Register trueDivide("true_divide", importDiv);
static Register divideOp("divide", importDiv);

static LogicalResult importFloorDivide(Call &c) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "other"}));
  if (isFloat(operands.type)) {
    ASSIGN_OR_FAIL(Val quotient, divide(c, operands.values));
    return c.set(floorOf(c, quotient));
  }
  ASSIGN_OR_FAIL(Val rest, floorModulo(c, operands.values));
  ASSIGN_OR_FAIL(Val whole, subtract(c, {operands.values[0], rest}));
  return c.set(divide(c, {whole, operands.values[1]}));
}
static Register floorDivide("floor_divide", importFloorDivide);

static LogicalResult importRemainder(Call &c) { return ofBoth(c, floorModulo); }
static Register remainderOp("remainder", importRemainder);
static LogicalResult importFmod(Call &c) { return ofBoth(c, remainder); }
static Register fmodOp("fmod", importFmod);

static LogicalResult importPow(Call &c) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "exponent"}));
  return c.set(power(c, operands.values));
}
static Register powOp("pow", importPow);

FailureOr<Val> tmc::torch_import::extremeOf(Call &c, Operands two,
                                            bool isLargest) {
  auto choose = isLargest ? maximum : minimum;
  // With a constant, max and min pass no gradient at a tie, as relu requires.
  // So the halves are explicit here.
  if (!isFloat(two[0].type) || !(two[0].isConst() || two[1].isConst()))
    return choose(c, two);
  Expression x(c, two[0]), y(c, two[1]);
  return (0.5 * x + 0.5 * y).when(x == y, x.with(choose, y)).value();
}
static LogicalResult extreme(Call &c, bool isLargest) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "other"}));
  return c.set(extremeOf(c, operands.values, isLargest));
}
static LogicalResult importMaximum(Call &c) { return extreme(c, true); }
static Register maximumOp("maximum", importMaximum);
static LogicalResult importMinimum(Call &c) { return extreme(c, false); }
static Register minimumOp("minimum", importMinimum);

/// self + value * combine(tensor1, tensor2), a product or a quotient.
static LogicalResult addProduct(Call &c, Binary combine) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "tensor1", "tensor2"}));
  ASSIGN_OR_FAIL(double value, c.number("value", 1));
  ASSIGN_OR_FAIL(Val y, combine(c, {operands.values[1], operands.values[2]}));
  if (value != 1) {
    ASSIGN_OR_FAIL(
        y, multiply(c, {y, Val(Array::splat(operands.type, {}, value))}));
  }
  return c.set(add(c, {operands.values[0], y}));
}
static LogicalResult importAddcmul(Call &c) { return addProduct(c, multiply); }
static Register addcmul("addcmul", importAddcmul);
static LogicalResult importAddcdiv(Call &c) { return addProduct(c, divide); }
static Register addcdiv("addcdiv", importAddcdiv);

/// self + weight * (end - self).
static LogicalResult importLerp(Call &c) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "end", "weight"}));
  ASSIGN_OR_FAIL(Val way,
                 subtract(c, {operands.values[1], operands.values[0]}));
  ASSIGN_OR_FAIL(Val part, multiply(c, {operands.values[2], way}));
  return c.set(add(c, {operands.values[0], part}));
}
static Register lerp("lerp", importLerp);

//===----------------------------------------------------------------------===//
// Comparisons and logic
//===----------------------------------------------------------------------===//

#define TMC_OF_BOTH(NAME, BUILDER)                                             \
  static LogicalResult import_##NAME(Call &c) { return ofBoth(c, BUILDER); }   \
  static Register register_##NAME(#NAME, import_##NAME)

TMC_OF_BOTH(eq, equals);
TMC_OF_BOTH(ne, notEqual);
TMC_OF_BOTH(lt, less);
TMC_OF_BOTH(le, lessOrEqual);
TMC_OF_BOTH(gt, greater);
TMC_OF_BOTH(ge, greaterOrEqual);
TMC_OF_BOTH(not_equal, notEqual);
TMC_OF_BOTH(less, less);
TMC_OF_BOTH(less_equal, lessOrEqual);
TMC_OF_BOTH(greater, greater);
TMC_OF_BOTH(greater_equal, greaterOrEqual);
TMC_OF_BOTH(bitwise_and, conjunction);
TMC_OF_BOTH(__and__, conjunction);
TMC_OF_BOTH(bitwise_or, disjunction);
TMC_OF_BOTH(__or__, disjunction);
TMC_OF_BOTH(bitwise_xor, exclusiveOr);
TMC_OF_BOTH(__xor__, exclusiveOr);

static LogicalResult shift(Call &c, bool isLeft) {
  ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "other"}));
  return c.set(shiftedBits(c, operands.values[0], operands.values[1], isLeft));
}
static LogicalResult importLeftShift(Call &c) { return shift(c, true); }
static Register leftShift("bitwise_left_shift", importLeftShift);
static Register leftShiftOp("__lshift__", importLeftShift);
static LogicalResult importRightShift(Call &c) { return shift(c, false); }
static Register rightShift("bitwise_right_shift", importRightShift);
static Register rightShiftOp("__rshift__", importRightShift);

/// Casts both operands to booleans.
static LogicalResult logic(Call &c, Binary build) {
  SmallVector<Val> values;
  for (const char *name : {"self", "other"}) {
    ASSIGN_OR_FAIL(Val v, castTo(c, c.tensor(name), ElementType::Bool));
    values.push_back(v);
  }
  return c.set(build(c, values));
}
static LogicalResult importAnd(Call &c) { return logic(c, conjunction); }
static Register logicalAnd("logical_and", importAnd);
static LogicalResult importOr(Call &c) { return logic(c, disjunction); }
static Register logicalOr("logical_or", importOr);
static LogicalResult importXor(Call &c) { return logic(c, exclusiveOr); }
static Register logicalXor("logical_xor", importXor);

static LogicalResult importNot(Call &c) {
  ASSIGN_OR_FAIL(Val x, castTo(c, c.tensor("self"), ElementType::Bool));
  return c.set(negation(c, x));
}
static Register logicalNot("logical_not", importNot);

static LogicalResult importBitwiseNot(Call &c) {
  const Val x = c.tensor("self");
  if (x.type == ElementType::Bool)
    return c.set(negation(c, x));
  return c.set(exclusiveOr(c, {x, Val(Array::splatInt(x.type, {}, -1))}));
}
static Register bitwiseNot("bitwise_not", importBitwiseNot);

static LogicalResult importIsNaN(Call &c) {
  return c.set(isNaN(c, c.tensor("self")));
}
static Register isNaNOp("isnan", importIsNaN);

static LogicalResult importWhere(Call &c) {
  ASSIGN_OR_FAIL(Promoted choices, promote(c, {"self", "other"}));
  ASSIGN_OR_FAIL(Val condition,
                 castTo(c, c.tensor("condition"), ElementType::Bool));
  return c.set(where(c, condition, choices.values[0], choices.values[1]));
}
static Register whereOp("where", importWhere);

/// `value`, a number, where `mask` is true. The result has self's type.
static LogicalResult importMaskedFill(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(Val value, castTo(c, c.tensor("value"), self.type));
  return c.set(where(c, c.tensor("mask"), value, self));
}
static Register maskedFill("masked_fill", importMaskedFill);

/// A bound: a number, or nothing.
static FailureOr<std::optional<double>> bound(Call &c, const char *name) {
  if (!c.has(name))
    return std::optional<double>();
  ASSIGN_OR_FAIL(double value, c.number(name, std::nullopt));
  return std::optional<double>(value);
}

/// Bounds are numbers, or tensors.
static LogicalResult importClamp(Call &c) {
  if ((c.has("min") && !isNumber(c, "min")) ||
      (c.has("max") && !isNumber(c, "max"))) {
    SmallVector<std::string> names{"self"};
    for (const char *name : {"min", "max"})
      if (c.has(name))
        names.push_back(name);
    ASSIGN_OR_FAIL(Promoted operands, promote(c, names));
    Val y = operands.values[0];
    for (size_t i = 1; i < names.size(); ++i) {
      ASSIGN_OR_FAIL(y,
                     extremeOf(c, {y, operands.values[i]}, names[i] == "min"));
    }
    return c.set(y);
  }
  ASSIGN_OR_FAIL(std::optional<double> low, bound(c, "min"));
  ASSIGN_OR_FAIL(std::optional<double> high, bound(c, "max"));
  return c.set(clamp(c, c.tensor("self"), low, high));
}
static Register clampOp("clamp", importClamp);
static Register clip("clip", importClamp);

static Register clampMin("clamp_min", importClamp);
static Register clampMax("clamp_max", importClamp);

//===----------------------------------------------------------------------===//
// Functions of one operand
//===----------------------------------------------------------------------===//

/// Registers `NAME` as a builder of `self`; integers are converted to floats.
#define TMC_OF_FLOATS(NAME, BUILDER)                                           \
  static LogicalResult import_##NAME(Call &c) {                                \
    Val x = c.tensor("self");                                                  \
    if (!isFloat(x.type)) {                                                    \
      ASSIGN_OR_FAIL(x, castTo(c, x, ElementType::F32));                       \
    }                                                                          \
    return c.set(BUILDER(c, x));                                               \
  }                                                                            \
  static Register register_##NAME(#NAME, import_##NAME)

TMC_OF_FLOATS(exp, exponential);
TMC_OF_FLOATS(log, logarithm);
TMC_OF_FLOATS(log1p, log1p);
TMC_OF_FLOATS(sqrt, squareRoot);
TMC_OF_FLOATS(rsqrt, reciprocalRoot);
TMC_OF_FLOATS(tanh, hyperbolicTangent);
TMC_OF_FLOATS(erf, errorFunction);
TMC_OF_FLOATS(sin, sine);
TMC_OF_FLOATS(cos, cosine);
TMC_OF_FLOATS(reciprocal, reciprocal);
TMC_OF_FLOATS(expm1, exponentialMinusOne);
TMC_OF_FLOATS(tan, tangent);
TMC_OF_FLOATS(atan, arcTangent);
TMC_OF_FLOATS(asin, arcSine);
TMC_OF_FLOATS(acos, arcCosine);
TMC_OF_FLOATS(sinh, hyperbolicSine);
TMC_OF_FLOATS(cosh, hyperbolicCosine);
TMC_OF_FLOATS(asinh, inverseHyperbolicSine);
TMC_OF_FLOATS(acosh, inverseHyperbolicCosine);
TMC_OF_FLOATS(atanh, inverseHyperbolicTangent);

static FailureOr<Val> exp2Of(Site &s, const Val &x) {
  return exponentialOf(s, 2, x);
}
TMC_OF_FLOATS(exp2, exp2Of);
static FailureOr<Val> log2Of(Site &s, const Val &x) {
  return logarithmOf(s, 2, x);
}
TMC_OF_FLOATS(log2, log2Of);
static FailureOr<Val> log10Of(Site &s, const Val &x) {
  return logarithmOf(s, 10, x);
}
TMC_OF_FLOATS(log10, log10Of);
TMC_OF_FLOATS(sigmoid, sigmoid);
TMC_OF_FLOATS(arctan, arcTangent);
TMC_OF_FLOATS(arcsin, arcSine);
TMC_OF_FLOATS(arccos, arcCosine);
TMC_OF_FLOATS(arcsinh, inverseHyperbolicSine);
TMC_OF_FLOATS(arccosh, inverseHyperbolicCosine);
TMC_OF_FLOATS(arctanh, inverseHyperbolicTangent);
TMC_OF_FLOATS(special_exp2, exp2Of);
TMC_OF_FLOATS(special_expm1, exponentialMinusOne);
TMC_OF_FLOATS(special_log1p, log1p);
TMC_OF_FLOATS(special_erf, errorFunction);
TMC_OF_FLOATS(special_expit, sigmoid);

/// Registers `NAME` as an expression of `x`, the argument `self`.
#define TMC_OF_SELF(NAME, ...)                                                 \
  static LogicalResult import_##NAME(Call &c) {                                \
    const Val x = c.tensor("self");                                            \
    return c.set(__VA_ARGS__);                                                 \
  }                                                                            \
  static Register register_##NAME(#NAME, import_##NAME)

TMC_OF_SELF(neg, negate(c, x));
TMC_OF_SELF(negative, negate(c, x));
TMC_OF_SELF(abs, absolute(c, x));
TMC_OF_SELF(absolute, absolute(c, x));
TMC_OF_SELF(floor, floorOf(c, x));
TMC_OF_SELF(ceil, ceilOf(c, x));
TMC_OF_SELF(trunc, truncated(c, x));
TMC_OF_SELF(fix, truncated(c, x));
TMC_OF_SELF(sign, signOf(c, x));
TMC_OF_SELF(sgn, signOf(c, x));
TMC_OF_SELF(isinf, isInfinite(c, x, true, true));
TMC_OF_SELF(selu,
            exponentialUnit(c, x, 1.6732632423543772, 1.0507009873554805));
TMC_OF_SELF(square, multiply(c, {x, x}));
TMC_OF_SELF(relu, relu(c, x));
TMC_OF_SELF(silu, swish(c, x, 1));
TMC_OF_SELF(mish, mish(c, x));
TMC_OF_SELF(hardswish, hardSwish(c, x));
TMC_OF_SELF(hardsigmoid, hardSigmoid(c, x, 1.0 / 6, 0.5));
TMC_OF_SELF(relu6, clamp(c, x, 0.0, 6.0));

TMC_OF_SELF(log_sigmoid, logSigmoid(c, x));

static LogicalResult importRound(Call &c) {
  ASSIGN_OR_FAIL(int64_t decimals, c.integer("decimals", 0));
  if (decimals)
    return c.unsupported("rounding to " + Twine(decimals) + " decimals");
  return c.set(rounded(c, c.tensor("self")));
}
static Register roundOp("round", importRound);

static LogicalResult importCelu(Call &c) {
  ASSIGN_OR_FAIL(double alpha, c.number("alpha", 1));
  return c.set(celu(c, c.tensor("self"), alpha));
}
static Register celuOp("celu", importCelu);

static LogicalResult importThreshold(Call &c) {
  ASSIGN_OR_FAIL(double threshold, c.number("threshold", std::nullopt));
  ASSIGN_OR_FAIL(double value, c.number("value", std::nullopt));
  return c.set(thresholded(c, c.tensor("self"), threshold, value));
}
static Register thresholdOp("threshold", importThreshold);

static LogicalResult importHardshrink(Call &c) {
  ASSIGN_OR_FAIL(double limit, c.number("lambd", 0.5));
  return c.set(shrunk(c, c.tensor("self"), limit, 0));
}
static Register hardshrink("hardshrink", importHardshrink);
static LogicalResult importSoftshrink(Call &c) {
  ASSIGN_OR_FAIL(double limit, c.number("lambd", 0.5));
  return c.set(shrunk(c, c.tensor("self"), limit, limit));
}
static Register softshrink("softshrink", importSoftshrink);

static LogicalResult importGelu(Call &c) {
  ASSIGN_OR_FAIL(std::string approximate, c.text("approximate", "none"));
  return c.set(gelu(c, c.tensor("self"), approximate == "tanh"));
}
static Register geluOp("gelu", importGelu);

static LogicalResult importLeakyRelu(Call &c) {
  ASSIGN_OR_FAIL(double slope, c.number("negative_slope", 0.01));
  return c.set(leakyRelu(c, c.tensor("self"), slope));
}
static Register leakyReluOp("leaky_relu", importLeakyRelu);

static LogicalResult importElu(Call &c) {
  ASSIGN_OR_FAIL(double alpha, c.number("alpha", 1));
  ASSIGN_OR_FAIL(double scale, c.number("scale", 1));
  ASSIGN_OR_FAIL(double inputScale, c.number("input_scale", 1));
  if (inputScale != 1)
    return c.unsupported("an input scale of " + std::to_string(inputScale));
  return c.set(exponentialUnit(c, c.tensor("self"), alpha, scale));
}
static Register elu("elu", importElu);

static LogicalResult importHardtanh(Call &c) {
  ASSIGN_OR_FAIL(double low, c.number("min_val", -1));
  ASSIGN_OR_FAIL(double high, c.number("max_val", 1));
  return c.set(clamp(c, c.tensor("self"), low, high));
}
static Register hardtanh("hardtanh", importHardtanh);

/// log(1 + exp(beta x)) / beta, or x where beta x is above `threshold`.
static LogicalResult importSoftplus(Call &c) {
  ASSIGN_OR_FAIL(double beta, c.number("beta", 1));
  ASSIGN_OR_FAIL(double threshold, c.number("threshold", 20));
  Expression x(c, c.tensor("self"));
  Expression inner = beta == 1 ? x : x * beta, y = inner.of(softplus);
  if (beta != 1)
    y = y / beta;
  // From 17 on, log(1 + exp(z)) equals z in f32, and its slope is 1.
  constexpr double kLinear = 17;
  return c.set(
      (threshold < kLinear ? x.when(inner > threshold, y) : y).value());
}
static Register softplusOp("softplus", importSoftplus);
