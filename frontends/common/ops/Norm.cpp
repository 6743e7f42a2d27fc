#include "frontends/common/ops/Norm.h"
#include "frontends/Checked.h"
#include "frontends/common/Importer.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

static int64_t product(ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= dim;
  return count;
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Over one dimension, which is made the innermost.
FailureOr<Val> tmc::frontend::softmax(Site &s, const Val &in, int64_t axisAttr,
                                      bool log) {
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, in.rank()));
  if (failed(checkFloats(s, in)))
    return failure();
  ASSIGN_OR_FAIL(Value x, s.materialise(in));
  if (axis == in.rank() - 1)
    return Val(nn::SoftmaxOp::create(s.b, s.loc, x, log));
  Dims swap(nn::firstDims(in.rank()));
  std::swap(swap[axis], swap.back());
  Value inner = nn::TransposeOp::create(s.b, s.loc, x, swap);
  Value y = nn::SoftmaxOp::create(s.b, s.loc, inner, log);
  return Val(nn::TransposeOp::create(s.b, s.loc, y, swap));
}

//===----------------------------------------------------------------------===//
// Over the innermost dimensions
//===----------------------------------------------------------------------===//

/// A scale or shift of the dimensions `row` of `in`, as a vector of all their
/// elements; null if it is absent.
static FailureOr<Value> rowVector(Site &s, const Val &v, const Val &in,
                                  ArrayRef<int64_t> row) {
  if (v.isAbsent())
    return Value();
  if (broadcastShape(v.dims, row) != Dims(row) || v.type != in.type)
    return s.error("a scale or shift has shape " + str(v.dims) +
                   ", but a row has " + str(row));
  ASSIGN_OR_FAIL(Value wide, s.broadcast(v, row));
  return s.reshape(wide, {product(row)});
}

namespace {
/// The innermost dimensions of a norm's input, and the input with those as one.
struct RowNorm {
  Value rows;
  ArrayRef<int64_t> row;
};
} // namespace

static FailureOr<RowNorm> rowsOf(Site &s, const Val &in, int64_t axisAttr) {
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, in.rank()));
  if (failed(checkFloats(s, in)))
    return failure();
  ASSIGN_OR_FAIL(Value x, s.materialise(in));
  RowNorm result;
  result.row = ArrayRef<int64_t>(in.dims).drop_front(axis);
  Dims dims(in.dims.begin(), in.dims.begin() + axis);
  dims.push_back(product(result.row));
  result.rows = s.reshape(x, dims);
  return result;
}

FailureOr<Val> tmc::frontend::layerNorm(Site &s, const Val &in, int64_t axis,
                                        const Val &scaleVal,
                                        const Val &shiftVal, double epsilon) {
  ASSIGN_OR_FAIL(RowNorm norm, rowsOf(s, in, axis));
  ASSIGN_OR_FAIL(Value scale, rowVector(s, scaleVal, in, norm.row));
  ASSIGN_OR_FAIL(Value shift, rowVector(s, shiftVal, in, norm.row));
  Value y = nn::LayerNormOp::create(s.b, s.loc, norm.rows, scale, shift,
                                    s.b.getF64FloatAttr(epsilon));
  return Val(s.reshape(y, in.dims));
}

FailureOr<Val> tmc::frontend::rmsNorm(Site &s, const Val &in, int64_t axis,
                                      const Val &scaleVal, double epsilon) {
  ASSIGN_OR_FAIL(RowNorm norm, rowsOf(s, in, axis));
  ASSIGN_OR_FAIL(Value scale, rowVector(s, scaleVal, in, norm.row));
  Value y = nn::RMSNormOp::create(s.b, s.loc, norm.rows, scale,
                                  s.b.getF64FloatAttr(epsilon));
  return Val(s.reshape(y, in.dims));
}

//===----------------------------------------------------------------------===//
// Over groups of channels
//===----------------------------------------------------------------------===//

/// A scale or shift as a vector of `channels`; `v` has one entry for each
/// channel or each group. Null if `v` is absent.
static FailureOr<Value> channelVector(Site &s, const Val &v, const Val &in) {
  if (v.isAbsent())
    return Value();
  int64_t channels = in.dims[1];
  if (v.rank() != 1 || v.type != in.type || v.dims[0] <= 0 ||
      channels % v.dims[0])
    return s.error("a scale or shift has shape " + str(v.dims) +
                   ", but there are " + Twine(channels) + " channels");
  ASSIGN_OR_FAIL(Value x, s.materialise(v));
  if (v.dims[0] == channels)
    return x;
  Dims both{v.dims[0], channels / v.dims[0]};
  auto type = s.tensorType(both, nn::tensorType(x).getElementType());
  return s.reshape(nn::broadcastTo(s.b, s.loc, x, type, {0}), {channels});
}

FailureOr<Val> tmc::frontend::groupNorm(Site &s, const Val &in, int64_t groups,
                                        const Val &scaleVal,
                                        const Val &shiftVal, double epsilon) {
  if (failed(checkFloats(s, in)))
    return failure();
  if (in.rank() < 2 || groups < 1 || in.dims[1] % groups)
    return s.error("shape " + str(in.dims) + " in " + Twine(groups) +
                   " groups");
  ASSIGN_OR_FAIL(Value scale, channelVector(s, scaleVal, in));
  ASSIGN_OR_FAIL(Value shift, channelVector(s, shiftVal, in));
  ASSIGN_OR_FAIL(Value x, s.materialise(in));
  int64_t samples = in.dims[0];
  int64_t row = product(in.dims) / std::max<int64_t>(samples * groups, 1);
  Value rows = s.reshape(x, {samples, groups, row});
  Value y = nn::LayerNormOp::create(s.b, s.loc, rows, Value(), Value(),
                                    s.b.getF64FloatAttr(epsilon));
  y = s.reshape(y, in.dims);
  auto type = nn::tensorType(y);
  if (scale)
    y = nn::mul(s.b, s.loc, y, nn::broadcastTo(s.b, s.loc, scale, type, {1}));
  if (shift)
    y = nn::add(s.b, s.loc, y, nn::broadcastTo(s.b, s.loc, shift, type, {1}));
  return Val(y);
}

//===----------------------------------------------------------------------===//
// Over the batch
//===----------------------------------------------------------------------===//

static LogicalResult checkBatchNorm(Site &s, const BatchNorm &norm) {
  const Val &in = norm.x;
  if (failed(checkFloats(s, in)))
    return failure();
  if (in.rank() < 2)
    return s.error("an input of shape " + str(in.dims));
  for (const Val *v : {&norm.scale, &norm.shift, &norm.mean, &norm.variance})
    if (v->isAbsent() || v->dims != Dims{in.dims[1]} || v->type != in.type)
      return s.error("a scale, shift or statistic has shape " + str(v->dims) +
                     ", but there are " + Twine(in.dims[1]) + " channels");
  return success();
}

FailureOr<Val> tmc::frontend::batchNormByStatistics(Site &s,
                                                    const BatchNorm &norm) {
  if (failed(checkBatchNorm(s, norm)))
    return failure();
  ASSIGN_OR_FAIL(Value x, s.materialise(norm.x));
  ASSIGN_OR_FAIL(Value scale, s.materialise(norm.scale));
  ASSIGN_OR_FAIL(Value shift, s.materialise(norm.shift));
  if (s.importer.forward.isStored(norm.mean))
    s.importer.warn(s.label() +
                    " is in inference mode: its statistics stay as they are");
  ASSIGN_OR_FAIL(Value mean, s.materialise(norm.mean));
  s.importer.forward.fixState(norm.mean, "zeros");
  ASSIGN_OR_FAIL(Value variance, s.materialise(norm.variance));
  s.importer.forward.fixState(norm.variance, "ones");
  auto type = nn::tensorType(x);
  auto channels = [&](Value v) {
    return nn::broadcastTo(s.b, s.loc, v, type, {1});
  };
  Value shifted = nn::add(s.b, s.loc, variance, s.like(variance, norm.epsilon));
  Value rstd = math::RsqrtOp::create(s.b, s.loc, shifted);
  Value y = nn::sub(s.b, s.loc, x, channels(mean));
  y = nn::mul(s.b, s.loc, y, channels(rstd));
  y = nn::mul(s.b, s.loc, y, channels(scale));
  return Val(nn::add(s.b, s.loc, y, channels(shift)));
}

FailureOr<BatchNormResults>
tmc::frontend::batchNormByBatch(Site &s, const BatchNorm &norm) {
  if (failed(checkBatchNorm(s, norm)))
    return failure();
  ASSIGN_OR_FAIL(Value x, s.materialise(norm.x));
  ASSIGN_OR_FAIL(Value scale, s.materialise(norm.scale));
  ASSIGN_OR_FAIL(Value shift, s.materialise(norm.shift));
  // If the module has no running statistics, nothing reads the old ones.
  bool isState = s.importer.forward.isStored(norm.mean) &&
                 s.importer.forward.isStored(norm.variance);
  FailureOr<Value> mean =
      isState ? s.importer.forward.stateOf(norm.mean) : s.like(scale, 0);
  FailureOr<Value> variance =
      isState ? s.importer.forward.stateOf(norm.variance) : s.like(scale, 1);
  if (failed(mean) || failed(variance))
    return failure();
  auto op =
      nn::BatchNormOp::create(s.b, s.loc, x, scale, shift, *mean, *variance,
                              s.b.getF64FloatAttr(norm.epsilon),
                              s.b.getF64FloatAttr(norm.momentum), UnitAttr());
  if (isState) {
    s.importer.forward.updateState(norm.mean, op.getNewMean());
    s.importer.forward.updateState(norm.variance, op.getNewVar());
  }
  return BatchNormResults{op.getResult(), op.getNewMean(), op.getNewVar(),
                          op.getMean()};
}
