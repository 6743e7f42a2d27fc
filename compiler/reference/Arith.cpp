// Arith.cpp - upstream's arith ops on tensors, element by element.

#include "compiler/reference/Interpreter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace tmc::reference;

/// `value` as a two's complement integer of the element's width; an i1 is 0 or
/// 1.
static int64_t wrap(Element element, int64_t value) {
  switch (element) {
  case Element::I1:
    return value & 1;
  case Element::I8:
    return int8_t(value);
  case Element::I32:
    return int32_t(value);
  default:
    return value;
  }
}

/// The same bits read as an unsigned number.
static uint64_t unsignedOf(Element element, int64_t value) {
  switch (element) {
  case Element::I1:
    return value & 1;
  case Element::I8:
    return uint8_t(value);
  case Element::I32:
    return uint32_t(value);
  default:
    return value;
  }
}

/// A signed reading of an i1, where true is -1.
static int64_t signedOf(Element element, int64_t value) {
  return element == Element::I1 ? -value : value;
}

template <typename OpTy, typename F>
static void addBinaryFloat(OpTable &table, F f) {
  table.add<OpTy>([f](OpTy op, OpCall &call) {
    const double *a = call.in(0u).floats.data(), *b = call.in(1u).floats.data();
    for (double &out : call.out(0).floats)
      out = f(*a++, *b++);
    return success();
  });
}

/// Integer division and remainder fail where the divisor is zero, an error of
/// the input; the other ops are total.
template <typename OpTy, typename F>
static void addBinaryInt(OpTable &table, F f, bool divides = false) {
  table.add<OpTy>([f, divides](OpTy op, OpCall &call) -> LogicalResult {
    Tensor &out = call.out(0);
    for (int64_t i = 0; i < out.size(); ++i) {
      int64_t lhs = call.in(0u).ints[i], rhs = call.in(1u).ints[i];
      if (divides && rhs == 0)
        return op.emitError("divides by zero at element ") << i;
      out.ints[i] = wrap(out.element, f(out.element, lhs, rhs));
    }
    return success();
  });
}

/// Conversions and other ops of one operand: `f` takes the operand and an
/// index, and returns a number of the result's kind.
template <typename OpTy, typename F>
static void addUnaryToFloat(OpTable &table, F f) {
  table.add<OpTy>([f](OpTy op, OpCall &call) {
    Tensor &out = call.out(0);
    for (int64_t i = 0; i < out.size(); ++i)
      out.floats[i] = f(call.in(0u), i);
    return success();
  });
}
template <typename OpTy, typename F>
static void addUnaryToInt(OpTable &table, F f) {
  table.add<OpTy>([f](OpTy op, OpCall &call) {
    Tensor &out = call.out(0);
    for (int64_t i = 0; i < out.size(); ++i)
      out.ints[i] = wrap(out.element, f(call.in(0u), i));
    return success();
  });
}

static bool compare(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::OEQ:
    return !unordered && a == b;
  case P::OGT:
    return !unordered && a > b;
  case P::OGE:
    return !unordered && a >= b;
  case P::OLT:
    return !unordered && a < b;
  case P::OLE:
    return !unordered && a <= b;
  case P::ONE:
    return !unordered && a != b;
  case P::ORD:
    return !unordered;
  case P::UEQ:
    return unordered || a == b;
  case P::UGT:
    return unordered || a > b;
  case P::UGE:
    return unordered || a >= b;
  case P::ULT:
    return unordered || a < b;
  case P::ULE:
    return unordered || a <= b;
  case P::UNE:
    return unordered || a != b;
  case P::UNO:
    return unordered;
  case P::AlwaysTrue:
    return true;
  }
  llvm_unreachable("all predicates are listed");
}

static bool compare(arith::CmpIPredicate predicate, Element element, int64_t a,
                    int64_t b) {
  uint64_t ua = unsignedOf(element, a), ub = unsignedOf(element, b);
  int64_t sa = signedOf(element, a), sb = signedOf(element, b);
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return ua == ub;
  case P::ne:
    return ua != ub;
  case P::slt:
    return sa < sb;
  case P::sle:
    return sa <= sb;
  case P::sgt:
    return sa > sb;
  case P::sge:
    return sa >= sb;
  case P::ult:
    return ua < ub;
  case P::ule:
    return ua <= ub;
  case P::ugt:
    return ua > ub;
  case P::uge:
    return ua >= ub;
  }
  llvm_unreachable("all predicates are listed");
}

/// A NaN on either side gives a NaN, as maximumf and minimumf require.
template <typename F> static double orNaN(double a, double b, F f) {
  if (std::isnan(a) || std::isnan(b))
    return std::nan("");
  return f(a, b);
}

static void addFloats(OpTable &table) {
  using D = double;
  addBinaryFloat<arith::AddFOp>(table, [](D a, D b) { return a + b; });
  addBinaryFloat<arith::SubFOp>(table, [](D a, D b) { return a - b; });
  addBinaryFloat<arith::MulFOp>(table, [](D a, D b) { return a * b; });
  addBinaryFloat<arith::DivFOp>(table, [](D a, D b) { return a / b; });
  addBinaryFloat<arith::RemFOp>(table,
                                [](D a, D b) { return std::fmod(a, b); });
  addBinaryFloat<arith::MaximumFOp>(table, [](D a, D b) {
    return orNaN(a, b, [](D a, D b) { return std::fmax(a, b); });
  });
  addBinaryFloat<arith::MinimumFOp>(table, [](D a, D b) {
    return orNaN(a, b, [](D a, D b) { return std::fmin(a, b); });
  });
  addBinaryFloat<arith::MaxNumFOp>(table,
                                   [](D a, D b) { return std::fmax(a, b); });
  addBinaryFloat<arith::MinNumFOp>(table,
                                   [](D a, D b) { return std::fmin(a, b); });
  addUnaryToFloat<arith::NegFOp>(
      table, [](const Tensor &x, int64_t i) { return -x.floats[i]; });

  table.add<arith::CmpFOp>([](arith::CmpFOp op, OpCall &call) {
    Tensor &out = call.out(0);
    arith::CmpFPredicate predicate = op.getPredicate();
    for (int64_t i = 0; i < out.size(); ++i)
      out.ints[i] =
          compare(predicate, call.in(0u).floats[i], call.in(1u).floats[i]);
    return success();
  });
}

static void addInts(OpTable &table) {
  using I = int64_t;
  using E = Element;
  // Unsigned, because a sum or a product may leave the range of int64_t.
  addBinaryInt<arith::AddIOp>(
      table, [](E, I a, I b) -> I { return uint64_t(a) + uint64_t(b); });
  addBinaryInt<arith::SubIOp>(
      table, [](E, I a, I b) -> I { return uint64_t(a) - uint64_t(b); });
  addBinaryInt<arith::MulIOp>(
      table, [](E, I a, I b) -> I { return uint64_t(a) * uint64_t(b); });
  // -2^63 / -1 is the one quotient that doesn't fit: it wraps.
  auto quotient = [](I a, I b) -> I { return b == -1 ? -uint64_t(a) : a / b; };
  auto remainder = [](I a, I b) -> I { return b == -1 ? 0 : a % b; };
  addBinaryInt<arith::DivSIOp>(
      table, [=](E, I a, I b) { return quotient(a, b); }, /*divides=*/true);
  addBinaryInt<arith::RemSIOp>(
      table, [=](E, I a, I b) { return remainder(a, b); }, /*divides=*/true);
  addBinaryInt<arith::FloorDivSIOp>(
      table,
      [=](E, I a, I b) {
        return quotient(a, b) - (remainder(a, b) != 0 && (a < 0) != (b < 0));
      },
      /*divides=*/true);
  addBinaryInt<arith::CeilDivSIOp>(
      table,
      [=](E, I a, I b) {
        return quotient(a, b) + (remainder(a, b) != 0 && (a < 0) == (b < 0));
      },
      /*divides=*/true);
  addBinaryInt<arith::DivUIOp>(
      table,
      [](E e, I a, I b) -> I { return unsignedOf(e, a) / unsignedOf(e, b); },
      /*divides=*/true);
  addBinaryInt<arith::RemUIOp>(
      table,
      [](E e, I a, I b) -> I { return unsignedOf(e, a) % unsignedOf(e, b); },
      /*divides=*/true);
  addBinaryInt<arith::AndIOp>(table, [](E, I a, I b) { return a & b; });
  addBinaryInt<arith::OrIOp>(table, [](E, I a, I b) { return a | b; });
  addBinaryInt<arith::XOrIOp>(table, [](E, I a, I b) { return a ^ b; });
  addBinaryInt<arith::MaxSIOp>(table, [](E e, I a, I b) {
    return signedOf(e, a) > signedOf(e, b) ? a : b;
  });
  addBinaryInt<arith::MinSIOp>(table, [](E e, I a, I b) {
    return signedOf(e, a) < signedOf(e, b) ? a : b;
  });
  addBinaryInt<arith::MaxUIOp>(table, [](E e, I a, I b) {
    return unsignedOf(e, a) > unsignedOf(e, b) ? a : b;
  });
  addBinaryInt<arith::MinUIOp>(table, [](E e, I a, I b) {
    return unsignedOf(e, a) < unsignedOf(e, b) ? a : b;
  });

  table.add<arith::CmpIOp>([](arith::CmpIOp op, OpCall &call) {
    Tensor &out = call.out(0);
    for (int64_t i = 0; i < out.size(); ++i)
      out.ints[i] = compare(op.getPredicate(), call.in(0u).element,
                            call.in(0u).ints[i], call.in(1u).ints[i]);
    return success();
  });
}

static void addCasts(OpTable &table) {
  auto value = [](const Tensor &x, int64_t i) { return x.floats[i]; };
  addUnaryToFloat<arith::ExtFOp>(table, value);
  addUnaryToFloat<arith::TruncFOp>(table, value);
  addUnaryToFloat<arith::SIToFPOp>(table, [](const Tensor &x, int64_t i) {
    return double(signedOf(x.element, x.ints[i]));
  });
  addUnaryToFloat<arith::UIToFPOp>(table, [](const Tensor &x, int64_t i) {
    return double(unsignedOf(x.element, x.ints[i]));
  });
  auto truncated = [](const Tensor &x, int64_t i) {
    return int64_t(std::trunc(x.floats[i]));
  };
  addUnaryToInt<arith::FPToSIOp>(table, truncated);
  addUnaryToInt<arith::FPToUIOp>(table, truncated);
  addUnaryToInt<arith::ExtSIOp>(table, [](const Tensor &x, int64_t i) {
    return signedOf(x.element, x.ints[i]);
  });
  addUnaryToInt<arith::ExtUIOp>(table, [](const Tensor &x, int64_t i) {
    return int64_t(unsignedOf(x.element, x.ints[i]));
  });
  addUnaryToInt<arith::TruncIOp>(
      table, [](const Tensor &x, int64_t i) { return x.ints[i]; });
}

void tmc::reference::addArith(OpTable &table) {
  addFloats(table);
  addInts(table);
  addCasts(table);

  table.add<arith::ConstantOp>(
      [](arith::ConstantOp op, OpCall &call) -> LogicalResult {
        auto attr = dyn_cast<DenseElementsAttr>(op.getValue());
        if (!attr)
          return op.emitError("the interpreter wants dense elements, not ")
                 << op.getValue();
        call.out(0) = Tensor::fromAttr(attr);
        return success();
      });

  // The condition is a tensor of the values' shape, or one scalar i1.
  table.add<arith::SelectOp>([](arith::SelectOp op, OpCall &call) {
    const Tensor &condition = call.in(0u);
    Tensor &out = call.out(0);
    for (int64_t i = 0; i < out.size(); ++i)
      out.set(i, call.in(condition.ints[i] ? 1 : 2), i);
    return success();
  });
}
