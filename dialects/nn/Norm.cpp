// Norm.cpp - norms, softmax and GELU: checked, costed and differentiated whole.
//
// Except for batch_statistics these ops have no kernel: before kernels are
// chosen they are decomposed into pointwise work and row reductions.

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"
#include "dialects/nn/Statistics.h"

#include "runtime/kernels/BatchStatistics.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// A vector of `n` elements of the element type of `like`.
static RankedTensorType vectorLike(RankedTensorType like, int64_t n) {
  return RankedTensorType::get({n}, like.getElementType());
}

/// C1 of the row norms: `vector` (may be null) has the length of a row of
/// `input`.
static LogicalResult checkRowVector(std::optional<Location> loc, Value input,
                                    Value vector, StringRef what) {
  auto type = cast<RankedTensorType>(input.getType());
  if (type.getRank() < 1)
    return emitOptionalError(loc, "normalizes a scalar");
  if (vector && vector.getType() != vectorLike(type, type.getShape().back()))
    return emitOptionalError(loc, "the ", what, " is ", vector.getType(),
                             " where a row of the input has ",
                             type.getShape().back(), " elements");
  return success();
}

/// The cuts of an op that works on each row of its first operand: every
/// dimension but the innermost one. Parameters are the same for all rows.
static OpCuts rowCuts(Operation *op) {
  OpCuts cuts(op, op->getNumOperands() == 1
                      ? "it normalizes over the batch"
                      : "it normalizes over the batch, or its parameters "
                        "depend on the batch");
  SmallVector<int64_t> operands(op->getNumOperands(), OpCut::kWhole);
  const int64_t rank = tensorType(op->getOperand(0)).getRank();
  for (int64_t dim = 0; dim + 1 < rank; ++dim) {
    operands[0] = dim;
    cuts.add(operands, Rejoin::concat(dim));
  }
  return cuts;
}

namespace {
/// Short forms for row statistics: sums over the innermost dimension, and their
/// broadcast.
struct Rows {
  OpBuilder &b;
  Location loc;
  RankedTensorType type;

  Value mean(Value x) const {
    int64_t n = type.getShape().back();
    return scale(b, loc, reduceSum(b, loc, x, {type.getRank() - 1}), 1.0 / n);
  }
  Value spread(Value rowScalar) const {
    return broadcastLeading(b, loc, rowScalar, type);
  }
  Value along(Value vector) const {
    return broadcastTrailing(b, loc, vector, type);
  }
  Value sumOverRows(Value x) const {
    return reduceSum(b, loc, x, firstDims(type.getRank() - 1));
  }
  /// 1 / sqrt(x + epsilon), one per row.
  Value rsqrt(Value x, double epsilon) const {
    return math::RsqrtOp::create(
        b, loc, add(b, loc, x, splat(b, loc, x.getType(), epsilon)));
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// nn.layer_norm
//===----------------------------------------------------------------------===//

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  if (failed(checkRowVector(loc, op.getInput(), op.getScale(), "scale")) ||
      failed(checkRowVector(loc, op.getInput(), op.getShift(), "shift"))) // C1
    return failure();
  results.push_back(op.getInput().getType());
  return success();
}

int64_t LayerNormOp::getFlops() {
  return 8 * tensorType(getInput()).getNumElements();
}

SmallVector<Value> LayerNormOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                         ArrayRef<bool> wanted) {
  Location loc = getLoc();
  Rows rows{b, loc, tensorType(getInput())};
  Value dy = grads[0], x = getInput();
  // The statistics are recomputed from x: two reductions, which are cheaper
  // than two more saved values, and fuse with the following ops.
  Value centred = sub(b, loc, x, rows.spread(rows.mean(x)));
  Value rstd = rows.rsqrt(rows.mean(mul(b, loc, centred, centred)),
                          getEpsilon().convertToDouble());
  Value xhat = mul(b, loc, centred, rows.spread(rstd));
  SmallVector<Value> result(getNumOperands());
  if (wanted[0]) {
    // dx = rstd (g - mean(g) - xhat mean(g xhat)), g = dy scale.
    Value g = getScale() ? mul(b, loc, dy, rows.along(getScale())) : dy;
    Value meanG = rows.spread(rows.mean(g));
    Value meanGX = rows.spread(rows.mean(mul(b, loc, g, xhat)));
    Value along = mul(b, loc, xhat, meanGX);
    Value inner = sub(b, loc, sub(b, loc, g, meanG), along);
    result[0] = mul(b, loc, inner, rows.spread(rstd));
  }
  unsigned next = 1;
  if (getScale()) {
    if (wanted[next])
      result[next] = rows.sumOverRows(mul(b, loc, dy, xhat));
    ++next;
  }
  if (getShift() && wanted[next])
    result[next] = rows.sumOverRows(dy);
  return result;
}

OpCuts LayerNormOp::getCuts() { return rowCuts(*this); }

//===----------------------------------------------------------------------===//
// nn.rms_norm
//===----------------------------------------------------------------------===//

LogicalResult RMSNormOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> loc,
                                          Adaptor op,
                                          SmallVectorImpl<Type> &results) {
  if (failed(checkRowVector(loc, op.getInput(), op.getScale(), "scale"))) // C1
    return failure();
  results.push_back(op.getInput().getType());
  return success();
}

int64_t RMSNormOp::getFlops() {
  return 5 * tensorType(getInput()).getNumElements();
}

SmallVector<Value> RMSNormOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                       ArrayRef<bool> wanted) {
  Location loc = getLoc();
  Rows rows{b, loc, tensorType(getInput())};
  Value dy = grads[0], x = getInput();
  Value rstd =
      rows.rsqrt(rows.mean(mul(b, loc, x, x)), getEpsilon().convertToDouble());
  Value xhat = mul(b, loc, x, rows.spread(rstd));
  SmallVector<Value> result(getNumOperands());
  if (wanted[0]) {
    // dx = rstd (g - xhat mean(g xhat)), g = dy scale.
    Value g = getScale() ? mul(b, loc, dy, rows.along(getScale())) : dy;
    Value meanGX = rows.spread(rows.mean(mul(b, loc, g, xhat)));
    Value spread = rows.spread(rstd);
    result[0] = mul(b, loc, sub(b, loc, g, mul(b, loc, xhat, meanGX)), spread);
  }
  if (getScale() && wanted[1])
    result[1] = rows.sumOverRows(mul(b, loc, dy, xhat));
  return result;
}

OpCuts RMSNormOp::getCuts() { return rowCuts(*this); }

//===----------------------------------------------------------------------===//
// nn.softmax
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> loc,
                                          Adaptor op,
                                          SmallVectorImpl<Type> &results) {
  if (failed(checkRowVector(loc, op.getInput(), Value(), "")))
    return failure();
  results.push_back(op.getInput().getType());
  return success();
}

int64_t SoftmaxOp::getFlops() {
  return 5 * tensorType(getInput()).getNumElements();
}

SmallVector<Value> SoftmaxOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                       ArrayRef<bool> wanted) {
  Location loc = getLoc();
  RankedTensorType type = tensorType(getInput());
  auto rowSum = [&](Value x) {
    return broadcastLeading(b, loc, reduceSum(b, loc, x, {type.getRank() - 1}),
                            type);
  };
  Value dy = grads[0], y = getResult();
  if (getLog()) { // dx = dy - exp(y) sum(dy)
    Value sum = rowSum(dy);
    return {sub(b, loc, dy, mul(b, loc, math::ExpOp::create(b, loc, y), sum))};
  }
  // dx = y (dy - sum(dy y))
  return {mul(b, loc, y, sub(b, loc, dy, rowSum(mul(b, loc, dy, y))))};
}

OpCuts SoftmaxOp::getCuts() { return rowCuts(*this); }

//===----------------------------------------------------------------------===//
// nn.gelu
//===----------------------------------------------------------------------===//

LogicalResult GeluOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> loc, Adaptor op,
                                       SmallVectorImpl<Type> &results) {
  results.push_back(op.getInput().getType());
  return success();
}

int64_t GeluOp::getFlops() {
  return 12 * tensorType(getInput()).getNumElements();
}

SmallVector<Value> GeluOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                    ArrayRef<bool> wanted) {
  Location loc = getLoc();
  Value x = getInput(), derivative;
  Type type = x.getType();
  auto constant = [&](double v) { return splat(b, loc, type, v); };
  if (getTanh()) {
    // t = tanh(u), u = c (x + a x^3):
    // y' = (1 + t) / 2 + x (1 - t^2) u' / 2, u' = c (1 + 3 a x^2).
    const double c = std::sqrt(2 / M_PI), a = 0.044715;
    Value x2 = mul(b, loc, x, x);
    Value bend = scale(b, loc, x2, a);
    bend = add(b, loc, constant(1), bend);
    Value u = mul(b, loc, scale(b, loc, x, c), bend);
    Value t = math::TanhOp::create(b, loc, u);
    Value du = scale(b, loc, x2, 3 * a * c);
    du = add(b, loc, constant(c), du);
    Value sech2 = mul(b, loc, t, t);
    sech2 = sub(b, loc, constant(1), sech2);
    Value left = scale(b, loc, add(b, loc, constant(1), t), 0.5);
    Value right = mul(b, loc, sech2, du);
    right = mul(b, loc, scale(b, loc, x, 0.5), right);
    derivative = add(b, loc, left, right);
  } else {
    // y' = (1 + erf(x / sqrt 2)) / 2 + x exp(-x^2 / 2) / sqrt(2 pi).
    Value e = math::ErfOp::create(b, loc, scale(b, loc, x, M_SQRT1_2));
    Value left = scale(b, loc, add(b, loc, constant(1), e), 0.5);
    Value bell =
        math::ExpOp::create(b, loc, scale(b, loc, mul(b, loc, x, x), -0.5));
    Value right = mul(b, loc, scale(b, loc, x, 1 / std::sqrt(2 * M_PI)), bell);
    derivative = add(b, loc, left, right);
  }
  return {mul(b, loc, grads[0], derivative)};
}

OpCuts GeluOp::getCuts() { return pointwiseCuts(*this); }

//===----------------------------------------------------------------------===//
// nn.batch_norm, its statistics and its gradient
//===----------------------------------------------------------------------===//

static int64_t channelsOf(RankedTensorType type, bool channelsLast) {
  return channelsLast ? type.getShape().back() : type.getDimSize(1);
}

/// The number of values of each channel.
static int64_t valuesOf(RankedTensorType type, int64_t channels) {
  return type.getNumElements() / std::max<int64_t>(channels, 1);
}

/// C1 of all three: `vectors` have one element per channel of `input`, all of
/// its type or all of its accumulation type.
static LogicalResult checkChannels(std::optional<Location> loc, Value input,
                                   ArrayRef<Value> vectors, bool channelsLast) {
  auto type = cast<RankedTensorType>(input.getType());
  if (type.getRank() < 2)
    return emitOptionalError(loc, type, " has no channels");
  RankedTensorType expected = vectorLike(type, channelsOf(type, channelsLast));
  Type sums = expected.clone(accumulationType(type.getElementType()));
  if (llvm::all_of(vectors, [&](Value v) { return v.getType() == sums; }))
    return success();
  for (Value vector : vectors)
    if (vector.getType() != expected)
      return emitOptionalError(loc, "a statistic or parameter is ",
                               vector.getType(), " where the channels of ",
                               type, " want ", expected);
  return success();
}

LogicalResult BatchNormOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  if (failed(checkChannels(loc, op.getInput(),
                           {op.getScale(), op.getShift(), op.getRunningMean(),
                            op.getRunningVar()},
                           op.getChannelsLast()))) // C1
    return failure();
  results.push_back(op.getInput().getType());
  results.append(4, op.getScale().getType());
  return success();
}

Channels::Channels(OpBuilder &b, Location loc, Value input, Value scale,
                   bool channelsLast)
    : b(b), loc(loc), input(input),
      type(tensorType(input).clone(tensorType(scale).getElementType())),
      dim(channelsLast ? type.getRank() - 1 : 1) {}

Value Channels::widened(Value x) const {
  return convertTo(b, loc, x, type.getElementType());
}

Value Channels::rounded(Value x) const {
  return convertTo(b, loc, x, tensorType(input).getElementType());
}

Value Channels::along(Value vector) const {
  return broadcastTo(b, loc, vector, type, {dim});
}

Value Channels::sum(Value x) const {
  SmallVector<int64_t> others;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (i != dim)
      others.push_back(i);
  return ReduceOp::create(b, loc, x, ReduceKind::Sum, others);
}

int64_t Channels::valuesPerChannel() const {
  return valuesOf(type, type.getDimSize(dim));
}

Value Channels::normalized(Value mean, Value rstd) const {
  Value wide = widened(input), centre = along(mean);
  Value centred = sub(b, loc, wide, centre), slope = along(rstd);
  return mul(b, loc, centred, slope);
}

Value Channels::result(Value mean, Value rstd, Value scale, Value shift) const {
  Value y = normalized(mean, rstd);
  y = mul(b, loc, y, along(scale));
  y = add(b, loc, y, along(shift));
  return rounded(y);
}

int64_t tmc::nn::valuesPerChannel(BatchNormOp op) {
  RankedTensorType type = tensorType(op.getInput());
  return valuesOf(type, channelsOf(type, op.getChannelsLast()));
}

int64_t BatchNormOp::getFlops() {
  return 7 * tensorType(getInput()).getNumElements();
}

SmallVector<Value> BatchNormOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                         ArrayRef<bool> wanted) {
  SmallVector<Value> result(getNumOperands());
  // The statistics that leave the step have no gradient.
  if (!grads[0])
    return result;
  auto grad =
      BatchNormGradOp::create(b, getLoc(), getInput(), getScale(), getMean(),
                              getRstd(), grads[0], getChannelsLast());
  result[0] = grad.getDinput();
  result[1] = grad.getDscale();
  result[2] = grad.getDshift();
  return result;
}

/// The cut of the channels: each has statistics of its own. Operands and
/// results that aren't activations are vectors of channels.
template <typename OpTy>
static OpCuts channelCuts(OpTy op, ArrayRef<unsigned> activations,
                          unsigned activationResults, std::string otherwise) {
  OpCuts cuts(op, std::move(otherwise));
  const int64_t dim =
      op.getChannelsLast() ? tensorType(op.getInput()).getRank() - 1 : 1;
  SmallVector<int64_t> operands(op->getNumOperands(), 0);
  for (unsigned index : activations)
    operands[index] = dim;
  SmallVector<Rejoin> results(op->getNumResults(), Rejoin::concat(0));
  for (unsigned i = 0; i < activationResults; ++i)
    results[i] = Rejoin::concat(dim);
  cuts.add(operands, results);
  return cuts;
}

OpCuts BatchNormOp::getCuts() {
  return channelCuts(*this, {0}, 1,
                     "its statistics are those of the whole batch");
}

LogicalResult
BatchNormGradOp::inferReturnTypes(MLIRContext *context,
                                  std::optional<Location> loc, Adaptor op,
                                  SmallVectorImpl<Type> &results) {
  if (failed(checkChannels(loc, op.getInput(),
                           {op.getScale(), op.getMean(), op.getRstd()},
                           op.getChannelsLast()))) // C1
    return failure();
  if (op.getGrad().getType() != op.getInput().getType()) // C1
    return emitOptionalError(loc, "the gradient is ", op.getGrad().getType(),
                             " where the input is ", op.getInput().getType());
  results.push_back(op.getInput().getType());
  results.append(2, op.getScale().getType());
  return success();
}

int64_t BatchNormGradOp::getFlops() {
  return 10 * tensorType(getInput()).getNumElements();
}

OpCuts BatchNormGradOp::getCuts() {
  return channelCuts(*this, {0, 4}, 1,
                     "its statistics are those of the whole batch");
}

SmallVector<unsigned> BatchNormOp::getActivations() { return {0}; }
SmallVector<unsigned> BatchNormGradOp::getActivations() { return {0, 4}; }

LogicalResult
BatchStatisticsOp::inferReturnTypes(MLIRContext *context,
                                    std::optional<Location> loc, Adaptor op,
                                    SmallVectorImpl<Type> &results) {
  if (failed(checkChannels(loc, op.getInput(),
                           {op.getRunningMean(), op.getRunningVar()},
                           op.getChannelsLast()))) // C1
    return failure();
  results.append(4, op.getRunningMean().getType());
  return success();
}

int64_t BatchStatisticsOp::getFlops() {
  return 4 * tensorType(getInput()).getNumElements();
}

OpCuts BatchStatisticsOp::getCuts() {
  return channelCuts(*this, {0}, 0, "they are those of the whole batch");
}

SmallVector<std::pair<unsigned, unsigned>> BatchStatisticsOp::getOverwrites() {
  return {{1, 0}, {2, 1}};
}

SmallVector<unsigned> BatchStatisticsOp::getDroppableResults() {
  return {0, 1};
}

KernelCall BatchStatisticsOp::getKernel(ArrayRef<MemRefType> inputs,
                                        Backend backend) {
  RankedTensorType type = tensorType(getInput());
  const int64_t channels = channelsOf(type, getChannelsLast());
  auto call = KernelCall::of<BatchStatistics>(
      getContext(),
      {.type = runtimeType(type),
       .rows = valuesOf(type, channels),
       .channels = channels,
       .epsilon = getEpsilon().convertToDouble(),
       .momentum = getMomentum().convertToDouble()},
      backend);
  call.supported &= tensorType(getRunningMean()).getElementType().isF32();
  return call;
}
