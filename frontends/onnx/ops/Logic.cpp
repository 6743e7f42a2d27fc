// Logic.cpp - comparisons, logic, choice and casts.

#include "frontends/common/ops/Logic.h"
#include "frontends/onnx/Model.h"
#include "frontends/onnx/Node.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// Registers `NAME` as a builder of all the node's inputs.
#define TMC_OF_ALL(NAME, BUILDER)                                              \
  static LogicalResult import##NAME(Node &n) {                                 \
    return n.set(BUILDER(n, n.inputs()));                                      \
  }                                                                            \
  static Register register##NAME(#NAME, import##NAME)

TMC_OF_ALL(Equal, equals);
TMC_OF_ALL(Less, less);
TMC_OF_ALL(LessOrEqual, lessOrEqual);
TMC_OF_ALL(Greater, greater);
TMC_OF_ALL(GreaterOrEqual, greaterOrEqual);
TMC_OF_ALL(And, conjunction);
TMC_OF_ALL(BitwiseAnd, conjunction);
TMC_OF_ALL(Or, disjunction);
TMC_OF_ALL(BitwiseOr, disjunction);
TMC_OF_ALL(Xor, exclusiveOr);
TMC_OF_ALL(BitwiseXor, exclusiveOr);

static LogicalResult importBitwiseNot(Node &n) {
  const Val x = n.input(0);
  return n.set(exclusiveOr(n, {x, Val(Array::splatInt(x.type, {}, -1))}));
}
static Register bitwiseNot("BitwiseNot", importBitwiseNot);

static LogicalResult importBitShift(Node &n) {
  std::string direction = n.stringAttr("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return n.error("the direction '" + direction + "'");
  return n.set(shiftedBits(n, n.input(0), n.input(1), direction == "LEFT"));
}
static Register bitShift("BitShift", importBitShift);

static LogicalResult importNot(Node &n) {
  return n.set(negation(n, n.input(0)));
}
static Register logicalNot("Not", importNot);

static LogicalResult importIsNaN(Node &n) {
  return n.set(isNaN(n, n.input(0)));
}
static Register isNaNOp("IsNaN", importIsNaN);

static LogicalResult importWhere(Node &n) {
  if (n.numInputs() != 3)
    return n.error("wants 3 inputs");
  return n.set(where(n, n.input(0), n.input(1), n.input(2)));
}
static Register whereOp("Where", importWhere);

static LogicalResult importCast(Node &n) {
  n.ignore({"saturate", "round_mode"}); // For floats of 8 bits.
  int64_t number = n.intAttr("to", 0);
  auto to = typeOfNumber(number);
  if (!to)
    return n.unsupported("a cast to element type number " + Twine(number));
  return n.set(castTo(n, n.input(0), *to));
}
static Register castOp("Cast", importCast);

static LogicalResult importCastLike(Node &n) {
  n.ignore({"saturate", "round_mode"});
  return n.set(castTo(n, n.input(0), n.input(1).type));
}
static Register castLike("CastLike", importCastLike);

/// The same bits as another type; the conversion needs known elements.
static LogicalResult importBitCast(Node &n) {
  const Val x = n.input(0);
  int64_t number = n.intAttr("to", 0);
  auto to = typeOfNumber(number);
  if (!to || sizeInFile(*to) != sizeInFile(x.type))
    return n.unsupported("the bits of " + nameOf(x.type) +
                         " as element type number " + Twine(number));
  if (*to == x.type)
    return n.set(x);
  if (!n.foldable(x))
    return n.unsupported("the bits of what a step computes");
  ASSIGN_OR_FAIL(Array array, n.arrayOf(x));
  return n.set(Val(bitsAs(array, *to)));
}
static Register bitCast("BitCast", importBitCast);

/// One for elements above the threshold, else zero.
static LogicalResult importBinarizer(Node &n) {
  const Val x = n.input(0);
  if (failed(checkFloats(n, x)))
    return failure();
  Val threshold(Array::splat(x.type, {}, n.floatAttr("threshold", 0)));
  ASSIGN_OR_FAIL(Val isAbove, greater(n, {x, threshold}));
  return n.set(castTo(n, isAbove, x.type));
}
static Register binarizer("ai.onnx.ml", "Binarizer", importBinarizer);

// An optional value: import knows whether it is present.
static LogicalResult importOptionalGetElement(Node &n) {
  if (!n.has(0))
    return n.error("takes a value that isn't there");
  return n.set(n.input(0));
}
static Register optionalGetElement("OptionalGetElement",
                                   importOptionalGetElement);

static LogicalResult importOptionalHasElement(Node &n) {
  return n.set(Array::splatInt(ElementType::Bool, {}, n.has(0)));
}
static Register optionalHasElement("OptionalHasElement",
                                   importOptionalHasElement);
