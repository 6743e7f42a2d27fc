// Updates.cpp - gradients' norms, the loss's scale, and the optimizers' rules.

#include "compiler/reference/Interpreter.h"
#include "compiler/reference/Philox.h"
#include "dialects/train/Train.h"

#include <cmath>

using namespace mlir;
using namespace tmc::reference;
using namespace tmc::train;

static double squareSum(const Tensor &x) {
  double sum = 0;
  for (double value : x.floats)
    sum += value * value;
  return sum;
}

/// A scalar operand as a number, or `otherwise` if it is absent.
static double scalar(OpCall &call, Value operand, double otherwise = 0) {
  return operand ? call.in(operand).number(0) : otherwise;
}

static LogicalResult gradNorm(GradNormOp op, OpCall &call) {
  double sum = 0, maxNorm = op.getMaxNorm().convertToDouble();
  for (Value square : op.getSquares())
    sum += scalar(call, square);
  double scale = scalar(call, op.getScale(), 1);
  double norm = std::sqrt(sum) / scale;
  call.out(0).floats[0] = norm;
  double clip = maxNorm == 0 ? 1 : std::min(1.0, maxNorm / (norm + 1e-6));
  // A norm that isn't finite makes `clip` NaN, which skips the updates.
  call.out(1).floats[0] = std::isfinite(norm) ? clip / scale : NAN;
  return success();
}

static LogicalResult lossScale(LossScaleOp op, OpCall &call) {
  double scale = scalar(call, op.getScale());
  int64_t clean = call.in(op.getClean()).ints[0];
  int64_t count = call.in(op.getCount()).ints[0], step = 0;
  double interval = double(op.getInterval());
  if (std::isfinite(scalar(call, op.getNorm()))) {
    step = ++count;
    ++clean;
    if (interval > 0 && clean >= interval) {
      double grown = scale * op.getGrowth().convertToDouble();
      scale = std::isfinite(float(grown)) ? grown : scale;
      clean = 0;
    }
  } else {
    clean = 0;
    if (interval > 0)
      scale *= op.getBackoff().convertToDouble();
  }
  call.out(0).floats[0] = scale;
  call.out(1).ints[0] = clean;
  call.out(2).ints[0] = count;
  call.out(3).ints[0] = step;
  return success();
}

/// If the update of `op` is skipped, returns true and writes the results: first
/// the unchanged `kept` operands and copy, then the square sum of the gradient.
template <typename Op>
static bool isSkipped(Op op, OpCall &call, SmallVector<Value> kept) {
  if (scalar(call, op.getStep()) != 0 &&
      !std::isnan(scalar(call, op.getClip(), 1)))
    return false;
  if (op.getCopy())
    kept.push_back(op.getCopy());
  for (auto [i, value] : llvm::enumerate(kept))
    call.out(i) = call.in(value);
  call.out(kept.size()).floats[0] = squareSum(call.in(op.getGrad()));
  return true;
}

/// The last results of every update: the copy of the new parameter, which its
/// type rounds, and the square sum of the gradient.
template <typename Op> static void finish(Op op, OpCall &call) {
  unsigned last = op->getNumResults() - 1;
  if (op.getCopy())
    call.out(last - 1).floats = call.out(0).floats;
  call.out(last).floats[0] = squareSum(call.in(op.getGrad()));
}

namespace {

/// Stochastic rounding to bf16, with the draws of an update.
class ChanceRounding {
public:
  ChanceRounding(std::optional<uint64_t> stream, double step)
      : stream(uint32_t(stream.value_or(0))), step(uint32_t(int64_t(step))) {}

  /// Writes `x`, value `which` of element `i`, to result `to`.
  void put(OpCall &call, unsigned to, int64_t i, double x, int which) const {
    Tensor &out = call.out(to);
    bool isNarrow = out.element == Element::BF16 && call.isRounded(out.element);
    out.floats[i] = isNarrow ? rounded(x, i, which) : x;
  }

private:
  uint32_t stream, step;

  double rounded(double x, int64_t i, int which) const {
    if (!std::isfinite(x) || x == 0)
      return x;
    // The unit of bf16's last place: 8 digits, at least 2^-133.
    int exponent;
    std::frexp(x, &exponent);
    double unit = std::ldexp(1.0, std::max(exponent - 8, -133));
    double count = std::abs(x) / unit, lower = std::floor(count);
    uint64_t quad = 3 * uint64_t(i / 8) + which;
    std::array<uint32_t, 4> words = philox4x32(
        {uint32_t(quad), uint32_t(quad >> 32), stream, step}, {0x726f756e, 0});
    uint32_t word = words[i % 8 / 2];
    uint32_t chance = i % 2 ? word >> 16 : word & 0xffff;
    bool isUp = count - lower + chance / 65536.0 >= 1;
    return std::copysign((lower + isUp) * unit, x);
  }
};

} // namespace

/// AdamW of one element. `Op` is one of the ops with this rule.
template <typename Op> struct AdamWRule {
  double lr, clip, beta1, beta2, epsilon, decay, stepSize, rootCorrection;
  ChanceRounding rounding;

  AdamWRule(Op op, OpCall &call)
      : lr(scalar(call, op.getLr())), clip(scalar(call, op.getClip(), 1)),
        beta1(op.getBeta1().convertToDouble()),
        beta2(op.getBeta2().convertToDouble()),
        epsilon(op.getEpsilon().convertToDouble()),
        decay(op.getWeightDecay().convertToDouble()),
        rounding(op.getStream(), scalar(call, op.getStep())) {
    double t = scalar(call, op.getStep());
    stepSize = lr / (1 - std::pow(beta1, t));
    rootCorrection = std::sqrt(1 - std::pow(beta2, t));
  }
  void update(double grad, double &p, double &m, double &v) const {
    double g = grad * clip;
    p *= 1 - lr * decay;
    m += (g - m) * (1 - beta1);
    v = v * beta2 + (1 - beta2) * g * g;
    p -= stepSize * m / (std::sqrt(v) / rootCorrection + epsilon);
  }
};

static LogicalResult adamW(AdamWOp op, OpCall &call) {
  if (isSkipped(op, call, {op.getParam(), op.getM(), op.getV()}))
    return success();
  AdamWRule<AdamWOp> rule(op, call);
  const Tensor &grad = call.in(op.getGrad()), &param = call.in(op.getParam());
  const Tensor &oldM = call.in(op.getM()), &oldV = call.in(op.getV());
  for (int64_t i = 0; i < grad.size(); ++i) {
    double m = oldM.floats[i], v = oldV.floats[i], p = param.floats[i];
    rule.update(grad.floats[i], p, m, v);
    rule.rounding.put(call, 0, i, p, 0);
    rule.rounding.put(call, 1, i, m, 1);
    rule.rounding.put(call, 2, i, v, 2);
  }
  finish(op, call);
  return success();
}

/// The values of 8-bit codes, in order: the midpoints of 2^i equal parts (of
/// 2^(i+1) without a sign) of [0.1, 1] times 10^(i-6), i = 0..6, with both
/// signs or one; 0; 1.
static std::vector<double> dynamicCodes(bool isSigned) {
  std::vector<double> values{0, 1};
  for (int i = 0; i < 7; ++i)
    for (int k = 0, parts = (isSigned ? 1 : 2) << i; k < parts; ++k) {
      double value = (0.1 + 0.9 * (k + 0.5) / parts) * std::pow(10.0, i - 6);
      values.push_back(value);
      if (isSigned)
        values.push_back(-value);
    }
  llvm::sort(values);
  return values;
}

/// The moments of codes and maxima, and back.
static std::vector<double> decode(ArrayRef<double> values, const Tensor &codes,
                                  const Tensor &maxima) {
  std::vector<double> moments(codes.size());
  for (int64_t i = 0; i < codes.size(); ++i)
    moments[i] =
        values[uint8_t(codes.ints[i])] * maxima.floats[i / AdamW8bitOp::kBlock];
  return moments;
}
static void encode(ArrayRef<double> values, ArrayRef<double> moments,
                   Tensor &codes, Tensor &maxima) {
  for (int64_t i = 0; i < int64_t(moments.size()); ++i) {
    double &largest = maxima.floats[i / AdamW8bitOp::kBlock];
    largest = std::max(largest, std::abs(moments[i]));
  }
  for (int64_t i = 0; i < int64_t(moments.size()); ++i) {
    double largest = maxima.floats[i / AdamW8bitOp::kBlock];
    double x = largest > 0 ? moments[i] / largest : 0;
    int64_t above = llvm::lower_bound(values, x) - values.begin();
    int64_t below = std::max<int64_t>(above - 1, 0);
    codes.ints[i] =
        int8_t(values[above] - x < x - values[below] ? above : below);
  }
}

/// Updates params and moments only where their gradient is finite.
template <typename Rule>
static void updateFinite(Rule &rule, OpCall &call, const Tensor &param,
                         const Tensor &grad, std::vector<double> &m,
                         std::vector<double> &v) {
  call.out(0) = param;
  for (int64_t i = 0; i < grad.size(); ++i)
    if (std::isfinite(grad.floats[i])) {
      double p = call.out(0).floats[i];
      rule.update(grad.floats[i], p, m[i], v[i]);
      rule.rounding.put(call, 0, i, p, 0);
    }
}

static LogicalResult adamW8bit(AdamW8bitOp op, OpCall &call) {
  if (isSkipped(
          op, call,
          {op.getParam(), op.getM(), op.getMMax(), op.getV(), op.getVMax()}))
    return success();
  AdamWRule<AdamW8bitOp> rule(op, call);
  std::vector<double> mValues = dynamicCodes(true),
                      vValues = dynamicCodes(false);
  std::vector<double> m =
      decode(mValues, call.in(op.getM()), call.in(op.getMMax()));
  std::vector<double> v =
      decode(vValues, call.in(op.getV()), call.in(op.getVMax()));
  updateFinite(rule, call, call.in(op.getParam()), call.in(op.getGrad()), m, v);
  encode(mValues, m, call.out(1), call.out(2));
  encode(vValues, v, call.out(3), call.out(4));
  finish(op, call);
  return success();
}

/// The values of codes of 4 bits, in order. With a sign: the midpoints of 2^i
/// equal parts of [0.1, 1] times 10^(i-2), i = 0..2, their negatives, 0 and 1;
/// without: the sixteenths from the first to the last.
static std::vector<double> nibbleCodes(bool isSigned) {
  std::vector<double> values;
  if (!isSigned) {
    for (int k = 1; k <= 16; ++k)
      values.push_back(k / 16.0);
    return values;
  }
  values = {0, 1};
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 1 << i; ++k) {
      double value = (0.1 + 0.9 * (k + 0.5) / (1 << i)) * std::pow(10.0, i - 2);
      values.insert(values.end(), {value, -value});
    }
  llvm::sort(values);
  return values;
}

/// The moments of codes of 4 bits and scales, and back.
static std::vector<double> unpack(ArrayRef<double> values, const Tensor &codes,
                                  const Tensor &scales) {
  std::vector<double> moments;
  for (int64_t i = 0; i < codes.size(); ++i) {
    double scale = scales.floats[2 * i / AdamW4bitOp::kBlock];
    auto byte = uint8_t(codes.ints[i]);
    moments.push_back(values[byte >> 4] * scale);
    moments.push_back(values[byte & 15] * scale);
  }
  return moments;
}
static void pack(ArrayRef<double> values, ArrayRef<double> moments,
                 Tensor &codes, Tensor &scales) {
  for (int64_t i = 0; i < scales.size(); ++i) {
    double largest = 1e-12;
    for (double x : moments.slice(i * AdamW4bitOp::kBlock, AdamW4bitOp::kBlock))
      largest = std::max(largest, std::abs(x));
    scales.floats[i] = largest;
  }
  auto code = [&](int64_t i) {
    double x = moments[i] / scales.floats[i / AdamW4bitOp::kBlock];
    int nearest = 0;
    for (int c = 1; c < int(values.size()); ++c)
      nearest = std::abs(values[c] - x) <= std::abs(values[nearest] - x)
                    ? c
                    : nearest;
    return nearest;
  };
  for (int64_t i = 0; i < codes.size(); ++i)
    codes.ints[i] = int8_t(code(2 * i) << 4 | code(2 * i + 1));
}

static LogicalResult adamW4bit(AdamW4bitOp op, OpCall &call) {
  if (isSkipped(op, call,
                {op.getParam(), op.getM(), op.getMScale(), op.getV(),
                 op.getVScale()}))
    return success();
  AdamWRule<AdamW4bitOp> rule(op, call);
  std::vector<double> mValues = nibbleCodes(true), vValues = nibbleCodes(false);
  std::vector<double> m =
      unpack(mValues, call.in(op.getM()), call.in(op.getMScale()));
  std::vector<double> v =
      unpack(vValues, call.in(op.getV()), call.in(op.getVScale()));
  updateFinite(rule, call, call.in(op.getParam()), call.in(op.getGrad()), m, v);
  pack(mValues, m, call.out(1), call.out(2));
  pack(vValues, v, call.out(3), call.out(4));
  finish(op, call);
  return success();
}

static double rootMeanSquare(ArrayRef<double> x) {
  double sum = 0;
  for (double value : x)
    sum += value * value;
  return std::sqrt(sum / double(x.size()));
}

/// The second moments of Adafactor's elements; writes the new factors of the
/// moments to results.
static std::vector<double> adafactorMoments(AdafactorOp op, OpCall &call,
                                            ArrayRef<double> grad,
                                            double weight) {
  ArrayRef<int64_t> shape = call.in(op.getParam()).shape;
  std::vector<double> moments;
  if (shape.size() < 2) {
    const Tensor &old = call.in(op.getMoments()[0]);
    for (auto [i, g] : llvm::enumerate(grad))
      moments.push_back(old.floats[i] + weight * (g * g - old.floats[i]));
    call.out(1).floats = moments;
    return moments;
  }
  int64_t rows = shape[shape.size() - 2], columns = shape.back();
  Tensor &row = call.out(1), &column = call.out(2);
  row = call.in(op.getMoments()[0]);
  column = call.in(op.getMoments()[1]);
  for (double &value : row.floats)
    value *= 1 - weight;
  for (double &value : column.floats)
    value *= 1 - weight;
  for (auto [i, g] : llvm::enumerate(grad)) {
    int64_t matrix = i / (rows * columns);
    row.floats[i / columns] += weight * g * g / double(columns);
    column.floats[matrix * columns + i % columns] +=
        weight * g * g / double(rows);
  }
  std::vector<double> means(row.size() / rows);
  for (int64_t i = 0; i < row.size(); ++i)
    means[i / rows] += row.floats[i] / double(rows);
  double least = op.getEps1().convertToDouble();
  for (int64_t i = 0; i < int64_t(grad.size()); ++i) {
    int64_t matrix = i / (rows * columns);
    moments.push_back(row.floats[i / columns] *
                      column.floats[matrix * columns + i % columns] /
                      std::max(means[matrix], least));
  }
  return moments;
}

static LogicalResult adafactor(AdafactorOp op, OpCall &call) {
  SmallVector<Value> kept{op.getParam()};
  llvm::append_range(kept, op.getMoments());
  if (isSkipped(op, call, kept))
    return success();
  const Tensor &param = call.in(op.getParam());
  double lr = scalar(call, op.getLr()), t = scalar(call, op.getStep());
  double clip = scalar(call, op.getClip(), 1);
  double least = op.getEps1().convertToDouble();
  std::vector<double> update = call.in(op.getGrad()).floats;
  for (double &g : update)
    g *= clip;
  std::vector<double> moments = adafactorMoments(
      op, call, update, std::pow(t, op.getBeta2Decay().convertToDouble()));
  for (auto [u, moment] : llvm::zip_equal(update, moments))
    u /= std::sqrt(std::max(moment, least * least));
  double alpha =
      std::max(op.getEps2().convertToDouble(), rootMeanSquare(param.floats)) *
      std::min(lr, 1 / std::sqrt(t));
  alpha /= std::max(1.0, rootMeanSquare(update) / op.getD().convertToDouble());
  double decay = 1 - lr * op.getWeightDecay().convertToDouble();
  ChanceRounding rounding(op.getStream(), t);
  for (int64_t i = 0; i < param.size(); ++i)
    rounding.put(call, 0, i, param.floats[i] * decay - alpha * update[i], 0);
  finish(op, call);
  return success();
}

static LogicalResult lion(LionOp op, OpCall &call) {
  if (isSkipped(op, call, {op.getParam(), op.getM()}))
    return success();
  const Tensor &grad = call.in(op.getGrad()), &param = call.in(op.getParam());
  const Tensor &oldM = call.in(op.getM());
  double lr = scalar(call, op.getLr()), clip = scalar(call, op.getClip(), 1);
  double beta1 = op.getBeta1().convertToDouble();
  double beta2 = op.getBeta2().convertToDouble();
  double decay = op.getWeightDecay().convertToDouble();
  ChanceRounding rounding(op.getStream(), scalar(call, op.getStep()));
  for (int64_t i = 0; i < grad.size(); ++i) {
    double g = grad.floats[i] * clip, m = oldM.floats[i];
    double blend = beta1 * m + (1 - beta1) * g;
    double sign = double(blend > 0) - double(blend < 0);
    rounding.put(call, 0, i, param.floats[i] * (1 - lr * decay) - lr * sign, 0);
    rounding.put(call, 1, i, beta2 * m + (1 - beta2) * g, 1);
  }
  finish(op, call);
  return success();
}

static LogicalResult sgd(SGDOp op, OpCall &call) {
  SmallVector<Value> kept{op.getParam()};
  if (op.getMomentumBuffer())
    kept.push_back(op.getMomentumBuffer());
  if (isSkipped(op, call, kept))
    return success();
  const Tensor &grad = call.in(op.getGrad());
  const Tensor *buffer = call.inOrNull(op.getMomentumBuffer());
  double lr = scalar(call, op.getLr()), t = scalar(call, op.getStep());
  double clip = scalar(call, op.getClip(), 1);
  double momentum = op.getMomentum().convertToDouble();
  double dampening = op.getDampening().convertToDouble();
  double decay = op.getWeightDecay().convertToDouble();
  const Tensor &param = call.in(op.getParam());
  ChanceRounding rounding(op.getStream(), t);
  bool nesterov = op.getNesterov();
  for (int64_t i = 0; i < grad.size(); ++i) {
    double p = param.floats[i];
    double g = grad.floats[i] * clip + decay * p;
    if (buffer) {
      double m =
          t == 1 ? g : momentum * buffer->floats[i] + (1 - dampening) * g;
      rounding.put(call, 1, i, m, 1);
      g = nesterov ? g + momentum * m : m;
    }
    rounding.put(call, 0, i, p - lr * g, 0);
  }
  finish(op, call);
  return success();
}

void tmc::reference::addUpdates(OpTable &table) {
  table.add<SquareSumOp>([](SquareSumOp op, OpCall &call) {
    call.out(0).floats[0] = squareSum(call.in(op.getGrad()));
    return success();
  });
  table.add<GradNormOp>(gradNorm);
  table.add<LossScaleOp>(lossScale);
  table.add<AdafactorOp>(adafactor);
  table.add<AdamWOp>(adamW);
  table.add<AdamW4bitOp>(adamW4bit);
  table.add<AdamW8bitOp>(adamW8bit);
  table.add<LionOp>(lion);
  table.add<SGDOp>(sgd);
}
