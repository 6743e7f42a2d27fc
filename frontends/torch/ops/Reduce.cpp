// Reduce.cpp - sums, means and extremes over dimensions.

#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Elementary.h"
#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Order.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/ops/Pointwise.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// Booleans and integers are summed in 64 bits.
static ElementType summed(ElementType type) {
  return isFloat(type) ? type : ElementType::I64;
}

static LogicalResult importSum(Call &c) {
  ASSIGN_OR_FAIL(Val x, selfAs(c, summed(c.tensor("self").type)));
  ASSIGN_OR_FAIL(Dims dims, c.dims("dim", x.rank()));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  return c.set(reduceSum(c, x, dims, keep));
}
static Register sumOp("sum", importSum);

static LogicalResult importMean(Call &c) {
  ASSIGN_OR_FAIL(Val x, selfAs(c, c.tensor("self").type));
  ASSIGN_OR_FAIL(Dims dims, c.dims("dim", x.rank()));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  return c.set(reduceMean(c, x, dims, keep));
}
static Register meanOp("mean", importMean);

using Reduce = FailureOr<Val> (*)(Site &, const Val &, ArrayRef<int64_t>, bool);

/// Extremes over dimensions: equal ones share the gradient.
static LogicalResult extreme(Call &c, Reduce reduce) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(Dims dims, c.dims("dim", x.rank()));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  return c.set(reduce(c, x, dims, keep));
}
static LogicalResult importAmax(Call &c) { return extreme(c, reduceMax); }
static Register amax("amax", importAmax);
static LogicalResult importAmin(Call &c) { return extreme(c, reduceMin); }
static Register amin("amin", importAmin);

/// An extreme along a dimension, with its index: that element gets the
/// gradient.
static LogicalResult chosen(Call &c, bool isLargest) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, x.rank()));
  Val at(Array::splatInt(ElementType::I64, {}, 0)), y = x;
  if (!x.dims.empty()) {
    ASSIGN_OR_FAIL(at, placeOfExtreme(c, x, dim, isLargest));
    ASSIGN_OR_FAIL(y, gatherElements(c, x, at, dim));
    if (!keep) {
      ASSIGN_OR_FAIL(at, squeeze(c, at, Dims{dim}));
      ASSIGN_OR_FAIL(y, squeeze(c, y, Dims{dim}));
    }
  }
  if (c.isUsed(1) && failed(c.set(1, at)))
    return failure();
  return c.set(y);
}

/// max(self), max(self, dim) with indices, or max(self, other).
static LogicalResult extremeByForm(Call &c, bool isLargest) {
  if (c.has("other")) {
    ASSIGN_OR_FAIL(Promoted operands, promote(c, {"self", "other"}));
    return c.set(extremeOf(c, operands.values, isLargest));
  }
  if (c.has("dim"))
    return chosen(c, isLargest);
  return extreme(c, isLargest ? reduceMax : reduceMin);
}
static LogicalResult importMax(Call &c) { return extremeByForm(c, true); }
static Register maxOp("max", importMax);
static LogicalResult importMin(Call &c) { return extremeByForm(c, false); }
static Register minOp("min", importMin);

static LogicalResult importAminmax(Call &c) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(Dims dims, c.dims("dim", x.rank()));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  ASSIGN_OR_FAIL(Val largest, reduceMax(c, x, dims, keep));
  if (failed(c.set(1, largest)))
    return failure();
  return c.set(reduceMin(c, x, dims, keep));
}
static Register aminmax("aminmax", importAminmax);

static LogicalResult importLogSumExp(Call &c) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(Dims dims, c.dims("dim", x.rank()));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  return c.set(logSumExp(c, x, dims, keep));
}
static Register logSumExpOp("logsumexp", importLogSumExp);
static Register specialLogSumExp("special_logsumexp", importLogSumExp);

static LogicalResult importCountNonzero(Call &c) {
  ASSIGN_OR_FAIL(Val truth, castTo(c, c.tensor("self"), ElementType::Bool));
  ASSIGN_OR_FAIL(Val x, castTo(c, truth, ElementType::I64));
  ASSIGN_OR_FAIL(Dims dims, c.dims("dim", x.rank()));
  return c.set(reduceSum(c, x, dims, false));
}
static Register countNonzero("count_nonzero", importCountNonzero);

/// The sum without NaNs; a mean divides by the number of other elements.
static LogicalResult sumOfNumbers(Call &c, bool mean) {
  ASSIGN_OR_FAIL(Val x, selfAs(c, c.tensor("self").type));
  const ElementType type = x.type;
  ASSIGN_OR_FAIL(Dims dims, c.dims("dim", x.rank()));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  if (!isFloat(type))
    return c.set(mean ? reduceMean(c, x, dims, keep)
                      : reduceSum(c, x, dims, keep));
  ASSIGN_OR_FAIL(Val bad, isNaN(c, x));
  ASSIGN_OR_FAIL(x, where(c, bad, Val(Array::splat(type, {}, 0)), x));
  ASSIGN_OR_FAIL(Val sum, reduceSum(c, x, dims, keep));
  if (!mean)
    return c.set(sum);
  ASSIGN_OR_FAIL(Val good, negation(c, bad));
  ASSIGN_OR_FAIL(Val counted, castTo(c, good, type));
  ASSIGN_OR_FAIL(Val count, reduceSum(c, counted, dims, keep));
  return c.set(divide(c, {sum, count}));
}
static LogicalResult importNansum(Call &c) { return sumOfNumbers(c, false); }
static Register nansum("nansum", importNansum);
static LogicalResult importNanmean(Call &c) { return sumOfNumbers(c, true); }
static Register nanmean("nanmean", importNanmean);

/// True if any or all elements are true: the extreme of zeros and ones.
static LogicalResult anyOrAll(Call &c, Reduce reduce) {
  ASSIGN_OR_FAIL(Val truth, castTo(c, c.tensor("self"), ElementType::Bool));
  ASSIGN_OR_FAIL(Val x, castTo(c, truth, ElementType::F32));
  ASSIGN_OR_FAIL(Dims dims, c.dims("dim", x.rank()));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  ASSIGN_OR_FAIL(Val y, reduce(c, x, dims, keep));
  return c.set(castTo(c, y, ElementType::Bool));
}
static LogicalResult importAny(Call &c) { return anyOrAll(c, reduceMax); }
static Register any("any", importAny);
static LogicalResult importAll(Call &c) { return anyOrAll(c, reduceMin); }
static Register all("all", importAll);

//===----------------------------------------------------------------------===//
// Variances
//===----------------------------------------------------------------------===//

namespace {
struct Moments {
  Val variance, mean;
};
} // namespace

/// The sum of (x - mean)^2, divided by n - `correction`.
static FailureOr<Moments> momentsOf(Call &c) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(Dims dims, c.dims("dim", x.rank()));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  double correction = 1;
  if (c.has("correction")) {
    ASSIGN_OR_FAIL(correction, c.number("correction", 1));
  } else {
    ASSIGN_OR_FAIL(bool unbiased, c.flag("unbiased", true));
    correction = unbiased ? 1 : 0;
  }
  double count = 1;
  for (int64_t dim : dims)
    count *= x.dims[dim];
  if (count <= correction)
    return c.error("a variance of " + std::to_string(count) + " elements");
  ASSIGN_OR_FAIL(Val wide, reduceMean(c, x, dims, true));
  ASSIGN_OR_FAIL(Val apart, subtract(c, {x, wide}));
  ASSIGN_OR_FAIL(Val squares, multiply(c, {apart, apart}));
  ASSIGN_OR_FAIL(Val sum, reduceSum(c, squares, dims, keep));
  Val factor(Array::splat(x.type, {}, 1 / (count - correction)));
  Moments moments;
  ASSIGN_OR_FAIL(moments.variance, multiply(c, {sum, factor}));
  ASSIGN_OR_FAIL(moments.mean, reshaped(c, wide, moments.variance.dims));
  return moments;
}

static LogicalResult importVar(Call &c) {
  ASSIGN_OR_FAIL(Moments moments, momentsOf(c));
  return c.set(moments.variance);
}
static Register var("var", importVar);

static LogicalResult importStd(Call &c) {
  ASSIGN_OR_FAIL(Moments moments, momentsOf(c));
  return c.set(rootOf(Expression(c, moments.variance)).value());
}
static Register deviation("std", importStd);

static LogicalResult importVarMean(Call &c) {
  ASSIGN_OR_FAIL(Moments moments, momentsOf(c));
  if (failed(c.set(1, moments.mean)))
    return failure();
  return c.set(moments.variance);
}
static Register varMean("var_mean", importVarMean);

static LogicalResult importStdMean(Call &c) {
  ASSIGN_OR_FAIL(Moments moments, momentsOf(c));
  if (failed(c.set(1, moments.mean)))
    return failure();
  return c.set(rootOf(Expression(c, moments.variance)).value());
}
static Register stdMean("std_mean", importStdMean);

//===----------------------------------------------------------------------===//
// Along a dimension
//===----------------------------------------------------------------------===//

static LogicalResult importCumsum(Call &c) {
  ASSIGN_OR_FAIL(Val x, selfAs(c, summed(c.tensor("self").type)));
  CumulativeSum how;
  ASSIGN_OR_FAIL(how.axis, c.dim("dim", std::nullopt, x.rank()));
  if (x.dims.empty())
    return c.set(x);
  return c.set(cumulativeSum(c, x, how));
}
static Register cumsum("cumsum", importCumsum);

/// First-order differences of neighbours.
static LogicalResult importDiff(Call &c) {
  Val x = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t times, c.integer("n", 1));
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", -1, x.rank()));
  if (times != 1 || x.dims.empty())
    return c.unsupported("differences taken " + Twine(times) + " times");
  SmallVector<Val> parts;
  for (const char *name : {"prepend", "self", "append"})
    if (c.has(name))
      parts.push_back(c.tensor(name));
  if (parts.size() > 1) {
    ASSIGN_OR_FAIL(x, concat(c, parts, dim));
  }
  ASSIGN_OR_FAIL(Val later, slice(c, x, dim, 1, INT64_MAX, 1));
  ASSIGN_OR_FAIL(Val earlier, slice(c, x, dim, 0, -1, 1));
  return c.set(x.type == ElementType::Bool ? exclusiveOr(c, {later, earlier})
                                           : subtract(c, {later, earlier}));
}
static Register diff("diff", importDiff);
