// Math.cpp - upstream's math ops on tensors, element by element.

#include "compiler/reference/Interpreter.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace tmc::reference;

template <typename OpTy, typename F> static void addUnary(OpTable &table, F f) {
  table.add<OpTy>([f](OpTy op, OpCall &call) {
    Tensor &out = call.out(0);
    for (int64_t i = 0; i < out.size(); ++i)
      out.floats[i] = f(call.in(0u).floats[i]);
    return success();
  });
}

template <typename OpTy, typename F>
static void addBinary(OpTable &table, F f) {
  table.add<OpTy>([f](OpTy op, OpCall &call) {
    Tensor &out = call.out(0);
    for (int64_t i = 0; i < out.size(); ++i)
      out.floats[i] = f(call.in(0u).floats[i], call.in(1u).floats[i]);
    return success();
  });
}

void tmc::reference::addMath(OpTable &table) {
  using D = double;
  addUnary<math::AbsFOp>(table, [](D x) { return std::fabs(x); });
  addUnary<math::AtanOp>(table, [](D x) { return std::atan(x); });
  addUnary<math::CeilOp>(table, [](D x) { return std::ceil(x); });
  addUnary<math::CosOp>(table, [](D x) { return std::cos(x); });
  addUnary<math::CoshOp>(table, [](D x) { return std::cosh(x); });
  addUnary<math::ErfOp>(table, [](D x) { return std::erf(x); });
  addUnary<math::ErfcOp>(table, [](D x) { return std::erfc(x); });
  addUnary<math::ExpOp>(table, [](D x) { return std::exp(x); });
  addUnary<math::Exp2Op>(table, [](D x) { return std::exp2(x); });
  addUnary<math::ExpM1Op>(table, [](D x) { return std::expm1(x); });
  addUnary<math::FloorOp>(table, [](D x) { return std::floor(x); });
  addUnary<math::LogOp>(table, [](D x) { return std::log(x); });
  addUnary<math::Log1pOp>(table, [](D x) { return std::log1p(x); });
  addUnary<math::Log2Op>(table, [](D x) { return std::log2(x); });
  addUnary<math::Log10Op>(table, [](D x) { return std::log10(x); });
  addUnary<math::RoundOp>(table, [](D x) { return std::round(x); });
  addUnary<math::RoundEvenOp>(table, [](D x) { return std::nearbyint(x); });
  addUnary<math::RsqrtOp>(table, [](D x) { return 1 / std::sqrt(x); });
  addUnary<math::SinOp>(table, [](D x) { return std::sin(x); });
  addUnary<math::SinhOp>(table, [](D x) { return std::sinh(x); });
  addUnary<math::SqrtOp>(table, [](D x) { return std::sqrt(x); });
  addUnary<math::TanOp>(table, [](D x) { return std::tan(x); });
  addUnary<math::TanhOp>(table, [](D x) { return std::tanh(x); });
  addUnary<math::TruncOp>(table, [](D x) { return std::trunc(x); });

  addBinary<math::Atan2Op>(table, [](D x, D y) { return std::atan2(x, y); });
  addBinary<math::CopySignOp>(table,
                              [](D x, D y) { return std::copysign(x, y); });
  addBinary<math::PowFOp>(table, [](D x, D y) { return std::pow(x, y); });

  table.add<math::FPowIOp>([](math::FPowIOp op, OpCall &call) {
    Tensor &out = call.out(0);
    for (int64_t i = 0; i < out.size(); ++i)
      out.floats[i] = std::pow(call.in(0u).floats[i], call.in(1u).ints[i]);
    return success();
  });
  table.add<math::FmaOp>([](math::FmaOp op, OpCall &call) {
    Tensor &out = call.out(0);
    for (int64_t i = 0; i < out.size(); ++i)
      out.floats[i] = std::fma(call.in(0u).floats[i], call.in(1u).floats[i],
                               call.in(2u).floats[i]);
    return success();
  });
  table.add<math::AbsIOp>([](math::AbsIOp op, OpCall &call) {
    Tensor &out = call.out(0);
    for (int64_t i = 0; i < out.size(); ++i) {
      int64_t x = call.in(0u).ints[i];
      out.ints[i] = x < 0 ? -uint64_t(x) : x;
    }
    return success();
  });
}
