//===- AttentionTest.cpp - attention against a naive one in double --------===//
//
// The naive gradient is itself checked against finite differences of the naive
// forward pass.
//
//===----------------------------------------------------------------------===//

#include "PackedHeads.h"
#include "Testing.h"

#include "runtime/kernels/Attention.h"
#include "runtime/kernels/Philox.h"

#include <limits>

using namespace tmc;
using namespace tmc::test;

namespace {

using Doubles = std::vector<double>;

struct Case {
  AttentionParams p;
  Doubles q, k, v; // contiguous [B, T, H, D] and [B, S, G, D]
  Vector<float> mask;
  Vector<unsigned char> booleans;
  Doubles bias; // empty: none
  int64_t seed[2] = {0x123456789abcdef, 4};
  Vector<int64_t> samples;
  Vector<int64_t> groups, prefix; // empty: none
};

const int64_t *orNull(const Vector<int64_t> &x) {
  return x.empty() ? nullptr : x.data();
}

bool sees(const Case &c, int64_t b, int64_t t, int64_t s) {
  const AttentionParams &p = c.p;
  const int64_t at = t + p.keys - p.queries;
  if (p.causal && s > at &&
      (c.prefix.empty() || s >= c.prefix[size_t(b * p.prefixBatchStride)]))
    return false;
  if (p.window > 0 && std::abs(s - at) >= p.window)
    return false;
  const size_t row = size_t(b * p.groupsBatchStride);
  return c.groups.empty() ||
         c.groups[row + size_t(s)] == c.groups[row + size_t(at)];
}

bool keeps(const Case &c, int64_t b, int64_t h, int64_t t, int64_t s) {
  if (c.p.dropout == 0)
    return true;
  const Philox philox(c.seed, c.p.stream);
  const uint64_t e = uint64_t((h * c.p.queries + t) * c.p.keys + s);
  const uint64_t per = uint64_t(c.p.heads * c.p.queries * c.p.keys);
  const int64_t rows = std::max<int64_t>(1, c.p.rowsPerSample);
  const int64_t sample = c.samples[size_t(b / rows)] * rows + b % rows;
  return double(philox.uniformAt(uint64_t(sample) * per + e)) >= c.p.dropout;
}

size_t biasAt(const AttentionParams &p, int64_t b, int64_t h, int64_t t,
              int64_t s) {
  return size_t(b * p.biasBatchStride + h * p.biasHeadStride +
                t * p.biasQueryStride + s);
}

/// A score, and its derivatives by the capped product and by the bias.
struct Score {
  double value, slope = 1, onBias = 1;
};

/// A sum that loses digits of the score beside a large number, as in f32.
double sumOf(double x, double y) { return double(float(x) + float(y)); }

/// The scores of one row: of what it sees, or, with `filled`, of a row that
/// sees nothing.
std::vector<Score> scoresOf(const Case &c, const Doubles &q, const Doubles &k,
                            int64_t b, int64_t h, int64_t t, bool filled) {
  const AttentionParams &p = c.p;
  const int64_t g = h / (p.heads / p.kvHeads);
  std::vector<Score> scores;
  for (int64_t s = 0; s < p.keys; ++s) {
    double x = 0;
    for (int64_t d = 0; d < p.headDim; ++d)
      x += q[size_t(((b * p.queries + t) * p.heads + h) * p.headDim + d)] *
           k[size_t(((b * p.keys + s) * p.kvHeads + g) * p.headDim + d)];
    Score score{x * p.scale};
    if (p.softcap > 0) {
      const double capped = std::tanh(score.value / p.softcap);
      score = {p.softcap * capped, 1 - capped * capped};
    }
    const size_t at = size_t(b * p.maskBatchStride + h * p.maskHeadStride +
                             t * p.maskQueryStride + s);
    const bool isHidden =
        !sees(c, b, t, s) || (p.mask == MaskKind::Boolean && !c.booleans[at]);
    const bool replaces = isHidden && filled && p.fillKind != FillKind::Adds;
    if (replaces)
      score = {p.fill, 0};
    else if (isHidden && filled)
      score.value = sumOf(score.value, p.fill);
    auto add = [&](double number) {
      score.value = filled ? sumOf(score.value, number) : score.value + number;
    };
    if (p.mask == MaskKind::Additive)
      add(c.mask[at]);
    if (!c.bias.empty())
      add(c.bias[biasAt(p, b, h, t, s)]);
    if (replaces && p.fillKind == FillKind::ReplacesAll)
      score = {p.fill, 0, 0};
    if (isHidden && !(filled && p.fill != 0))
      score = {-INFINITY};
    scores.push_back(score);
  }
  return scores;
}

/// Probabilities before dropout of one row; the log-sum-exp of what it sees.
double row(const Case &c, const Doubles &q, const Doubles &k, int64_t b,
           int64_t h, int64_t t, Doubles &probability,
           std::vector<Score> *scores = nullptr) {
  std::vector<Score> own;
  double lse = 0;
  for (bool filled : {false, true}) {
    own = scoresOf(c, q, k, b, h, t, filled);
    double top = -INFINITY, sum = 0;
    for (const Score &x : own)
      top = std::max(top, x.value);
    probability.clear();
    for (const Score &x : own)
      probability.push_back(top == -INFINITY ? 0 : std::exp(x.value - top));
    for (double x : probability)
      sum += x;
    for (double &x : probability)
      x = sum > 0 ? x / sum : 0;
    if (filled)
      break;
    lse = sum > 0 ? top + std::log(sum) : -INFINITY;
    if (!mayHideRows(c.p) || lse > kHiddenScore)
      break;
    lse = -INFINITY;
  }
  if (scores)
    *scores = own;
  return lse;
}

void forward(const Case &c, const Doubles &q, const Doubles &k,
             const Doubles &v, Doubles &out, Doubles &lse) {
  const AttentionParams &p = c.p;
  out.assign(q.size(), 0);
  lse.assign(size_t(p.batch * p.heads * p.queries), 0);
  Doubles probability;
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t h = 0; h < p.heads; ++h)
      for (int64_t t = 0; t < p.queries; ++t) {
        const int64_t g = h / (p.heads / p.kvHeads);
        lse[size_t((b * p.heads + h) * p.queries + t)] =
            row(c, q, k, b, h, t, probability);
        for (int64_t s = 0; s < p.keys; ++s)
          if (keeps(c, b, h, t, s))
            for (int64_t d = 0; d < p.headDim; ++d)
              out[size_t(((b * p.queries + t) * p.heads + h) * p.headDim +
                         d)] +=
                  probability[size_t(s)] / (1 - p.dropout) *
                  v[size_t(((b * p.keys + s) * p.kvHeads + g) * p.headDim + d)];
      }
}

void backward(const Case &c, const Doubles &dout, Doubles &dq, Doubles &dk,
              Doubles &dv, Doubles &dbias) {
  const AttentionParams &p = c.p;
  dq.assign(c.q.size(), 0);
  dk.assign(c.k.size(), 0);
  dv.assign(c.v.size(), 0);
  dbias.assign(c.bias.size(), 0);
  Doubles probability;
  std::vector<Score> scores;
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t h = 0; h < p.heads; ++h)
      for (int64_t t = 0; t < p.queries; ++t) {
        const int64_t g = h / (p.heads / p.kvHeads);
        const size_t atQ =
            size_t(((b * p.queries + t) * p.heads + h) * p.headDim);
        row(c, c.q, c.k, b, h, t, probability, &scores);
        Doubles dp(size_t(p.keys), 0.0);
        double dot = 0;
        for (int64_t s = 0; s < p.keys; ++s) {
          const size_t atK =
              size_t(((b * p.keys + s) * p.kvHeads + g) * p.headDim);
          const double keep = keeps(c, b, h, t, s) ? 1 / (1 - p.dropout) : 0;
          for (size_t d = 0; d < size_t(p.headDim); ++d) {
            dp[size_t(s)] += keep * dout[atQ + d] * c.v[atK + d];
            dv[atK + d] += keep * probability[size_t(s)] * dout[atQ + d];
          }
          dot += dp[size_t(s)] * probability[size_t(s)];
        }
        for (int64_t s = 0; s < p.keys; ++s) {
          const size_t atK =
              size_t(((b * p.keys + s) * p.kvHeads + g) * p.headDim);
          const double onScore = probability[size_t(s)] * (dp[size_t(s)] - dot);
          if (!c.bias.empty())
            dbias[biasAt(p, b, h, t, s)] += onScore * scores[size_t(s)].onBias;
          const double ds = p.scale * onScore * scores[size_t(s)].slope;
          for (size_t d = 0; d < size_t(p.headDim); ++d) {
            dq[atQ + d] += ds * c.k[atK + d];
            dk[atK + d] += ds * c.q[atQ + d];
          }
        }
      }
}

Case makeCase(int64_t batch, int64_t heads, int64_t kvHeads, int64_t queries,
              int64_t keys, int64_t depth, bool causal, MaskKind mask,
              double dropout, bool perQuery = true) {
  Case c;
  c.p = {.type = DType::F32,
         .batch = batch,
         .heads = heads,
         .kvHeads = kvHeads,
         .queries = queries,
         .keys = keys,
         .headDim = depth,
         .q = {queries * heads * depth, heads * depth, depth},
         .k = {keys * kvHeads * depth, kvHeads * depth, depth},
         .v = {keys * kvHeads * depth, kvHeads * depth, depth},
         .causal = causal,
         .scale = 0.4,
         .softcap = 0,
         .window = 0,
         .mask = mask,
         .maskBatchStride = mask == MaskKind::None ? 0
                            : perQuery             ? queries * keys
                                                   : keys,
         .maskHeadStride = 0,
         .maskQueryStride = mask == MaskKind::None || !perQuery ? 0 : keys,
         .groupsBatchStride = 0,
         .prefixBatchStride = 0,
         .dropout = dropout,
         .rowsPerSample = 1,
         .stream = 9,
         .scratchBytes = 0};
  auto fill = [](Doubles &to, int64_t count, unsigned seed) {
    Floats from = randomFloats(count, seed);
    to.assign(from.get(), from.get() + count);
  };
  fill(c.q, batch * queries * heads * depth, 1);
  fill(c.k, batch * keys * kvHeads * depth, 2);
  fill(c.v, batch * keys * kvHeads * depth, 3);
  Floats m = randomFloats(batch * queries * keys, 4);
  c.mask.assign(m.get(), m.get() + m.size());
  for (float x : c.mask)
    c.booleans.push_back(x > -0.5f);
  for (int64_t b = 0; b < batch; ++b)
    c.samples.push_back(b + 5);
  return c;
}

/// `c` with a bias [B or 1, H or 1, T or 1, S].
Case withBias(Case c, bool perSample, bool perHead, bool perQuery) {
  AttentionParams &p = c.p;
  const int64_t rows = perQuery ? p.queries : 1;
  const int64_t heads = perHead ? p.heads : 1;
  p.bias = true;
  p.biasQueryStride = perQuery ? p.keys : 0;
  p.biasHeadStride = perHead ? rows * p.keys : 0;
  p.biasBatchStride = perSample ? heads * rows * p.keys : 0;
  Floats x =
      randomFloats((perSample ? p.batch : 1) * heads * rows * p.keys, 11);
  c.bias.assign(x.get(), x.get() + x.size());
  return c;
}

Floats narrow(const Doubles &from) {
  Floats to(int64_t(from.size()));
  for (size_t i = 0; i < from.size(); ++i)
    to[int64_t(i)] = float(from[i]);
  return to;
}

const void *maskOf(const Case &c) {
  return c.p.mask == MaskKind::None ? nullptr
         : c.p.mask == MaskKind::Additive
             ? static_cast<const void *>(c.mask.data())
             : c.booleans.data();
}

void check(const Case &c) {
  Doubles out, lse, dq, dk, dv, dbias;
  forward(c, c.q, c.k, c.v, out, lse);
  Floats grads = randomFloats(int64_t(out.size()), 8);
  const Doubles dout(grads.get(), grads.get() + grads.size());
  backward(c, dout, dq, dk, dv, dbias);

  Floats q = narrow(c.q), k = narrow(c.k), v = narrow(c.v);
  Floats bias = narrow(c.bias);
  Floats o(int64_t(out.size()), NAN), l(int64_t(lse.size()), NAN);
  runKernel<Attention>(1, c.p,
                       {q, k, v, maskOf(c), orNull(c.groups), orNull(c.prefix),
                        c.seed, c.samples.data(), bias},
                       {o, l});
  expectClose(o.get(), out, 1e-5, "out");
  for (size_t i = 0; i < lse.size(); ++i)
    if (std::isinf(lse[i]))
      EXPECT_EQ(l[int64_t(i)], -INFINITY);
    else
      EXPECT_NEAR(l[int64_t(i)], lse[i], 1e-5 * (1 + std::abs(lse[i])));
  // Results hold NaNs before: all of them must be written, none added to.
  Floats gq(q.size(), NAN), gk(k.size(), NAN), gv(v.size(), NAN);
  Floats gb(bias.size(), NAN);
  runKernel<AttentionGrad>(1, c.p,
                           {q, k, v, o, l, grads, maskOf(c), orNull(c.groups),
                            orNull(c.prefix), c.seed, c.samples.data(), bias},
                           {gq, gk, gv, gb});
  expectClose(gq.get(), dq, 3e-5, "dq");
  expectClose(gk.get(), dk, 3e-5, "dk");
  expectClose(gv.get(), dv, 3e-5, "dv");
  expectClose(gb.get(), dbias, 3e-5, "dbias");

  Floats o2(o.size()), l2(l.size());
  Floats gq2(q.size(), NAN), gk2(k.size(), NAN), gv2(v.size(), NAN);
  Floats gb2(bias.size(), NAN);
  runKernel<Attention>(2, c.p,
                       {q, k, v, maskOf(c), orNull(c.groups), orNull(c.prefix),
                        c.seed, c.samples.data(), bias},
                       {o2, l2});
  runKernel<AttentionGrad>(2, c.p,
                           {q, k, v, o, l, grads, maskOf(c), orNull(c.groups),
                            orNull(c.prefix), c.seed, c.samples.data(), bias},
                           {gq2, gk2, gv2, gb2});
  EXPECT_TRUE(o.sameBits(o2) && l.sameBits(l2));
  EXPECT_TRUE(gq.sameBits(gq2) && gk.sameBits(gk2) && gv.sameBits(gv2));
  EXPECT_TRUE(gb.sameBits(gb2));
  if (!test::canPack(c.p))
    return;
  AttentionParams packed = c.p;
  packed.packed = true;
  Floats all(test::packedElements(c.p), NAN);
  runKernel<AttentionGrad>(2, packed,
                           {q, k, v, o, l, grads, maskOf(c), orNull(c.groups),
                            orNull(c.prefix), c.seed, c.samples.data()},
                           {all});
  EXPECT_TRUE(test::isPackedOf(c.p, all.get(), gq.get(), gk.get(), gv.get()));
}

} // namespace

TEST(Attention, TheNaiveGradientIsADerivative) {
  Case c = makeCase(2, 2, 1, 3, 5, 3, true, MaskKind::Additive, 0.3);
  Doubles out, lse, dq, dk, dv, dbias;
  Floats g = randomFloats(int64_t(c.q.size()), 8);
  const Doubles dout(g.get(), g.get() + g.size());
  backward(c, dout, dq, dk, dv, dbias);
  auto loss = [&] {
    forward(c, c.q, c.k, c.v, out, lse);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i)
      sum += out[i] * dout[i];
    return sum;
  };
  const double h = 1e-5;
  auto compare = [&](Doubles &x, const Doubles &dx) {
    for (size_t i = 0; i < x.size(); ++i) {
      const double at = x[i];
      x[i] = at + h;
      const double high = loss();
      x[i] = at - h;
      const double low = loss();
      x[i] = at;
      EXPECT_NEAR((high - low) / (2 * h), dx[i], 1e-8);
    }
  };
  compare(c.q, dq);
  compare(c.k, dk);
  compare(c.v, dv);
  // And so it is of a soft cap.
  c.p.softcap = 0.7;
  backward(c, dout, dq, dk, dv, dbias);
  compare(c.q, dq);
  compare(c.k, dk);
  compare(c.v, dv);
  // And of biases.
  for (bool perSample : {false, true})
    for (bool perHead : {false, true})
      for (bool perQuery : {false, true}) {
        c = withBias(c, perSample, perHead, perQuery);
        backward(c, dout, dq, dk, dv, dbias);
        compare(c.bias, dbias);
        compare(c.q, dq);
      }
}

TEST(Attention, PlainShapes) {
  // Around the panels: 14 keys, 32 queries, 256 keys of a chunk.
  check(makeCase(1, 1, 1, 1, 1, 1, false, MaskKind::None, 0));
  check(makeCase(2, 3, 3, 33, 47, 20, false, MaskKind::None, 0));
  check(makeCase(1, 2, 2, 64, 64, 64, false, MaskKind::None, 0));
  check(makeCase(1, 1, 1, 40, 300, 33, false, MaskKind::None, 0));
}

TEST(Attention, Causal) {
  check(makeCase(1, 2, 2, 64, 64, 64, true, MaskKind::None, 0));
  check(makeCase(1, 1, 1, 570, 570, 16, true, MaskKind::None, 0));
  check(makeCase(1, 2, 2, 20, 50, 8, true, MaskKind::None, 0));
  // The first rows see nothing; in the second case a whole panel of them.
  check(makeCase(1, 2, 2, 50, 20, 8, true, MaskKind::None, 0));
  check(makeCase(1, 2, 2, 80, 20, 8, true, MaskKind::None, 0));
}

TEST(Attention, Masks) {
  check(makeCase(2, 2, 2, 35, 41, 16, false, MaskKind::Additive, 0));
  check(makeCase(2, 2, 2, 35, 41, 16, true, MaskKind::Additive, 0));
  check(makeCase(2, 2, 2, 35, 41, 16, false, MaskKind::Boolean, 0));
  check(makeCase(2, 2, 2, 35, 41, 16, false, MaskKind::Additive, 0, false));
  check(makeCase(2, 2, 2, 35, 41, 16, false, MaskKind::Boolean, 0, false));
  Case nothing = makeCase(1, 1, 1, 3, 4, 4, false, MaskKind::Boolean, 0);
  for (size_t s = 0; s < 4; ++s)
    nothing.booleans[4 + s] = 0; // query 1 attends nowhere
  check(nothing);
}

static Case with(Case c, double softcap, int64_t window) {
  c.p.softcap = softcap;
  c.p.window = window;
  return c;
}

TEST(Attention, SoftCaps) {
  check(with(makeCase(2, 2, 2, 35, 41, 16, false, MaskKind::None, 0), 0.5, 0));
  check(with(makeCase(1, 2, 1, 64, 64, 24, true, MaskKind::Additive, 0), 2, 0));
  check(with(makeCase(1, 2, 2, 40, 300, 16, false, MaskKind::Boolean, 0.2), 30,
             0));
}

TEST(Attention, Windows) {
  // Within a panel, over several, and over chunks; one key alone.
  for (int64_t window : {1, 5, 40, 700})
    for (bool causal : {false, true}) {
      check(with(makeCase(1, 2, 2, 70, 70, 8, causal, MaskKind::None, 0), 0,
                 window));
      // Over chunks of keys, and once of queries.
      const int64_t queries = causal && window == 40 ? 600 : 90;
      check(with(makeCase(1, 1, 1, queries, 600, 4, causal, MaskKind::None, 0),
                 0, window));
      check(with(makeCase(1, 2, 1, 20, 330, 8, causal, MaskKind::None, 0.3), 0,
                 window));
    }
  // The first queries stand before all keys.
  check(with(makeCase(1, 2, 2, 50, 20, 8, false, MaskKind::None, 0), 0, 4));
  check(with(makeCase(2, 2, 2, 35, 41, 16, true, MaskKind::Additive, 0), 3, 6));
}

TEST(Attention, Groups) {
  for (bool causal : {false, true})
    for (bool shared : {false, true}) {
      Case c = makeCase(3, 2, 1, 60, 75, 8, causal, MaskKind::None, 0.1);
      for (int64_t i = 0; i < (shared ? 1 : 3) * 75; ++i)
        c.groups.push_back(i * i % 7 % 4 - 2); // in pieces, and not in order
      c.p.groupsBatchStride = shared ? 0 : 75;
      check(c);
    }
  Case packed = makeCase(1, 2, 2, 300, 300, 8, true, MaskKind::Boolean, 0);
  for (int64_t i = 0; i < 300; ++i)
    packed.groups.push_back(i / 90 + (int64_t(1) << 40));
  check(with(packed, 0, 20));
}

TEST(Attention, Prefixes) {
  Case c = makeCase(3, 2, 2, 70, 70, 8, true, MaskKind::None, 0);
  c.prefix = {0, 33, 70};
  c.p.prefixBatchStride = 1;
  check(c);
  check(with(c, 0, 10));
  Case shared = makeCase(2, 2, 2, 50, 300, 8, true, MaskKind::None, 0.2);
  shared.prefix = {280};
  check(shared);
  Case early = makeCase(1, 2, 2, 50, 20, 8, true, MaskKind::None, 0);
  early.prefix = {7}; // Rows that stand before all keys see these.
  check(early);
}

TEST(Attention, Biases) {
  // Several chunks or tiles of keys.
  const int64_t several = kBackend == Backend::Cpu ? 300 : 70;
  for (bool perSample : {false, true})
    for (bool perHead : {false, true})
      for (bool perQuery : {false, true}) {
        auto biased = [&](const Case &c) {
          check(withBias(c, perSample, perHead, perQuery));
        };
        biased(makeCase(3, 4, 2, 35, 41, 8, true, MaskKind::Boolean, 0.2));
        if (perSample == perHead)
          biased(with(
              makeCase(1, 2, 2, 20, several, 8, false, MaskKind::Additive, 0),
              0.7, 0));
        if (perSample != perQuery)
          biased(with(makeCase(2, 2, 1, 70, 70, 4, true, MaskKind::None, 0), 0,
                      9));
      }
  // Many samples, as windows of pictures: slices of several, and the last one
  // shorter.
  check(withBias(makeCase(70, 3, 3, 9, 9, 8, false, MaskKind::None, 0), false,
                 true, true));
  // The first queries see nothing.
  check(withBias(makeCase(2, 2, 2, 50, 20, 8, true, MaskKind::None, 0), false,
                 true, true));
}

/// `c` with keys of the first samples hidden by a finite number.
static Case filled(Case c, double fill, FillKind kind) {
  c.p.fill = fill;
  c.p.fillKind = kind;
  for (size_t i = 0; i < c.booleans.size() / 2; ++i)
    c.booleans[i] = i % 5 == 0;
  return c;
}

TEST(Attention, QueriesThatSeeNothing) {
  for (FillKind kind :
       {FillKind::Adds, FillKind::ReplacesScore, FillKind::ReplacesAll})
    for (double fill : {-16384.0, -3.4028234663852886e+38}) {
      // Left padding beside causality; no key of a sample.
      Case padded = filled(
          makeCase(2, 2, 1, 35, 35, 12, true, MaskKind::Boolean, 0, false),
          fill, kind);
      for (size_t s = 0; s < 7; ++s)
        padded.booleans[s] = 0;
      check(padded);
      for (size_t s = 0; s < 35; ++s)
        padded.booleans[35 + s] = 0;
      check(with(padded, 0.7, 9));
      check(withBias(padded, kind != FillKind::Adds, fill < -1e9,
                     kind == FillKind::ReplacesAll));
      // Queries before all keys.
      check(filled(makeCase(1, 2, 2, 25, 10, 8, true, MaskKind::None, 0.2),
                   fill, kind));
    }
  // A mask's numbers hide keys as well.
  for (double fill : {0.0, -1e9}) {
    Case numbers = filled(
        makeCase(2, 2, 1, 20, 20, 12, true, MaskKind::Additive, 0, false), fill,
        FillKind::ReplacesScore);
    for (size_t s = 0; s < 9; ++s)
      numbers.mask[s] = s % 2 ? -1e9f : -3e38f;
    check(withBias(numbers, false, true, false));
  }
}

TEST(Attention, SharedKeyHeads) {
  check(makeCase(2, 6, 2, 40, 40, 16, true, MaskKind::None, 0));
  check(makeCase(1, 4, 1, 33, 60, 24, false, MaskKind::None, 0.2));
}

TEST(Attention, WideHeads) {
  check(makeCase(1, 2, 1, 40, 70, 96, true, MaskKind::None, 0.2));
}

TEST(Attention, WidestHeads) {
  check(makeCase(1, 2, 2, 33, 40, 160, true, MaskKind::None, 0));
}

TEST(Attention, Dropout) {
  check(makeCase(2, 2, 2, 64, 64, 16, true, MaskKind::None, 0.1));
  check(makeCase(2, 2, 2, 40, 300, 16, false, MaskKind::None, 0.5));
  check(makeCase(2, 2, 2, 33, 37, 16, false, MaskKind::None, 0.25)); // odd keys
}

TEST(Attention, SamplesOfSeveralRows) {
  Case c = makeCase(4, 2, 2, 20, 24, 8, false, MaskKind::None, 0.3);
  c.p.rowsPerSample = 2;
  c.samples = {3, 9};
  check(c);
}

TEST(Attention, ReadsPackedOperands) {
  // q, k and v as slices of [B, T, 3, H, D].
  Case c = makeCase(2, 3, 3, 40, 40, 16, true, MaskKind::None, 0);
  const int64_t row = 3 * 16, packed = 3 * row;
  Floats all(2 * 40 * packed, NAN);
  for (int64_t bt = 0; bt < 80; ++bt)
    for (int64_t i = 0; i < row; ++i) {
      all[bt * packed + i] = float(c.q[size_t(bt * row + i)]);
      all[bt * packed + row + i] = float(c.k[size_t(bt * row + i)]);
      all[bt * packed + 2 * row + i] = float(c.v[size_t(bt * row + i)]);
    }
  Floats q = narrow(c.q), k = narrow(c.k), v = narrow(c.v);
  Floats o(q.size()), l(2 * 3 * 40), o2(q.size()), l2(l.size());
  runKernel<Attention>(1, c.p, {q, k, v}, {o, l});
  AttentionParams strided = c.p;
  strided.q = strided.k = strided.v = {40 * packed, packed, 16};
  runKernel<Attention>(1, strided, {all, all + row, all + 2 * row}, {o2, l2});
  EXPECT_TRUE(o.sameBits(o2) && l.sameBits(l2));
  Floats g = randomFloats(q.size(), 5);
  Floats a(q.size()), b(q.size()), d(q.size());
  Floats a2(q.size()), b2(q.size()), d2(q.size());
  runKernel<AttentionGrad>(1, c.p, {q, k, v, o, l, g}, {a, b, d});
  runKernel<AttentionGrad>(1, strided, {all, all + row, all + 2 * row, o, l, g},
                           {a2, b2, d2});
  EXPECT_TRUE(a.sameBits(a2) && b.sameBits(b2) && d.sameBits(d2));
}
