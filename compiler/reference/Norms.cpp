// Norms.cpp - normalizations, softmax and GELU.

#include "compiler/reference/Interpreter.h"
#include "dialects/nn/NN.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace tmc::nn;
using namespace tmc::reference;

static LogicalResult layerNorm(LayerNormOp op, OpCall &call) {
  const Tensor &input = call.in(op.getInput());
  const Tensor *scale = call.inOrNull(op.getScale());
  const Tensor *shift = call.inOrNull(op.getShift());
  double epsilon = op.getEpsilon().convertToDouble();
  int64_t width = input.shape.back();
  for (int64_t row = 0; row < input.size(); row += width) {
    const double *x = &input.floats[row];
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < width; ++i)
      mean += x[i] / width;
    for (int64_t i = 0; i < width; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / width;
    for (int64_t i = 0; i < width; ++i) {
      double y = (x[i] - mean) / std::sqrt(variance + epsilon);
      if (scale)
        y *= scale->floats[i];
      if (shift)
        y += shift->floats[i];
      call.out(0).floats[row + i] = y;
    }
  }
  return success();
}

static LogicalResult rmsNorm(RMSNormOp op, OpCall &call) {
  const Tensor &input = call.in(op.getInput());
  const Tensor *scale = call.inOrNull(op.getScale());
  double epsilon = op.getEpsilon().convertToDouble();
  int64_t width = input.shape.back();
  for (int64_t row = 0; row < input.size(); row += width) {
    const double *x = &input.floats[row];
    double meanSquare = 0;
    for (int64_t i = 0; i < width; ++i)
      meanSquare += x[i] * x[i] / width;
    for (int64_t i = 0; i < width; ++i)
      call.out(0).floats[row + i] = x[i] / std::sqrt(meanSquare + epsilon) *
                                    (scale ? scale->floats[i] : 1.0);
  }
  return success();
}

static LogicalResult softmax(SoftmaxOp op, OpCall &call) {
  const Tensor &input = call.in(op.getInput());
  int64_t width = input.shape.back();
  for (int64_t row = 0; row < input.size(); row += width) {
    const double *x = &input.floats[row];
    double largest = *std::max_element(x, x + width);
    double sum = 0;
    for (int64_t i = 0; i < width; ++i)
      sum += std::exp(x[i] - largest);
    for (int64_t i = 0; i < width; ++i)
      call.out(0).floats[row + i] = op.getLog()
                                        ? x[i] - largest - std::log(sum)
                                        : std::exp(x[i] - largest) / sum;
  }
  return success();
}

static LogicalResult gelu(GeluOp op, OpCall &call) {
  using std::numbers::pi, std::numbers::sqrt2;
  bool tanh = op.getTanh();
  for (auto [x, y] :
       llvm::zip_equal(call.in(op.getInput()).floats, call.out(0).floats)) {
    double inner = std::sqrt(2 / pi) * (x + 0.044715 * x * x * x);
    y = x * (1 + (tanh ? std::tanh(inner) : std::erf(x / sqrt2))) / 2;
  }
  return success();
}

/// Calls `visit(channel, position)` for each element of a batch-normalized
/// tensor.
template <typename F>
static void forEachChannelElement(const Tensor &input, bool channelsLast,
                                  F &&visit) {
  int64_t channels = channelsLast ? input.shape.back() : input.shape[1];
  int64_t inner =
      channelsLast ? 1
                   : numElements(ArrayRef<int64_t>(input.shape).drop_front(2));
  for (int64_t position = 0, e = input.size(); position < e;)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < inner; ++i)
        visit(c, position++);
}

/// Statistics of `input`, and the running ones after this step.
static void statistics(const Tensor &input, bool channelsLast,
                       const Tensor &runningMean, const Tensor &runningVar,
                       double epsilon, double momentum, Tensor &newMean,
                       Tensor &newVar, Tensor &mean, Tensor &rstd) {
  int64_t channels = mean.size(), count = input.size() / channels;
  std::vector<double> variance(channels, 0.0);
  forEachChannelElement(input, channelsLast, [&](int64_t c, int64_t i) {
    mean.floats[c] += input.floats[i] / count;
  });
  forEachChannelElement(input, channelsLast, [&](int64_t c, int64_t i) {
    double centred = input.floats[i] - mean.floats[c];
    variance[c] += centred * centred / count;
  });
  for (int64_t c = 0; c < channels; ++c) {
    rstd.floats[c] = 1 / std::sqrt(variance[c] + epsilon);
    double unbiased = variance[c] * count / (count - 1);
    newMean.floats[c] =
        (1 - momentum) * runningMean.floats[c] + momentum * mean.floats[c];
    newVar.floats[c] =
        (1 - momentum) * runningVar.floats[c] + momentum * unbiased;
  }
}

static LogicalResult batchNorm(BatchNormOp op, OpCall &call) {
  const Tensor &input = call.in(op.getInput());
  const Tensor &scale = call.in(op.getScale());
  const Tensor &shift = call.in(op.getShift());
  Tensor &result = call.out(0), &mean = call.out(3), &rstd = call.out(4);
  statistics(input, op.getChannelsLast(), call.in(op.getRunningMean()),
             call.in(op.getRunningVar()), op.getEpsilon().convertToDouble(),
             op.getMomentum().convertToDouble(), call.out(1), call.out(2), mean,
             rstd);
  forEachChannelElement(input, op.getChannelsLast(), [&](int64_t c, int64_t i) {
    result.floats[i] =
        (input.floats[i] - mean.floats[c]) * rstd.floats[c] * scale.floats[c] +
        shift.floats[c];
  });
  return success();
}

static LogicalResult batchStatistics(BatchStatisticsOp op, OpCall &call) {
  statistics(call.in(op.getInput()), op.getChannelsLast(),
             call.in(op.getRunningMean()), call.in(op.getRunningVar()),
             op.getEpsilon().convertToDouble(),
             op.getMomentum().convertToDouble(), call.out(0), call.out(1),
             call.out(2), call.out(3));
  return success();
}

/// With x' = (x - mean) * rstd: dshift = sum g, dscale = sum g x', and
/// dx = scale * rstd * (g - (dshift + x' dscale) / count).
static LogicalResult batchNormGrad(BatchNormGradOp op, OpCall &call) {
  const Tensor &input = call.in(op.getInput());
  const Tensor &grad = call.in(op.getGrad());
  const Tensor &mean = call.in(op.getMean());
  const Tensor &rstd = call.in(op.getRstd());
  const Tensor &scale = call.in(op.getScale());
  Tensor &dinput = call.out(0), &dscale = call.out(1), &dshift = call.out(2);
  int64_t count = input.size() / mean.size();
  auto normalized = [&](int64_t c, int64_t i) {
    return (input.floats[i] - mean.floats[c]) * rstd.floats[c];
  };
  forEachChannelElement(input, op.getChannelsLast(), [&](int64_t c, int64_t i) {
    dshift.floats[c] += grad.floats[i];
    dscale.floats[c] += grad.floats[i] * normalized(c, i);
  });
  forEachChannelElement(input, op.getChannelsLast(), [&](int64_t c, int64_t i) {
    double average =
        (dshift.floats[c] + normalized(c, i) * dscale.floats[c]) / count;
    dinput.floats[i] =
        scale.floats[c] * rstd.floats[c] * (grad.floats[i] - average);
  });
  return success();
}

void tmc::reference::addNorms(OpTable &table) {
  table.add<LayerNormOp>(layerNorm);
  table.add<RMSNormOp>(rmsNorm);
  table.add<SoftmaxOp>(softmax);
  table.add<GeluOp>(gelu);
  table.add<BatchNormOp>(batchNorm);
  table.add<BatchStatisticsOp>(batchStatistics);
  table.add<BatchNormGradOp>(batchNormGrad);
}
