// Reduce.cpp - sums, means and extremes over dimensions.

#include "frontends/Checked.h"
#include "frontends/onnx/ops/Pointwise.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

namespace {
/// A reduction over `dims` of `before`, to be given the shape `after`.
struct Reduction {
  Dims dims;
  Dims after;
  int64_t count = 1; ///< Elements that become one.
};
} // namespace

/// What the node reduces. With nothing said about axes: all of them.
static FailureOr<Reduction> reductionOf(Node &n) {
  const Val &x = n.input(0);
  ASSIGN_OR_FAIL(std::optional<Dims> axes, n.axes(1, x.rank()));
  bool keep = n.intAttr("keepdims", 1);
  if ((!axes || axes->empty()) && !n.intAttr("noop_with_empty_axes", 0))
    axes = nn::firstDims(x.rank());
  Reduction r;
  if (axes)
    r.dims = *axes;
  for (auto [i, dim] : llvm::enumerate(x.dims)) {
    bool gone = llvm::is_contained(r.dims, static_cast<int64_t>(i));
    if (gone)
      r.count *= dim;
    if (!gone || keep)
      r.after.push_back(gone ? 1 : dim);
  }
  return r;
}

static Value reduce(Node &n, Value x, nn::ReduceKind kind, const Reduction &r) {
  if (!r.dims.empty())
    x = nn::ReduceOp::create(n.b, n.loc, x, kind, r.dims);
  return n.reshape(x, r.after);
}

/// Folds a constant; `step` joins the running value and an element.
static LogicalResult fold(Node &n, const Reduction &r, double start,
                          llvm::function_ref<double(double, double)> step,
                          double factor = 1) {
  ASSIGN_OR_FAIL(Array x, n.array(0));
  std::vector<double> values = x.floats();
  int64_t size = 1;
  for (int64_t dim : r.after)
    size *= dim;
  std::vector<double> out(size, start);
  Dims index(x.rank(), 0);
  for (double v : values) {
    int64_t at = 0;
    for (int64_t d = 0; d < x.rank(); ++d)
      if (!llvm::is_contained(r.dims, d))
        at = at * x.dims()[d] + index[d];
    out[at] = step(out[at], v);
    for (int64_t d = x.rank(); d-- > 0;) {
      if (++index[d] < x.dims()[d])
        break;
      index[d] = 0;
    }
  }
  for (double &v : out)
    v *= factor;
  if (isFloat(x.type()))
    return n.set(Array::ofFloats(x.type(), r.after, std::move(out)));
  return n.set(Array::ofInts(x.type(), r.after, {out.begin(), out.end()}));
}

static LogicalResult importReduceSum(Node &n) {
  ASSIGN_OR_FAIL(Reduction r, reductionOf(n));
  if (n.foldable(0))
    return fold(n, r, 0, [](double a, double v) { return a + v; });
  ASSIGN_OR_FAIL(Value x, n.value(0));
  return n.set(reduce(n, x, nn::ReduceKind::Sum, r));
}
static Register reduceSum("ReduceSum", importReduceSum);

static LogicalResult importReduceMean(Node &n) {
  ASSIGN_OR_FAIL(Reduction r, reductionOf(n));
  if (!isFloat(n.input(0).type))
    return n.unsupported("elements of type " + nameOf(n.input(0).type));
  if (n.foldable(0))
    return fold(
        n, r, 0, [](double a, double v) { return a + v; }, 1.0 / r.count);
  ASSIGN_OR_FAIL(Value x, n.value(0));
  Value sum = reduce(n, x, nn::ReduceKind::Sum, r);
  return n.set(nn::scale(n.b, n.loc, sum, 1.0 / r.count));
}
static Register reduceMean("ReduceMean", importReduceMean);

static LogicalResult importReduceMax(Node &n) {
  ASSIGN_OR_FAIL(Reduction r, reductionOf(n));
  if (n.foldable(0))
    return fold(n, r, -INFINITY,
                [](double a, double v) { return std::max(a, v); });
  ASSIGN_OR_FAIL(Value x, n.value(0));
  return n.set(reduce(n, x, nn::ReduceKind::Max, r));
}
static Register reduceMax("ReduceMax", importReduceMax);

static LogicalResult importReduceMin(Node &n) {
  ASSIGN_OR_FAIL(Reduction r, reductionOf(n));
  if (n.foldable(0))
    return fold(n, r, INFINITY,
                [](double a, double v) { return std::min(a, v); });
  ASSIGN_OR_FAIL(Value x, n.value(0));
  return n.set(reduce(n, x, nn::ReduceKind::Min, r));
}
static Register reduceMin("ReduceMin", importReduceMin);

/// A sum of what `before` makes of the input, and `after` of the sum.
static LogicalResult sumOf(Node &n, llvm::function_ref<Value(Value)> before,
                           llvm::function_ref<Value(Value)> after) {
  ASSIGN_OR_FAIL(Reduction r, reductionOf(n));
  ASSIGN_OR_FAIL(Value x, n.value(0));
  if (!isFloat(n.input(0).type))
    return n.unsupported("elements of type " + nameOf(n.input(0).type));
  return n.set(after(reduce(n, before(x), nn::ReduceKind::Sum, r)));
}

static LogicalResult importReduceSumSquare(Node &n) {
  return sumOf(
      n, [&](Value x) { return nn::mul(n.b, n.loc, x, x); },
      [](Value s) { return s; });
}
static Register reduceSumSquare("ReduceSumSquare", importReduceSumSquare);

static LogicalResult importReduceL2(Node &n) {
  return sumOf(
      n, [&](Value x) { return nn::mul(n.b, n.loc, x, x); },
      [&](Value s) -> Value { return math::SqrtOp::create(n.b, n.loc, s); });
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

/// log(sum(exp(x))) as max + log(sum(exp(x - max))), which can't overflow.
static LogicalResult importReduceLogSumExp(Node &n) {
  ASSIGN_OR_FAIL(Reduction r, reductionOf(n));
  ASSIGN_OR_FAIL(Value x, n.value(0));
  if (!isFloat(n.input(0).type))
    return n.unsupported("elements of type " + nameOf(n.input(0).type));
  Reduction keep = r;
  keep.after.clear();
  for (auto [i, dim] : llvm::enumerate(n.input(0).dims))
    keep.after.push_back(
        llvm::is_contained(r.dims, static_cast<int64_t>(i)) ? 1 : dim);
  Value most = reduce(n, x, nn::ReduceKind::Max, keep);
  ASSIGN_OR_FAIL(Value wide, n.broadcast(Val(most), n.input(0).dims));
  Value e = math::ExpOp::create(n.b, n.loc, nn::sub(n.b, n.loc, x, wide));
  Value sum = reduce(n, e, nn::ReduceKind::Sum, r);
  Value log = math::LogOp::create(n.b, n.loc, sum);
  return n.set(nn::add(n.b, n.loc, log, n.reshape(most, r.after)));
}
static Register reduceLogSumExp("ReduceLogSumExp", importReduceLogSumExp);
