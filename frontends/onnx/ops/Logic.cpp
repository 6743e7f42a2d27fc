// Logic.cpp - comparisons, logic, choice and casts.

#include "frontends/onnx/ops/Pointwise.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

static bool holdsFloats(Value v) {
  return isa<FloatType>(getElementTypeOrSelf(v.getType()));
}

template <arith::CmpFPredicate F, arith::CmpIPredicate I>
static Value buildCompare(OpBuilder &b, Location loc, ValueRange v) {
  if (holdsFloats(v[0]))
    return arith::CmpFOp::create(b, loc, F, v[0], v[1]);
  return arith::CmpIOp::create(b, loc, I, v[0], v[1]);
}

/// Registers `NAME` as a comparison. Booleans compare as 0 and 1.
#define TMC_COMPARISON(NAME, FLOATS, INTS, SIGN)                               \
  static LogicalResult import##NAME(Node &n) {                                 \
    return importPointwise(                                                    \
        n, inputsOf(n),                                                        \
        {[](Doubles x) -> double { return x[0] SIGN x[1]; },                   \
         [](Ints x) -> int64_t { return x[0] SIGN x[1]; },                     \
         buildCompare<arith::CmpFPredicate::FLOATS,                            \
                      arith::CmpIPredicate::INTS>,                             \
         true});                                                               \
  }                                                                            \
  static Register register##NAME(#NAME, import##NAME)

TMC_COMPARISON(Equal, OEQ, eq, ==);
TMC_COMPARISON(Less, OLT, slt, <);
TMC_COMPARISON(LessOrEqual, OLE, sle, <=);
TMC_COMPARISON(Greater, OGT, sgt, >);
TMC_COMPARISON(GreaterOrEqual, OGE, sge, >=);

/// The one value of all elements of a constant, if they are equal.
static FailureOr<std::optional<int64_t>> uniform(Node &n, const Val &v) {
  if (!v.isConst())
    return std::optional<int64_t>();
  ASSIGN_OR_FAIL(Array array, n.arrayOf(v));
  if (array.size() == 0 || array.distinct() > kMaxFoldElements)
    return std::optional<int64_t>();
  Array compact = array.compressed();
  if (compact.distinct() != 1)
    return std::optional<int64_t>();
  Dims kept;
  return std::optional<int64_t>(
      compact.unrepeated(kept).reshaped({}).ints()[0]);
}

template <typename Op> static LogicalResult logic(Node &n, IntFn ints) {
  return importPointwise(
      n, inputsOf(n),
      {nullptr, ints, [](OpBuilder &b, Location loc, ValueRange v) -> Value {
         return Op::create(b, loc, v[0], v[1]);
       }});
}

/// Where one boolean operand is `neutral` throughout, the other is the result.
template <typename Op>
static LogicalResult junction(Node &n, IntFn ints, int64_t neutral) {
  SmallVector<Val> in = inputsOf(n);
  for (int i : {0, 1}) {
    if (in.size() != 2 || in[i].type != ElementType::Bool ||
        in[1 - i].type != ElementType::Bool || !in[1 - i].isTensor())
      continue;
    ASSIGN_OR_FAIL(std::optional<int64_t> always, uniform(n, in[i]));
    if (always != neutral)
      continue;
    ASSIGN_OR_FAIL(Dims shape, commonShape(n, in));
    ASSIGN_OR_FAIL(Value other, n.broadcast(in[1 - i], shape));
    return n.set(other);
  }
  return logic<Op>(n, ints);
}

static LogicalResult importAnd(Node &n) {
  return junction<arith::AndIOp>(
      n, [](Ints x) { return x[0] & x[1]; }, 1);
}
static Register logicalAnd("And", importAnd);
static Register bitwiseAnd("BitwiseAnd", importAnd);

static LogicalResult importOr(Node &n) {
  return junction<arith::OrIOp>(
      n, [](Ints x) { return x[0] | x[1]; }, 0);
}
static Register logicalOr("Or", importOr);
static Register bitwiseOr("BitwiseOr", importOr);

static LogicalResult importXor(Node &n) {
  return logic<arith::XOrIOp>(n, [](Ints x) { return x[0] ^ x[1]; });
}
static Register logicalXor("Xor", importXor);

static LogicalResult importNot(Node &n) {
  return importPointwise(
      n, inputsOf(n),
      {nullptr, [](Ints x) -> int64_t { return !x[0]; },
       [](OpBuilder &b, Location loc, ValueRange v) -> Value {
         return arith::XOrIOp::create(b, loc, v[0], like(b, loc, v[0], 1));
       },
       false, 1});
}
static Register logicalNot("Not", importNot);

static LogicalResult importIsNaN(Node &n) {
  return importPointwise(
      n, inputsOf(n),
      {[](Doubles x) -> double { return std::isnan(x[0]); }, nullptr,
       [](OpBuilder &b, Location loc, ValueRange v) -> Value {
         return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, v[0],
                                      v[0]);
       },
       true, 1});
}
static Register isNaN("IsNaN", importIsNaN);

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

static LogicalResult importWhere(Node &n) {
  if (n.numInputs() != 3)
    return n.error("wants 3 inputs");
  SmallVector<Val> in = inputsOf(n);
  if (in[0].type != ElementType::Bool)
    return n.error("the condition has elements of type " + nameOf(in[0].type));
  if (in[1].type != in[2].type)
    return n.error("chooses between elements of type " + nameOf(in[1].type) +
                   " and " + nameOf(in[2].type));
  ASSIGN_OR_FAIL(Dims shape, commonShape(n, in));
  // A mask that allows everything is no mask.
  ASSIGN_OR_FAIL(std::optional<int64_t> always, uniform(n, in[0]));
  if (always) {
    const Val &chosen = *always ? in[1] : in[2];
    if (chosen.isConst()) {
      ASSIGN_OR_FAIL(Array array, n.arrayOf(chosen));
      return n.set(array.broadcastTo(shape));
    }
    ASSIGN_OR_FAIL(Value value, n.broadcast(chosen, shape));
    return n.set(value);
  }
  if (n.foldable({0, 1, 2})) {
    SmallVector<Array> arrays;
    bool small = true;
    for (const Val &v : in) {
      ASSIGN_OR_FAIL(Array array, n.arrayOf(v));
      arrays.push_back(array.broadcastTo(shape));
      small &= arrays.back().distinct() <= kMaxFoldElements;
    }
    if (small && isFloat(in[1].type))
      return n.set(Array::mapFloats(
          in[1].type, arrays, [](Doubles x) { return x[0] ? x[1] : x[2]; }));
    if (small)
      return n.set(Array::mapInts(in[1].type, arrays,
                                  [](Ints x) { return x[0] ? x[1] : x[2]; }));
  }
  SmallVector<Value> values;
  for (const Val &v : in) {
    ASSIGN_OR_FAIL(Value value, n.broadcast(v, shape));
    values.push_back(value);
  }
  return n.set(
      arith::SelectOp::create(n.b, n.loc, values[0], values[1], values[2]));
}
static Register where("Where", importWhere);

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// `x` with elements of `to`. Booleans are 0 and 1; floats are cut towards
/// zero.
static Value castTo(Node &n, Value x, Type to) {
  auto type = nn::tensorType(x);
  Type from = type.getElementType();
  auto result = RankedTensorType::get(type.getShape(), to);
  OpBuilder &b = n.b;
  Location loc = n.loc;
  if (from == to)
    return x;
  if (to.isInteger(1)) {
    Value zero = like(b, loc, x, 0);
    if (isa<FloatType>(from))
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, x, zero);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x, zero);
  }
  if (isa<FloatType>(from) && isa<FloatType>(to)) {
    unsigned narrow = from.getIntOrFloatBitWidth();
    unsigned wide = to.getIntOrFloatBitWidth();
    if (narrow < wide)
      return arith::ExtFOp::create(b, loc, result, x);
    if (narrow > wide)
      return arith::TruncFOp::create(b, loc, result, x);
    // f16 and bf16, by way of f32.
    return castTo(n, castTo(n, x, b.getF32Type()), to);
  }
  if (isa<FloatType>(to)) {
    if (from.isInteger(1))
      return arith::UIToFPOp::create(b, loc, result, x);
    return arith::SIToFPOp::create(b, loc, result, x);
  }
  if (isa<FloatType>(from))
    return arith::FPToSIOp::create(b, loc, result, x);
  if (from.isInteger(1))
    return arith::ExtUIOp::create(b, loc, result, x);
  if (from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
    return arith::ExtSIOp::create(b, loc, result, x);
  return arith::TruncIOp::create(b, loc, result, x);
}

static LogicalResult cast(Node &n, ElementType to) {
  const Val &x = n.input(0);
  if (x.isConst() && n.foldable(0)) {
    ASSIGN_OR_FAIL(Array array, n.array(0));
    return n.set(array.cast(to));
  }
  Type element = irType(to, n.b.getContext());
  if (!element)
    return n.unsupported("a cast to " + nameOf(to));
  ASSIGN_OR_FAIL(Value value, n.value(0));
  return n.set(castTo(n, value, element));
}

static LogicalResult importCast(Node &n) {
  int64_t number = n.intAttr("to", 0);
  auto to = elementTypeOf(number);
  if (!to)
    return n.unsupported("a cast to element type number " + Twine(number));
  return cast(n, *to);
}
static Register castOp("Cast", importCast);

static LogicalResult importCastLike(Node &n) {
  return cast(n, n.input(1).type);
}
static Register castLike("CastLike", importCastLike);
