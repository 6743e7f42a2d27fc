// Order.cpp - indices of extremes, sorted elements, products, and counts.

#include "frontends/common/ops/Order.h"
#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/Call.h"
#include "frontends/torch/ops/Shape.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// The index of an extreme along `dim`, or among all elements as one row.
static LogicalResult place(Call &c, bool isLargest) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  if (!c.has("dim")) {
    ASSIGN_OR_FAIL(Val row, viewed(c, self, {-1}));
    ASSIGN_OR_FAIL(Val at, placeOfExtreme(c, row, 0, isLargest));
    return c.set(reshaped(c, at, keep ? Dims(self.rank(), 1) : Dims()));
  }
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  if (self.dims.empty())
    return c.set(Val(Array::splatInt(ElementType::I64, {}, 0)));
  ASSIGN_OR_FAIL(Val at, placeOfExtreme(c, self, dim, isLargest));
  return keep ? c.set(at) : c.set(squeeze(c, at, Dims{dim}));
}
static LogicalResult importArgmax(Call &c) { return place(c, true); }
static Register argmax("argmax", importArgmax);
static LogicalResult importArgmin(Call &c) { return place(c, false); }
static Register argmin("argmin", importArgmin);

static LogicalResult setBoth(Call &c, const Ordered &both) {
  if (c.isUsed(1) && failed(c.set(1, both.places)))
    return failure();
  return c.set(both.values);
}

static LogicalResult importTopk(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t count, c.integer("k", std::nullopt));
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", -1, self.rank()));
  ASSIGN_OR_FAIL(bool isLargest, c.flag("largest", true));
  c.ignore({"sorted"}); // They are always sorted, which is allowed.
  ASSIGN_OR_FAIL(Ordered both, ordered(c, self, dim, count, isLargest));
  return setBoth(c, both);
}
static Register topk("topk", importTopk);

/// The sort is always stable.
static FailureOr<Ordered> sorted(Call &c) {
  c.ignore({"stable"});
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", -1, self.rank()));
  ASSIGN_OR_FAIL(bool isDescending, c.flag("descending", false));
  return ordered(c, self, dim, self.dims.empty() ? 1 : self.dims[dim],
                 isDescending);
}

static LogicalResult importSort(Call &c) {
  ASSIGN_OR_FAIL(Ordered both, sorted(c));
  return setBoth(c, both);
}
static Register sortOp("sort", importSort);

static LogicalResult importArgsort(Call &c) {
  ASSIGN_OR_FAIL(Ordered both, sorted(c));
  return c.set(both.places);
}
static Register argsort("argsort", importArgsort);

static LogicalResult importMsort(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(
      Ordered both,
      ordered(c, self, 0, self.dims.empty() ? 1 : self.dims[0], false));
  return c.set(both.values);
}
static Register msort("msort", importMsort);

/// Element `k`, counted from 1, in ascending order along `dim`, and its index.
static LogicalResult setKth(Call &c, const Val &x, int64_t dim, int64_t k,
                            bool keep) {
  if (x.dims.empty()) {
    if (c.isUsed(1) &&
        failed(c.set(1, Val(Array::splatInt(ElementType::I64, {}, 0)))))
      return failure();
    return c.set(x);
  }
  if (k < 1 || k > x.dims[dim])
    return c.error("element " + Twine(k) + " of " + Twine(x.dims[dim]));
  ASSIGN_OR_FAIL(Ordered both, ordered(c, x, dim, k, false));
  for (size_t i = 0; i < 2; ++i) {
    if (i == 1 && !c.isUsed(1))
      continue;
    ASSIGN_OR_FAIL(Val y,
                   strided(c, i ? both.places : both.values, dim, k - 1, 1, 1));
    if (!keep) {
      ASSIGN_OR_FAIL(y, squeeze(c, y, Dims{dim}));
    }
    if (failed(c.set(i, y)))
      return failure();
  }
  return success();
}

static LogicalResult importKth(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t k, c.integer("k", std::nullopt));
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", -1, self.rank()));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  return setKth(c, self, dim, k, keep);
}
static Register kthvalue("kthvalue", importKth);

/// For an even number of elements, the lower one of the two in the middle.
static LogicalResult importMedian(Call &c) {
  Val x = c.tensor("self");
  if (!c.has("dim")) {
    ASSIGN_OR_FAIL(x, viewed(c, x, {-1}));
  }
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", 0, x.rank()));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  return setKth(c, x, dim, x.dims.empty() ? 1 : (x.dims[dim] + 1) / 2, keep);
}
static Register median("median", importMedian);

static LogicalResult importProd(Call &c) {
  ASSIGN_OR_FAIL(ElementType type,
                 c.type("dtype", isFloat(c.tensor("self").type)
                                     ? c.tensor("self").type
                                     : ElementType::I64));
  ASSIGN_OR_FAIL(Val self, castTo(c, c.tensor("self"), type));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  if (!c.has("dim")) {
    ASSIGN_OR_FAIL(Val row, viewed(c, self, {-1}));
    ASSIGN_OR_FAIL(Val y, productAlong(c, row, 0));
    return c.set(reshaped(c, y, {}));
  }
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  if (self.dims.empty())
    return c.set(self);
  ASSIGN_OR_FAIL(Val y, productAlong(c, self, dim));
  return keep ? c.set(y) : c.set(squeeze(c, y, Dims{dim}));
}
static Register prod("prod", importProd);

static LogicalResult importCumprod(Call &c) {
  const Val x = c.tensor("self");
  ASSIGN_OR_FAIL(ElementType type,
                 c.type("dtype", isFloat(x.type) ? x.type : ElementType::I64));
  ASSIGN_OR_FAIL(Val self, castTo(c, x, type));
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  return c.set(runningProduct(c, self, dim));
}
static Register cumprod("cumprod", importCumprod);

static LogicalResult importLogCumSumExp(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  return c.set(runningLogSum(c, self, dim));
}
static Register logCumSumExp("logcumsumexp", importLogCumSumExp);

static LogicalResult runningExtremeOf(Call &c, bool isLargest) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  ASSIGN_OR_FAIL(Ordered both, runningExtreme(c, self, dim, isLargest));
  return setBoth(c, both);
}
static LogicalResult importCummax(Call &c) { return runningExtremeOf(c, true); }
static Register cummax("cummax", importCummax);
static LogicalResult importCummin(Call &c) {
  return runningExtremeOf(c, false);
}
static Register cummin("cummin", importCummin);

static FailureOr<Between> betweenOf(Call &c) {
  ASSIGN_OR_FAIL(std::string name, c.text("interpolation", "linear"));
  std::optional<Between> how = llvm::StringSwitch<std::optional<Between>>(name)
                                   .Case("linear", Between::Linear)
                                   .Case("lower", Between::Lower)
                                   .Case("higher", Between::Higher)
                                   .Case("midpoint", Between::Midpoint)
                                   .Case("nearest", Between::Nearest)
                                   .Default(std::nullopt);
  if (!how)
    return c.error("the interpolation '" + name + "'");
  return *how;
}

/// A vector of shares gives the result a first dimension for them.
static LogicalResult importQuantile(Call &c) {
  Val x = c.tensor("self");
  const Val q = c.tensor("q");
  if (q.rank() > 1)
    return c.error("quantiles at shape " + str(q.dims));
  ASSIGN_OR_FAIL(Array shares, known(c, q));
  ASSIGN_OR_FAIL(bool keep, c.flag("keepdim", false));
  ASSIGN_OR_FAIL(Between how, betweenOf(c));
  const int64_t rank = x.rank();
  const bool isOfAll = !c.has("dim");
  if (isOfAll) {
    ASSIGN_OR_FAIL(x, viewed(c, x, {-1}));
  }
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", 0, x.rank()));
  ASSIGN_OR_FAIL(SmallVector<Val> each,
                 quantiles(c, x, dim, shares.floats(), how));
  for (Val &y : each) {
    if (isOfAll) {
      ASSIGN_OR_FAIL(y, reshaped(c, y, keep ? Dims(rank, 1) : Dims()));
    } else if (!keep && !y.dims.empty()) {
      ASSIGN_OR_FAIL(y, squeeze(c, y, Dims{dim}));
    }
  }
  return q.dims.empty() ? c.set(each[0]) : c.set(stacked(c, each, 0));
}
static Register quantile("quantile", importQuantile);

/// For each of `values`, the number of elements of the sorted `sequence`, along
/// its last dimension, that lie below it (or are equal, if `right`): one
/// sequence for all, or one for each.
static LogicalResult setRanks(Call &c, Val sequence, Val values) {
  ASSIGN_OR_FAIL(bool right, c.flag("right", false));
  ASSIGN_OR_FAIL(std::string side, c.text("side", ""));
  ASSIGN_OR_FAIL(bool narrow, c.flag("out_int32", false));
  if (c.has("sorter"))
    return c.unsupported("a sequence in another order");
  if (sequence.dims.empty())
    return c.error("searches a number");
  ElementType type = promoteTypes(sequence.type, values.type);
  ASSIGN_OR_FAIL(sequence, castTo(c, sequence, type));
  ASSIGN_OR_FAIL(values, castTo(c, values, type));
  ASSIGN_OR_FAIL(values, unsqueeze(c, values, {values.rank()}));
  if (sequence.rank() > 1) {
    ASSIGN_OR_FAIL(sequence, unsqueeze(c, sequence, {sequence.rank() - 1}));
  }
  ASSIGN_OR_FAIL(Val isBelow, right || side == "right"
                                  ? lessOrEqual(c, {sequence, values})
                                  : less(c, {sequence, values}));
  ASSIGN_OR_FAIL(
      Val ones,
      castTo(c, isBelow, narrow ? ElementType::I32 : ElementType::I64));
  return c.set(reduceSum(c, ones, Dims{ones.rank() - 1}, false));
}
static LogicalResult importSearchsorted(Call &c) {
  return setRanks(c, c.tensor("sorted_sequence"), c.tensor("self"));
}
static Register searchsorted("searchsorted", importSearchsorted);
static LogicalResult importBucketize(Call &c) {
  return setRanks(c, c.tensor("boundaries"), c.tensor("self"));
}
static Register bucketize("bucketize", importBucketize);

static LogicalResult importHistc(Call &c) {
  ASSIGN_OR_FAIL(int64_t bins, c.integer("bins", 100));
  ASSIGN_OR_FAIL(double low, c.number("min", 0));
  ASSIGN_OR_FAIL(double high, c.number("max", 0));
  if (low == high)
    return c.unsupported("bins between extremes of the data");
  return c.set(histogram(c, c.tensor("self"), bins, low, high));
}
static Register histc("histc", importHistc);
