// Norm.cpp - normalizations and softmax.

#include "frontends/common/ops/Norm.h"
#include "frontends/Checked.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/Importer.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// Reports "unsupported" if a result from `first` on is used: these are
/// statistics that only a backward pass needs.
static LogicalResult checkUnused(Call &c, size_t first) {
  for (size_t i = first; i < c.data.results.size(); ++i)
    if (c.isUsed(i))
      return c.unsupported("result " + Twine(i));
  return success();
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

static LogicalResult softmaxOf(Call &c, bool log) {
  Val self = c.tensor("self");
  ElementType wide = self.type;
  ASSIGN_OR_FAIL(wide, c.type("dtype", self.type));
  ASSIGN_OR_FAIL(bool halfToFloat, c.flag("half_to_float", false));
  if (halfToFloat)
    wide = ElementType::F32;
  ASSIGN_OR_FAIL(self, castTo(c, self, wide));
  ASSIGN_OR_FAIL(int64_t dim, c.integer("dim", std::nullopt));
  return c.set(softmax(c, self, dim, log));
}
static LogicalResult importSoftmax(Call &c) { return softmaxOf(c, false); }
static Register softmaxOp("softmax", importSoftmax);
static Register softmaxCore("_softmax", importSoftmax);
static LogicalResult importLogSoftmax(Call &c) { return softmaxOf(c, true); }
static Register logSoftmax("log_softmax", importLogSoftmax);
static Register logSoftmaxCore("_log_softmax", importLogSoftmax);

//===----------------------------------------------------------------------===//
// Over the innermost dimensions
//===----------------------------------------------------------------------===//

/// The first of the dimensions `normalized_shape` of `x`.
static FailureOr<int64_t> firstNormalized(Call &c, const Val &x) {
  ASSIGN_OR_FAIL(Dims shape, c.integers("normalized_shape", std::nullopt));
  ArrayRef<int64_t> dims(x.dims);
  if (shape.empty() || shape.size() > dims.size() ||
      dims.take_back(shape.size()) != ArrayRef<int64_t>(shape))
    return c.error("normalizes " + str(shape) + " of shape " + str(dims));
  return x.rank() - static_cast<int64_t>(shape.size());
}

static LogicalResult importLayerNorm(Call &c) {
  const Val x = c.tensor("input");
  if (failed(checkUnused(c, 1)))
    return failure();
  ASSIGN_OR_FAIL(int64_t axis, firstNormalized(c, x));
  ASSIGN_OR_FAIL(double epsilon, c.number("eps", 1e-5));
  return c.set(
      layerNorm(c, x, axis, c.tensor("weight"), c.tensor("bias"), epsilon));
}
static Register layerNormOp("layer_norm", importLayerNorm);
static Register nativeLayerNorm("native_layer_norm", importLayerNorm);

/// The default epsilon is the machine epsilon of the type.
static LogicalResult importRmsNorm(Call &c) {
  const Val x = c.tensor("input");
  if (failed(checkUnused(c, 1)))
    return failure();
  ASSIGN_OR_FAIL(int64_t axis, firstNormalized(c, x));
  double smallest = x.type == ElementType::F64 ? 0x1p-52 : 0x1p-23;
  ASSIGN_OR_FAIL(double epsilon, c.number("eps", smallest));
  return c.set(rmsNorm(c, x, axis, c.tensor("weight"), epsilon));
}
static Register rmsNormOp("rms_norm", importRmsNorm);
static Register fusedRmsNorm("_fused_rms_norm", importRmsNorm);

//===----------------------------------------------------------------------===//
// Over channels
//===----------------------------------------------------------------------===//

static LogicalResult importGroupNorm(Call &c) {
  if (failed(checkUnused(c, 1)))
    return failure();
  bool isNative = c.has("group");
  c.ignore({"N", "C", "HxW"}); // The input's sizes.
  ASSIGN_OR_FAIL(int64_t groups,
                 c.integer(isNative ? "group" : "num_groups", std::nullopt));
  ASSIGN_OR_FAIL(double epsilon, c.number("eps", 1e-5));
  return c.set(groupNorm(c, c.tensor("input"), groups, c.tensor("weight"),
                         c.tensor("bias"), epsilon));
}
static Register groupNormOp("group_norm", importGroupNorm);
static Register nativeGroupNorm("native_group_norm", importGroupNorm);

/// The arguments of a batch norm. A missing scale is ones, a missing shift
/// zeros.
static FailureOr<BatchNorm> batchNormOf(Call &c) {
  BatchNorm norm;
  norm.x = c.tensor("input");
  norm.scale = c.tensor("weight");
  norm.shift = c.tensor("bias");
  norm.mean = c.tensor("running_mean");
  norm.variance = c.tensor("running_var");
  ASSIGN_OR_FAIL(norm.epsilon, c.number("eps", 1e-5));
  ASSIGN_OR_FAIL(norm.momentum, c.number("momentum", 0.1));
  if (norm.x.rank() < 2)
    return c.error("an input of shape " + str(norm.x.dims));
  Dims channels{norm.x.dims[1]};
  for (Val *v : {&norm.scale, &norm.variance})
    if (v->isAbsent())
      *v = Val(Array::splat(norm.x.type, channels, 1));
  for (Val *v : {&norm.shift, &norm.mean})
    if (v->isAbsent())
      *v = Val(Array::splat(norm.x.type, channels, 0));
  return norm;
}

static LogicalResult batchNorm(Call &c, bool training) {
  ASSIGN_OR_FAIL(BatchNorm norm, batchNormOf(c));
  if (!training) {
    if (failed(checkUnused(c, 1)))
      return failure();
    return c.set(batchNormByStatistics(c, norm));
  }
  // (result, mean of the batch, its deviation, new mean, new variance); the
  // operator before decomposition has only the first.
  for (size_t i : {1, 2})
    if (c.isUsed(i))
      return c.unsupported("result " + Twine(i));
  if (c.isUsed(3) && !c.importer.forward.isStored(norm.mean))
    return c.unsupported("running statistics that are no buffers");
  ASSIGN_OR_FAIL(BatchNormResults results, batchNormByBatch(c, norm));
  if (c.data.results.size() > 3 && failed(c.set(3, Val(results.newMean))))
    return failure();
  if (c.data.results.size() > 4 && failed(c.set(4, Val(results.newVariance))))
    return failure();
  return c.set(Val(results.y));
}

static LogicalResult importBatchNorm(Call &c) {
  ASSIGN_OR_FAIL(bool training, c.flag("training", false));
  return batchNorm(c, training);
}
static Register batchNormOp("batch_norm", importBatchNorm);
static Register legitFunctional("_native_batch_norm_legit_functional",
                                importBatchNorm);
static Register legit("_native_batch_norm_legit", importBatchNorm);

static LogicalResult importNoTraining(Call &c) { return batchNorm(c, false); }
static Register legitNoTraining("_native_batch_norm_legit_no_training",
                                importNoTraining);

static LogicalResult importInstanceNorm(Call &c) {
  ASSIGN_OR_FAIL(bool useInput, c.flag("use_input_stats", true));
  const Val x = c.tensor("input");
  if (!useInput || c.has("running_mean") || x.rank() < 2)
    return c.unsupported("running statistics of samples");
  c.ignore({"momentum"}); // There are no running statistics.
  ASSIGN_OR_FAIL(double epsilon, c.number("eps", 1e-5));
  return c.set(groupNorm(c, x, x.dims[1], c.tensor("weight"), c.tensor("bias"),
                         epsilon));
}
static Register instanceNorm("instance_norm", importInstanceNorm);

/// g * v / |v|, where |v| is taken over all dimensions except `dim`.
static LogicalResult importWeightNorm(Call &c) {
  const Val v = c.tensor("v"), g = c.tensor("g");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", 0, v.rank()));
  Dims dims;
  for (int64_t i = 0; i < v.rank(); ++i)
    if (i != dim)
      dims.push_back(i);
  ASSIGN_OR_FAIL(Val squares, multiply(c, {v, v}));
  ASSIGN_OR_FAIL(Val sum, reduceSum(c, squares, dims, true));
  ASSIGN_OR_FAIL(Val norm, squareRoot(c, sum));
  ASSIGN_OR_FAIL(Val factor, divide(c, {g, norm}));
  if (c.isUsed(1)) {
    ASSIGN_OR_FAIL(Val shown, reshaped(c, norm, g.dims));
    if (failed(c.set(1, shown)))
      return failure();
  }
  return c.set(multiply(c, {v, factor}));
}
static Register weightNorm("_weight_norm", importWeightNorm);
static Register weightNormInterface("_weight_norm_interface", importWeightNorm);
