// RandomRules.cpp - the ways in which a random graph grows, one per family of
// ops. A new op is a new rule, or a new branch of its family's.

#include "test/unit/passes/RandomGraph.h"

#include "dialects/nn/AttentionFill.h"
#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::test;
using nn::tensorType;

/// Batch dimensions come first; most ops work on what is behind them.
static Value asMatrix(GraphBuilder &g, Value x) {
  RankedTensorType type = tensorType(x);
  if (type.getRank() == 2)
    return x;
  int64_t cols = type.getRank() ? type.getShape().back() : 1;
  return nn::reshapeTo(g.b, g.loc, x, {type.getNumElements() / cols, cols});
}

static Value asRows(GraphBuilder &g, Value x) {
  return tensorType(x).getRank() ? x : nn::reshapeTo(g.b, g.loc, x, {1});
}

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

static void unary(GraphBuilder &g) {
  OpBuilder &b = g.b;
  Location loc = g.loc;
  Value x = g.pick();
  switch (g.random.below(14)) {
  case 0:
    return g.add(math::ExpOp::create(b, loc, g.squash(x)));
  case 1:
    return g.add(math::LogOp::create(b, loc, g.positive(x)));
  case 2:
    return g.add(math::Log1pOp::create(b, loc, g.positive(x)));
  case 3:
    return g.add(math::TanhOp::create(b, loc, x));
  case 4:
    return g.add(math::ErfOp::create(b, loc, x));
  case 5:
    return g.add(math::SqrtOp::create(b, loc, g.positive(x)));
  case 6:
    return g.add(math::RsqrtOp::create(b, loc, g.positive(x)));
  case 7: // One of two, without another draw.
    if (tensorType(x).getRank() % 2)
      return g.add(math::AtanOp::create(b, loc, x));
    return g.add(math::SinOp::create(b, loc, x));
  case 8:
    return g.add(math::CosOp::create(b, loc, x));
  case 9:
    return g.add(math::AbsFOp::create(b, loc, x));
  case 10:
    return g.add(arith::NegFOp::create(b, loc, x));
  case 11: // relu
    return g.add(arith::MaximumFOp::create(b, loc, x, g.constant(x, 0)));
  case 12: { // sigmoid
    Value zero = g.constant(x, 0), one = g.constant(x, 1);
    Value isPositive =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, zero);
    Value e = math::ExpOp::create(
        b, loc,
        arith::SelectOp::create(b, loc, isPositive,
                                arith::NegFOp::create(b, loc, x), x));
    Value below = nn::add(b, loc, one, e);
    Value above = arith::SelectOp::create(b, loc, isPositive, one, e);
    return g.add(nn::div(b, loc, above, below));
  }
  default:
    return g.add(nn::GeluOp::create(b, loc, x, g.random.coin()));
  }
}

static void binary(GraphBuilder &g) {
  OpBuilder &b = g.b;
  Location loc = g.loc;
  Value x = g.pick(), y = g.like(x);
  if (g.random.coin())
    std::swap(x, y);
  switch (g.random.below(8)) {
  case 0:
  case 1:
    return g.add(nn::add(b, loc, x, y));
  case 2:
    return g.add(nn::sub(b, loc, x, y));
  case 3:
    return g.add(nn::mul(b, loc, g.squash(x), y));
  case 4:
    return g.add(nn::div(b, loc, x, g.positive(y)));
  case 5:
    return g.add(arith::MaximumFOp::create(b, loc, x, y));
  case 6:
    return g.add(arith::MinimumFOp::create(b, loc, x, y));
  default:
    y = g.squash(y);
    return g.add(math::PowFOp::create(b, loc, g.positive(x), y));
  }
}

static void powerByConstant(GraphBuilder &g) {
  Value x = g.squash(g.pick());
  double exponents[] = {2, 3, 0.5};
  int64_t which = g.random.below(3);
  if (which == 2)
    x = g.positive(x);
  g.add(math::PowFOp::create(g.b, g.loc, x, g.constant(x, exponents[which])));
}

static void chooseByComparison(GraphBuilder &g) {
  Value x = g.pick(), y = g.like(x);
  auto predicate =
      g.random.coin() ? arith::CmpFPredicate::OLT : arith::CmpFPredicate::OGE;
  Value c = arith::CmpFOp::create(g.b, g.loc, predicate, x, y);
  g.add(arith::SelectOp::create(g.b, g.loc, c, x, g.constant(x, 0.5)));
  if (g.random.coin())
    g.add(arith::UIToFPOp::create(g.b, g.loc, x.getType(), c));
}

static void scaleAndShift(GraphBuilder &g) {
  Value x = asRows(g, g.pick());
  RankedTensorType type = tensorType(x);
  Value vector = g.param({type.getShape().back()});
  Value spread = nn::broadcastTrailing(g.b, g.loc, vector, type);
  g.add(g.random.coin() ? nn::add(g.b, g.loc, x, spread)
                        : nn::mul(g.b, g.loc, g.squash(x), spread));
}

/// Row statistics: a reduction, and its result spread over the row.
static void rowStatistics(GraphBuilder &g) {
  Value x = asRows(g, g.pick());
  RankedTensorType type = tensorType(x);
  auto kind = nn::ReduceKind(g.random.below(3));
  int64_t dim = type.getRank() - 1;
  Value row = nn::ReduceOp::create(g.b, g.loc, x, kind, ArrayRef<int64_t>{dim});
  if (g.random.coin())
    row =
        nn::mul(g.b, g.loc, row, g.constant(row, 1.0 / type.getShape().back()));
  Value spread = nn::broadcastLeading(g.b, g.loc, row, type);
  g.add(nn::sub(g.b, g.loc, x, spread));
}

static void casts(GraphBuilder &g) {
  Value x = g.pick();
  RankedTensorType type = tensorType(x);
  Type narrow =
      g.options.f32 ? Type(g.b.getBF16Type()) : Type(g.b.getF32Type());
  RankedTensorType to = g.tensor(type.getShape(), narrow);
  Value down = arith::TruncFOp::create(g.b, g.loc, to, x);
  if (g.random.coin())
    down = nn::mul(g.b, g.loc, down, nn::splat(g.b, g.loc, to, 0.5));
  g.add(arith::ExtFOp::create(g.b, g.loc, type, down));
}

static void integers(GraphBuilder &g) {
  OpBuilder &b = g.b;
  Location loc = g.loc;
  SmallVector<int64_t> shape = g.shape(g.random.between(1, 4));
  bool wide = g.random.coin();
  Type integer = wide ? b.getI64Type() : b.getI32Type();
  RankedTensorType type = g.tensor(shape, integer);
  Value x = g.batch(type, 5);
  Value y = g.random.coin() || g.options.batchSafe
                ? g.batch(type, 7)
                : Value(nn::IotaOp::create(b, loc, type,
                                           g.random.below(shape.size())));
  Value three = nn::splat(b, loc, type, 3), z;
  switch (g.random.below(7)) {
  case 0:
    z = arith::AddIOp::create(b, loc, x, y);
    break;
  case 1:
    z = arith::SubIOp::create(b, loc, x, y);
    break;
  case 2:
    z = arith::MulIOp::create(b, loc, x, y);
    break;
  case 3:
    z = arith::DivSIOp::create(b, loc, x, three);
    break;
  case 4:
    z = arith::RemSIOp::create(b, loc, x, three);
    break;
  case 5:
    z = arith::MaxSIOp::create(b, loc, x, y);
    break;
  default:
    z = arith::MinSIOp::create(b, loc, x, y);
    break;
  }
  Value c = arith::CmpIOp::create(b, loc,
                                  g.random.coin() ? arith::CmpIPredicate::sle
                                                  : arith::CmpIPredicate::ne,
                                  z, three);
  Value d = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, y, three);
  switch (g.random.below(3)) {
  case 0:
    c = arith::AndIOp::create(b, loc, c, d);
    break;
  case 1:
    c = arith::OrIOp::create(b, loc, c, d);
    break;
  default:
    c = arith::XOrIOp::create(b, loc, c, d);
    break;
  }
  RankedTensorType other =
      g.tensor(shape, wide ? b.getI32Type() : b.getI64Type());
  Value resized = wide ? Value(arith::TruncIOp::create(b, loc, other, z))
                       : Value(arith::ExtSIOp::create(b, loc, other, z));
  Value number = arith::SIToFPOp::create(b, loc, g.tensor(shape), resized);
  if (g.random.coin()) { // whole numbers by way of fractions
    Value third = math::FloorOp::create(b, loc, nn::scale(b, loc, number, 0.3));
    Value whole = arith::FPToSIOp::create(b, loc, type, third);
    number = arith::SIToFPOp::create(b, loc, g.tensor(shape), whole);
  }
  Value bit = arith::UIToFPOp::create(
      b, loc, g.tensor(shape),
      arith::ExtUIOp::create(b, loc, g.tensor(shape, b.getI8Type()), c));
  g.add(arith::SelectOp::create(b, loc, c, number, bit));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static void linear(GraphBuilder &g) {
  Value x = asMatrix(g, g.pick());
  int64_t rows = tensorType(x).getDimSize(0), k = tensorType(x).getDimSize(1);
  int64_t n = g.size();
  bool transposed = g.random.coin();
  Value w = transposed ? g.param({n, k}) : g.param({k, n});
  Value bias = g.random.coin() ? g.param({n}) : Value();
  Value acc;
  if (g.options.accumulates && g.random.below(4) == 0)
    acc = g.like(g.random.coin()
                     ? x
                     : nn::MatmulOp::create(g.b, g.loc, x, w, false, transposed)
                           .getResult());
  if (acc && acc.getType() != g.tensor({rows, n}))
    acc = Value();
  Value y = nn::MatmulOp::create(g.b, g.loc, g.squash(x), w, bias, acc, false,
                                 transposed);
  g.add(y);
}

/// Columns of one product, each for a product of its own, as of joint
/// projections: strided views that kernels read.
static void splitColumns(GraphBuilder &g) {
  Value x = asMatrix(g, g.pick());
  int64_t rows = tensorType(x).getDimSize(0), k = tensorType(x).getDimSize(1);
  int64_t n = g.size();
  Value w = g.param({k, 2 * n});
  Value joint = nn::MatmulOp::create(g.b, g.loc, g.squash(x), w);
  for (int64_t part = 0; part < 2; ++part) {
    Value columns = nn::SliceOp::create(g.b, g.loc, g.tensor({rows, n}), joint,
                                        ArrayRef<int64_t>{0, part * n},
                                        ArrayRef<int64_t>{1, 1});
    g.add(nn::MatmulOp::create(g.b, g.loc, columns, g.param({n, g.size()})));
  }
}

/// A product of two values, every pair of flags.
static void products(GraphBuilder &g) {
  Value x = g.squash(g.pick(g.random.between(2, 4)));
  RankedTensorType type = tensorType(x);
  int64_t rank = type.getRank();
  bool tl = g.random.coin(), tr = g.random.coin();
  SmallVector<int64_t> shape(type.getShape());
  int64_t k = shape[tl ? rank - 2 : rank - 1], n = g.size();
  shape[tr ? rank - 1 : rank - 2] = k;
  shape[tr ? rank - 2 : rank - 1] = n;
  if (tl != tr && g.random.coin()) // x x^T, or x^T x
    return g.add(nn::MatmulOp::create(g.b, g.loc, x, x, tl, tr));
  Value y = rank == 2 ? g.param(shape) : g.batch(g.tensor(shape));
  g.add(g.random.coin()
            ? nn::MatmulOp::create(g.b, g.loc, x, y, tl, tr)
            : nn::MatmulOp::create(g.b, g.loc, y, x, !tr, !tl)); // transposed
}

namespace {
/// Attributes of a window that fits an image of `height` by `width`.
struct Spatial {
  SmallVector<int64_t> strides, padding, dilations, window;
  bool last;

  Spatial(GraphBuilder &g, int64_t height, int64_t width, bool last)
      : last(last) {
    for (int64_t extent : {height, width}) {
      strides.push_back(g.random.between(1, 3));
      dilations.push_back(g.random.below(4) == 0 ? 2 : 1);
      int64_t most = (extent - 1) / dilations.back() + 1;
      window.push_back(g.random.between(1, std::min<int64_t>(most, 3) + 1));
    }
    // Less than the window: no window lies in the padding alone.
    for (int64_t i = 0; i < 4; ++i)
      padding.push_back(
          window[i % 2] > 1 && dilations[i % 2] == 1 ? g.random.below(2) : 0);
  }
};
} // namespace

static Value image(GraphBuilder &g, Value &x, int64_t &channels,
                   int64_t &height, int64_t &width, bool last) {
  x = g.pick(4);
  auto shape = tensorType(x).getShape();
  channels = shape[last ? 3 : 1];
  height = shape[last ? 1 : 2];
  width = shape[last ? 2 : 3];
  return x;
}

static void convolution(GraphBuilder &g) {
  Value x;
  int64_t channels, height, width;
  bool last = g.random.coin();
  image(g, x, channels, height, width, last);
  Spatial s(g, height, width, last);
  int64_t groups = channels % 2 == 0 && g.random.below(3) == 0 ? 2 : 1;
  int64_t filters = groups * g.random.between(1, 3);
  Value f = g.param({filters, channels / groups, s.window[0], s.window[1]});
  Value y = nn::ConvOp::create(g.b, g.loc, g.squash(x), f, s.strides, s.padding,
                               s.dilations, last, groups);
  if (g.random.coin()) {
    // A bias per channel.
    Value bias = g.param({filters});
    y = nn::add(g.b, g.loc, y,
                nn::broadcastTo(g.b, g.loc, bias, y.getType(), {last ? 3 : 1}));
  }
  g.add(y);
  if (g.random.below(3) == 0) // a transposed convolution back to the image
    g.add(nn::ConvGradInputOp::create(g.b, g.loc, x.getType(), g.squash(y), f,
                                      g.b.getDenseI64ArrayAttr(s.strides),
                                      g.b.getDenseI64ArrayAttr(s.padding),
                                      g.b.getDenseI64ArrayAttr(s.dilations),
                                      last ? g.b.getUnitAttr() : nullptr,
                                      g.b.getI64IntegerAttr(groups)));
  if (g.random.below(6) == 0)
    g.add(nn::ConvGradFilterOp::create(g.b, g.loc, f.getType(), x, g.squash(y),
                                       g.b.getDenseI64ArrayAttr(s.strides),
                                       g.b.getDenseI64ArrayAttr(s.padding),
                                       g.b.getDenseI64ArrayAttr(s.dilations),
                                       last ? g.b.getUnitAttr() : nullptr,
                                       g.b.getI64IntegerAttr(groups)));
}

static void pool(GraphBuilder &g) {
  Value x;
  int64_t channels, height, width;
  bool last = g.random.coin();
  image(g, x, channels, height, width, last);
  Spatial s(g, height, width, last);
  if (g.random.coin())
    return g.add(nn::MaxPoolOp::create(g.b, g.loc, x, s.strides, s.padding,
                                       s.dilations, last, s.window));
  bool count = g.random.coin();
  Value y = nn::AvgPoolOp::create(g.b, g.loc, x, s.strides, s.padding,
                                  s.dilations, last, s.window, count);
  g.add(y);
  if (g.random.below(4) == 0)
    g.add(nn::AvgPoolGradOp::create(
        g.b, g.loc, x.getType(), y, g.b.getDenseI64ArrayAttr(s.strides),
        g.b.getDenseI64ArrayAttr(s.padding),
        g.b.getDenseI64ArrayAttr(s.dilations),
        last ? g.b.getUnitAttr() : nullptr, g.b.getDenseI64ArrayAttr(s.window),
        count ? g.b.getUnitAttr() : nullptr));
}

//===----------------------------------------------------------------------===//
// Attention, norms, lookups, losses, random numbers
//===----------------------------------------------------------------------===//

static Value constantMask(GraphBuilder &g, ArrayRef<int64_t> shape) {
  RankedTensorType type = g.tensor(shape);
  SmallVector<Attribute> values;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    values.push_back(g.b.getFloatAttr(g.element(), g.number(-1, 1)));
  return arith::ConstantOp::create(g.b, g.loc,
                                   DenseElementsAttr::get(type, values));
}

static void attention(GraphBuilder &g) {
  Value q = g.pick(4);
  auto shape = tensorType(q).getShape();
  int64_t rows = shape[0], queries = shape[1], heads = shape[2];
  int64_t keys = g.random.coin() ? queries : g.size();
  int64_t groups = heads % 2 == 0 && g.random.coin() ? heads / 2 : heads;
  RankedTensorType kv = g.tensor({rows, keys, groups, shape[3]});
  Value k = kv == q.getType() ? g.like(q) : g.batch(kv);
  Value v = g.random.coin() ? k : g.batch(kv);
  Value mask, bias, seed, samples;
  int64_t full[] = {rows, heads, queries, keys};
  SmallVector<int64_t> maskShape;
  for (int64_t size : full)
    maskShape.push_back(g.random.coin() ? size : 1);
  maskShape[3] = keys;
  // A mask takes no gradient, so no parameter may lead there: it is an input,
  // or a constant where all rows of the batch share it.
  switch (g.random.below(3)) {
  case 0:
    mask = maskShape[0] == 1 ? constantMask(g, maskShape)
                             : g.batch(g.tensor(maskShape));
    break;
  case 1:
    maskShape[0] = rows;
    mask = g.batch(g.tensor(maskShape, g.b.getI1Type()));
    break;
  default:
    break;
  }
  // A bias has a gradient.
  if (g.random.below(3) == 0)
    bias = g.param(
        {1, g.random.coin() ? heads : 1, g.random.coin() ? queries : 1, keys});
  double dropout = 0;
  if (g.random.below(3) == 0) {
    dropout = 0.25;
    seed = g.seed();
    samples = g.samples(rows);
  }
  bool causal = g.random.coin() && keys >= queries;
  double softcap = g.random.below(3) == 0 ? g.number(0.5, 3) : 0;
  int64_t window = g.random.below(3) == 0 ? 1 + g.random.below(3) : 0;
  auto op = nn::AttentionOp::create(
      g.b, g.loc, g.squash(q), k, v, mask, /*groups=*/Value(),
      /*prefix=*/Value(), seed, samples, bias,
      g.b.getF64FloatAttr(g.number(0.3, 1)),
      causal ? g.b.getUnitAttr() : nullptr, g.b.getF64FloatAttr(softcap),
      g.b.getI64IntegerAttr(window), g.b.getF64FloatAttr(dropout),
      g.b.getI64IntegerAttr(dropout > 0 ? g.stream() : 0),
      /*exact=*/UnitAttr(), /*tf32=*/UnitAttr());
  if (g.random.below(3) == 0)
    nn::setFill(op, {-1e4, FillKind(g.random.below(3))});
  g.add(op.getOut());
}

static void rotary(GraphBuilder &g) {
  Value x = asRows(g, g.pick());
  SmallVector<int64_t> shape(tensorType(x).getShape());
  if (shape.size() > 4 || shape.back() < 2)
    return;
  // Sometimes only the first rows along the second innermost dimension turn.
  int64_t heads = 0;
  if (shape.size() > 2 && g.random.below(3) == 0) {
    int64_t &size = shape[shape.size() - 2];
    heads = g.random.between(1, size + 1);
    size = 1;
  }
  for (int64_t &size : MutableArrayRef(shape).drop_back())
    size = g.random.coin() ? size : 1;
  shape.back() = 2 * g.random.between(1, shape.back() / 2 + 1);
  // Angles of all samples may be trained.
  auto table = [&]() {
    bool isShared = shape.size() == 1 || shape.front() == 1;
    return isShared ? g.param(shape) : g.batch(g.tensor(shape));
  };
  Value cos = table(), sin = table();
  g.add(nn::RotaryEmbeddingOp::create(g.b, g.loc, x, cos, sin, g.random.coin(),
                                      g.random.coin(), heads));
}

static void norm(GraphBuilder &g) {
  Value x = asRows(g, g.pick());
  RankedTensorType type = tensorType(x);
  int64_t width = type.getShape().back();
  FloatAttr epsilon = g.b.getF64FloatAttr(g.random.coin() ? 1e-2 : 0.1);
  auto vector = [&]() { return g.random.coin() ? g.param({width}) : Value(); };
  switch (g.random.below(3)) {
  case 0: {
    Value scale = vector(), shift = vector();
    return g.add(nn::LayerNormOp::create(g.b, g.loc, x, scale, shift, epsilon));
  }
  case 1:
    return g.add(nn::RMSNormOp::create(g.b, g.loc, x, vector(), epsilon));
  default:
    return g.add(nn::SoftmaxOp::create(g.b, g.loc, x, g.random.coin()));
  }
}

static void batchNorm(GraphBuilder &g) {
  Value x = g.pick(g.random.between(2, 5));
  auto shape = tensorType(x).getShape();
  bool last = g.random.coin();
  int64_t channels = last ? shape.back() : shape[1];
  if (tensorType(x).getNumElements() < 2 * channels)
    return; // one number has no variance
  Value mean = g.state({channels}), var = g.state({channels});
  Value bias = g.param({channels}), scale = g.param({channels});
  auto op = nn::BatchNormOp::create(
      g.b, g.loc, x, scale, bias, mean, var, g.b.getF64FloatAttr(0.1),
      g.b.getF64FloatAttr(0.1), last ? g.b.getUnitAttr() : nullptr);
  g.add(op.getResult());
  g.addUpdate(op.getNewMean(), mean);
  g.addUpdate(op.getNewVar(), var);
}

static void embedding(GraphBuilder &g) {
  int64_t rows = g.random.between(2, 6);
  Type integer = g.random.coin() ? g.b.getI64Type() : g.b.getI32Type();
  RankedTensorType type = g.tensor(g.shape(g.random.between(1, 3)), integer);
  Value ids = g.batch(type, rows);
  Value table = g.random.below(4) ? g.param({rows, g.size()}) : g.param({rows});
  Value x = nn::EmbeddingOp::create(g.b, g.loc, table, ids);
  g.add(x);
  if (!g.options.batchSafe && g.random.below(4) == 0)
    g.add(nn::EmbeddingGradOp::create(
        g.b, g.loc, table.getType(), ids, x,
        g.options.accumulates && g.random.coin() ? table : Value()));
}

/// One number per row, and a scalar weight.
static void crossEntropy(GraphBuilder &g) {
  Value x = asMatrix(g, g.pick());
  int64_t rows = tensorType(x).getDimSize(0),
          width = tensorType(x).getDimSize(1);
  bool isLinear = g.random.below(3) == 0;
  const int64_t columns = isLinear ? g.size() : width;
  // Some columns only pad the rows.
  const int64_t classes = columns > 1 && g.random.below(3) == 0
                              ? g.random.between(1, columns)
                              : columns;
  IntegerAttr vocabulary =
      classes < columns ? g.b.getI64IntegerAttr(classes) : IntegerAttr();
  Value labels = g.batch(g.tensor({rows}, g.b.getI64Type()), classes);
  Value weight = nn::splat(g.b, g.loc, g.tensor({}), 1.0 / rows);
  IntegerAttr ignored =
      g.b.getI64IntegerAttr(g.random.coin() ? -100 : classes - 1);
  if (isLinear) {
    IntegerAttr chunk = g.b.getI64IntegerAttr(g.random.between(1, 4));
    Value bias = g.random.coin() ? g.param({columns}) : Value();
    Value table = g.param({columns, width});
    Value loss =
        nn::LinearCrossEntropyOp::create(g.b, g.loc, x, table, labels, weight,
                                         bias, chunk, ignored, vocabulary)
            .getLoss();
    // The gradient of a square waits for the loss.
    bool squared = g.random.coin() && !g.options.batchSafe;
    return g.addLoss(squared ? nn::mul(g.b, g.loc, loss, loss) : loss);
  }
  g.addLoss(nn::CrossEntropyOp::create(g.b, g.loc, x, labels, weight, ignored,
                                       vocabulary)
                .getLoss());
}

static void dropout(GraphBuilder &g) {
  Value x = asRows(g, g.pick());
  RankedTensorType type = tensorType(x);
  int64_t stream = g.stream();
  Value samples = g.samples(type.getDimSize(0)), seed = g.seed();
  Value u = nn::RandomOp::create(g.b, g.loc, type, seed, samples, stream);
  double p = 0.25;
  Value keep = arith::CmpFOp::create(g.b, g.loc, arith::CmpFPredicate::OGE, u,
                                     g.constant(u, p));
  if (g.random.coin()) {
    Value scaled = nn::scale(g.b, g.loc, x, 1 / (1 - p));
    return g.add(
        arith::SelectOp::create(g.b, g.loc, keep, scaled, g.constant(x, 0)));
  }
  Value factor = arith::UIToFPOp::create(g.b, g.loc, type, keep);
  g.add(nn::mul(g.b, g.loc, x, nn::scale(g.b, g.loc, factor, 1 / (1 - p))));
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static void reduce(GraphBuilder &g) {
  Value x = asRows(g, g.pick());
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < tensorType(x).getRank(); ++dim)
    if (g.random.coin())
      dims.push_back(dim);
  if (dims.empty())
    dims.push_back(tensorType(x).getRank() - 1);
  g.add(nn::ReduceOp::create(g.b, g.loc, x, nn::ReduceKind(g.random.below(3)),
                             dims));
}

static void broadcast(GraphBuilder &g) {
  Value x = g.pick();
  RankedTensorType type = tensorType(x);
  SmallVector<int64_t> shape(type.getShape()), dims;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    dims.push_back(dim);
  int64_t at =
      g.random.between(g.options.batchSafe ? 1 : 0, type.getRank() + 1);
  shape.insert(shape.begin() + at, g.size());
  for (int64_t &dim : dims)
    dim += dim >= at;
  g.add(nn::BroadcastOp::create(g.b, g.loc, g.tensor(shape), x, dims));
}

static void transpose(GraphBuilder &g) {
  Value x = g.pick(g.random.between(2, 5));
  SmallVector<int64_t> perm = nn::firstDims(tensorType(x).getRank());
  int64_t begin = g.options.batchSafe ? 1 : 0;
  for (int64_t i = perm.size() - 1; i > begin; --i)
    std::swap(perm[i], perm[g.random.between(begin, i + 1)]);
  g.add(nn::TransposeOp::create(g.b, g.loc, x, perm));
}

static void reshape(GraphBuilder &g) {
  Value x = asRows(g, g.pick());
  SmallVector<int64_t> shape(tensorType(x).getShape());
  // Merges two neighbours, splits one in two, or adds a unit.
  int64_t dim = g.random.below(shape.size());
  if (g.random.coin() && dim + 1 < int64_t(shape.size())) {
    shape[dim] *= shape[dim + 1];
    shape.erase(shape.begin() + dim + 1);
  } else if (shape[dim] % 2 == 0 && dim > 0) {
    shape[dim] /= 2;
    shape.insert(shape.begin() + dim, 2);
  } else {
    shape.push_back(1);
  }
  g.add(nn::reshapeTo(g.b, g.loc, x, shape));
}

static void slice(GraphBuilder &g) {
  Value x = asRows(g, g.pick());
  SmallVector<int64_t> shape(tensorType(x).getShape());
  SmallVector<int64_t> offsets(shape.size(), 0), steps(shape.size(), 1);
  int64_t dim = g.random.below(shape.size());
  int64_t extent = shape[dim];
  offsets[dim] = g.random.below(extent);
  steps[dim] = g.random.between(1, 3);
  shape[dim] = (extent - offsets[dim] - 1) / steps[dim] + 1;
  g.add(nn::SliceOp::create(g.b, g.loc, g.tensor(shape), x, offsets, steps));
}

static void pad(GraphBuilder &g) {
  Value x = asRows(g, g.pick());
  SmallVector<int64_t> shape(tensorType(x).getShape());
  SmallVector<int64_t> low(shape.size(), 0), steps(shape.size(), 1);
  int64_t dim = g.random.below(shape.size());
  low[dim] = g.random.below(2);
  steps[dim] = g.random.between(1, 3);
  shape[dim] = low[dim] + (shape[dim] - 1) * steps[dim] + 1 + g.random.below(2);
  g.add(nn::PadOp::create(g.b, g.loc, g.tensor(shape), x, low, steps));
}

static void concat(GraphBuilder &g) {
  Value x = asRows(g, g.pick());
  SmallVector<Value> inputs{x, g.like(x)};
  if (g.random.coin())
    inputs.push_back(g.like(x));
  g.add(nn::ConcatOp::create(g.b, g.loc, inputs,
                             g.random.below(tensorType(x).getRank())));
}

static void copy(GraphBuilder &g) {
  g.add(nn::CopyOp::create(g.b, g.loc, g.pick()));
}

/// A triangle, as exporters write causal masks.
static void triangle(GraphBuilder &g) {
  Value x = g.pick(g.random.between(2, 5));
  RankedTensorType type = tensorType(x);
  int64_t rank = type.getRank();
  RankedTensorType square =
      g.tensor(type.getShape().take_back(2), g.b.getI64Type());
  Value rows = nn::IotaOp::create(g.b, g.loc, square, 0);
  Value cols = nn::IotaOp::create(g.b, g.loc, square, 1);
  Value seen =
      arith::CmpIOp::create(g.b, g.loc, arith::CmpIPredicate::sge, rows, cols);
  Value mask = nn::broadcastTo(g.b, g.loc, seen,
                               g.tensor(type.getShape(), g.b.getI1Type()),
                               {rank - 2, rank - 1});
  g.add(arith::SelectOp::create(g.b, g.loc, mask, x, g.constant(x, -3)));
}

ArrayRef<Rule> tmc::test::allRules() {
  static const Rule rules[] = {
      splitColumns,
      unary,
      unary,
      binary,
      binary,
      powerByConstant,
      linear,
      scaleAndShift,
      products,
      casts,
      chooseByComparison,
      integers,
      rowStatistics,
      convolution,
      pool,
      attention,
      rotary,
      norm,
      norm,
      batchNorm,
      embedding,
      crossEntropy,
      dropout,
      reduce,
      broadcast,
      transpose,
      reshape,
      slice,
      pad,
      concat,
      copy,
      triangle,
  };
  return rules;
}
