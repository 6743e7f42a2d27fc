// Attention.cpp - attention row by row, with all probabilities of a row in
// memory.

#include "compiler/reference/Interpreter.h"
#include "compiler/reference/Philox.h"
#include "dialects/nn/AttentionFill.h"
#include "dialects/nn/NN.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tmc::nn;
using namespace tmc::reference;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// If the lse of a query is at most this, the query sees no key except those
/// that a mask's numbers hide.
constexpr double kHiddenScore = -5000;

namespace {
/// A score, and its derivatives by scale * q k^T, capped, and by the bias.
struct Score {
  double value, slope, onBias;
};

/// The operands and attributes that attention and its gradient share, with
/// computed indices.
template <typename OpTy> struct Attention {
  const Tensor &q, &k, &v;
  const Tensor *mask, *bias, *segments, *prefix, *seed, *samples;
  double scale, softcap, dropout, fill;
  tmc::FillKind fillKind;
  bool isDouble;
  bool causal;
  int64_t window;
  int64_t stream;
  int64_t batch, queries, keys, heads, groups, depth;

  Attention(OpTy op, OpCall &call)
      : q(call.in(op.getQ())), k(call.in(op.getK())), v(call.in(op.getV())),
        mask(call.inOrNull(op.getMask())), bias(call.inOrNull(op.getBias())),
        segments(call.inOrNull(op.getGroups())),
        prefix(call.inOrNull(op.getPrefix())),
        seed(call.inOrNull(op.getSeed())),
        samples(call.inOrNull(op.getSamples())),
        scale(op.getScale().convertToDouble()),
        softcap(op.getSoftcap().convertToDouble()),
        dropout(op.getDropout().convertToDouble()), fill(fillOf(op).number),
        fillKind(fillOf(op).kind),
        isDouble(cast<RankedTensorType>(op.getQ().getType())
                     .getElementType()
                     .isF64()),
        causal(op.getCausal()), window(op.getWindow()), stream(op.getStream()),
        batch(q.shape[0]), queries(q.shape[1]), keys(k.shape[1]),
        heads(q.shape[2]), groups(k.shape[2]), depth(q.shape[3]) {}

  int64_t query(int64_t b, int64_t t, int64_t h) const {
    return linearIndex({b, t, h, 0}, q.shape);
  }
  int64_t key(int64_t b, int64_t s, int64_t h) const {
    return linearIndex({b, s, h / (heads / groups), 0}, k.shape);
  }

  bool sees(int64_t b, int64_t t, int64_t s) const {
    int64_t at = t + keys - queries;
    auto ofSample = [&](const Tensor &x, int64_t i) {
      int64_t size = x.size() / x.shape[0];
      return x.ints[(x.shape[0] == 1 ? 0 : b) * size + i];
    };
    if (causal && s > at && !(prefix && s < ofSample(*prefix, 0)))
      return false;
    if (window > 0 && std::abs(s - at) >= window)
      return false;
    return !segments || ofSample(*segments, s) == ofSample(*segments, at);
  }

  /// The derivative of the capped score by the score.
  double slope(double score) const {
    double t = softcap > 0 ? std::tanh(score / softcap) : 0;
    return 1 - t * t;
  }

  /// scale * q k^T for one query and key.
  double product(int64_t b, int64_t h, int64_t t, int64_t s) const {
    double sum = 0;
    for (int64_t d = 0; d < depth; ++d)
      sum += q.floats[query(b, t, h) + d] * k.floats[key(b, s, h) + d];
    return sum * scale;
  }

  /// The element of a mask or bias that belongs to a score.
  static int64_t onScore(const Tensor &x, int64_t b, int64_t h, int64_t t,
                         int64_t s) {
    auto along = [&](int64_t dim, int64_t i) {
      return x.shape[dim] == 1 ? 0 : i;
    };
    return linearIndex({along(0, b), along(1, h), along(2, t), s}, x.shape);
  }

  /// The scores of one query: -inf for keys that the query doesn't see.
  std::vector<Score> scores(int64_t b, int64_t h, int64_t t) const {
    std::vector<Score> row;
    for (int64_t s = 0; s < keys; ++s) {
      double score = product(b, h, t, s);
      if (softcap > 0)
        score = softcap * std::tanh(score / softcap);
      if (mask && mask->isFloat())
        score += mask->floats[onScore(*mask, b, h, t, s)];
      if (bias)
        score += bias->floats[onScore(*bias, b, h, t, s)];
      row.push_back({isHidden(b, h, t, s) ? -kInfinity : score, 1, 1});
    }
    return row;
  }

  bool isHidden(int64_t b, int64_t h, int64_t t, int64_t s) const {
    return !sees(b, t, s) || (mask && !mask->isFloat() &&
                              !mask->ints[onScore(*mask, b, h, t, s)]);
  }

  /// True if a query may have probabilities although it sees no key, or only
  /// keys that a mask's numbers hide.
  bool mayHideRows() const { return fill != 0 || (mask && mask->isFloat()); }

  /// A sum of scores with the model's rounding, which loses digits of the score
  /// next to a large number.
  double sum(double x, double y) const {
    return isDouble ? x + y : double(float(x) + float(y));
  }

  /// The scores of a query that sees no key.
  std::vector<Score> filledScores(int64_t b, int64_t h, int64_t t) const {
    std::vector<Score> row;
    for (int64_t s = 0; s < keys; ++s) {
      Score score{product(b, h, t, s), 1, 1};
      if (softcap > 0)
        score.value = softcap * std::tanh(score.value / softcap);
      bool hidden = isHidden(b, h, t, s);
      if (hidden && fill == 0) {
        row.push_back({-kInfinity, 0, 0});
        continue;
      }
      if (hidden && fillKind == tmc::FillKind::Adds)
        score.value = sum(score.value, fill);
      else if (hidden)
        score = {fill, 0, 1};
      if (mask && mask->isFloat())
        score.value =
            sum(score.value, mask->floats[onScore(*mask, b, h, t, s)]);
      if (bias)
        score.value =
            sum(score.value, bias->floats[onScore(*bias, b, h, t, s)]);
      if (hidden && fillKind == tmc::FillKind::ReplacesAll)
        score = {fill, 0, 0};
      row.push_back(score);
    }
    return row;
  }

  /// The factor by which dropout multiplies the probability of key `s`.
  double keep(int64_t b, int64_t h, int64_t t, int64_t s) const {
    if (dropout == 0)
      return 1;
    // `samples` may count several rows of the batch as one sample.
    int64_t rows = batch / samples->size();
    int64_t row = samples->ints[b / rows] * rows + b % rows;
    int64_t index = ((row * heads + h) * queries + t) * keys + s;
    double u = uniform(seed->ints[0], seed->ints[1], stream, index);
    return u >= dropout ? 1 / (1 - dropout) : 0;
  }

  void
  forEachRow(llvm::function_ref<void(int64_t, int64_t, int64_t)> visit) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < queries; ++t)
          visit(b, h, t);
  }
};
} // namespace

static double logSumExp(const std::vector<Score> &row) {
  double largest = -kInfinity, sum = 0;
  for (const Score &score : row)
    largest = std::max(largest, score.value);
  if (largest == -kInfinity)
    return -kInfinity; // A row that sees no key.
  for (const Score &score : row)
    sum += std::exp(score.value - largest);
  return largest + std::log(sum);
}

/// Turns scores into probabilities, all zero in a row that sees no key.
static void softmax(std::vector<Score> &row) {
  double largest = -kInfinity, sum = 0;
  for (const Score &score : row)
    largest = std::max(largest, score.value);
  for (Score &score : row)
    sum += score.value =
        largest == -kInfinity ? 0 : std::exp(score.value - largest);
  for (Score &score : row)
    score.value = sum > 0 ? score.value / sum : 0;
}

static LogicalResult attention(AttentionOp op, OpCall &call) {
  Attention<AttentionOp> a(op, call);
  Tensor &out = call.out(0), &lses = call.out(1);
  a.forEachRow([&](int64_t b, int64_t h, int64_t t) {
    std::vector<Score> row = a.scores(b, h, t);
    double lse = logSumExp(row);
    if (a.mayHideRows() && lse <= kHiddenScore) {
      lse = -kInfinity;
      row = a.filledScores(b, h, t);
    }
    lses.floats[linearIndex({b, h, t}, lses.shape)] = lse;
    softmax(row);
    for (int64_t s = 0; s < a.keys; ++s)
      for (int64_t d = 0; d < a.depth; ++d)
        out.floats[a.query(b, t, h) + d] +=
            row[s].value * a.keep(b, h, t, s) * a.v.floats[a.key(b, s, h) + d];
  });
  return success();
}

/// With probabilities p, their dropout factors m and g the gradient of out:
/// dv = (p m)^T g; dp = m (g v^T); dscore = p (dp - g . out), since the sum of
/// p dp over a row is g . out; dbias = dscore; times the slope of the cap,
/// dq = scale dscore k; dk = scale dscore^T q.
template <typename OpTy>
static void gradients(OpTy op, OpCall &call, Tensor &dq, Tensor &dk,
                      Tensor &dv) {
  Attention<OpTy> a(op, call);
  const Tensor &out = call.in(op.getOut()), &grad = call.in(op.getGrad());
  const Tensor &lses = call.in(op.getLse());
  a.forEachRow([&](int64_t b, int64_t h, int64_t t) {
    double lse = lses.floats[linearIndex({b, h, t}, lses.shape)];
    bool isFilled = a.mayHideRows() && lse == -kInfinity;
    std::vector<Score> row =
        isFilled ? a.filledScores(b, h, t) : a.scores(b, h, t);
    if (isFilled)
      softmax(row);
    else
      for (Score &score : row)
        score.value = lse == -kInfinity ? 0 : std::exp(score.value - lse);
    int64_t query = a.query(b, t, h);
    double mean = 0;
    for (int64_t d = 0; d < a.depth; ++d)
      mean += grad.floats[query + d] * out.floats[query + d];
    for (int64_t s = 0; s < a.keys; ++s) {
      int64_t key = a.key(b, s, h);
      double p = row[s].value, m = a.keep(b, h, t, s), dp = 0;
      for (int64_t d = 0; d < a.depth; ++d) {
        dp += m * grad.floats[query + d] * a.v.floats[key + d];
        dv.floats[key + d] += p * m * grad.floats[query + d];
      }
      double dscore = p * (dp - mean);
      if (a.bias)
        call.out(3).floats[a.onScore(*a.bias, b, h, t, s)] +=
            dscore * row[s].onBias;
      dscore *= row[s].slope * a.slope(a.product(b, h, t, s));
      for (int64_t d = 0; d < a.depth; ++d) {
        dq.floats[query + d] += a.scale * dscore * a.k.floats[key + d];
        dk.floats[key + d] += a.scale * dscore * a.q.floats[query + d];
      }
    }
  });
}

static LogicalResult attentionGrad(AttentionGradOp op, OpCall &call) {
  gradients(op, call, call.out(0), call.out(1), call.out(2));
  return success();
}

/// The heads of dq, dk and dv side by side.
static LogicalResult packedAttentionGrad(PackedAttentionGradOp op,
                                         OpCall &call) {
  Tensor parts[] = {call.in(op.getQ()), call.in(op.getK()), call.in(op.getV())};
  for (Tensor &part : parts)
    llvm::fill(part.floats, 0.0);
  gradients(op, call, parts[0], parts[1], parts[2]);
  Tensor &packed = call.out(0);
  const int64_t positions = packed.shape[0] * packed.shape[1];
  auto to = packed.floats.begin();
  for (int64_t position = 0; position < positions; ++position)
    for (const Tensor &part : parts) {
      const int64_t row = part.shape[2] * part.shape[3];
      to = std::copy_n(part.floats.begin() + position * row, row, to);
    }
  return success();
}

void tmc::reference::addAttention(OpTable &table) {
  table.add<AttentionOp>(attention);
  table.add<AttentionGradOp>(attentionGrad);
  table.add<PackedAttentionGradOp>(packedAttentionGrad);
}
