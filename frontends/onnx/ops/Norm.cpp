// Norm.cpp - normalizations and softmax.

#include "frontends/common/ops/Norm.h"
#include "frontends/common/ops/Elementary.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/onnx/Importer.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

static double epsilonOf(Node &n) { return n.floatAttr("epsilon", 1e-5); }

static LogicalResult importSoftmax(Node &n) {
  return n.set(softmax(n, n.input(0), n.intAttr("axis", -1), false));
}
static Register softmaxOp("Softmax", importSoftmax);

static LogicalResult importLogSoftmax(Node &n) {
  return n.set(softmax(n, n.input(0), n.intAttr("axis", -1), true));
}
static Register logSoftmax("LogSoftmax", importLogSoftmax);

/// Reports "unsupported" if an output from `first` on is used.
static LogicalResult checkUnused(Node &n, int first) {
  for (int i = first; i < n.numOutputs(); ++i)
    if (n.isUsed(i))
      return n.unsupported("output " + Twine(i));
  return success();
}

/// Mean and variance over `dims`, which stay with size 1.
static LogicalResult moments(Node &n, const Val &x, ArrayRef<int64_t> dims,
                             Val &mean, Val &variance) {
  ASSIGN_OR_FAIL(mean, reduceMean(n, x, dims, true));
  ASSIGN_OR_FAIL(Val apart, subtract(n, {x, mean}));
  ASSIGN_OR_FAIL(Val squares, multiply(n, {apart, apart}));
  ASSIGN_OR_FAIL(variance, reduceMean(n, squares, dims, true));
  return success();
}

static LogicalResult importLayerNormalization(Node &n) {
  if (n.isUsed(1) || n.isUsed(2)) {
    const Val x = n.input(0);
    ASSIGN_OR_FAIL(int64_t axis, n.axis(n.intAttr("axis", -1), x.rank()));
    Dims dims;
    for (int64_t i = axis; i < x.rank(); ++i)
      dims.push_back(i);
    Val mean, variance;
    if (failed(moments(n, x, dims, mean, variance)))
      return failure();
    ASSIGN_OR_FAIL(
        Val sum,
        add(n, {variance, Val(Array::splat(x.type, {}, epsilonOf(n)))}));
    ASSIGN_OR_FAIL(Val inverse, reciprocalRoot(n, sum));
    if (failed(n.set(1, mean)) || failed(n.set(2, inverse)))
      return failure();
  }
  return n.set(layerNorm(n, n.input(0), n.intAttr("axis", -1), n.input(1),
                         n.input(2), epsilonOf(n)));
}
static Register layerNormOp("LayerNormalization", importLayerNormalization);

/// (x - mean) / sqrt(variance), by default over all dimensions except the
/// channels.
static LogicalResult importMeanVarianceNormalization(Node &n) {
  const Val x = n.input(0);
  ASSIGN_OR_FAIL(Dims dims,
                 n.axes(n.intsAttr("axes").value_or(Dims{0, 2, 3}), x.rank()));
  Val mean, variance;
  if (failed(moments(n, x, dims, mean, variance)))
    return failure();
  ASSIGN_OR_FAIL(Val deviation, rootOf(Expression(n, variance)).value());
  // The operator's definition adds this number.
  ASSIGN_OR_FAIL(deviation,
                 add(n, {deviation, Val(Array::splat(x.type, {}, 1e-9))}));
  ASSIGN_OR_FAIL(Val apart, subtract(n, {x, mean}));
  return n.set(divide(n, {apart, deviation}));
}
static Register meanVariance("MeanVarianceNormalization",
                             importMeanVarianceNormalization);

/// x / (bias + alpha / size * the sum of squares of `size` channels around
/// it)^beta.
static LogicalResult importLrn(Node &n) {
  const Val x = n.input(0);
  int64_t size = n.intAttr("size", 0);
  if (x.rank() < 2 || size < 1 || size > x.dims[1] * 2)
    return n.error("a window of " + Twine(size) + " channels of shape " +
                   str(x.dims));
  ASSIGN_OR_FAIL(Val squares, multiply(n, {x, x}));
  Dims low(x.rank(), 0), high(x.rank(), 0);
  low[1] = (size - 1) / 2;
  high[1] = size / 2;
  ASSIGN_OR_FAIL(Val wide, pad(n, squares, low, high, 0));
  Val sum;
  for (int64_t i = 0; i < size; ++i) {
    ASSIGN_OR_FAIL(Val part, strided(n, wide, 1, i, 1, x.dims[1]));
    if (i == 0) {
      sum = part;
      continue;
    }
    ASSIGN_OR_FAIL(sum, add(n, {sum, part}));
  }
  auto number = [&](double v) { return Val(Array::splat(x.type, {}, v)); };
  double alpha = n.floatAttr("alpha", 1e-4) / size;
  ASSIGN_OR_FAIL(Val scaled, multiply(n, {sum, number(alpha)}));
  ASSIGN_OR_FAIL(scaled, add(n, {scaled, number(n.floatAttr("bias", 1))}));
  ASSIGN_OR_FAIL(Val factor,
                 power(n, {scaled, number(n.floatAttr("beta", 0.75))}));
  return n.set(divide(n, {x, factor}));
}
static Register lrn("LRN", importLrn);

static LogicalResult importRMSNormalization(Node &n) {
  if (failed(checkUnused(n, 1)))
    return failure();
  return n.set(
      rmsNorm(n, n.input(0), n.intAttr("axis", -1), n.input(1), epsilonOf(n)));
}
static Register rmsNormOp("RMSNormalization", importRMSNormalization);

/// Scale and shift are vectors of channels, or of groups before opset 21.
static LogicalResult importGroupNormalization(Node &n) {
  if (!n.has(1) || !n.has(2))
    return n.error("has no scale or no shift");
  return n.set(groupNorm(n, n.input(0), n.intAttr("num_groups", 0), n.input(1),
                         n.input(2), epsilonOf(n)));
}
static Register groupNormOp("GroupNormalization", importGroupNormalization);

static LogicalResult importInstanceNormalization(Node &n) {
  const Val in = n.input(0);
  if (in.rank() < 2)
    return n.error("an input of shape " + str(in.dims));
  if (!n.has(1) || !n.has(2))
    return n.error("has no scale or no shift");
  return n.set(
      groupNorm(n, in, in.dims[1], n.input(1), n.input(2), epsilonOf(n)));
}
static Register instanceNorm("InstanceNormalization",
                             importInstanceNormalization);

/// Training mode follows PyTorch, the source of these graphs: the new running
/// variance is the sample variance (n - 1), while ONNX defines it as the
/// batch's.
static LogicalResult importBatchNormalization(Node &n) {
  BatchNorm norm{n.input(0), n.input(1), n.input(2), n.input(3), n.input(4)};
  norm.epsilon = epsilonOf(n);
  n.ignore({"momentum"}); // Unless statistics are updated.
  bool training =
      n.opset < 14 ? n.numOutputs() > 1 : n.intAttr("training_mode", 0) != 0;
  // The dynamo exporter marks training only in the graph's signature.
  training |= n.importer.forward.isMutated(n.input(3));
  if (!training)
    return n.set(batchNormByStatistics(n, norm));
  bool isStored = n.importer.forward.isStored(norm.mean) &&
                  n.importer.forward.isStored(norm.variance);
  if (!isStored && (n.isUsed(1) || n.isUsed(2)))
    return n.unsupported("running statistics that are no initializers");
  // ONNX's momentum weighs the old value, nn's the new one.
  norm.momentum = shortest(1 - n.floatAttr("momentum", 0.9));
  ASSIGN_OR_FAIL(BatchNormResults results, batchNormByBatch(n, norm));
  Value values[] = {results.y, results.newMean, results.newVariance,
                    results.mean};
  for (int i = 0; i < std::min(n.numOutputs(), 3); ++i)
    if (failed(n.set(i, Val(values[i]))))
      return failure();
  return checkUnused(n, 3);
}
static Register batchNorm("BatchNormalization", importBatchNormalization);

/// x divided by its norm of order 1 or 2 along an axis; zeros stay zeros.
static LogicalResult importLpNormalization(Node &n) {
  const Val x = n.input(0);
  if (failed(checkFloats(n, x)))
    return failure();
  ASSIGN_OR_FAIL(int64_t axis, n.axis(n.intAttr("axis", -1), x.rank()));
  int64_t order = n.intAttr("p", 2);
  if (order != 1 && order != 2)
    return n.error("a norm of order " + Twine(order));
  ASSIGN_OR_FAIL(Val size, order == 1 ? absolute(n, x) : multiply(n, {x, x}));
  ASSIGN_OR_FAIL(Val norm, reduceSum(n, size, {axis}, true));
  if (order == 2) {
    ASSIGN_OR_FAIL(norm, rootOf(Expression(n, norm)).value());
  }
  Val zero(Array::splat(x.type, {}, 0)), one(Array::splat(x.type, {}, 1));
  ASSIGN_OR_FAIL(Val isZero, equals(n, {norm, zero}));
  ASSIGN_OR_FAIL(norm, where(n, isZero, one, norm));
  return n.set(divide(n, {x, norm}));
}
static Register lpNormalization("LpNormalization", importLpNormalization);
