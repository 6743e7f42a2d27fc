// Pointwise.cpp - elementwise arithmetic and functions.

#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Elementary.h"
#include "frontends/onnx/Importer.h"
#include "frontends/onnx/TorchCall.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// Registers `NAME` as a builder of all the node's inputs.
#define TMC_OF_ALL(NAME, BUILDER)                                              \
  static LogicalResult import##NAME(Node &n) {                                 \
    return n.set(BUILDER(n, n.inputs()));                                      \
  }                                                                            \
  static Register register##NAME(#NAME, import##NAME)

TMC_OF_ALL(Add, add);
TMC_OF_ALL(Mul, multiply);
TMC_OF_ALL(Div, divide);
TMC_OF_ALL(Pow, power);
TMC_OF_ALL(Max, maximum);
TMC_OF_ALL(Min, minimum);
TMC_OF_ALL(Sum, sum);
TMC_OF_ALL(Mean, mean);

static LogicalResult importMod(Node &n) {
  return n.set(n.intAttr("fmod", 0) ? remainder(n, n.inputs())
                                    : floorModulo(n, n.inputs()));
}
static Register mod("Mod", importMod);

/// Registers `NAME` as a builder of the first input.
#define TMC_OF_ONE(NAME, BUILDER)                                              \
  static LogicalResult import##NAME(Node &n) {                                 \
    return n.set(BUILDER(n, n.input(0)));                                      \
  }                                                                            \
  static Register register##NAME(#NAME, import##NAME)

TMC_OF_ONE(Exp, exponential);
TMC_OF_ONE(Tanh, hyperbolicTangent);
TMC_OF_ONE(Erf, errorFunction);
TMC_OF_ONE(Sin, sine);
TMC_OF_ONE(Cos, cosine);
TMC_OF_ONE(Neg, negate);
TMC_OF_ONE(Abs, absolute);
TMC_OF_ONE(Reciprocal, reciprocal);
TMC_OF_ONE(Floor, floorOf);
TMC_OF_ONE(Ceil, ceilOf);
TMC_OF_ONE(Round, rounded);
TMC_OF_ONE(Sign, signOf);
TMC_OF_ONE(Tan, tangent);
TMC_OF_ONE(Asin, arcSine);
TMC_OF_ONE(Acos, arcCosine);
TMC_OF_ONE(Atan, arcTangent);
TMC_OF_ONE(Sinh, hyperbolicSine);
TMC_OF_ONE(Cosh, hyperbolicCosine);
TMC_OF_ONE(Asinh, inverseHyperbolicSine);
TMC_OF_ONE(Acosh, inverseHyperbolicCosine);
TMC_OF_ONE(Atanh, inverseHyperbolicTangent);

/// True if `value` is a sum of squares, or a mean of them.
static bool isSumOfSquares(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<nn::ReshapeOp, nn::BroadcastOp>(op))
    return isSumOfSquares(op->getOperand(0));
  if (isa<arith::MulFOp, arith::DivFOp>(op) &&
      nn::splatValue(op->getOperand(1)))
    return isSumOfSquares(op->getOperand(0));
  auto reduce = dyn_cast<nn::ReduceOp>(op);
  if (!reduce || reduce.getKind() != nn::ReduceKind::Sum)
    return false;
  Operation *squares = reduce.getInput().getDefiningOp();
  if (auto power = dyn_cast_or_null<math::PowFOp>(squares))
    return nn::splatValue(power.getRhs()) == std::optional<double>(2);
  return isa_and_nonnull<arith::MulFOp>(squares) &&
         squares->getOperand(0) == squares->getOperand(1);
}

/// Exporters write norms and standard deviations as roots of such sums.
static LogicalResult importSqrt(Node &n) {
  const Val x = n.input(0);
  if (n.foldable(x))
    return n.set(squareRoot(n, x));
  ASSIGN_OR_FAIL(Value value, n.materialise(x));
  return n.set(isSumOfSquares(value) ? rootOf(Expression(n, x)).value()
                                     : squareRoot(n, x));
}
static Register sqrtOp("Sqrt", importSqrt);

static LogicalResult importIsInf(Node &n) {
  return n.set(isInfinite(n, n.input(0), n.intAttr("detect_positive", 1),
                          n.intAttr("detect_negative", 1)));
}
static Register isInf("IsInf", importIsInf);

/// A detach() leaves only the exporter's note in a file.
static LogicalResult importIdentity(Node &n) {
  std::optional<TorchCall> call = torchCallOf(n.proto);
  if (call && call->calls("aten.detach"))
    return n.set(n.importer.forward.detached(n.input(0), n.loc));
  return n.set(n.input(0));
}
static Register identity("Identity", importIdentity);
