// Order.cpp - indices of extremes, sorted elements, and products.

#include "frontends/common/ops/Order.h"
#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/onnx/Node.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

static LogicalResult place(Node &n, bool isLargest) {
  const Val x = n.input(0);
  ASSIGN_OR_FAIL(int64_t axis, n.axis(n.intAttr("axis", 0), x.rank()));
  bool isLast = n.intAttr("select_last_index", 0);
  ASSIGN_OR_FAIL(Val at, placeOfExtreme(n, x, axis, isLargest, isLast));
  return n.intAttr("keepdims", 1) ? n.set(at)
                                  : n.set(squeeze(n, at, Dims{axis}));
}
static LogicalResult importArgMax(Node &n) { return place(n, true); }
static Register argMax("ArgMax", importArgMax);
static LogicalResult importArgMin(Node &n) { return place(n, false); }
static Register argMin("ArgMin", importArgMin);

static LogicalResult importTopK(Node &n) {
  const Val x = n.input(0);
  n.ignore({"sorted"}); // They are always sorted, which is allowed.
  ASSIGN_OR_FAIL(Dims count, n.ints(1));
  if (count.size() != 1)
    return n.error("wants one number of elements");
  ASSIGN_OR_FAIL(Ordered both, ordered(n, x, n.intAttr("axis", -1), count[0],
                                       n.intAttr("largest", 1)));
  if (failed(n.set(0, both.values)))
    return failure();
  return n.set(1, both.places);
}
static Register topK("TopK", importTopK);

/// One at the largest element, the first of equal ones; else zero.
static LogicalResult importHardmax(Node &n) {
  const Val x = n.input(0);
  ASSIGN_OR_FAIL(int64_t axis, n.axis(n.intAttr("axis", -1), x.rank()));
  ASSIGN_OR_FAIL(Val at, placeOfExtreme(n, x, axis, true));
  ASSIGN_OR_FAIL(at, squeeze(n, at, Dims{axis}));
  return n.set(oneHot(n, at, x.dims[axis], axis, x.type, 1, 0));
}
static Register hardmax("Hardmax", importHardmax);

static LogicalResult importReduceProd(Node &n) {
  Val x = n.input(0);
  ASSIGN_OR_FAIL(std::optional<Dims> given, n.axes(1, x.rank()));
  Dims dims = given.value_or(Dims());
  if (dims.empty() && !n.intAttr("noop_with_empty_axes", 0))
    dims = nn::firstDims(x.rank());
  for (int64_t dim : dims) {
    ASSIGN_OR_FAIL(x, productAlong(n, x, dim));
  }
  return n.intAttr("keepdims", 1) ? n.set(x) : n.set(squeeze(n, x, dims));
}
static Register reduceProd("ReduceProd", importReduceProd);

/// Products of the elements up to each one, or before it, from either end.
static LogicalResult importCumProd(Node &n) {
  Val x = n.input(0);
  ASSIGN_OR_FAIL(Dims entry, n.ints(1));
  if (entry.size() != 1)
    return n.error("wants one axis, not " + str(entry));
  ASSIGN_OR_FAIL(int64_t axis, n.axis(entry[0], x.rank()));
  bool isReversed = n.intAttr("reverse", 0);
  int64_t size = x.dims[axis];
  if (isReversed) {
    ASSIGN_OR_FAIL(x, strided(n, x, axis, size - 1, -1, size));
  }
  if (n.intAttr("exclusive", 0)) {
    Dims low(x.rank(), 0), high(x.rank(), 0);
    low[axis] = 1;
    high[axis] = -1;
    ASSIGN_OR_FAIL(x, pad(n, x, low, high, 1));
  }
  ASSIGN_OR_FAIL(x, runningProduct(n, x, axis));
  if (isReversed) {
    ASSIGN_OR_FAIL(x, strided(n, x, axis, size - 1, -1, size));
  }
  return n.set(x);
}
static Register cumProd("CumProd", importCumProd);
