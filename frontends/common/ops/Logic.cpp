#include "frontends/common/ops/Logic.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

static bool holdsFloats(Value v) {
  return isa<FloatType>(getElementTypeOrSelf(v.getType()));
}

template <arith::CmpFPredicate F, arith::CmpIPredicate I>
static Value buildCompare(OpBuilder &b, Location loc, ValueRange v) {
  if (holdsFloats(v[0]))
    return arith::CmpFOp::create(b, loc, F, v[0], v[1]);
  return arith::CmpIOp::create(b, loc, I, v[0], v[1]);
}

/// Defines NAME as a comparison.
#define TMC_COMPARISON(NAME, FLOATS, INTS, SIGN)                               \
  FailureOr<Val> tmc::frontend::NAME(Site &s, Operands two) {                  \
    return pointwise(s, two,                                                   \
                     {[](Doubles x) -> double { return x[0] SIGN x[1]; },      \
                      [](Ints x) -> int64_t { return x[0] SIGN x[1]; },        \
                      buildCompare<arith::CmpFPredicate::FLOATS,               \
                                   arith::CmpIPredicate::INTS>,                \
                      true});                                                  \
  }

TMC_COMPARISON(equals, OEQ, eq, ==)
TMC_COMPARISON(notEqual, UNE, ne, !=)
TMC_COMPARISON(less, OLT, slt, <)
TMC_COMPARISON(lessOrEqual, OLE, sle, <=)
TMC_COMPARISON(greater, OGT, sgt, >)
TMC_COMPARISON(greaterOrEqual, OGE, sge, >=)

FailureOr<std::optional<int64_t>> tmc::frontend::uniformValue(Site &s,
                                                              const Val &v) {
  if (!v.isConst())
    return std::optional<int64_t>();
  ASSIGN_OR_FAIL(Array array, s.arrayOf(v));
  if (array.size() == 0 || array.distinct() > kMaxFoldElements)
    return std::optional<int64_t>();
  Array compact = array.compressed();
  if (compact.distinct() != 1)
    return std::optional<int64_t>();
  Dims kept;
  return std::optional<int64_t>(
      compact.unrepeated(kept).reshaped({}).ints()[0]);
}

template <typename Op>
static FailureOr<Val> logic(Site &s, Operands two, IntFn ints) {
  return pointwise(
      s, two,
      {nullptr, ints, [](OpBuilder &b, Location loc, ValueRange v) -> Value {
         return Op::create(b, loc, v[0], v[1]);
       }});
}

/// If all elements of one boolean operand are `neutral`, the other is the
/// result.
template <typename Op>
static FailureOr<Val> junction(Site &s, Operands in, IntFn ints,
                               int64_t neutral) {
  for (int i : {0, 1}) {
    if (in.size() != 2 || in[i].type != ElementType::Bool ||
        in[1 - i].type != ElementType::Bool || !in[1 - i].isTensor())
      continue;
    ASSIGN_OR_FAIL(std::optional<int64_t> always, uniformValue(s, in[i]));
    if (always != neutral)
      continue;
    ASSIGN_OR_FAIL(Dims shape, commonShape(s, in));
    ASSIGN_OR_FAIL(Value other, s.broadcast(in[1 - i], shape));
    return Val(other);
  }
  return logic<Op>(s, in, ints);
}

FailureOr<Val> tmc::frontend::conjunction(Site &s, Operands two) {
  return junction<arith::AndIOp>(
      s, two, [](Ints x) { return x[0] & x[1]; }, 1);
}

FailureOr<Val> tmc::frontend::disjunction(Site &s, Operands two) {
  return junction<arith::OrIOp>(
      s, two, [](Ints x) { return x[0] | x[1]; }, 0);
}

FailureOr<Val> tmc::frontend::exclusiveOr(Site &s, Operands two) {
  return logic<arith::XOrIOp>(s, two, [](Ints x) { return x[0] ^ x[1]; });
}

FailureOr<Val> tmc::frontend::negation(Site &s, const Val &x) {
  return pointwise(s, {x},
                   {nullptr, [](Ints x) -> int64_t { return !x[0]; },
                    [](OpBuilder &b, Location loc, ValueRange v) -> Value {
                      return arith::XOrIOp::create(b, loc, v[0],
                                                   like(b, loc, v[0], 1));
                    },
                    false, 1});
}

/// 2^n in `type`; 2^63 is the smallest 64-bit number.
static Array powersOfTwo(ElementType type, const Array &exponents) {
  return mapInts(type, {exponents}, [](Ints n) -> int64_t {
    return static_cast<int64_t>(uint64_t(1) << n[0]);
  });
}

/// Left: products with powers of two, which wrap around. Right: floor divisions
/// by powers of two, in two steps, because 2^63 isn't a 64-bit number.
FailureOr<Val> tmc::frontend::shiftedBits(Site &s, const Val &x,
                                          const Val &places, bool isLeft) {
  if (isFloat(x.type) || x.type == ElementType::Bool || isFloat(places.type))
    return s.unsupported("bits of type " + nameOf(x.type));
  if (!s.foldable(places))
    return s.unsupported("bits moved as far as a step computes");
  ASSIGN_OR_FAIL(Array given, s.arrayOf(places));
  const int64_t bits = 8 * sizeInFile(x.type);
  const bool isSigned = x.type != ElementType::U8 && x.type != ElementType::U16;
  auto isInside = [=](int64_t n) { return n >= 0 && n < bits; };
  Array inside = mapInts(ElementType::Bool, {given},
                         [=](Ints n) -> int64_t { return isInside(n[0]); });
  Val zero(Array::splatInt(x.type, {}, 0));
  if (isLeft) {
    Array exponents =
        mapInts(ElementType::I64, {given},
                [=](Ints n) -> int64_t { return isInside(n[0]) ? n[0] : 0; });
    ASSIGN_OR_FAIL(Val y,
                   multiply(s, {x, Val(powersOfTwo(x.type, exponents))}));
    return where(s, Val(inside), y, zero);
  }
  Val y = x;
  const int64_t first = bits / 2 - 1;
  for (bool isFirst : {true, false}) {
    Array exponents =
        mapInts(ElementType::I64, {given}, [=](Ints n) -> int64_t {
          int64_t all = isInside(n[0]) ? n[0] : bits - 1;
          int64_t part = std::min(all, first);
          return isFirst ? part : all - part;
        });
    Val divisor(powersOfTwo(x.type, exponents));
    ASSIGN_OR_FAIL(Val rest, wholeModulo(s, {y, divisor}));
    ASSIGN_OR_FAIL(y, subtract(s, {y, rest}));
    ASSIGN_OR_FAIL(y, divide(s, {y, divisor}));
  }
  return isSigned ? FailureOr<Val>(y) : where(s, Val(inside), y, zero);
}

FailureOr<Val> tmc::frontend::isNaN(Site &s, const Val &x) {
  return pointwise(
      s, {x},
      {[](Doubles x) -> double { return std::isnan(x[0]); }, nullptr,
       [](OpBuilder &b, Location loc, ValueRange v) -> Value {
         return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, v[0],
                                      v[0]);
       },
       true, 1});
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

FailureOr<Val> tmc::frontend::where(Site &s, const Val &condition, const Val &x,
                                    const Val &y) {
  const Val in[] = {condition, x, y};
  if (in[0].type != ElementType::Bool)
    return s.error("the condition has elements of type " + nameOf(in[0].type));
  if (in[1].type != in[2].type)
    return s.error("chooses between elements of type " + nameOf(in[1].type) +
                   " and " + nameOf(in[2].type));
  ASSIGN_OR_FAIL(Dims shape, commonShape(s, in));
  // A mask that allows everything isn't needed.
  ASSIGN_OR_FAIL(std::optional<int64_t> always, uniformValue(s, in[0]));
  if (always) {
    const Val &chosen = *always ? in[1] : in[2];
    if (chosen.isConst()) {
      ASSIGN_OR_FAIL(Array array, s.arrayOf(chosen));
      return Val(array.broadcastTo(shape));
    }
    ASSIGN_OR_FAIL(Value value, s.broadcast(chosen, shape));
    return Val(value);
  }
  if (s.allFoldable(in)) {
    SmallVector<Array> arrays;
    for (const Val &v : in) {
      ASSIGN_OR_FAIL(Array array, s.arrayOf(v));
      arrays.push_back(array.broadcastTo(shape));
    }
    const bool small = mappedElements(arrays) <= kMaxFoldElements;
    if (small && isFloat(in[1].type))
      return Val(mapFloats(in[1].type, arrays,
                           [](Doubles x) { return x[0] ? x[1] : x[2]; }));
    if (small)
      return Val(mapInts(in[1].type, arrays,
                         [](Ints x) { return x[0] ? x[1] : x[2]; }));
  }
  SmallVector<Value> values;
  for (const Val &v : in) {
    ASSIGN_OR_FAIL(Value value, s.broadcast(v, shape));
    values.push_back(value);
  }
  return Val(
      arith::SelectOp::create(s.b, s.loc, values[0], values[1], values[2]));
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

static Value convert(Site &s, Value x, Type to) {
  auto type = nn::tensorType(x);
  Type from = type.getElementType();
  auto result = RankedTensorType::get(type.getShape(), to);
  OpBuilder &b = s.b;
  Location loc = s.loc;
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
    // f16 and bf16 convert through f32.
    return convert(s, convert(s, x, b.getF32Type()), to);
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

FailureOr<Val> tmc::frontend::castTo(Site &s, const Val &x, ElementType to) {
  if (s.foldable(x)) {
    ASSIGN_OR_FAIL(Array array, s.arrayOf(x));
    return Val(array.cast(to));
  }
  Type element = irType(to, s.b.getContext());
  if (!element)
    return s.unsupported("a cast to " + nameOf(to));
  ASSIGN_OR_FAIL(Value value, s.materialise(x));
  return Val(convert(s, value, element));
}
