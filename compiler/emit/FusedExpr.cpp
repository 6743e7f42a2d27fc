// FusedExpr.cpp - pointwise ops as C++ expressions.

#include "compiler/emit/FusedExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
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
  if (element.isInteger(1))
    return "bool";
  if (element.isInteger(8))
    return "int8_t";
  return element.isInteger(32) ? "int32_t" : "int64_t";
}

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

/// A comparison of floats that is true, or false, where one is a NaN.
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

static std::string compareInts(arith::CmpIOp op, const std::string &a,
                               const std::string &b) {
  using P = arith::CmpIPredicate;
  if (elementOf(op.getLhs()).isInteger(1))
    return op.getPredicate() == P::eq
               ? "logicalNot(asMask(" + a + " ^ " + b + "))"
               : "asMask(" + a + " ^ " + b + ")";
  const char *sign = "==";
  switch (op.getPredicate()) {
  case P::eq:
    break;
  case P::ne:
    sign = "!=";
    break;
  case P::slt:
  case P::ult:
    sign = "<";
    break;
  case P::sle:
  case P::ule:
    sign = "<=";
    break;
  case P::sgt:
  case P::ugt:
    sign = ">";
    break;
  case P::sge:
  case P::uge:
    sign = ">=";
    break;
  }
  return "asMask(" + a + " " + sign + " " + b + ")";
}

/// Between integers of different widths, and from masks.
static std::string widen(Operation *op, const std::string &x, bool isSigned) {
  Type from = elementOf(op->getOperand(0)), to = elementOf(op->getResult(0));
  std::string type = to.isInteger(64) ? "int64_t" : "int32_t";
  if (from.isInteger(1))
    return (isSigned ? "-" : "") + ("fromMask<" + type + ">(" + x + ")");
  return to.isInteger(64) ? "convert<int64_t>(" + x + ")" : x;
}

static std::string narrow(Operation *op, const std::string &x) {
  Type from = elementOf(op->getOperand(0)), to = elementOf(op->getResult(0));
  if (to.isInteger(1))
    return "asMask((" + x + " & " + literalOf(from, 1) +
           ") != " + literalOf(from, 0) + ")";
  std::string low = from.isInteger(64) ? "convert<int32_t>(" + x + ")" : x;
  return to.isInteger(8) ? "((" + low + " << 24) >> 24)" : low;
}

std::string tmc::expressionOf(Operation *op,
                              llvm::function_ref<std::string(unsigned)> text,
                              llvm::function_ref<std::string(unsigned)> mixed) {
  auto binary = [&](const char *sign) {
    return mixed(0) + " " + sign + " " + mixed(1);
  };
  auto call = [&](const char *function) {
    return std::string(function) + "(" + text(0) + ")";
  };
  auto call2 = [&](const char *function) {
    return std::string(function) + "(" + text(0) + ", " + text(1) + ")";
  };
  bool isTruth = elementOf(op->getResult(0)).isInteger(1);
  auto bits = [&](const char *sign) {
    return isTruth ? "asMask(" + text(0) + " " + sign + " " + text(1) + ")"
                   : binary(sign);
  };
  using namespace arith;
  using namespace math;
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case<AddFOp, AddIOp>([&](auto) { return binary("+"); })
      .Case<SubFOp, SubIOp>([&](auto) { return binary("-"); })
      .Case<MulFOp, MulIOp>([&](auto) { return binary("*"); })
      .Case<DivFOp, DivSIOp>([&](auto) { return binary("/"); })
      .Case<RemSIOp>([&](auto) { return binary("%"); })
      .Case<AndIOp>([&](auto) { return bits("&"); })
      .Case<OrIOp>([&](auto) { return bits("|"); })
      .Case<XOrIOp>([&](auto) { return bits("^"); })
      .Case<NegFOp>([&](auto) { return "-" + text(0); })
      .Case<MaximumFOp, MaxSIOp>([&](auto) { return call2("max"); })
      .Case<MinimumFOp, MinSIOp>([&](auto) { return call2("min"); })
      .Case<SelectOp>([&](auto) {
        return isTruth
                   ? "asMask((" + text(0) + " & " + text(1) +
                         ") | (logicalNot(" + text(0) + ") & " + text(2) + "))"
                   : "select(" + text(0) + ", " + text(1) + ", " + text(2) +
                         ")";
      })
      .Case<CmpFOp>([&](CmpFOp compare) {
        return compareFloats(compare.getPredicate(), mixed(0), mixed(1));
      })
      .Case<CmpIOp>([&](CmpIOp compare) {
        bool truth = elementOf(compare.getLhs()).isInteger(1);
        return compareInts(compare, truth ? text(0) : mixed(0),
                           truth ? text(1) : mixed(1));
      })
      .Case<ExtFOp, TruncFOp>([&](auto) { return text(0); })
      .Case<SIToFPOp, UIToFPOp>([&](auto cast) {
        if (elementOf(cast.getIn()).isInteger(1))
          return (isa<SIToFPOp>(cast) ? "-" : "") + call("fromMask<float>");
        return call("convert<float>");
      })
      .Case<FPToSIOp>([&](FPToSIOp cast) {
        return call(elementOf(cast.getOut()).isInteger(64)
                        ? "convert<int64_t>"
                        : "convert<int32_t>");
      })
      .Case<ExtSIOp>([&](auto) { return widen(op, text(0), true); })
      .Case<ExtUIOp>([&](auto) { return widen(op, text(0), false); })
      .Case<TruncIOp>([&](auto) { return narrow(op, text(0)); })
      .Case<ExpOp>([&](auto) { return call("math::exp"); })
      .Case<LogOp>([&](auto) { return call("math::log"); })
      .Case<Log1pOp>([&](auto) { return call("math::log1p"); })
      .Case<TanhOp>([&](auto) { return call("math::tanh"); })
      .Case<ErfOp>([&](auto) { return call("math::erf"); })
      .Case<SqrtOp>([&](auto) { return call("sqrt"); })
      .Case<RsqrtOp>([&](auto) { return call("math::rsqrt"); })
      .Case<SinOp>([&](auto) { return call("math::sin"); })
      .Case<CosOp>([&](auto) { return call("math::cos"); })
      .Case<AbsFOp>([&](auto) { return call("math::abs"); })
      .Case<FloorOp>([&](auto) { return call("math::floor"); })
      .Case<PowFOp>([&](auto) { return call2("math::pow"); })
      .Default([](Operation *) -> std::string {
        llvm_unreachable("an op that FusedPlan let pass");
      });
}
