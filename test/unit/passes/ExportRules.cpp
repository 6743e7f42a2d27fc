// ExportRules.cpp - norms, activations, attention and losses as exporters take
// them apart, in all the ways that were met and some that weren't.
//
// At each turn the rule chooses: which operand is on the left, whether a mean
// is a product or a quotient, where a factor stands, how a row's number gets
// back along its row. Now and then it chooses a wrong number or a wrong
// operand: what then looks almost like the real thing must not be taken for it.

#include "test/unit/passes/RandomGraph.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using nn::tensorType;

namespace {
/// Spells an expression with the choices left open.
class Exporter {
public:
  explicit Exporter(GraphBuilder &g) : g(g), b(g.b), loc(g.loc) {}

  bool coin() { return g.random.coin(); }
  /// One time in sixteen something is wrong.
  bool slip() { return g.random.below(16) == 0; }
  double number(double right) { return slip() ? right * 1.25 : right; }

  Value constant(Value like, double value) { return g.constant(like, value); }
  Value add(Value x, Value y) {
    return coin() ? nn::add(b, loc, x, y) : nn::add(b, loc, y, x);
  }
  Value mul(Value x, Value y) {
    return coin() ? nn::mul(b, loc, x, y) : nn::mul(b, loc, y, x);
  }
  Value sub(Value x, Value y) { return nn::sub(b, loc, x, y); }
  Value div(Value x, Value y) { return nn::div(b, loc, x, y); }
  Value scaled(Value x, double factor) {
    return coin() ? mul(x, constant(x, factor))
                  : div(x, constant(x, 1 / factor));
  }
  Value square(Value x) {
    return coin() ? nn::mul(b, loc, x, x)
                  : math::PowFOp::create(b, loc, x, constant(x, 2));
  }

  int64_t width(Value x) { return tensorType(x).getShape().back(); }
  Value rowSum(Value x) {
    return nn::reduceSum(b, loc, x, {tensorType(x).getRank() - 1});
  }
  Value rowMean(Value x) { return scaled(rowSum(x), number(1.0 / width(x))); }
  /// A row's number, back along its row, with or without a dimension of one.
  Value spread(Value row, Value like) {
    RankedTensorType type = tensorType(like);
    if (coin()) {
      SmallVector<int64_t> unit(tensorType(row).getShape());
      unit.push_back(1);
      Value kept = nn::reshapeTo(b, loc, row, unit);
      row = nn::reshapeTo(b, loc, kept, tensorType(row).getShape());
    }
    return nn::broadcastLeading(b, loc, row, type);
  }
  Value along(Value vector, Value like) {
    return nn::broadcastTrailing(b, loc, vector, like.getType());
  }

  GraphBuilder &g;
  OpBuilder &b;
  Location loc;
};
} // namespace

static Value rows(GraphBuilder &g) {
  Value x = g.pick();
  return tensorType(x).getRank() ? x : nn::reshapeTo(g.b, g.loc, x, {1});
}

/// x / root of the mean of squares, times a scale, plus a shift.
static Value normalized(Exporter &e, Value x, Value squares) {
  Value variance = e.rowMean(squares);
  Value safe = e.add(variance, e.constant(variance, 0.05)), y;
  if (e.coin())
    y = e.div(x, e.spread(math::SqrtOp::create(e.b, e.loc, safe), x));
  else
    y = e.mul(x, e.spread(math::RsqrtOp::create(e.b, e.loc, safe), x));
  if (e.coin())
    y = e.mul(y, e.along(e.g.param({e.width(x)}), x));
  return y;
}

static void layerNorm(GraphBuilder &g) {
  Exporter e(g);
  Value x = rows(g);
  Value mean = e.spread(e.rowMean(x), x);
  Value centred = e.sub(x, mean);
  Value again = e.coin() ? centred : e.sub(e.slip() ? g.like(x) : x, mean);
  Value y = normalized(e, centred, e.square(again));
  if (e.coin())
    y = e.add(y, e.along(g.param({e.width(x)}), x));
  g.add(y);
}

static void rmsNorm(GraphBuilder &g) {
  Exporter e(g);
  Value x = rows(g);
  g.add(normalized(e, x, e.square(e.slip() ? g.like(x) : x)));
}

static void gelu(GraphBuilder &g) {
  Exporter e(g);
  Value x = g.pick(), inner;
  if (e.coin()) {
    Value cube = e.coin()
                     ? e.mul(e.mul(x, x), x)
                     : math::PowFOp::create(g.b, g.loc, x, g.constant(x, 3));
    Value sum = e.add(x, e.mul(cube, g.constant(x, e.number(0.044715))));
    inner = math::TanhOp::create(g.b, g.loc,
                                 e.scaled(sum, e.number(std::sqrt(2 / M_PI))));
  } else {
    inner = math::ErfOp::create(g.b, g.loc, e.scaled(x, e.number(M_SQRT1_2)));
  }
  Value gate = e.add(inner, g.constant(x, 1));
  Value other = e.slip() ? g.like(x) : x;
  switch (g.random.below(3)) {
  case 0:
    return g.add(e.mul(e.scaled(other, 0.5), gate));
  case 1:
    return g.add(e.scaled(e.mul(other, gate), 0.5));
  default:
    return g.add(e.mul(other, e.scaled(gate, e.number(0.5))));
  }
}

static Value softmaxOf(Exporter &e, Value x) {
  if (e.coin())
    return nn::SoftmaxOp::create(e.b, e.loc, x, /*log=*/false);
  int64_t last = tensorType(x).getRank() - 1;
  Value largest = nn::ReduceOp::create(e.b, e.loc, x, nn::ReduceKind::Max,
                                       ArrayRef<int64_t>{last});
  Value up = math::ExpOp::create(e.b, e.loc, e.sub(x, e.spread(largest, x)));
  Value sum = e.spread(e.rowSum(up), x);
  if (e.coin())
    return e.div(up, sum);
  return e.mul(up, e.div(e.constant(x, 1), sum));
}

static void softmax(GraphBuilder &g) {
  Exporter e(g);
  Value y = softmaxOf(e, rows(g));
  if (e.coin())
    y = math::LogOp::create(g.b, g.loc, y);
  g.add(y);
}

/// Forbids keys: by choice or by addition, from positions, a constant or an
/// input. Every query sees key 0: of what sees nothing, the pieces make a NaN
/// and attention a zero.
static Value masked(Exporter &e, Value scores) {
  GraphBuilder &g = e.g;
  RankedTensorType type = tensorType(scores);
  int64_t rank = type.getRank();
  RankedTensorType square =
      g.tensor(type.getShape().take_back(2), g.b.getI64Type());
  // A finite number says what a query that sees nothing is. Types narrower than
  // f32 round it otherwise than nn.attention does.
  const double fills[] = {-std::numeric_limits<double>::infinity(), -1e9,
                          -10000, -3.4028234663852886e38, -2};
  const double number = fills[g.random.below(5)];
  const bool seesOne = std::isinf(number) || g.options.narrow || e.coin();
  Value seen;
  if (e.coin()) {
    Value t = nn::IotaOp::create(g.b, g.loc, square, 0);
    Value s = nn::IotaOp::create(g.b, g.loc, square, 1);
    int64_t more = square.getDimSize(1) - square.getDimSize(0) + e.slip();
    if (more > 0)
      t = arith::AddIOp::create(g.b, g.loc, t,
                                nn::splat(g.b, g.loc, square, more));
    seen = e.coin() ? arith::CmpIOp::create(g.b, g.loc,
                                            arith::CmpIPredicate::sge, t, s)
                    : arith::CmpIOp::create(g.b, g.loc,
                                            arith::CmpIPredicate::sle, s, t);
  } else {
    SmallVector<bool> bits;
    for (int64_t t = 0; t < square.getDimSize(0); ++t)
      for (int64_t s = 0; s < square.getDimSize(1); ++s)
        bits.push_back((s == 0 && seesOne) || g.random.coin());
    seen = arith::ConstantOp::create(
        g.b, g.loc,
        DenseElementsAttr::get(g.tensor(square.getShape(), g.b.getI1Type()),
                               bits));
  }
  RankedTensorType whole = g.tensor(type.getShape(), g.b.getI1Type());
  seen = nn::broadcastTo(g.b, g.loc, seen, whole, {rank - 2, rank - 1});
  if (e.coin()) { // some rows are padded
    int64_t keys = type.getShape().back();
    Value padding =
        g.batch(g.tensor({type.getDimSize(0), keys}, g.b.getI1Type()));
    if (seesOne)
      g.mark(padding, "test.first");
    seen = arith::AndIOp::create(
        g.b, g.loc, seen,
        nn::broadcastTo(g.b, g.loc, padding, whole, {0, rank - 1}));
  }
  Value fill = g.constant(scores, number);
  if (e.coin())
    return arith::SelectOp::create(g.b, g.loc, seen, scores, fill);
  Value summand =
      arith::SelectOp::create(g.b, g.loc, seen, g.constant(scores, 0), fill);
  return e.add(scores, summand);
}

static void attention(GraphBuilder &g) {
  Exporter e(g);
  Value q = g.pick(4); // [B, T, H, D]
  q = g.squash(q);
  auto shape = tensorType(q).getShape();
  int64_t rows = shape[0], queries = shape[1], heads = shape[2],
          depth = shape[3];
  int64_t keys = e.coin() ? queries : queries + 1;
  RankedTensorType kv = g.tensor({rows, keys, heads, depth});
  Value k = kv == q.getType() && e.coin() ? q : g.batch(kv);
  Value v = e.coin() ? k : g.batch(kv);
  // Scores of rank 4, or of rank 3 with batch and heads in one.
  bool flat = e.coin() && !g.options.batchSafe;
  auto permuted = [&](Value x, ArrayRef<int64_t> perm) -> Value {
    Value y = nn::TransposeOp::create(g.b, g.loc, x, perm);
    auto s = tensorType(y).getShape();
    return flat ? nn::reshapeTo(g.b, g.loc, y, {s[0] * s[1], s[2], s[3]}) : y;
  };
  double scale = 1 / std::sqrt(double(depth));
  int64_t place = g.random.below(4); // of the factor
  Value qt = permuted(q, {0, 2, 1, 3}), vt = permuted(v, {0, 2, 1, 3});
  if (place == 0)
    qt = e.scaled(qt, scale);
  bool fused = e.coin(); // both transposes of k in one
  Value kt = permuted(k, fused ? ArrayRef<int64_t>{0, 2, 3, 1}
                               : ArrayRef<int64_t>{0, 2, 1, 3});
  if (place == 1) { // half of it on each side
    qt = e.scaled(qt, std::sqrt(scale));
    kt = e.scaled(kt, std::sqrt(scale));
  }
  Value scores = nn::MatmulOp::create(g.b, g.loc, qt, kt, false, !fused);
  if (place == 2)
    scores = e.scaled(scores, scale);
  if (e.coin())
    scores = masked(e, scores);
  if (g.random.below(4) == 0) // once more
    scores = masked(e, scores);
  if (place == 3 && e.coin())
    scores = e.scaled(scores, scale); // after the mask
  Value p = softmaxOf(e, scores);
  if (g.random.below(4) == 0 && !flat) {
    double rate = 0.25;
    int64_t stream = g.stream();
    Value samples = g.samples(rows), seed = g.seed();
    Value u =
        nn::RandomOp::create(g.b, g.loc, p.getType(), seed, samples, stream);
    Value keep = arith::CmpFOp::create(g.b, g.loc, arith::CmpFPredicate::OGE, u,
                                       g.constant(u, rate));
    double up = e.number(1 / (1 - rate));
    if (e.coin()) {
      Value zero = g.constant(p, 0);
      p = arith::SelectOp::create(g.b, g.loc, keep, e.scaled(p, up), zero);
    } else
      p = e.mul(
          p,
          e.scaled(arith::UIToFPOp::create(g.b, g.loc, p.getType(), keep), up));
  }
  Value o = nn::MatmulOp::create(g.b, g.loc, p, vt);
  if (flat)
    o = nn::reshapeTo(g.b, g.loc, o, {rows, heads, queries, depth});
  g.add(nn::TransposeOp::create(g.b, g.loc, o, ArrayRef<int64_t>{0, 2, 1, 3}));
}

/// A label's logarithm chosen by comparing classes.
static void crossEntropy(GraphBuilder &g) {
  Exporter e(g);
  Value x = g.pick(2);
  if (e.coin()) { // logits are a product with a table
    Value table = g.param({g.size(), e.width(x)});
    Value transposed =
        nn::TransposeOp::create(g.b, g.loc, table, ArrayRef<int64_t>{1, 0});
    x = nn::MatmulOp::create(g.b, g.loc, g.squash(x), transposed);
  }
  int64_t rows = tensorType(x).getDimSize(0), classes = e.width(x);
  Value labels = g.batch(g.tensor({rows}, g.b.getI64Type()), classes);
  RankedTensorType indices = g.tensor({rows, classes}, g.b.getI64Type());
  Value logs =
      e.coin() ? nn::SoftmaxOp::create(g.b, g.loc, x, /*log=*/true).getResult()
               : math::LogOp::create(g.b, g.loc, softmaxOf(e, x)).getResult();
  Value counts;
  Value chosen = labels;
  if (e.coin()) {
    Value ignored = nn::splat(g.b, g.loc, labels.getType(), 1);
    counts = arith::CmpIOp::create(g.b, g.loc, arith::CmpIPredicate::ne, labels,
                                   ignored);
    chosen = arith::SelectOp::create(
        g.b, g.loc, counts, labels, nn::splat(g.b, g.loc, labels.getType(), 0));
  }
  Value iota = nn::IotaOp::create(g.b, g.loc, indices, 1);
  Value spread = nn::broadcastTo(g.b, g.loc, chosen, indices, {0});
  Value hit = e.coin()
                  ? arith::CmpIOp::create(g.b, g.loc, arith::CmpIPredicate::eq,
                                          iota, spread)
                  : arith::CmpIOp::create(g.b, g.loc, arith::CmpIPredicate::eq,
                                          spread, iota);
  Value kept =
      arith::SelectOp::create(g.b, g.loc, hit, logs, g.constant(logs, 0));
  Value picked = arith::NegFOp::create(g.b, g.loc, e.rowSum(kept));
  if (counts)
    picked = arith::SelectOp::create(g.b, g.loc, counts, picked,
                                     g.constant(picked, 0));
  Value sum = nn::reduceSum(g.b, g.loc, picked, {0});
  if (counts && e.coin()) {
    Value ones = arith::UIToFPOp::create(g.b, g.loc, picked.getType(), counts);
    Value count = nn::reduceSum(g.b, g.loc, ones, {0});
    // At least one counts, or the mean is no number.
    Value most =
        arith::MaximumFOp::create(g.b, g.loc, count, g.constant(count, 1));
    return g.addLoss(e.div(sum, most));
  }
  g.addLoss(e.scaled(sum, 1.0 / rows));
}

/// A linear layer with the weight transposed by an op of its own.
static void linear(GraphBuilder &g) {
  Exporter e(g);
  Value x = g.pick(2);
  int64_t n = g.size();
  Value w = g.param({n, e.width(x)});
  Value wt = nn::TransposeOp::create(g.b, g.loc, w, ArrayRef<int64_t>{1, 0});
  Value y = nn::MatmulOp::create(g.b, g.loc, g.squash(x), wt);
  if (e.coin())
    y = e.add(y, e.along(g.param({n}), y));
  g.add(y);
}

/// Positions turned in: x * cos + turned(x) * sin, where halves or neighbours
/// are turned, of all columns or of the first ones, with tables of constants,
/// per row or the same for all.
static void rotation(GraphBuilder &g) {
  Exporter e(g);
  Value given = g.pick(2);
  int64_t rows = tensorType(given).getDimSize(0), half = g.size();
  int64_t others = e.coin() ? g.size() : 0; // Columns that aren't rotated.
  Value weight = g.param({e.width(given), 2 * half + others});
  Value whole = nn::MatmulOp::create(g.b, g.loc, g.squash(given), weight);
  auto columns = [&](Value x, int64_t first, int64_t step,
                     int64_t count) -> Value {
    return nn::SliceOp::create(g.b, g.loc, g.tensor({rows, count}), x,
                               ArrayRef<int64_t>{0, first},
                               ArrayRef<int64_t>{1, step});
  };
  Value x = others ? columns(whole, 0, 1, 2 * half) : whole;
  Value turned;
  if (e.coin()) {
    auto negation =
        arith::NegFOp::create(g.b, g.loc, columns(x, half, 1, half));
    turned = nn::ConcatOp::create(
        g.b, g.loc, ValueRange{negation, columns(x, 0, 1, half)}, 1);
  } else {
    auto stacked = [&](Value part) {
      return nn::reshapeTo(g.b, g.loc, part, {rows, half, 1});
    };
    Value odd = arith::NegFOp::create(g.b, g.loc, columns(x, 1, 2, half)),
          even = columns(x, 0, 2, half);
    Value stack = nn::ConcatOp::create(
        g.b, g.loc, ValueRange{stacked(odd), stacked(even)}, 2);
    turned = nn::reshapeTo(g.b, g.loc, stack, {rows, 2 * half});
  }
  auto table = [&]() -> Value {
    bool perRow = e.coin() && !g.options.batchSafe;
    RankedTensorType type =
        perRow ? g.tensor({rows, 2 * half}) : g.tensor({2 * half});
    SmallVector<Attribute> numbers;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      numbers.push_back(g.b.getFloatAttr(g.element(), g.number(-1, 1)));
    Value constant = arith::ConstantOp::create(
        g.b, g.loc, DenseElementsAttr::get(type, numbers));
    return perRow ? constant : e.along(constant, x);
  };
  Value sines = e.mul(turned, table());
  Value rotated = e.add(e.mul(x, table()), sines);
  if (others) {
    Value rest = columns(whole, 2 * half, 1, others);
    rotated = nn::ConcatOp::create(g.b, g.loc, ValueRange{rotated, rest}, 1);
  }
  g.add(rotated);
}

ArrayRef<Rule> tmc::test::exportRules() {
  static const Rule rules[] = {layerNorm,    rmsNorm,   gelu,
                               softmax,      attention, attention,
                               crossEntropy, linear,    rotation};
  return rules;
}
