// Norm.cpp - normalizations and softmax.

#include "frontends/Checked.h"
#include "frontends/onnx/Importer.h"
#include "frontends/onnx/ops/Pointwise.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

static int64_t product(ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= dim;
  return count;
}

static FloatAttr epsilonOf(Node &n) {
  return n.b.getF64FloatAttr(n.floatAttr("epsilon", 1e-5));
}

static LogicalResult checkFloat(Node &n) {
  if (isFloat(n.input(0).type))
    return success();
  return n.unsupported("elements of type " + nameOf(n.input(0).type));
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Over one dimension, which is brought to the innermost place.
static LogicalResult softmax(Node &n, bool log) {
  const Val in = n.input(0);
  ASSIGN_OR_FAIL(int64_t axis, n.axis(n.intAttr("axis", -1), in.rank()));
  if (failed(checkFloat(n)))
    return failure();
  ASSIGN_OR_FAIL(Value x, n.value(0));
  if (axis == in.rank() - 1)
    return n.set(nn::SoftmaxOp::create(n.b, n.loc, x, log));
  Dims swap(nn::firstDims(in.rank()));
  std::swap(swap[axis], swap.back());
  Value inner = nn::TransposeOp::create(n.b, n.loc, x, swap);
  Value y = nn::SoftmaxOp::create(n.b, n.loc, inner, log);
  return n.set(nn::TransposeOp::create(n.b, n.loc, y, swap));
}

static LogicalResult importSoftmax(Node &n) { return softmax(n, false); }
static Register softmaxOp("Softmax", importSoftmax);

static LogicalResult importLogSoftmax(Node &n) { return softmax(n, true); }
static Register logSoftmax("LogSoftmax", importLogSoftmax);

//===----------------------------------------------------------------------===//
// Over the innermost dimensions
//===----------------------------------------------------------------------===//

/// Input `i`, a scale or shift of the dimensions from `axis` on, as a vector of
/// all their elements.
static FailureOr<Value> rowVector(Node &n, int i, ArrayRef<int64_t> row) {
  if (!n.has(i))
    return Value();
  const Val v = n.input(i);
  if (broadcastShape(v.dims, row) != Dims(row) || v.type != n.input(0).type)
    return n.error("input " + Twine(i) + " has shape " + str(v.dims) +
                   ", but a row has " + str(row));
  ASSIGN_OR_FAIL(Value wide, n.broadcast(v, row));
  return n.reshape(wide, {product(row)});
}

/// Shape and axis of a norm over the innermost dimensions, and its input with
/// those as one.
struct RowNorm {
  Value rows;
  ArrayRef<int64_t> row;
};

static FailureOr<RowNorm> rowsOf(Node &n, const Val &in) {
  ASSIGN_OR_FAIL(int64_t axis, n.axis(n.intAttr("axis", -1), in.rank()));
  if (failed(checkFloat(n)))
    return failure();
  for (int i = 1; i < n.numOutputs(); ++i)
    if (n.isUsed(i))
      return n.unsupported("output " + Twine(i));
  ASSIGN_OR_FAIL(Value x, n.value(0));
  RowNorm result;
  result.row = ArrayRef<int64_t>(in.dims).drop_front(axis);
  Dims dims(in.dims.begin(), in.dims.begin() + axis);
  dims.push_back(product(result.row));
  result.rows = n.reshape(x, dims);
  return result;
}

static LogicalResult importLayerNormalization(Node &n) {
  const Val in = n.input(0);
  ASSIGN_OR_FAIL(RowNorm norm, rowsOf(n, in));
  ASSIGN_OR_FAIL(Value scale, rowVector(n, 1, norm.row));
  ASSIGN_OR_FAIL(Value shift, rowVector(n, 2, norm.row));
  Value y = nn::LayerNormOp::create(n.b, n.loc, norm.rows, scale, shift,
                                    epsilonOf(n));
  return n.set(n.reshape(y, in.dims));
}
static Register layerNorm("LayerNormalization", importLayerNormalization);

static LogicalResult importRMSNormalization(Node &n) {
  const Val in = n.input(0);
  ASSIGN_OR_FAIL(RowNorm norm, rowsOf(n, in));
  ASSIGN_OR_FAIL(Value scale, rowVector(n, 1, norm.row));
  Value y = nn::RMSNormOp::create(n.b, n.loc, norm.rows, scale, epsilonOf(n));
  return n.set(n.reshape(y, in.dims));
}
static Register rmsNorm("RMSNormalization", importRMSNormalization);

//===----------------------------------------------------------------------===//
// Over groups of channels
//===----------------------------------------------------------------------===//

/// `x` [N, C, ...] with each of `groups` groups of channels normalized, times
/// `scale` plus `shift`, which are vectors of channels.
static LogicalResult groupNorm(Node &n, int64_t groups, Value scale,
                               Value shift) {
  const Val in = n.input(0);
  ASSIGN_OR_FAIL(Value x, n.value(0));
  int64_t samples = in.dims[0];
  int64_t row = product(in.dims) / std::max<int64_t>(samples * groups, 1);
  Value rows = n.reshape(x, {samples, groups, row});
  Value y =
      nn::LayerNormOp::create(n.b, n.loc, rows, Value(), Value(), epsilonOf(n));
  y = n.reshape(y, in.dims);
  auto type = nn::tensorType(y);
  y = nn::mul(n.b, n.loc, y, nn::broadcastTo(n.b, n.loc, scale, type, {1}));
  y = nn::add(n.b, n.loc, y, nn::broadcastTo(n.b, n.loc, shift, type, {1}));
  return n.set(y);
}

/// Scale and shift, vectors of `channels`, or of `groups` before opset 21.
static FailureOr<Value> channelVector(Node &n, int i, int64_t channels) {
  const Val v = n.input(i);
  if (v.rank() != 1 || v.type != n.input(0).type || v.dims[0] <= 0 ||
      channels % v.dims[0])
    return n.error("input " + Twine(i) + " has shape " + str(v.dims) +
                   ", but there are " + Twine(channels) + " channels");
  ASSIGN_OR_FAIL(Value x, n.value(i));
  if (v.dims[0] == channels)
    return x;
  Dims both{v.dims[0], channels / v.dims[0]};
  auto type = n.tensorType(both, nn::tensorType(x).getElementType());
  return n.reshape(nn::broadcastTo(n.b, n.loc, x, type, {0}), {channels});
}

static LogicalResult importGroupNormalization(Node &n) {
  const Val in = n.input(0);
  int64_t groups = n.intAttr("num_groups", 0);
  if (failed(checkFloat(n)))
    return failure();
  if (in.rank() < 2 || groups < 1 || in.dims[1] % groups)
    return n.error("shape " + str(in.dims) + " in " + Twine(groups) +
                   " groups");
  ASSIGN_OR_FAIL(Value scale, channelVector(n, 1, in.dims[1]));
  ASSIGN_OR_FAIL(Value shift, channelVector(n, 2, in.dims[1]));
  return groupNorm(n, groups, scale, shift);
}
static Register groupNormOp("GroupNormalization", importGroupNormalization);

static LogicalResult importInstanceNormalization(Node &n) {
  const Val in = n.input(0);
  if (failed(checkFloat(n)))
    return failure();
  if (in.rank() < 2)
    return n.error("an input of shape " + str(in.dims));
  ASSIGN_OR_FAIL(Value scale, channelVector(n, 1, in.dims[1]));
  ASSIGN_OR_FAIL(Value shift, channelVector(n, 2, in.dims[1]));
  return groupNorm(n, in.dims[1], scale, shift);
}
static Register instanceNorm("InstanceNormalization",
                             importInstanceNormalization);

//===----------------------------------------------------------------------===//
// Over the batch
//===----------------------------------------------------------------------===//

/// The statistics are given: running ones in inference mode, or computed by the
/// graph where a module keeps none.
static LogicalResult fixedBatchNorm(Node &n, Value x, Value scale, Value shift,
                                    double epsilon) {
  if (n.importer.isInitializer(n.input(3)))
    n.importer.warn(n.label() +
                    " is in inference mode: its statistics stay as they are");
  SmallVector<Value> statistics;
  for (int i : {3, 4}) {
    ASSIGN_OR_FAIL(Value v, n.value(i));
    n.importer.fixState(n.input(i), i == 3 ? "zeros" : "ones");
    statistics.push_back(v);
  }
  auto type = nn::tensorType(x);
  auto channels = [&](Value v) {
    return nn::broadcastTo(n.b, n.loc, v, type, {1});
  };
  Value variance = nn::add(n.b, n.loc, statistics[1],
                           like(n.b, n.loc, statistics[1], epsilon));
  Value rstd = math::RsqrtOp::create(n.b, n.loc, variance);
  Value y = nn::sub(n.b, n.loc, x, channels(statistics[0]));
  y = nn::mul(n.b, n.loc, y, channels(rstd));
  y = nn::mul(n.b, n.loc, y, channels(scale));
  return n.set(nn::add(n.b, n.loc, y, channels(shift)));
}

/// Training mode follows PyTorch, where these graphs come from: the new running
/// variance is that of the sample (n - 1), where ONNX would have the batch's.
static LogicalResult importBatchNormalization(Node &n) {
  const Val in = n.input(0);
  if (failed(checkFloat(n)))
    return failure();
  if (in.rank() < 2)
    return n.error("an input of shape " + str(in.dims));
  for (int i = 1; i < 5; ++i)
    if (!n.has(i) || n.input(i).dims != Dims{in.dims[1]} ||
        n.input(i).type != in.type)
      return n.error("input " + Twine(i) + " has shape " +
                     str(n.input(i).dims) + ", but there are " +
                     Twine(in.dims[1]) + " channels");
  double epsilon = n.floatAttr("epsilon", 1e-5);
  bool training =
      n.opset < 14 ? n.numOutputs() > 1 : n.intAttr("training_mode", 0) != 0;
  // The dynamo exporter says so in the graph's signature only.
  training |= n.importer.isMutated(n.input(3));
  ASSIGN_OR_FAIL(Value x, n.value(0));
  ASSIGN_OR_FAIL(Value scale, n.value(1));
  ASSIGN_OR_FAIL(Value shift, n.value(2));
  if (!training)
    return fixedBatchNorm(n, x, scale, shift, epsilon);

  auto mean = n.importer.stateOf(n.input(3));
  auto var = n.importer.stateOf(n.input(4));
  if (failed(mean) || failed(var)) {
    if (n.isUsed(1) || n.isUsed(2))
      return n.unsupported("running statistics that are no initializers");
    // A module without running statistics: nothing reads the old ones.
    mean = like(n.b, n.loc, scale, 0);
    var = like(n.b, n.loc, scale, 1);
  }
  // ONNX weighs the old value, nn the new one.
  double momentum = shortest(1 - n.floatAttr("momentum", 0.9));
  auto norm = nn::BatchNormOp::create(
      n.b, n.loc, x, scale, shift, *mean, *var, n.b.getF64FloatAttr(epsilon),
      n.b.getF64FloatAttr(momentum), UnitAttr());
  if (n.importer.isInitializer(n.input(3))) {
    n.importer.updateState(n.input(3), norm.getNewMean());
    n.importer.updateState(n.input(4), norm.getNewVar());
  }
  Value results[] = {norm.getResult(), norm.getNewMean(), norm.getNewVar(),
                     norm.getMean()};
  for (int i = 0; i < std::min(n.numOutputs(), 3); ++i)
    if (failed(n.set(i, Val(results[i]))))
      return failure();
  for (int i = 3; i < n.numOutputs(); ++i)
    if (n.isUsed(i))
      return n.unsupported("output " + Twine(i));
  return success();
}
static Register batchNorm("BatchNormalization", importBatchNormalization);
