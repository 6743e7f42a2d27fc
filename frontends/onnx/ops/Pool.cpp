// Pool.cpp - the largest element or the mean of windows.

#include "frontends/onnx/ops/Pointwise.h"
#include "frontends/onnx/ops/Spatial.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

static Dims pooledDims(Value y, int64_t rank) {
  Dims dims(nn::tensorType(y).getShape());
  if (rank == 3)
    dims.erase(dims.begin() + 2);
  return dims;
}

static LogicalResult importMaxPool(Node &n) {
  const Val x = n.input(0);
  if (!isFloat(x.type))
    return n.unsupported("elements of type " + nameOf(x.type));
  if (n.isUsed(1))
    return n.unsupported("the indices of the largest elements");
  ASSIGN_OR_FAIL(Window w, windowOf(n, x, {}));
  ASSIGN_OR_FAIL(Value input, asImage(n, 0));
  Value y = nn::MaxPoolOp::create(n.b, n.loc, input, w.strides, w.padding,
                                  w.dilations, /*channels_last=*/false, w.size);
  return n.set(n.reshape(y, pooledDims(y, x.rank())));
}
static Register maxPool("MaxPool", importMaxPool);

static LogicalResult importAveragePool(Node &n) {
  const Val x = n.input(0);
  if (!isFloat(x.type))
    return n.unsupported("elements of type " + nameOf(x.type));
  bool countPadding = n.intAttr("count_include_pad", 0);
  if (countPadding && n.intAttr("ceil_mode", 0))
    return n.unsupported("a mean over padding with ceil_mode");
  ASSIGN_OR_FAIL(Window w, windowOf(n, x, {}));
  ASSIGN_OR_FAIL(Value input, asImage(n, 0));
  Value y = nn::AvgPoolOp::create(n.b, n.loc, input, w.strides, w.padding,
                                  w.dilations, /*channels_last=*/false, w.size,
                                  countPadding);
  return n.set(n.reshape(y, pooledDims(y, x.rank())));
}
static Register averagePool("AveragePool", importAveragePool);

/// Over all positions of [N, C, ...].
static LogicalResult globalPool(Node &n, nn::ReduceKind kind, bool mean) {
  const Val x = n.input(0);
  if (!isFloat(x.type) || x.rank() < 3)
    return n.error("an input of shape " + str(x.dims));
  Dims over, dims(x.dims);
  int64_t count = 1;
  for (int64_t d = 2; d < x.rank(); ++d) {
    over.push_back(d);
    count *= dims[d];
    dims[d] = 1;
  }
  ASSIGN_OR_FAIL(Value value, n.value(0));
  Value y = nn::ReduceOp::create(n.b, n.loc, value, kind, over);
  if (mean)
    y = nn::scale(n.b, n.loc, y, 1.0 / count);
  return n.set(n.reshape(y, dims));
}

static LogicalResult importGlobalAveragePool(Node &n) {
  return globalPool(n, nn::ReduceKind::Sum, true);
}
static Register globalAverage("GlobalAveragePool", importGlobalAveragePool);

static LogicalResult importGlobalMaxPool(Node &n) {
  return globalPool(n, nn::ReduceKind::Max, false);
}
static Register globalMax("GlobalMaxPool", importGlobalMaxPool);
