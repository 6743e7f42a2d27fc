// Norm.cpp - normalizations and softmax.

#include "frontends/common/ops/Norm.h"
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

/// "Unsupported" where something reads an output from `first` on.
static LogicalResult checkUnused(Node &n, int first) {
  for (int i = first; i < n.numOutputs(); ++i)
    if (n.isUsed(i))
      return n.unsupported("output " + Twine(i));
  return success();
}

static LogicalResult importLayerNormalization(Node &n) {
  if (failed(checkUnused(n, 1)))
    return failure();
  return n.set(layerNorm(n, n.input(0), n.intAttr("axis", -1), n.input(1),
                         n.input(2), epsilonOf(n)));
}
static Register layerNormOp("LayerNormalization", importLayerNormalization);

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

/// Training mode follows PyTorch, where these graphs come from: the new running
/// variance is that of the sample (n - 1), where ONNX would have the batch's.
static LogicalResult importBatchNormalization(Node &n) {
  BatchNorm norm{n.input(0), n.input(1), n.input(2), n.input(3), n.input(4)};
  norm.epsilon = epsilonOf(n);
  bool training =
      n.opset < 14 ? n.numOutputs() > 1 : n.intAttr("training_mode", 0) != 0;
  // The dynamo exporter says so in the graph's signature only.
  training |= n.importer.isMutated(n.input(3));
  if (!training)
    return n.set(batchNormByStatistics(n, norm));
  bool isStored =
      n.importer.isStored(norm.mean) && n.importer.isStored(norm.variance);
  if (!isStored && (n.isUsed(1) || n.isUsed(2)))
    return n.unsupported("running statistics that are no initializers");
  // ONNX weighs the old value, nn the new one.
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
