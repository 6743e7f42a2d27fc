// Reduce.cpp - sums, means and extremes over dimensions.

#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Elementary.h"
#include "frontends/onnx/Node.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// The dimensions of the reduction; all of them if no axes are given.
static FailureOr<Dims> dimsOf(Node &n) {
  int64_t rank = n.input(0).rank();
  ASSIGN_OR_FAIL(std::optional<Dims> axes, n.axes(1, rank));
  if ((!axes || axes->empty()) && !n.intAttr("noop_with_empty_axes", 0))
    axes = nn::firstDims(rank);
  return axes.value_or(Dims());
}

static bool keeps(Node &n) { return n.intAttr("keepdims", 1); }

/// Registers `NAME` as a builder of input, dimensions and whether they stay.
#define TMC_REDUCTION(NAME, BUILDER)                                           \
  static LogicalResult import##NAME(Node &n) {                                 \
    ASSIGN_OR_FAIL(Dims dims, dimsOf(n));                                      \
    return n.set(BUILDER(n, n.input(0), dims, keeps(n)));                      \
  }                                                                            \
  static Register register##NAME(#NAME, import##NAME)

TMC_REDUCTION(ReduceSum, reduceSum);
TMC_REDUCTION(ReduceMean, reduceMean);
TMC_REDUCTION(ReduceMax, reduceMax);
TMC_REDUCTION(ReduceMin, reduceMin);
TMC_REDUCTION(ReduceLogSumExp, logSumExp);

/// Reduces to `after` of the sum of `before` of the input.
static LogicalResult sumOf(Node &n, llvm::function_ref<Value(Value)> before,
                           llvm::function_ref<Value(Value)> after) {
  ASSIGN_OR_FAIL(Dims dims, dimsOf(n));
  return n.set(reduceSumOf(n, n.input(0), dims, keeps(n), before, after));
}

static LogicalResult importReduceSumSquare(Node &n) {
  return sumOf(
      n, [&](Value x) { return nn::mul(n.b, n.loc, x, x); },
      [](Value s) { return s; });
}
static Register reduceSumSquare("ReduceSumSquare", importReduceSumSquare);

static LogicalResult importReduceL2(Node &n) {
  ASSIGN_OR_FAIL(Dims dims, dimsOf(n));
  ASSIGN_OR_FAIL(Val sum,
                 reduceSumOf(
                     n, n.input(0), dims, keeps(n),
                     [&](Value x) { return nn::mul(n.b, n.loc, x, x); },
                     [](Value s) { return s; }));
  return n.set(rootOf(Expression(n, sum)).value());
}
static Register reduceL2("ReduceL2", importReduceL2);

static LogicalResult importReduceL1(Node &n) {
  return sumOf(
      n, [&](Value x) -> Value { return math::AbsFOp::create(n.b, n.loc, x); },
      [](Value s) { return s; });
}
static Register reduceL1("ReduceL1", importReduceL1);

static LogicalResult importReduceLogSum(Node &n) {
  return sumOf(
      n, [](Value x) { return x; },
      [&](Value s) -> Value { return math::LogOp::create(n.b, n.loc, s); });
}
static Register reduceLogSum("ReduceLogSum", importReduceLogSum);
