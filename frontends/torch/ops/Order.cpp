// Order.cpp - places of extremes, elements in order, products, and counts.

#include "frontends/common/ops/Order.h"
#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/Call.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// The place of an extreme along `dim`, or of all elements in a row.
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
  ASSIGN_OR_FAIL(Ordered both, ordered(c, self, dim, count, isLargest));
  return setBoth(c, both);
}
static Register topk("topk", importTopk);

static FailureOr<Ordered> sorted(Call &c) {
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
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  return c.set(runningProduct(c, self, dim));
}
static Register cumprod("cumprod", importCumprod);

static LogicalResult importHistc(Call &c) {
  ASSIGN_OR_FAIL(int64_t bins, c.integer("bins", 100));
  ASSIGN_OR_FAIL(double low, c.number("min", 0));
  ASSIGN_OR_FAIL(double high, c.number("max", 0));
  if (low == high)
    return c.unsupported("bins between extremes of the data");
  return c.set(histogram(c, c.tensor("self"), bins, low, high));
}
static Register histc("histc", importHistc);
