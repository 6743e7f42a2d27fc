// Expressions.cpp - elements of fused kernels as C++ text.

#include "dialects/interfaces/Expressions.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;
using namespace tmc;

std::string tmc::literalOf(Type element, double value) {
  if (element.isInteger(1))
    return value ? "true" : "false";
  if (element.isInteger(64))
    return "int64_t(" + std::to_string(int64_t(value)) + ")";
  if (isa<IntegerType>(element))
    return std::to_string(int64_t(value));
  if (std::isnan(value))
    return "__builtin_nanf(\"\")";
  if (std::isinf(value))
    return value < 0 ? "-__builtin_inff()" : "__builtin_inff()";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.9g", double(float(value)));
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return text + "f";
}

StringRef tmc::storageType(Type element) {
  if (element.isF32())
    return "float";
  if (element.isBF16())
    return "tmc::bf16";
  if (element.isF16())
    return "tmc::f16";
  if (isa<Float8E4M3FNType>(element))
    return "tmc::f8e4m3";
  if (isa<Float8E5M2Type>(element))
    return "tmc::f8e5m2";
  if (element.isInteger(1))
    return "bool";
  if (element.isInteger(8))
    return "int8_t";
  if (element.isInteger(32))
    return "int32_t";
  return element.isInteger(64) ? "int64_t" : "";
}

bool tmc::isNarrowFloat(Type element) {
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
}

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

/// A comparison of floats; unordered predicates are true if an operand is NaN,
/// ordered ones are false.
static std::string compareFloats(arith::CmpFPredicate predicate,
                                 const std::string &a, const std::string &b) {
  using P = arith::CmpFPredicate;
  auto is = [&](const char *sign) {
    return "asMask(" + a + " " + sign + " " + b + ")";
  };
  auto isNot = [&](const char *sign) { return "logicalNot(" + is(sign) + ")"; };
  switch (predicate) {
  case P::OEQ:
    return is("==");
  case P::OGT:
    return is(">");
  case P::OGE:
    return is(">=");
  case P::OLT:
    return is("<");
  case P::OLE:
    return is("<=");
  case P::ONE:
    return "asMask((" + a + " < " + b + ") | (" + a + " > " + b + "))";
  case P::ORD:
    return "asMask((" + a + " == " + a + ") & (" + b + " == " + b + "))";
  case P::UEQ:
    return "logicalNot(asMask((" + a + " < " + b + ") | (" + a + " > " + b +
           ")))";
  case P::UGT:
    return isNot("<=");
  case P::UGE:
    return isNot("<");
  case P::ULT:
    return isNot(">=");
  case P::ULE:
    return isNot(">");
  case P::UNE:
    return is("!=");
  case P::UNO:
    return "asMask((" + a + " != " + a + ") | (" + b + " != " + b + "))";
  case P::AlwaysFalse:
    return "asMask((" + a + " < " + a + "))";
  case P::AlwaysTrue:
    return "asMask((" + a + " == " + a + ") | (" + a + " != " + a + "))";
  }
  llvm_unreachable("a predicate of cmpf");
}

std::string tmc::expressionOf(arith::CmpFOp op, const OperandText &text) {
  // One after the other: only the second operand may be a literal.
  std::string b = text.mixed(1), a = text.mixed(0);
  return compareFloats(op.getPredicate(), a, b);
}

std::string tmc::expressionOf(arith::CmpIOp op, const OperandText &text) {
  using P = arith::CmpIPredicate;
  if (elementOf(op.getLhs()).isInteger(1)) {
    std::string b = text.lanes(1), a = text.lanes(0);
    std::string differ = "asMask(" + a + " ^ " + b + ")";
    return op.getPredicate() == P::eq ? "logicalNot(" + differ + ")" : differ;
  }
  auto is = [&](const char *sign) {
    // One after the other: only the first operand may be a literal.
    std::string a = text.mixed(0), b = text.mixed(1);
    return "asMask(" + a + " " + sign + " " + b + ")";
  };
  switch (op.getPredicate()) {
  case P::eq:
    return is("==");
  case P::ne:
    return is("!=");
  case P::slt:
  case P::ult:
    return is("<");
  case P::sle:
  case P::ule:
    return is("<=");
  case P::sgt:
  case P::ugt:
    return is(">");
  case P::sge:
  case P::uge:
    return is(">=");
  }
  llvm_unreachable("a predicate of cmpi");
}

std::string tmc::expressionOf(arith::SelectOp op, const OperandText &text) {
  std::string mask = text.lanes(0), a = text.lanes(1), b = text.lanes(2);
  if (!elementOf(op.getResult()).isInteger(1))
    return "select(" + mask + ", " + a + ", " + b + ")";
  return "asMask((" + mask + " & " + a + ") | (logicalNot(" + mask + ") & " +
         b + "))";
}

/// An integer as a float; a mask's true becomes 1, or -1 if `isSigned`.
static std::string toFloat(Value in, const std::string &x, bool isSigned) {
  if (elementOf(in).isInteger(1))
    return (isSigned ? "-" : "") + ("fromMask<float>(" + x + ")");
  return "convert<float>(" + x + ")";
}

std::string tmc::expressionOf(arith::SIToFPOp op, const OperandText &text) {
  return toFloat(op.getIn(), text.lanes(0), true);
}

std::string tmc::expressionOf(arith::UIToFPOp op, const OperandText &text) {
  return toFloat(op.getIn(), text.lanes(0), false);
}

std::string tmc::expressionOf(arith::FPToSIOp op, const OperandText &text) {
  return (elementOf(op.getOut()).isInteger(64) ? "convert<int64_t>("
                                               : "convert<int32_t>(") +
         text.lanes(0) + ")";
}

/// Converts between integers of different widths, and from masks.
static std::string widen(Type from, Type to, const std::string &x,
                         bool isSigned) {
  std::string type = to.isInteger(64) ? "int64_t" : "int32_t";
  if (from.isInteger(1))
    return (isSigned ? "-" : "") + ("fromMask<" + type + ">(" + x + ")");
  return to.isInteger(64) ? "convert<int64_t>(" + x + ")" : x;
}

std::string tmc::expressionOf(arith::ExtSIOp op, const OperandText &text) {
  return widen(elementOf(op.getIn()), elementOf(op.getOut()), text.lanes(0),
               true);
}

std::string tmc::expressionOf(arith::ExtUIOp op, const OperandText &text) {
  return widen(elementOf(op.getIn()), elementOf(op.getOut()), text.lanes(0),
               false);
}

std::string tmc::expressionOf(arith::TruncIOp op, const OperandText &text) {
  Type from = elementOf(op.getIn()), to = elementOf(op.getOut());
  std::string x = text.lanes(0);
  if (to.isInteger(1))
    return "asMask((" + x + " & " + literalOf(from, 1) +
           ") != " + literalOf(from, 0) + ")";
  std::string low = from.isInteger(64) ? "convert<int32_t>(" + x + ")" : x;
  return to.isInteger(8) ? "((" + low + " << 24) >> 24)" : low;
}
